// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Holdfast
internal import HoldfastSemantics
internal import HoldfastStorage
private import Synchronization

#if canImport(FoundationNetworking)
    internal import Foundation
    internal import FoundationNetworking
#else
    internal import Foundation
#endif

extension ServiceClient {
    /// Sends what was built, and sends it on where the request says so.
    func exchange<R: Request>(_ request: R, _ built: BuiltRequest) async throws -> DecodedResponse<R.Result> {
        var built = built
        var origin: BuiltRequest? = built
        let clock = pipeline.configuration.clock
        let deadline = request.timeout.map { clock.now.advanced(by: $0) }
        var redirects = 0
        while true {
            let notes = CallNotes<R.Result>(built.urlRequest)
            var options = request.options
            if let deadline { options.timeout = clock.now.duration(to: deadline) }
            options.credentialFields += built.credentialFields
            options.acceptance = acceptance(of: request, deadline, notes)
            if let origin { options.prepare.append(bringingUpToDate(request, origin)) }
            options.prepare.append { urlRequest, _ in notes.sent(urlRequest) }
            do {
                var response = try await pipeline.send(built.urlRequest, body: built.body, options: options)
                let value = try await value(of: &response, request, deadline, notes)
                return DecodedResponse(value: value, response: response, urlRequest: notes.urlRequest)
            } catch {
                guard !error.isCancellation, !Task.isCancelled, let refused = notes.refused else { throw error }
                switch request.handle(error, response: refused) {
                case .error(let error): throw error
                case .redirect(let url):
                    guard redirects < 16, let following = built.redirected(to: url) else { throw error }
                    redirects += 1
                    if following.isForeign { origin = nil }
                    built = following.request
                }
            }
        }
    }

    /// What judges and decodes within the chain, and remembers the result.
    private func acceptance<R: Request>(
        of request: R,
        _ deadline: MonotonicInstant?,
        _ notes: CallNotes<R.Result>
    ) -> Acceptance {
        var acceptance = Acceptance { response in
            do {
                let value = try await received(&response, request, deadline)
                notes.decoded(value, response)
            } catch {
                notes.refused(response)
                throw error
            }
        }
        acceptance.judgesAttempts = request.options.retrierFactory?.judgesAttempts ?? judgesAttempts
        return acceptance
    }

    /// The result: what was decoded within the chain, unless a hook above put another response in its place.
    private func value<R: Request>(
        of response: inout Response,
        _ request: R,
        _ deadline: MonotonicInstant?,
        _ notes: CallNotes<R.Result>
    ) async throws -> R.Result {
        if let value = notes.value(of: response) { return value }
        return try await received(&response, request, deadline)
    }

    /// Takes a response in, within the call's time.
    private func received<R: Request>(
        _ response: inout Response,
        _ request: R,
        _ deadline: MonotonicInstant?
    ) async throws -> R.Result {
        guard let deadline else { return try await request.receive(&response) }
        let arrived = response
        let result: (R.Result, Response)
        do {
            result = try await withDeadline(deadline, on: pipeline.configuration.clock, discard: { _ in }) {
                var taken = arrived
                let value = try await request.receive(&taken)
                return (value, taken)
            }
        } catch let error as ServiceError where error.code == .timeout && pipeline.configuration.clock.now >= deadline {
            arrived.body.discard()
            throw ServiceError(
                .deadlineExceeded,
                "The time for this call was over before its content had come; allow more time, or ask for less.",
                progress: .headReceived,
                response: arrived
            )
        }
        response = result.1
        return result.0
    }

    /// Before a retry, builds the request anew and sends what differs in its header fields: a token may be another by then.
    private func bringingUpToDate<R: Request>(_ request: R, _ built: BuiltRequest) -> PrepareStep {
        { urlRequest, context in
            guard context.attempt > 1, context.redirectCount == 0 else { return }
            let before = built.urlRequest.allHTTPHeaderFields ?? [:]
            let after = try await build(request).urlRequest.allHTTPHeaderFields ?? [:]
            for name in Set(before.keys).union(after.keys) where before[name] != after[name] {
                // The content goes out as it was built, and a boundary in its type belongs to it.
                if FieldName(name) == .contentType { continue }
                urlRequest.setValue(after[name], forHTTPHeaderField: name)
            }
        }
    }
}

/// What is known of a call while it goes through the pipeline.
private final class CallNotes<Value: Sendable>: Sendable {
    private struct State {
        var urlRequest: URLRequest
        var decoded: (value: Value, status: StatusCode, bytes: ByteChunk?)?
        var refused: Response?
    }

    private let state: Mutex<State>

    init(_ urlRequest: URLRequest) {
        state = Mutex(State(urlRequest: urlRequest))
    }

    /// The request as it was sent last.
    var urlRequest: URLRequest { state.withLock { $0.urlRequest } }

    /// The response that was refused last.
    var refused: Response? { state.withLock { $0.refused } }

    func sent(_ urlRequest: URLRequest) {
        state.withLock { $0.urlRequest = urlRequest }
    }

    func decoded(_ value: Value, _ response: Response) {
        state.withLock { state in
            state.decoded = (value, response.status, response.body.bytesInMemory)
            state.refused = nil
        }
    }

    func refused(_ response: Response) {
        state.withLock { state in
            state.decoded = nil
            state.refused = response
        }
    }

    /// What this response was decoded to, where it is the one that was decoded.
    func value(of response: Response) -> Value? {
        state.withLock { state in
            guard let decoded = state.decoded, decoded.status == response.status,
                decoded.bytes == response.body.bytesInMemory
            else { return nil }
            return decoded.value
        }
    }
}

extension BuiltRequest {
    /// The same request to another URL, as a 307 would have it (RFC 9110 §15.4); nil where it cannot be sent again.
    fileprivate func redirected(to url: URL) -> (request: BuiltRequest, isForeign: Bool)? {
        guard body.isReplayable, let text = urlRequest.url?.absoluteString, let target = try? TargetURI(text) else {
            return nil
        }
        let head = RequestHead(
            method: RequestMethod(rawValue: urlRequest.httpMethod ?? "GET"),
            target: target,
            fields: HeaderFields(urlRequest.allHTTPHeaderFields ?? [:])
        )
        let answer = ResponseHead(status: .temporaryRedirect, fields: ["Location": url.absoluteString])
        guard let redirection = Redirection.next(after: answer, to: head) else { return nil }
        var following = self
        following.urlRequest.url = URL(string: redirection.location)
        let kept = redirection.fields(from: head.fields)
        for line in head.fields where !kept.contains(line.name) {
            following.urlRequest.setValue(nil, forHTTPHeaderField: line.name.rawName)
        }
        if redirection.crossesOrigin {
            for name in credentialFields { following.urlRequest.setValue(nil, forHTTPHeaderField: name.rawName) }
        }
        return (following, redirection.crossesOrigin)
    }
}

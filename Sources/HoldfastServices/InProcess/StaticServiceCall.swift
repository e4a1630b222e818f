// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Holdfast
internal import HoldfastSemantics
internal import HoldfastStorage
private import Synchronization

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif
/// Asks a service without instances for one response.
struct StaticServiceCall {
    private let type: any ServiceProtocol.Type
    private let configuration: ServiceRouter.Configuration
    private let threads: ServiceThreads

    init(
        _ type: any ServiceProtocol.Type,
        configuration: ServiceRouter.Configuration,
        on threads: ServiceThreads
    ) {
        self.type = type
        self.configuration = configuration
        self.threads = threads
    }

    func response(
        to request: URLRequest,
        url: URL,
        body: RequestBody,
        context: CallContext
    ) async throws -> Response {
        let request = try await request.carrying(body, upTo: configuration.requestContentLimit)
        guard let template = HTTPURLResponse.made(url, status: .ok) else {
            throw ServiceError(
                .badRequest,
                "No response can be made for this URL, because it is invalid.",
                progress: .notSent
            )
        }
        let exchange = ServiceExchange(
            serviceIdentifier: type.serviceIdentifier,
            unreadLimit: configuration.unreadLimit
        ) { [onContractViolation = configuration.onContractViolation] violation in
            context.emit(.serviceContractViolated) { event in
                event.attempt = context.attempt
                event.error = violation
                event.detail = violation.description
            }
            onContractViolation?(violation)
        }
        begin(request, template: template, exchange: exchange)
        return try await exchange.response(to: url)
    }

    /// Calls the service outside the pool that runs tasks: it may block, and what it returns is visible at once.
    private func begin(_ request: URLRequest, template: HTTPURLResponse, exchange: ServiceExchange) {
        let responder = ServiceResponder(exchange)
        threads.run { [type] in
            // A caller that left while the call waited for a thread needs no response.
            guard !exchange.isLeft else { return }
            type.performRequest(
                request,
                response: template,
                responseReturn: { responder.returnResponse($0) },
                dataReturn: { responder.returnData($0) },
                requestComplete: { responder.completeRequest() }
            )
        }
    }
}

extension URLRequest {
    /// The same request with the content in `httpBody`, unless the request has its own stream.
    fileprivate func carrying(_ body: RequestBody, upTo limit: Int) async throws -> URLRequest {
        let content: ByteChunk
        switch body.form {
        case .requestStream: return self
        case .none:
            guard httpBody != nil || httpBodyStream != nil else { return self }
            var request = self
            request.httpBodyStream = nil
            request.httpBody = nil
            return request
        case .bytes(let bytes): content = bytes
        case .file(let url): content = try await URLRequest.content(of: url, upTo: limit)
        case .factory(let length, let make):
            content = try await ResponseBody(try await make(), length: length).requestContent(upTo: limit)
        case .oneShot(let length, let source):
            content = try await ResponseBody(source, length: length).requestContent(upTo: limit)
        }
        guard content.count <= limit else { throw URLRequest.tooLarge(limit) }
        var request = self
        request.httpBody = content.withUnsafeBytes { Data($0) }
        return request
    }

    private static func content(of file: URL, upTo limit: Int) async throws -> ByteChunk {
        do {
            return try await BlockingWork.run {
                let handle = try FileHandle(forReadingFrom: file)
                defer { try? handle.close() }
                return ByteChunk(copying: try handle.read(upToCount: limit == .max ? limit : limit + 1) ?? Data())
            }
        } catch {
            throw ServiceError(
                .badRequest,
                "The file with the request's content cannot be read; see the cause.",
                cause: error,
                progress: .notSent
            )
        }
    }

    fileprivate static func tooLarge(_ limit: Int) -> ServiceError {
        ServiceError(
            .bodyTooLarge,
            "The request's content is longer than \(limit) bytes; raise the router's requestContentLimit, or answer it by an "
                + "InProcessService, which reads it as a stream.",
            progress: .notSent
        )
    }
}

extension ResponseBody {
    fileprivate func requestContent(upTo limit: Int) async throws -> ByteChunk {
        do {
            return try await collect(upTo: limit)
        } catch let error as ServiceError where error.code == .bodyTooLarge {
            throw URLRequest.tooLarge(limit)
        }
    }
}

/// Runs work that may block: each piece on its own thread up to a limit, the rest in order of arrival.
///
/// Dispatch queues are not used because they stop at about 255 threads for the whole process, and everything after that waits
/// until a blocked one is done.
final class ServiceThreads: Sendable {
    private struct State {
        var running = 0
        /// The oldest is last.
        var outgoing: [@Sendable () -> Void] = []
        var incoming: [@Sendable () -> Void] = []

        mutating func next() -> (@Sendable () -> Void)? {
            if outgoing.isEmpty {
                outgoing = incoming.reversed()
                incoming = []
            }
            return outgoing.popLast()
        }
    }

    private let limit: Int
    private let state = Mutex(State())

    init(limit: Int) {
        self.limit = max(limit, 1)
    }

    func run(_ work: @escaping @Sendable () -> Void) {
        let isDue = state.withLock { state in
            guard state.running < limit else {
                state.incoming.append(work)
                return false
            }
            state.running += 1
            return true
        }
        guard isDue else { return }
        let thread = Thread {
            var work = work
            while true {
                work()
                let next = self.state.withLock { state in
                    let next = state.next()
                    if next == nil { state.running -= 1 }
                    return next
                }
                guard let next else { return }
                work = next
            }
        }
        thread.name = "holdfast.service"
        thread.start()
    }
}

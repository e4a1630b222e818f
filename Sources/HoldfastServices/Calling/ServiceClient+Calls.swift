// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Holdfast
internal import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import Foundation
    internal import FoundationNetworking
#else
    internal import Foundation
#endif

extension ServiceClient {
    /// Sends a request and returns its result together with the response.
    ///
    /// The order is: the request is built; request hooks, first to last; the pipeline, which accepts and decodes; request
    /// hooks, last to first. A failure goes to the request hooks, then `process`, then `mapError`, then the caller. A failure
    /// to build the request goes to all request hooks, and to none of the pipeline's hooks, because they were never scheduled.
    ///
    /// - Throws: what the service's ``HttpService/mapError(_:)`` returns; by default `ServiceError` or, promptly,
    ///   `CancellationError`.
    public func response<R: Request>(
        to request: R
    ) async throws(Service.RequestError) -> DecodedResponse<R.Result> {
        do {
            return try await run(request)
        } catch {
            throw service.mapError(error)
        }
    }

    private func run<R: Request>(_ request: R) async throws -> DecodedResponse<R.Result> {
        let limit =
            request.timeout.map { TimeLimit($0, setting: .request) } ?? pipeline.timeLimit(of: request.options)
        let deadline = limit.map {
            CallDeadline(pipeline.configuration.clock.now.advanced(by: $0.duration), limit: $0)
        }
        let built: BuiltRequest
        do {
            built = try await build(request, until: deadline)
        } catch {
            if error.isCancellation || Task.isCancelled { throw CancellationError() }
            await fail(request, error: error, hooks: requestHooks[...])
            throw error
        }
        let shown = requestHooks.isEmpty ? built.urlRequest : built.showing(built.urlRequest)
        var passed = requestHooks[..<0]
        for (index, hook) in requestHooks.enumerated() {
            if let value = await hook.onSchedule(request, shown) {
                let response = Response(status: .ok, url: shown.url, source: .synthesized)
                let answer = DecodedResponse(value: value, response: response, urlRequest: built.urlRequest)
                await succeed(request, answer: answer, urlRequest: shown, passed: passed)
                return answer
            }
            passed = requestHooks[...index]
        }
        let answer: DecodedResponse<R.Result>
        do {
            answer = try await exchange(request, built: built, deadline: deadline)
        } catch let unnamed {
            let error = unnamed.named(built.urlRequest, hasSwitch: !(service is ProxyService))
            guard !error.isCancellation, !Task.isCancelled else {
                for hook in passed.reversed() { hook.onCancel(request) }
                throw CancellationError()
            }
            await fail(request, error: error, hooks: passed)
            throw error
        }
        if !passed.isEmpty {
            await succeed(request, answer: answer, urlRequest: built.showing(answer.urlRequest), passed: passed)
        }
        return answer
    }

    /// Builds a request within the call's time: a token that never arrives must not block the call forever.
    private func build<R: Request>(_ request: R, until deadline: CallDeadline?) async throws -> BuiltRequest {
        guard let deadline else { return try await build(request) }
        let clock = pipeline.configuration.clock
        do {
            return try await withDeadline(deadline.instant, on: clock, discard: { _ in }) { try await build(request) }
        } catch let error as ServiceError where error.code == .timeout && clock.now >= deadline.instant {
            throw ServiceError(
                .deadlineExceeded,
                deadline.limit.timedOut(
                    "before its request was built",
                    advice: "Allow more time, or find out what its header fields waited for."
                ),
                cause: error,
                progress: .notSent
            )
        }
    }

    private func succeed<R: Request>(
        _ request: R,
        answer: DecodedResponse<R.Result>,
        urlRequest: URLRequest,
        passed: ArraySlice<any RequestHook>
    ) async {
        for hook in passed.reversed() {
            await hook.onSuccess(request, urlRequest, result: answer.value, response: answer.response)
        }
    }

    private func fail<R: Request>(_ request: R, error: any Error, hooks: ArraySlice<any RequestHook>) async {
        for hook in hooks.reversed() { await hook.onFailure(request, error) }
        service.process(error)
    }
}

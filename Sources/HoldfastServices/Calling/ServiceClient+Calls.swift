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
    /// In order: the request is built; request hooks, top down; the pipeline, which accepts and decodes; request hooks, bottom
    /// up. A failure reaches the request hooks, then `process`, then `mapError`, then the caller. One that happens while the
    /// request is built reaches all request hooks, and none of the pipeline's, which were never scheduled.
    ///
    /// - Throws: what the service's ``HttpService/mapError(_:)`` makes of what happened; by default ``ServiceError`` or
    ///   `CancellationError`, promptly.
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
        let built: BuiltRequest
        do {
            built = try await build(request)
        } catch {
            if error.isCancellation || Task.isCancelled { throw CancellationError() }
            await fail(request, error, requestHooks[...])
            throw error
        }
        var passed = requestHooks[..<0]
        for (index, hook) in requestHooks.enumerated() {
            if let value = await hook.onSchedule(request, built.urlRequest) {
                let response = Response(status: .ok, url: built.urlRequest.url, source: .synthesized)
                let answer = DecodedResponse(value: value, response: response, urlRequest: built.urlRequest)
                await succeed(request, answer, passed)
                return answer
            }
            passed = requestHooks[...index]
        }
        do {
            let answer = try await exchange(request, built)
            await succeed(request, answer, passed)
            return answer
        } catch {
            guard !error.isCancellation, !Task.isCancelled else {
                for hook in passed.reversed() { hook.onCancel(request) }
                throw CancellationError()
            }
            await fail(request, error, passed)
            throw error
        }
    }

    private func succeed<R: Request>(
        _ request: R,
        _ answer: DecodedResponse<R.Result>,
        _ passed: ArraySlice<any RequestHook>
    ) async {
        for hook in passed.reversed() {
            await hook.onSuccess(request, answer.urlRequest, result: answer.value, response: answer.response)
        }
    }

    private func fail<R: Request>(_ request: R, _ error: any Error, _ hooks: ArraySlice<any RequestHook>) async {
        for hook in hooks.reversed() { await hook.onFailure(request, error) }
        service.process(error)
    }
}

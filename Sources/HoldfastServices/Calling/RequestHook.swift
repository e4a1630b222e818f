// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Holdfast

#if canImport(FoundationNetworking)
    internal import Foundation
    public import FoundationNetworking
#else
    public import Foundation
#endif

/// Takes part in typed calls at three moments, on decoded results.
///
/// Stands above the whole pipeline. Hooks go down in list order and up in reverse; one that let a call pass gets exactly one
/// ending. **Implement** what you need; everything has a default, and code that does not suspend may leave `async` out.
public protocol RequestHook: Sendable {
    /// Called before a request is sent, once per call; never where it could not be built.
    ///
    /// - Parameters:
    ///   - request: what was scheduled.
    ///   - urlRequest: what would be sent, all fields included.
    /// - Returns: a value that is the call's result: nothing is sent, and this hook and those below it get no ending. Nil, the
    ///   default, lets it pass.
    func onSchedule<R: Request>(_ request: R, _ urlRequest: URLRequest) async -> R.Result?

    /// Called when a response was decoded, before the caller sees the result; not where a ``RequestHook`` gave the result.
    func onSuccess<R: Request>(_ request: R, _ urlRequest: URLRequest, result: R.Result) async

    /// Called when there is a result; by default calls ``RequestHook/onSuccess(_:_:result:)`` unless another hook gave it.
    ///
    /// - Parameters:
    ///   - request: what was scheduled.
    ///   - urlRequest: the request as it was sent last.
    ///   - result: what the caller gets.
    ///   - response: the response, content included; its `source` is `.synthesized` where a hook below gave the result.
    func onSuccess<R: Request>(_ request: R, _ urlRequest: URLRequest, result: R.Result, response: Response) async

    /// Called when a call failed for good, also where its request could not be built.
    func onFailure(_ error: any Error) async

    /// Called when a call failed for good; by default calls ``RequestHook/onFailure(_:)``.
    func onFailure<R: Request>(_ request: R, _ error: any Error) async

    /// Called when a call that had passed was cancelled. Synchronous: release what you hold and return.
    func onCancel<R: Request>(_ request: R)
}

extension RequestHook {
    public func onSchedule<R: Request>(_ request: R, _ urlRequest: URLRequest) async -> R.Result? { nil }
    public func onSuccess<R: Request>(_ request: R, _ urlRequest: URLRequest, result: R.Result) async {}
    public func onSuccess<R: Request>(
        _ request: R,
        _ urlRequest: URLRequest,
        result: R.Result,
        response: Response
    ) async {
        guard response.source != .synthesized else { return }
        await onSuccess(request, urlRequest, result: result)
    }
    public func onFailure(_ error: any Error) async {}
    public func onFailure<R: Request>(_ request: R, _ error: any Error) async { await onFailure(error) }
    public func onCancel<R: Request>(_ request: R) {}
}

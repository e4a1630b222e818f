// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Holdfast

#if canImport(FoundationNetworking)
    internal import Foundation
    public import FoundationNetworking
#else
    public import Foundation
#endif

/// Takes part in typed calls at three points, and sees decoded results.
///
/// Request hooks are above the whole pipeline. They are called in list order before a call and in reverse order after it; a
/// hook that let a call pass gets exactly one ending. **Implement** what you need; everything has a default, and a method that
/// does not suspend may omit `async`.
public protocol RequestHook: Sendable {
    /// Called before a request is sent, once per call; not called if it could not be built.
    ///
    /// - Parameters:
    ///   - request: the scheduled request.
    ///   - urlRequest: what will be sent, with all fields.
    /// - Returns: a value to use as the call's result: nothing is sent, and this hook and those below it get no ending. Nil,
    ///   the default, lets the call pass.
    func onSchedule<R: Request>(_ request: R, _ urlRequest: URLRequest) async -> R.Result?

    /// Called after a response was decoded, before the caller sees the result; not called if a ``RequestHook`` supplied the
    /// result.
    func onSuccess<R: Request>(_ request: R, _ urlRequest: URLRequest, result: R.Result) async

    /// Called when there is a result; by default calls ``RequestHook/onSuccess(_:_:result:)`` unless another hook supplied it.
    ///
    /// - Parameters:
    ///   - request: the scheduled request.
    ///   - urlRequest: the request as it was last sent.
    ///   - result: what the caller gets.
    ///   - response: the response, content included; its `source` is `.synthesized` if a hook below supplied the result.
    func onSuccess<R: Request>(_ request: R, _ urlRequest: URLRequest, result: R.Result, response: Response) async

    /// Called when a call has finally failed, also if its request could not be built.
    func onFailure(_ error: any Error) async

    /// Called when a call has finally failed; by default calls ``RequestHook/onFailure(_:)``.
    func onFailure<R: Request>(_ request: R, _ error: any Error) async

    /// Called when a call that this hook let pass was cancelled. Synchronous: release what you hold and return.
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

/// The result of a typed call together with the response it was decoded from.
public struct DecodedResponse<Value: Sendable>: Sendable {
    /// The result.
    public let value: Value
    /// The response, content included: `source`, `attempts` and `cacheDecision` say how the call went.
    public let response: Response
    /// The request as it was last sent.
    public let urlRequest: URLRequest

    /// Creates a result with the response it came from.
    public init(value: Value, response: Response, urlRequest: URLRequest) {
        self.value = value
        self.response = response
        self.urlRequest = urlRequest
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if canImport(FoundationNetworking)
    internal import Foundation
    public import FoundationNetworking
#else
    public import Foundation
#endif

/// Takes part in calls at three moments: before sending, after a response, after a failure.
///
/// Hooks go down in list order and up in reverse. **A hook whose ``onSchedule(_:_:)`` let a call pass gets exactly one
/// ending**: ``onSuccess(_:_:_:)`` at the response head, ``onFailure(_:_:_:)``, or ``onCancel(_:_:)``. A hook that answers, or
/// throws, in `onSchedule` gets none, and neither do the hooks below it; the hooks above it get theirs. A hook that throws in
/// `onSuccess` turns the outcome into a failure for the hooks above it. A response from `onFailure` turns it into a success.
///
/// **Choose.** ``CachingHook`` (through `Pipeline(cache:)`). **Use.** List hooks in `Pipeline(hooks:)`.
/// **Implement.** Everything has a default, so write only the moments you need. Hooks run on the caller's task, never at the
/// same time for one call, many times at once for different calls. State of one call belongs in the context.
public protocol ServiceHook: Sendable {
    /// Where the hook stands; `.call` by default.
    var scope: HookScope { get }

    /// Called before anything is sent, once per call (`.call`) or once per hop of it (`.message`), never per attempt.
    ///
    /// May edit the request, or answer it: then nothing is sent, however slow the hook was. The content travels in
    /// ``CallContext/body``; what a hook writes into the request's own `httpBody` is not sent. What it adds to the fields or the
    /// query is not sent to another origin that a redirect leads to, unless ``PipelineConfiguration/trustedOrigins`` says so. A deadline does not interrupt
    /// a hook; it is looked at before the next attempt.
    func onSchedule(_ request: inout URLRequest, _ context: inout CallContext) async throws -> Response?

    /// Called with the response head, before the caller sees it; may edit or replace the response.
    ///
    /// - Parameters:
    ///   - response: the response, its body still to be read.
    ///   - request: the request as it was sent, or, where nothing was, as it left this hook.
    ///   - context: what is known of the call, and what the hook has kept there.
    func onSuccess(_ response: inout Response, _ request: URLRequest, _ context: inout CallContext) async throws

    /// Called when the call failed for good; may answer in its place.
    func onFailure(_ error: any Error, _ request: URLRequest, _ context: inout CallContext) async -> Response?

    /// Called when the call was cancelled. Synchronous, because code that awaits in a cancelled task dies of its
    /// `CancellationError`; release what you hold and return.
    func onCancel(_ request: URLRequest, _ context: CallContext)
}

extension ServiceHook {
    public var scope: HookScope { .call }
    public func onSchedule(_ request: inout URLRequest, _ context: inout CallContext) async throws -> Response? {
        context.noteDefault(.schedule, of: Self.self)
        return nil
    }
    public func onSuccess(
        _ response: inout Response,
        _ request: URLRequest,
        _ context: inout CallContext
    ) async throws {
        context.noteDefault(.success, of: Self.self)
    }
    public func onFailure(_ error: any Error, _ request: URLRequest, _ context: inout CallContext) async -> Response? {
        nil
    }
    public func onCancel(_ request: URLRequest, _ context: CallContext) {}
}

/// Where in a pipeline a hook stands.
public enum HookScope: Sendable, Hashable {
    /// Above redirects and acceptance: sees each call once, and one final outcome.
    case call
    /// Below redirects and acceptance: sees every hop's raw response, 304 included. Caches stand here.
    case message
}

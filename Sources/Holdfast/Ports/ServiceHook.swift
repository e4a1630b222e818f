// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if canImport(FoundationNetworking)
    internal import Foundation
    public import FoundationNetworking
#else
    public import Foundation
#endif

/// Code that is called before a request is sent, after a response and after a failure.
///
/// Hooks run in list order on the way down and in reverse on the way up. **A hook whose ``onSchedule(_:_:)`` let a call pass
/// gets exactly one ending**: ``onSuccess(_:_:_:)`` at the response head, ``onFailure(_:_:_:)``, or ``onCancel(_:_:)``. If a
/// hook answers or throws in `onSchedule`, it and the hooks below it get no ending; the hooks above it get theirs. If a hook
/// throws in `onSuccess`, the hooks above it see a failure. If it returns a response from `onFailure`, they see a success.
///
/// **Choose.** ``CachingHook`` (through `Pipeline(cache:)`). **Use.** List hooks in `Pipeline(hooks:)`. **Implement.** Every
/// method has a default, so write only those you need. Hooks run on the caller's task: never concurrently for one call, but
/// many times at once for different calls. Keep the state of one call in the context.
public protocol ServiceHook: Sendable {
    /// Where in the pipeline the hook runs; `.call` by default.
    var scope: HookScope { get }

    /// Called before anything is sent, once per call (`.call`) or once per hop of it (`.message`), never per attempt.
    ///
    /// May edit the request, or answer it: then nothing is sent, however slow the hook was. The content is in
    /// ``CallContext/body``, which changes if a hook sets the request's own `httpBody`. If a redirect leads to another origin,
    /// what the hook adds to the fields or the query is not sent there, unless ``PipelineConfiguration/trustedOrigins``
    /// includes that origin. A deadline does not interrupt a hook; it is checked before the next attempt.
    func onSchedule(_ request: inout URLRequest, _ context: inout CallContext) async throws -> Response?

    /// Called with the response head, before the caller sees it; may edit or replace the response.
    ///
    /// - Parameters:
    ///   - response: the response, its body still to be read.
    ///   - request: the request as it was sent or, if nothing was sent, as it left this hook.
    ///   - context: what is known about the call, and what the hook has stored there.
    func onSuccess(_ response: inout Response, _ request: URLRequest, _ context: inout CallContext) async throws

    /// Called when the call has finally failed; may return a response instead.
    func onFailure(_ error: any Error, _ request: URLRequest, _ context: inout CallContext) async -> Response?

    /// Called when the call was cancelled. Synchronous, because code that awaits in a cancelled task ends with a
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
        context.noteDefault(.failure, of: Self.self)
        return nil
    }
    public func onCancel(_ request: URLRequest, _ context: CallContext) {}
}

/// A hook that waits for nothing before a request and after a response: it is called without suspending, which takes a fraction of
/// the time.
///
/// **Implement** ``scheduled(_:context:)`` and ``succeeded(_:to:context:)`` in place of ``ServiceHook/onSchedule(_:_:)`` and
/// ``ServiceHook/onSuccess(_:_:_:)``, with the same contracts; both have a default. They run on the caller's task and must not
/// block. The other moments are those of any hook. A pipeline finds out once, when it is made, which of its hooks are synchronous;
/// anything else that calls one as a ``ServiceHook`` gets the same results.
public protocol SynchronousServiceHook: ServiceHook {
    /// ``ServiceHook/onSchedule(_:_:)`` without suspending.
    func scheduled(_ request: inout URLRequest, context: inout CallContext) throws -> Response?

    /// ``ServiceHook/onSuccess(_:_:_:)`` without suspending.
    func succeeded(_ response: inout Response, to request: URLRequest, context: inout CallContext) throws
}

extension SynchronousServiceHook {
    public func scheduled(_ request: inout URLRequest, context: inout CallContext) throws -> Response? {
        context.noteDefault(.schedule, of: Self.self)
        return nil
    }
    public func succeeded(_ response: inout Response, to request: URLRequest, context: inout CallContext) throws {
        context.noteDefault(.success, of: Self.self)
    }
    public func onSchedule(_ request: inout URLRequest, _ context: inout CallContext) async throws -> Response? {
        try scheduled(&request, context: &context)
    }
    public func onSuccess(
        _ response: inout Response,
        _ request: URLRequest,
        _ context: inout CallContext
    ) async throws {
        try succeeded(&response, to: request, context: &context)
    }
}

/// Where in a pipeline a hook runs.
public enum HookScope: Sendable, Hashable {
    /// Above redirects and acceptance: sees each call once, and one final outcome.
    case call
    /// Below redirects and acceptance: sees every hop's raw response, including 304. Caches run here.
    case message
}

/// A hook made of closures; put `.closures(onSchedule:onSuccess:onFailure:)` in a list of hooks.
public struct ClosureHook: ServiceHook {
    /// May edit the request, or answer it.
    public typealias Schedule = @Sendable (inout URLRequest, inout CallContext) async throws -> Response?
    /// May edit the response, or reject it by throwing.
    public typealias Success = @Sendable (inout Response, URLRequest, inout CallContext) async throws -> Void
    /// May return a response instead of the failure.
    public typealias Failure = @Sendable (any Error, URLRequest, inout CallContext) async -> Response?

    public let scope: HookScope
    fileprivate let schedule: Schedule?
    fileprivate let success: Success?
    fileprivate let failure: Failure?

    public func onSchedule(_ request: inout URLRequest, _ context: inout CallContext) async throws -> Response? {
        guard let schedule else {
            context.noteDefault(.schedule, of: ClosureHook.self)
            return nil
        }
        return try await schedule(&request, &context)
    }

    public func onSuccess(
        _ response: inout Response,
        _ request: URLRequest,
        _ context: inout CallContext
    ) async throws {
        guard let success else { return context.noteDefault(.success, of: ClosureHook.self) }
        try await success(&response, request, &context)
    }

    public func onFailure(_ error: any Error, _ request: URLRequest, _ context: inout CallContext) async -> Response? {
        guard let failure else {
            context.noteDefault(.failure, of: ClosureHook.self)
            return nil
        }
        return await failure(error, request, &context)
    }
}

extension ServiceHook where Self == ClosureHook {
    /// A hook of up to three closures, each with the contract of the ``ServiceHook`` method that it is named after.
    ///
    /// ```swift
    /// Pipeline(transport: transport, hooks: [.closures(
    ///     onSchedule: { request, _ in request.url?.path == "/ping" ? .text("pong") : nil },
    ///     onFailure: { error, _, _ in print(error); return nil }
    /// )])
    /// ```
    ///
    /// - Parameters:
    ///   - scope: where the hook runs; `.call` by default.
    ///   - onSchedule: called before anything is sent; a response that it returns answers the call. None by default.
    ///   - onSuccess: called at the response head. None by default.
    ///   - onFailure: called when the call has finally failed; a response that it returns replaces the failure. None by
    ///     default.
    public static func closures(
        scope: HookScope = .call,
        onSchedule: ClosureHook.Schedule? = nil,
        onSuccess: ClosureHook.Success? = nil,
        onFailure: ClosureHook.Failure? = nil
    ) -> ClosureHook {
        ClosureHook(scope: scope, schedule: onSchedule, success: onSuccess, failure: onFailure)
    }
}

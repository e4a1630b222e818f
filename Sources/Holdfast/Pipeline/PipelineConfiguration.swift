// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if canImport(FoundationNetworking)
    internal import Foundation
    public import FoundationNetworking
#else
    public import Foundation
#endif

/// Edits a request right before each attempt, after the hooks, for example to add a refreshed token or a signature.
///
/// A response is not stored if a step may have changed whose request it is: if it changed a field that may hold a credential,
/// and the call has no `principal`. If a redirect leads to another origin, what a step adds is not sent there, unless
/// ``PipelineConfiguration/trustedOrigins`` includes that origin.
public typealias PrepareStep = @Sendable (_ request: inout URLRequest, _ context: CallContext) async throws -> Void

/// How a ``Pipeline`` treats its calls.
public struct PipelineConfiguration: Sendable {
    /// The clock that everything uses; ``SystemClock`` by default.
    public var clock: any HoldfastClock = SystemClock()

    /// The time a call may take until it returns, as ``CallOptions/timeout`` describes, including all attempts and waits; nil, the
    /// default: no limit by the pipeline, but see ``attemptTimeout``.
    public var callTimeout: Duration?

    /// The time one attempt may take up to its response head; 60 s by default, nil: no limit.
    public var attemptTimeout: Duration? = .seconds(60)

    /// How redirects are treated; by default up to 20 are followed.
    public var redirects: RedirectPolicy = .follow(limit: 20)

    /// Other origins to which the additions of prepare steps and hooks may be sent; none by default.
    ///
    /// ```swift
    /// configuration.trustedOrigins = ["https://files.example.com"]
    /// ```
    ///
    /// If a redirect leads to an origin (scheme, host and port) other than the one where the call began, header fields that
    /// hooks and ``PrepareStep``s add or change are not sent there, nor what they write into the query or the userinfo of the
    /// URL. Fields that are known to hold no credential, such as Accept, User-Agent and Traceparent, are still
    /// sent; what steps remove stays removed. Everything is sent to the origins listed here. With
    /// ``CredentialScope/matching(_:)``, the predicate is called with the URL of each such hop.
    ///
    /// Authorization, Cookie and ``CallOptions/credentialFields`` of the request that was redirected are dropped at every
    /// change of origin, listed here or not (RFC 9110 §15.4); a step or a hook of scope `.message` may set them again. The
    /// credential of ``authorization`` has its own scope.
    public var trustedOrigins: CredentialScope = []

    /// The credential that requests carry, and how it is renewed; nil, the default: only what the caller puts into each
    /// request.
    public var authorization: AuthorizationRefresh?

    /// Steps that edit the request before each attempt, in order; none by default.
    public var prepare: [PrepareStep] = []

    /// The executor for work that outlives its call, such as background revalidations; nil, the default: where tasks run by
    /// default.
    public var executor: (any TaskExecutor)?

    /// Observers, which receive events; none by default.
    public var observers: [any EventObserver] = []

    /// Interceptors around calls and sends, the first outermost; none by default.
    package var interceptors: [any CallInterceptor] = []

    /// The defaults.
    public init() {}
}

/// How a pipeline treats redirects (RFC 9110 §15.4).
public struct RedirectPolicy: Sendable, Hashable {
    /// The most redirects that one call follows; 0: none, and a 3xx is returned as it is.
    public let limit: Int

    /// Follows up to `limit` redirects (0 to 50; a larger number counts as 50), then fails with `.tooManyRedirects`.
    ///
    /// Authorization, Cookie and similar fields are dropped when the origin changes, and so is what hooks and prepare steps
    /// add; see ``PipelineConfiguration/trustedOrigins``. A redirect that needs the body again is returned as it is if the body
    /// is one-shot.
    public static func follow(limit: Int) -> RedirectPolicy {
        RedirectPolicy(limit: min(max(limit, 0), 50))
    }

    /// Returns every 3xx as it is.
    public static let returnToCaller = RedirectPolicy(limit: 0)
}

/// Wraps each call, and each request that is sent for it, to bind task-local values such as those of a trace.
///
/// **Choose.** The observer of HoldfastObservability, which opens spans. **Use.** List it in
/// ``PipelineConfiguration/interceptors``. **Implement.** Call the continuation exactly once, within the function, and return
/// its result. To edit, answer or fail requests, use a hook.
///
/// An exchange that several calls share, or that continues in the background, runs with the task-local values of the call that
/// began it.
package protocol CallInterceptor: Sendable {
    /// Wraps a call, from before its first hook to its response head or error.
    ///
    /// Runs on the caller's task, so the caller's own task-local values are available. ``ServiceEvent/Name/callStarted`` and
    /// ``ServiceEvent/Name/callEnded`` come within it.
    func interceptCall(
        _ request: URLRequest,
        context: CallContext,
        proceed: () async throws -> Response
    ) async throws -> Response

    /// Wraps each sending of a request: an attempt, a copy of a hedge, or the resuming of a body. Not called if nothing is
    /// sent, as with an open circuit.
    ///
    /// - Parameters:
    ///   - request: the request as it would be sent.
    ///   - context: what is known about the call, including the number of the attempt.
    ///   - proceed: sends; you may add fields to the request that you pass, such as a trace's. Caches and hooks do not see
    ///     them, so they must not change the response.
    func interceptSend(
        _ request: URLRequest,
        context: CallContext,
        proceed: (URLRequest) async throws -> Response
    ) async throws -> Response
}

/// A transport whose sends are wrapped by interceptors.
struct SurroundedTransport: WrappingTransport {
    let transport: any Transport
    let interceptors: [any CallInterceptor]

    func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
        try await send(request, body: body, context: context, through: interceptors[...])
    }

    private func send(
        _ request: URLRequest,
        body: RequestBody,
        context: CallContext,
        through interceptors: ArraySlice<any CallInterceptor>
    ) async throws -> Response {
        guard let outermost = interceptors.first else {
            return try await transport.send(request, body: body, context: context)
        }
        return try await outermost.interceptSend(request, context: context) { request in
            try await send(request, body: body, context: context, through: interceptors.dropFirst())
        }
    }
}

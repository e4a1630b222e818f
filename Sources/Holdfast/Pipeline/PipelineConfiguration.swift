// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if canImport(FoundationNetworking)
    internal import Foundation
    public import FoundationNetworking
#else
    public import Foundation
#endif

/// Edits a request right before each attempt, as the request left the hooks: a refreshed token, a signature.
///
/// A response is not stored where a step may have changed whose request it is: where it changed a field of which nobody knows that
/// it holds no credential, and the call names no `principal`. On a hop that a redirect leads to another origin, what a
/// step adds is not sent, unless ``PipelineConfiguration/trustedOrigins`` names that origin.
public typealias PrepareStep = @Sendable (_ request: inout URLRequest, _ context: CallContext) async throws -> Void

/// How a ``Pipeline`` treats its calls.
public struct PipelineConfiguration: Sendable {
    /// The time everything goes by; ``SystemClock`` by default.
    public var clock: any HoldfastClock = SystemClock()

    /// The time a call may take up to its response head, all attempts and waits included; nil, the default: no limit of the
    /// pipeline's own, but see ``attemptTimeout``.
    public var callTimeout: Duration?

    /// The time one attempt may take up to its response head; 60 s by default, nil: no limit.
    public var attemptTimeout: Duration? = .seconds(60)

    /// How redirects are treated; by default up to 20 are followed.
    public var redirects: RedirectPolicy = .follow(limit: 20)

    /// The other origins that may be sent what prepare steps and hooks add; none by default.
    ///
    /// ```swift
    /// configuration.trustedOrigins = ["https://files.example.com"]
    /// ```
    ///
    /// On a hop that a redirect leads to another origin than the one where the call began (scheme, host and port), the header
    /// fields that hooks and ``PrepareStep``s add or change are not sent, nor what they write into the query or the userinfo of the
    /// URL. Fields that are known to hold no credential, such as Accept, User-Agent, If-None-Match and Traceparent, go all the same;
    /// what steps remove stays removed. To the origins named here everything goes. With ``CredentialScope/matching(_:)`` the
    /// predicate is asked for the URL of each such hop.
    ///
    /// Authorization, Cookie and ``CallOptions/credentialFields`` of the request that was redirected stay behind at every change of
    /// origin, named here or not (RFC 9110 §15.4); a step or a hook of scope `.message` may set them anew. The credential of
    /// ``authorization`` goes by the scope of its own.
    public var trustedOrigins: CredentialScope = []

    /// The credential that requests bear, and how it is renewed; nil, the default: what the caller puts into each request.
    public var authorization: AuthorizationRefresh?

    /// Steps that edit the request before each attempt, in order; none by default.
    public var prepare: [PrepareStep] = []

    /// Where work runs that outlives its call, such as revalidations in the background; nil, the default: where any task does.
    public var executor: (any TaskExecutor)?

    /// Who is told what happens; nobody by default.
    public var observers: [any EventObserver] = []

    /// What surrounds calls and sends, the first outermost; nothing by default.
    public var interceptors: [any CallInterceptor] = []

    /// The defaults.
    public init() {}
}

/// How a pipeline treats redirects (RFC 9110 §15.4).
public struct RedirectPolicy: Sendable, Hashable {
    /// The most redirects one call follows; 0: none, a 3xx is handed up as it is.
    public let limit: Int

    /// Follows up to `limit` redirects (0 to 50; a larger number counts as 50), then fails with `.tooManyRedirects`.
    ///
    /// Authorization, Cookie and their like stay behind when the origin changes, and so does what hooks and prepare steps add; see
    /// ``PipelineConfiguration/trustedOrigins``. A redirect that asks for the body again is
    /// handed up as it is where the body is one-shot.
    public static func follow(limit: Int) -> RedirectPolicy {
        RedirectPolicy(limit: min(max(limit, 0), 50))
    }

    /// Hands every 3xx up as it is.
    public static let handUp = RedirectPolicy(limit: 0)
}

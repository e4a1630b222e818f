// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import HoldfastSemantics

/// What a caller asks for one call beside its URLRequest; everything has a default.
public struct CallOptions: Sendable {
    /// What the caller calls the operation, such as `getForecast`: for spans, metrics and logs. One of few names: it holds nothing
    /// of the request's own. Nil by default; a typed call is named after its endpoint or its request's type.
    public var operationName: String?
    /// How caches treat this call; the URLRequest's `cachePolicy` is heard where this is `.default`.
    public var cache: CacheDirective = .default
    /// Whose responses may be used and stored: replaces the credentials as the name of the cache partition.
    public var principal: String?
    /// Says that a POST of this call only asks, and how its content is read for the key it is then cached under; nil, the
    /// default, leaves it to the cache's `KeyRule`s. Of a QUERY it is the reading of the content alone (RFC 10008).
    public var cachesContent: ContentNormalizer?
    /// Words by which a stored response can be purged.
    public var tags: Set<String> = []
    /// The time the whole call may take up to its response head; nil: the pipeline's `callTimeout`.
    public var timeout: Duration?
    /// The rules of retrying for this call, under the budget and the gates of the pipeline's factory; nil: the factory's.
    ///
    /// `.none` switches retries off. Without a governor in the factory, all such calls of a pipeline share one of its own.
    public var retryRules: RetryRules? {
        get { rulesInForce?.rules }
        set { rulesInForce = newValue.map { RulesInForce($0) } }
    }
    /// Makes the retrier of this call instead of the pipeline's factory.
    public var retrierFactory: (any RetrierFactory)?
    /// What is accepted as an answer; nil: any response, as URLSession does.
    public var acceptance: Acceptance?
    /// Whether repeating the request has no further effect; nil: as its method says.
    public var isIdempotent: Bool?
    /// Whether the call bears the credential of ``PipelineConfiguration/authorization``; true by default.
    public var bearsAuthorization = true
    /// Names of request fields that hold a credential beside Authorization and Cookie: they name the cache partition as well, and
    /// stay behind when a redirect leaves the origin. None by default.
    ///
    /// A field that is named and absent counts for nothing; a ``principal`` replaces them all as the name of the partition.
    public var credentialFields: [FieldName] = []
    /// Steps that edit this call's request before each attempt, after those of the pipeline's configuration; none by default.
    public var prepare: [PrepareStep] = []
    /// The method and the target as they are to be sent, where they are not the URLRequest's; for proxies. Nil by default.
    public var exactHead: ExactRequestHead?
    /// Is told of interim (1xx) responses, from whatever thread the transport has them on.
    public var onInterimResponse: (@Sendable (ResponseHead) -> Void)?

    /// What the transport at the end is to know of this call, such as a TLS configuration of its own. It travels with the options,
    /// since a task-local value would hold for the calls of hooks and prepare steps as well.
    package var transportDetails: (any AnyObject & Sendable)?
    /// The rules behind ``retryRules``: the options travel through all of a call, and rules are large.
    var rulesInForce: RulesInForce?
    /// Is told whether the response was stored, once that is certain.
    var storing: StoringWatch?
    /// The cookies of the session that the call was intercepted in.
    var cookies: SessionCookies?

    /// All defaults.
    public init() {}
}

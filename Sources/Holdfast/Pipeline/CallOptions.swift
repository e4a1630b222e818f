// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import HoldfastSemantics

/// The options of one call, in addition to its URLRequest; each has a default.
public struct CallOptions: Sendable {
    /// The caller's name for the operation, such as `getForecast`, for spans, metrics and logs. Use a small set of names,
    /// without anything from the request itself. Nil by default; a typed call is named after its endpoint or its request's
    /// type.
    public var operationName: String? {
        get { parts.value.operationName }
        set { parts.value.operationName = newValue }
    }
    /// How caches treat this call; if this is `.default`, the URLRequest's `cachePolicy` applies.
    public var cache: CacheDirective {
        get { parts.value.cache }
        _modify { yield &parts.value.cache }
    }
    /// Whose responses may be used and stored: replaces the credentials as the name of the cache partition.
    public var principal: String? {
        get { parts.value.principal }
        set { parts.value.principal = newValue }
    }
    /// Says that this call's POST only reads data, and how its content becomes part of the cache key; nil, the default, leaves
    /// it to the cache's `CacheRule`s. For a QUERY, it only says how the content is read (RFC 10008).
    public var cachesContent: ContentNormalizer? {
        get { parts.value.cachesContent }
        set { parts.value.cachesContent = newValue }
    }
    /// Tags by which a stored response can be removed.
    public var tags: Set<String> {
        get { parts.value.tags }
        _modify { yield &parts.value.tags }
    }
    /// The time that the call may take until it returns; nil, the default: the pipeline's `callTimeout`, or that of its retry
    /// rules.
    ///
    /// Calls that return the content (`data(for:)`, `upload`, `download` and typed calls) are limited to the end of the
    /// content; those that return at the response head (`send` and `bytes(for:)`), to the head. If a hook sets it in
    /// `onSchedule`, the time is counted from then.
    public var timeout: Duration? {
        get { parts.value.timeout }
        set { (parts.value.timeout, parts.value.timeLimit) = (newValue, nil) }
    }
    /// What errors say of ``timeout`` if it comes from another setting, or is only what is left of the limit.
    var timeLimit: TimeLimit? { parts.value.timeLimit }
    /// The retry rules for this call; the gates of the pipeline's factory still apply. Nil: the factory's rules.
    ///
    /// They replace the rules of the factory's ``BackoffRetrier``, whose condition still applies; a factory of another kind is
    /// not asked. If their budget differs from the factory's, the calls with this budget share it, for each origin; beyond
    /// eight such budgets, the factory's is used. A gateway remains a gateway whatever they say. `RetryRules.never` switches retries off.
    public var retryRules: RetryRules? {
        get { rulesInForce?.rules }
        set { rulesInForce = newValue.map { RulesInForce($0) } }
    }
    /// Makes the retrier of this call, instead of the pipeline's factory.
    public var retrierFactory: (any RetrierFactory)? {
        get { parts.value.retrierFactory }
        set { parts.value.retrierFactory = newValue }
    }
    /// Receives the progress of the response's content; nil, the default: none.
    public var progress: TransferProgress? {
        get { parts.value.progress }
        set { parts.value.progress = newValue }
    }
    /// Which responses are accepted; nil: any response, as in URLSession.
    public var acceptance: Acceptance? {
        get { parts.value.acceptance }
        set { parts.value.acceptance = newValue }
    }
    /// Whether repeating the request has no further effect; nil: decided by its method.
    public var isIdempotent: Bool? {
        get { parts.value.isIdempotent }
        set { parts.value.isIdempotent = newValue }
    }
    /// Whether the call carries the credential of ``PipelineConfiguration/authorization``; true by default.
    public var usesAuthorization = true
    /// Names of request fields, besides Authorization and Cookie, that hold a credential: they also determine the cache
    /// partition, and are dropped when a redirect leaves the origin. None by default.
    ///
    /// A field that the request does not have is ignored; a ``principal`` replaces all of them as the name of the partition.
    public var credentialFields: [FieldName] {
        get { parts.value.credentialFields }
        _modify { yield &parts.value.credentialFields }
    }
    /// Steps that edit this call's request before each attempt, after those of the pipeline's configuration; none by default.
    public var prepare: [PrepareStep] {
        get { parts.value.prepare }
        _modify { yield &parts.value.prepare }
    }
    /// Updates a typed call's credential before all prepare steps, so that they sign the one that is sent.
    package var renewal: PrepareStep? {
        get { parts.value.renewal }
        set { parts.value.renewal = newValue }
    }
    /// The exact method and target to send, if they are not the URLRequest's; for proxies. Nil by default.
    package var exactHead: ExactRequestHead? {
        get { parts.value.exactHead }
        set { parts.value.exactHead = newValue }
    }
    /// Receives interim (1xx) responses, on whatever thread the transport gets them.
    public var onInterimResponse: (@Sendable (ResponseHead) -> Void)? {
        get { parts.value.onInterimResponse }
        set { parts.value.onInterimResponse = newValue }
    }

    /// What the last transport needs to know about this call, such as its own TLS configuration. It is part of the options, since a
    /// task-local value would also apply to calls of hooks and prepare steps.
    package var transportDetails: (any AnyObject & Sendable)? {
        get { parts.value.transportDetails }
        set { parts.value.transportDetails = newValue }
    }
    /// Whether the content is written to a file as it arrives and may be long: a transport that reads ahead then has no limit of
    /// its own.
    package var isDownload: Bool {
        get { parts.value.isDownload }
        set { parts.value.isDownload = newValue }
    }
    /// Whether the call continues an earlier one at another origin, so that it begins with a foreign hop.
    package var isForeignHop: Bool {
        get { parts.value.isForeignHop }
        set { parts.value.isForeignHop = newValue }
    }
    /// The rules behind ``retryRules``: the options are passed through all of a call, and rules are large.
    var rulesInForce: RulesInForce? {
        get { parts.value.rulesInForce }
        set { parts.value.rulesInForce = newValue }
    }
    /// Is told whether the response was stored, once that is known.
    var storing: StoringWatch? {
        get { parts.value.storing }
        set { parts.value.storing = newValue }
    }
    /// The cookies of the session that the call was intercepted in.
    var cookies: SessionCookies? {
        get { parts.value.cookies }
        set { parts.value.cookies = newValue }
    }

    /// All defaults.
    public init() { parts = CallOptions.defaults }

    /// Whether any of them affects an attempt.
    var concernAttempts: Bool {
        if parts.isSame(as: CallOptions.defaults) { return false }
        let parts = parts.value
        return parts.rulesInForce != nil || parts.retrierFactory != nil || !parts.prepare.isEmpty
            || parts.acceptance?.checksAttempts ?? false || parts.cookies != nil
    }

    /// Whether any of them affects the lookup in a cache.
    var concernReuse: Bool {
        if parts.isSame(as: CallOptions.defaults) { return false }
        let parts = parts.value
        return parts.cachesContent != nil || !parts.credentialFields.isEmpty
            || parts.exactHead?.isShown == false || parts.cache != .default
    }

    /// Whether they affect a call that a cache answers at once.
    var concernHits: Bool {
        if parts.isSame(as: CallOptions.defaults) { return false }
        let parts = parts.value
        return concernReuse || parts.acceptance != nil || parts.progress != nil || parts.rulesInForce != nil
            || parts.isForeignHop || parts.isDownload || parts.storing != nil || parts.cookies != nil
            || parts.transportDetails != nil
    }

    /// Limits the time of the call.
    ///
    /// - Parameter limit: what errors say: nil, that the caller set ``timeout``.
    package mutating func setTimeout(_ timeout: Duration, of limit: TimeLimit?) {
        (parts.value.timeout, parts.value.timeLimit) = (timeout, limit)
    }

    /// Whether nothing has been changed since they were made.
    var areDefault: Bool { parts.isSame(as: CallOptions.defaults) }

    /// Shared by all, so that calls without options allocate none.
    private static let defaults = CopyOnWrite(Parts())
    private var parts: CopyOnWrite<Parts>

    private struct Parts: Sendable {
        var operationName: String?
        var cache: CacheDirective = .default
        var principal: String?
        var cachesContent: ContentNormalizer?
        var tags: Set<String> = []
        var timeout: Duration?
        var timeLimit: TimeLimit?
        var retrierFactory: (any RetrierFactory)?
        var acceptance: Acceptance?
        var progress: TransferProgress?
        var isIdempotent: Bool?
        var credentialFields: [FieldName] = []
        var prepare: [PrepareStep] = []
        var renewal: PrepareStep?
        var exactHead: ExactRequestHead?
        var onInterimResponse: (@Sendable (ResponseHead) -> Void)?
        var transportDetails: (any AnyObject & Sendable)?
        var rulesInForce: RulesInForce?
        var isForeignHop = false
        var isDownload = false
        var storing: StoringWatch?
        var cookies: SessionCookies?
    }
}

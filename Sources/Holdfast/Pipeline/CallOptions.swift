// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import HoldfastSemantics

/// What a caller asks for one call beside its URLRequest; everything has a default.
public struct CallOptions: Sendable {
    /// What the caller calls the operation, such as `getForecast`: for spans, metrics and logs. One of few names: it holds nothing
    /// of the request's own. Nil by default; a typed call is named after its endpoint or its request's type.
    public var operationName: String? {
        get { parts.value.operationName }
        set { parts.value.operationName = newValue }
    }
    /// How caches treat this call; the URLRequest's `cachePolicy` is heard where this is `.default`.
    public var cache: CacheDirective {
        get { parts.value.cache }
        _modify { yield &parts.value.cache }
    }
    /// Whose responses may be used and stored: replaces the credentials as the name of the cache partition.
    public var principal: String? {
        get { parts.value.principal }
        set { parts.value.principal = newValue }
    }
    /// Says that a POST of this call only asks, and how its content is read for the key it is then cached under; nil, the
    /// default, leaves it to the cache's `KeyRule`s. Of a QUERY it is the reading of the content alone (RFC 10008).
    public var cachesContent: ContentNormalizer? {
        get { parts.value.cachesContent }
        set { parts.value.cachesContent = newValue }
    }
    /// Words by which a stored response can be purged.
    public var tags: Set<String> {
        get { parts.value.tags }
        _modify { yield &parts.value.tags }
    }
    /// The time the whole call may take up to its response head; nil: the pipeline's `callTimeout`.
    public var timeout: Duration? {
        get { parts.value.timeout }
        set { parts.value.timeout = newValue }
    }
    /// The rules of retrying for this call, under the gates of the pipeline's factory; nil: the factory's.
    ///
    /// They take the place of those of the factory's ``BackoffRetrier``, whose condition stays; another factory is not asked then.
    /// Where their budget is another than the factory's, the calls with this budget share one of their own, for each origin; of more
    /// than eight such budgets the further ones count as the factory's. A
    /// gateway stays one whatever they say. `.none` switches retries off.
    public var retryRules: RetryRules? {
        get { rulesInForce?.rules }
        set { rulesInForce = newValue.map { RulesInForce($0) } }
    }
    /// Makes the retrier of this call instead of the pipeline's factory.
    public var retrierFactory: (any RetrierFactory)? {
        get { parts.value.retrierFactory }
        set { parts.value.retrierFactory = newValue }
    }
    /// What is accepted as an answer; nil: any response, as URLSession does.
    public var acceptance: Acceptance? {
        get { parts.value.acceptance }
        set { parts.value.acceptance = newValue }
    }
    /// Whether repeating the request has no further effect; nil: as its method says.
    public var isIdempotent: Bool? {
        get { parts.value.isIdempotent }
        set { parts.value.isIdempotent = newValue }
    }
    /// Whether the call bears the credential of ``PipelineConfiguration/authorization``; true by default.
    public var usesAuthorization = true
    /// Names of request fields that hold a credential beside Authorization and Cookie: they name the cache partition as well, and
    /// stay behind when a redirect leaves the origin. None by default.
    ///
    /// A field that is named and absent counts for nothing; a ``principal`` replaces them all as the name of the partition.
    public var credentialFields: [FieldName] {
        get { parts.value.credentialFields }
        _modify { yield &parts.value.credentialFields }
    }
    /// Steps that edit this call's request before each attempt, after those of the pipeline's configuration; none by default.
    public var prepare: [PrepareStep] {
        get { parts.value.prepare }
        _modify { yield &parts.value.prepare }
    }
    /// The method and the target as they are to be sent, where they are not the URLRequest's; for proxies. Nil by default.
    public var exactHead: ExactRequestHead? {
        get { parts.value.exactHead }
        set { parts.value.exactHead = newValue }
    }
    /// Is told of interim (1xx) responses, from whatever thread the transport has them on.
    public var onInterimResponse: (@Sendable (ResponseHead) -> Void)? {
        get { parts.value.onInterimResponse }
        set { parts.value.onInterimResponse = newValue }
    }

    /// What the transport at the end is to know of this call, such as a TLS configuration of its own. It travels with the options,
    /// since a task-local value would hold for the calls of hooks and prepare steps as well.
    package var transportDetails: (any AnyObject & Sendable)? {
        get { parts.value.transportDetails }
        set { parts.value.transportDetails = newValue }
    }
    /// Whether the content is written to a file as it comes, so that it may be long: a transport that reads ahead does so without a
    /// limit of its own.
    package var isDownload: Bool {
        get { parts.value.isDownload }
        set { parts.value.isDownload = newValue }
    }
    /// Whether the call goes on with an earlier one at another origin, so that it begins with a foreign hop.
    package var isForeignHop: Bool {
        get { parts.value.isForeignHop }
        set { parts.value.isForeignHop = newValue }
    }
    /// The rules behind ``retryRules``: the options travel through all of a call, and rules are large.
    var rulesInForce: RulesInForce? {
        get { parts.value.rulesInForce }
        set { parts.value.rulesInForce = newValue }
    }
    /// Is told whether the response was stored, once that is certain.
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
    public init() {
        parts = CallOptions.defaults
    }

    /// Whether they say anything that an attempt goes by.
    var concernAttempts: Bool {
        if parts.isSame(as: CallOptions.defaults) { return false }
        let parts = parts.value
        return parts.rulesInForce != nil || parts.retrierFactory != nil || !parts.prepare.isEmpty
            || parts.acceptance?.judgesAttempts ?? false || parts.cookies != nil
    }

    /// Whether they say anything that a cache goes by when it looks for an answer.
    var concernReuse: Bool {
        if parts.isSame(as: CallOptions.defaults) { return false }
        let parts = parts.value
        return parts.principal != nil || parts.cachesContent != nil || !parts.credentialFields.isEmpty
            || parts.exactHead != nil || parts.cache != .default
    }

    /// Whether nothing was changed since they were made.
    var areDefault: Bool { parts.isSame(as: CallOptions.defaults) }

    /// One for all, so that calls without options of their own allocate none.
    private static let defaults = CopyOnWrite(Parts())
    private var parts: CopyOnWrite<Parts>

    private struct Parts: Sendable {
        var operationName: String?
        var cache: CacheDirective = .default
        var principal: String?
        var cachesContent: ContentNormalizer?
        var tags: Set<String> = []
        var timeout: Duration?
        var retrierFactory: (any RetrierFactory)?
        var acceptance: Acceptance?
        var isIdempotent: Bool?
        var credentialFields: [FieldName] = []
        var prepare: [PrepareStep] = []
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

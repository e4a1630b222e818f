// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The rules of a cache that HTTP leaves open.
///
/// Values out of range are clamped, never rejected.
public struct CacheOptions: Sendable, Hashable {
    /// For whom the cache stores (RFC 9111 §1).
    public enum Mode: Sendable, Hashable {
        /// For one user; each principal has entries of its own.
        case `private`
        /// For many users; responses for one user are kept apart or not stored.
        case shared
    }

    /// For whom the cache stores; `.private` by default.
    public var mode: Mode

    /// Whether a lifetime may be estimated from Last-Modified; true by default (RFC 9111 §4.2.2).
    ///
    /// Only for statuses that are heuristically cacheable, or responses marked `public`.
    public var heuristicFreshness: Bool

    /// The share of the time since the last modification that counts as fresh, 0 to 1; 0.1 by default.
    public var heuristicFraction: Double {
        didSet { heuristicFraction = CacheOptions.clamped(heuristicFraction) }
    }

    /// The longest estimated lifetime; 7 days by default, never negative.
    public var heuristicCap: Duration {
        didSet { heuristicCap = max(heuristicCap, .zero) }
    }

    /// The longest lifetime of any response, wherever it comes from; nil, the default: no limit. Negative counts as zero.
    ///
    /// The origin is then asked about a response sooner than necessary, which RFC 9111 always allows.
    public var maximumLifetime: Duration? {
        didSet { maximumLifetime = maximumLifetime.map { max($0, .zero) } }
    }

    /// How long a response counts as fresh if its server does not say; nil, the default: as estimated from Last-Modified.
    ///
    /// It replaces that estimate for a 2xx or 3xx that may have one (RFC 9111 §4.2.2), but nothing that the server says: max-age,
    /// Expires, no-cache and no-store still apply. A call's own ``CacheDirective/lifetime`` takes precedence. Negative counts as
    /// zero.
    public var defaultLifetime: Duration? {
        didSet { defaultLifetime = defaultLifetime.map { max($0, .zero) } }
    }

    /// How long every stored response counts as fresh, whatever its server says; nil, the default: by the rules of HTTP.
    ///
    /// **Cache-Control, Expires, Pragma and Age of responses are ignored, including `no-store`, `no-cache` and
    /// `must-revalidate`**: use it for servers that say nothing useful, and never for responses that must not be kept. Each 2xx
    /// response to a GET that the call accepts is stored. Its age counts from its receipt, to the millisecond, and it is fresh
    /// up to and including this age; after that the origin is asked, with conditions if there is a validator.
    ///
    /// Rules about whose response it is still apply: Vary, the partition of a principal, and `private` and Authorization in
    /// shared mode. Such a response is never shared with requests that have a cookie, so ``cookiesMayBorrow`` has no effect.
    /// Directives of the request and the call apply as usual, except for ``CacheDirective/lifetime``. Stale responses are used
    /// as these options say; `no-store`, `no-cache`, `must-revalidate` and similar directives forbid that, and directives of a
    /// response that allow it are ignored. ``maximumLifetime`` limits this lifetime too. Negative counts as zero.
    public var fixedLifetime: Duration? {
        didSet { fixedLifetime = fixedLifetime.map { max($0, .zero) } }
    }

    /// How long a 4xx or 5xx counts as fresh if its server does not say; nil, the default: no such lifetime.
    ///
    /// Replaces the estimate from Last-Modified. Does not apply to a status that is about one request, connection or user
    /// rather than the resource (401, 406, 407, 408, 412, 413, 415, 416, 417, 421, 425, 426, 428, 429, 431, 511), nor to a
    /// response with Retry-After, whose server gives its own time. A 5xx never replaces a stored response that is not an error.
    /// Negative counts as zero.
    public var negativeLifetime: Duration? {
        didSet { negativeLifetime = negativeLifetime.map { max($0, .zero) } }
    }

    /// The fields that are used instead of Cache-Control and Expires, the most specific first (RFC 9213 §2.2).
    ///
    /// nil, the default: CDN-Cache-Control in shared mode and none in private mode, since that field is for caches in front of
    /// an origin. Only the first field that is present and valid is used.
    public var targetedFields: [FieldName]?

    /// The response fields whose words become tags of the entry, in addition to those of the call, such as `Surrogate-Key` and
    /// `Cache-Tag`. None by default. Blanks and commas separate words, and a store keeps 64 for each entry.
    public var tagFields: [FieldName] = []

    /// The cache's name in the Cache-Status field, which says what it did; nil, the default: only stale responses have the field, with
    /// the name `holdfast` (RFC 9211).
    public var cacheName: String?

    /// Whether the entry in Cache-Status shows method and URI of the key; false by default (RFC 9211 §2.7).
    public var showsKeyInCacheStatus = false

    /// Whether, in private mode, a fresh response stored for a request without credentials may answer one whose only
    /// credential is a Cookie; true by default (RFC 9111 §4).
    ///
    /// An origin whose response depends on a Cookie has to say `Vary: Cookie` or `private`. Set false for origins that do not:
    /// otherwise a page for guests might, for example, still be shown after logging in.
    public var cookiesMayBorrow = true

    /// Cookies that do not affect whose response it is, and are never stored; a trailing `*` matches any rest of a name.
    ///
    /// ``IgnoredCookies/wellKnown`` by default: cookies of load balancers and analytics, which change so often that a response
    /// stored under them would not be found again. Partition, scope and Vary treat requests as if they had no such cookies, and
    /// the Set-Cookie lines that set them are not stored. The request to the origin and the response to its caller are not
    /// changed.
    ///
    /// Add your own cookies (`options.ignoredCookies += ["visit"]`), or empty the list for an origin whose content depends on
    /// one of them. **Never add a cookie that says who the user is:** one user would be shown what was sent to another.
    public var ignoredCookies: [String] {
        get { ignored.names }
        set {
            ignored = IgnoredCookies(names: newValue)
            if ruleTable != nil { rules = CacheRules(rules.rules) }
        }
    }

    /// ``ignoredCookies``, prepared for use when no rule adds to them.
    package var ignored = IgnoredCookies.wellKnown

    /// What the keys leave out of queries if no rule says; nothing by default.
    public var query = QueryOptions()

    /// Settings that differ by host, path and content type; none by default.
    ///
    /// The first rule that matches applies; its settings replace the options of the same name.
    public var rules: CacheRules {
        get { ruleTable?.rules ?? CacheRules() }
        set { ruleTable = newValue.rules.isEmpty ? nil : CacheRuleTable(newValue, ignored: ignored) }
    }

    /// ``rules``, prepared for use; nil if there are none.
    var ruleTable: CacheRuleTable?

    /// Whether a rule says that nothing is stored; set only after the rules were applied to a response.
    var neverStores = false

    /// The most bytes of content to read for the key of a QUERY or a cached POST; 1 MiB by default. Longer ones bypass the
    /// cache.
    public var maximumKeyContent = 1 << 20

    /// Whether `Clear-Site-Data: "cache"` of an https origin removes the stored responses of that origin; true by default.
    public var honorsClearSiteData = true

    /// How long after it becomes stale an entry is kept for revalidation or stale responses; 30 days by default.
    public var retention: Duration {
        didSet { retention = max(retention, .zero) }
    }

    /// How long after it becomes stale a response may be used while it is revalidated, if it does not say itself; zero by
    /// default (RFC 5861 §3).
    public var staleWhileRevalidate: Duration = .zero

    /// How long after it becomes stale a response may replace a 500, 502, 503 or 504, if it does not say itself; zero by
    /// default (RFC 5861 §4).
    public var staleIfError: Duration = .zero

    /// How long after it becomes stale a response may be used if no response arrives at all; one day by default, zero for never
    /// (RFC 9111 §4.2.4).
    ///
    /// Only responses with a lifetime or a validator are used: about others, their server has said nothing at all. A stored
    /// 500, 502, 503 or 504 is not used either. If `stale-if-error` allows more, that applies. Such a response has
    /// `source == .stale` and a Cache-Status field, and counts as `staleOnError`, not as a hit.
    public var staleWhenDisconnected: Duration = .seconds(86_400)

    /// How long a call waits for the origin if there is a stale response that may be used instead; nil, the default: as long as
    /// it takes. The exchange then continues in the background.
    public var serveStaleAfter: Duration?

    /// The most revalidations that may run in the background at once; 16 by default. Beyond that, a stale response is served
    /// without one.
    public var maximumBackgroundRevalidations = 16

    /// Whether equal calls that need the origin at the same time share one exchange; true by default (RFC 9111 §4).
    public var collapsesRequests = true

    /// How long a call waits while another process that shares the store fetches the same response; 5 s by default, and never
    /// more than half of the time left until the call's deadline. Zero: processes do not wait for each other.
    public var longestFillWait: Duration = .seconds(5) {
        didSet { longestFillWait = max(longestFillWait, .zero) }
    }

    /// How long others wait for a process that died while it was fetching; 5 s by default, at least 100 ms. A live process
    /// keeps its lease for a minute at most.
    public var fillLease: Duration = .seconds(5) {
        didSet { fillLease = max(fillLease, .milliseconds(100)) }
    }

    /// The most bytes of a body of known length that are still fetched for the store after the last reader has left; 16 KiB by
    /// default, which servers send before they wait for an acknowledgement (RFC 6928), so that they are on their way anyway. 0:
    /// none. What has not arrived 5 s later is given up, and nobody waits for it.
    public var abandonedBodyAllowance = 16 << 10

    /// The most variants of one URI that are offered for revalidation at once; 16 by default, at least 1. A store has its own
    /// limit on how many it keeps.
    public var maximumVariants: Int {
        didSet { maximumVariants = max(maximumVariants, 1) }
    }

    /// The options of a private cache.
    public static let `private` = CacheOptions()

    /// The options of a shared cache.
    public static let shared = CacheOptions(mode: .shared)

    /// Creates options; each property documents its default.
    public init(
        mode: Mode = .private,
        heuristicFreshness: Bool = true,
        heuristicFraction: Double = 0.1,
        heuristicCap: Duration = .seconds(7 * 86_400),
        retention: Duration = .seconds(30 * 86_400),
        maximumVariants: Int = 16
    ) {
        self.mode = mode
        self.heuristicFreshness = heuristicFreshness
        self.heuristicFraction = CacheOptions.clamped(heuristicFraction)
        self.heuristicCap = max(heuristicCap, .zero)
        self.retention = max(retention, .zero)
        self.maximumVariants = max(maximumVariants, 1)
    }

    /// The target list in force.
    package var targets: [FieldName] {
        targetedFields ?? (mode == .shared ? [.cdnCacheControl] : [])
    }

    private static func clamped(_ fraction: Double) -> Double {
        fraction > 0 ? min(fraction, 1) : 0
    }
}

extension Duration {
    /// Whole milliseconds, the rest cut off, saturated.
    package var wholeMilliseconds: Int64 {
        Int64(clamping: attoseconds / 1_000_000_000_000_000)
    }

    /// Whole seconds, the rest cut off, saturated.
    package var wholeSeconds: Int64 {
        Int64(clamping: attoseconds / 1_000_000_000_000_000_000)
    }
}

/// What one call asks of the cache, in addition to its request's own Cache-Control.
///
/// The stricter of the two applies, except that a tolerance given here replaces the field's.
public struct CacheDirective: Sendable, Hashable {
    /// Skip the lookup; the response is stored as usual.
    public var reload: Bool

    /// Use a stored response only after the origin has confirmed it, as `no-cache` does (RFC 9111 §5.2.1.4).
    public var revalidate: Bool

    /// Send nothing: answer from the store or not at all (RFC 9111 §5.2.1.7).
    public var onlyIfCached: Bool

    /// Neither look up nor store (RFC 9111 §5.2.1.5).
    public var noStore: Bool

    /// How far past its lifetime a response may be used; nil leaves it to the request's fields.
    public var maxStale: Duration?

    /// How long the response must stay fresh from now on; nil leaves it to the request's fields.
    public var minFresh: Duration?

    /// Use any stored response that matches, whatever its age and whatever it says about revalidation. One with `no-store`, which
    /// only a fixed lifetime can have kept, is used only while the options fix one.
    public var ignoresAge: Bool

    /// How long to wait for the origin if there is a stale response that may be used instead; nil leaves it to the cache's
    /// options.
    public var serveStaleAfter: Duration?

    /// How long a response of this call counts as fresh if its server does not say; nil leaves it to the cache's rules.
    ///
    /// Stored with the entry. It replaces the estimate from Last-Modified for a 2xx or 3xx that may have one (RFC 9111 §4.2.2),
    /// but nothing that the server says: max-age, Expires, no-cache and no-store still apply. Negative counts as zero.
    public var lifetime: Duration?

    /// Creates a directive; by default it asks for nothing special.
    public init(
        reload: Bool = false,
        revalidate: Bool = false,
        onlyIfCached: Bool = false,
        noStore: Bool = false,
        maxStale: Duration? = nil,
        minFresh: Duration? = nil,
        ignoresAge: Bool = false,
        lifetime: Duration? = nil
    ) {
        self.reload = reload
        self.revalidate = revalidate
        self.onlyIfCached = onlyIfCached
        self.noStore = noStore
        self.maxStale = maxStale
        self.minFresh = minFresh
        self.ignoresAge = ignoresAge
        self.lifetime = lifetime
    }

    /// Nothing special.
    public static let `default` = CacheDirective()

    /// Skip the lookup and store the response.
    public static let reload = CacheDirective(reload: true)

    /// Confirm with the origin before use.
    public static let revalidate = CacheDirective(revalidate: true)

    /// Answer from the store or not at all.
    public static let onlyIfCached = CacheDirective(onlyIfCached: true)

    /// Bypass the cache.
    public static let noStore = CacheDirective(noStore: true)

    /// Accept a response this far past its lifetime.
    ///
    /// - Parameter duration: the greatest staleness; negative counts as none.
    public static func maxStale(_ duration: Duration) -> CacheDirective {
        CacheDirective(maxStale: duration)
    }

    /// Count the response as fresh for this long if its server does not say.
    ///
    /// - Parameter duration: the lifetime, counted from the creation of the response; negative counts as zero.
    public static func lifetime(_ duration: Duration) -> CacheDirective {
        CacheDirective(lifetime: duration)
    }
}

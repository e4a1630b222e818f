// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The rules of one cache that HTTP leaves open.
///
/// Values out of range are clamped, never refused.
public struct CacheOptions: Sendable, Hashable {
    /// For whom the cache stores (RFC 9111 §1).
    public enum Mode: Sendable, Hashable {
        /// For one user; each principal has entries of its own.
        case `private`
        /// For many users; what is meant for one of them is kept apart or not stored.
        case shared
    }

    /// For whom the cache stores; `.private` by default.
    public var mode: Mode

    /// Whether a lifetime may be guessed from Last-Modified; true by default (RFC 9111 §4.2.2).
    ///
    /// Only for statuses that are heuristically cacheable, or responses marked `public`.
    public var heuristicFreshness: Bool

    /// The share of the time since the last modification that counts as fresh, 0 to 1; 0.1 by default.
    public var heuristicFraction: Double {
        didSet { heuristicFraction = CacheOptions.clamped(heuristicFraction) }
    }

    /// The longest guessed lifetime; 7 days by default, never negative.
    public var heuristicCap: Duration {
        didSet { heuristicCap = max(heuristicCap, .zero) }
    }

    /// The longest lifetime of any response, whatever gave it; nil, the default: no limit. Negative counts as zero.
    ///
    /// A response is then asked about sooner than its server needs, which RFC 9111 always allows.
    public var maximumLifetime: Duration? {
        didSet { maximumLifetime = maximumLifetime.map { max($0, .zero) } }
    }

    /// How long every stored response counts as fresh, whatever its server says; nil, the default: as HTTP has it.
    ///
    /// **Cache-Control, Expires, Pragma and Age of responses do not count, `no-store`, `no-cache` and `must-revalidate`
    /// included**: for servers that say nothing of use, and never for responses that must not be kept. What is stored is each
    /// 2xx response to a GET that the call accepts. Its age counts from its receipt, to the millisecond, and it is fresh up to
    /// this age and at it; after that the origin is asked, with conditions where there is a validator.
    ///
    /// What is about whose response it is stays in force: Vary, the partition of a principal, `private` and Authorization in
    /// shared mode. A response without the server's own word is lent to nobody, so ``cookiesMayBorrow`` does not hold. What
    /// the request and the call ask counts as ever, but for ``CacheDirective/lifetime``. Stale responses are used as these options say;
    /// `no-store`, `no-cache`, `must-revalidate` and their like forbid that, and nothing in a response allows it.
    /// ``maximumLifetime`` is a limit to this lifetime too. Negative counts as zero.
    public var fixedLifetime: Duration? {
        didSet { fixedLifetime = fixedLifetime.map { max($0, .zero) } }
    }

    /// How long a 4xx or 5xx counts as fresh whose server does not say; nil, the default: nothing is made of such a response.
    ///
    /// Replaces the guess from Last-Modified. Never for a status that is about one request, connection or user rather than
    /// the resource (401, 406, 407, 408, 412, 413, 415, 416, 417, 421, 425, 426, 428, 429, 431, 511), nor for a response
    /// with Retry-After, whose server names a time of its own. A 5xx never takes the place of a stored response that is no error.
    /// Negative counts as zero.
    public var negativeLifetime: Duration? {
        didSet { negativeLifetime = negativeLifetime.map { max($0, .zero) } }
    }

    /// The fields that are obeyed in the place of Cache-Control and Expires, the most specific first (RFC 9213 §2.2).
    ///
    /// nil, the default: CDN-Cache-Control in shared mode and none in private mode, since that field speaks to caches in
    /// front of an origin. The first that is present and valid rules alone.
    public var targetedFields: [FieldName]?

    /// The name under which the cache tells in Cache-Status what it did; nil, the default: it does not (RFC 9211).
    public var cacheName: String?

    /// Whether the entry in Cache-Status shows method and URI of the key; false by default (RFC 9211 §2.7).
    public var showsKeyInCacheStatus = false

    /// Whether, in private mode, a fresh response stored for a request without credentials may answer one whose only
    /// credential is a Cookie; true by default (RFC 9111 §4).
    ///
    /// An origin that makes something else for a Cookie has to say `Vary: Cookie` or `private`. Set false for origins that do
    /// not, such as one whose page for guests would be seen for a while after logging in.
    public var cookiesMayBorrow = true

    /// The cookies that take no part in whose response it is, and are never stored; a trailing `*` stands for any rest of a name.
    ///
    /// ``IgnoredCookies/wellKnown`` by default: cookies of load balancers and analytics, which change too often for anything that is
    /// stored under them to be found again. Partition, scope and Vary see requests as if they had no such cookies, and stored
    /// responses lose the Set-Cookie lines that set them. What is sent to the origin and what the caller of an exchange is handed
    /// stay as they are.
    ///
    /// Extend it by cookies of your own (`options.ignoredCookies += ["visit"]`), or empty it for an origin that makes its content by one
    /// of them. **Never add a cookie that says who the user is:** one user would be shown what was sent to another.
    public var ignoredCookies: [String] {
        get { ignored.names }
        set { ignored = IgnoredCookies(names: newValue) }
    }

    /// ``ignoredCookies``, ready to be asked.
    package private(set) var ignored = IgnoredCookies.wellKnown

    /// What the keys leave out of queries where no rule of ``keyRules`` applies; nothing by default.
    public var query = QueryOptions()

    /// What the keys of some origins and paths leave out or take in; none by default.
    public var keyRules: [KeyRule] = []

    /// How many bytes of content are read for the key of a QUERY or a cached POST; 1 MiB by default. A longer one passes the
    /// cache by.
    public var maximumKeyContent = 1 << 20

    /// Whether `Clear-Site-Data: "cache"` of an https origin removes what is stored of it; true by default.
    public var honorsClearSiteData = true

    /// How long past its freshness an entry stays useful for revalidation or stale answers; 30 days by default.
    public var retention: Duration {
        didSet { retention = max(retention, .zero) }
    }

    /// How long past its freshness a response that says nothing of it may be used while it is revalidated; none by default
    /// (RFC 5861 §3).
    public var staleWhileRevalidate: Duration = .zero

    /// How long past its freshness a response that says nothing of it may stand in for a 500, 502, 503 or 504; none by
    /// default (RFC 5861 §4).
    public var staleIfError: Duration = .zero

    /// How long past its freshness a response may stand in where no response comes at all; 30 days by default, zero for
    /// never (RFC 9111 §4.2.4).
    public var staleWhenDisconnected: Duration = .seconds(30 * 86_400)

    /// How long a call waits for the origin while something stale is at hand that may stand in; nil, the default: as long as it
    /// takes. The exchange then goes on in the background.
    public var serveStaleAfter: Duration?

    /// How many revalidations may run in the background at once; 16 by default. A stale response beyond that is served without
    /// one.
    public var maximumBackgroundRevalidations = 16

    /// Whether equal calls that need the origin at the same time share one exchange; true by default (RFC 9111 §4).
    public var collapsesRequests = true

    /// How long a call waits while another process that shares the store fetches the same; 5 s by default, and never more than half
    /// of the time that is left until the call's deadline. Zero: processes do not wait for each other.
    public var longestFillWait: Duration = .seconds(5) {
        didSet { longestFillWait = max(longestFillWait, .zero) }
    }

    /// For how long others wait for a process that has died while it fetched; 5 s by default, at least 100 ms. One that lives
    /// keeps its lease for a minute at most.
    public var fillLease: Duration = .seconds(5) {
        didSet { fillLease = max(fillLease, .milliseconds(100)) }
    }

    /// How many bytes of a body of known length are still fetched for the store after the last reader left; 0 by default.
    public var abandonedBodyAllowance = 0

    /// How many variants of one URI are offered for revalidation at once; 16 by default, at least 1. A store has a bound of its
    /// own on how many it keeps.
    public var maximumVariants: Int {
        didSet { maximumVariants = max(maximumVariants, 1) }
    }

    /// The options of a private cache.
    public static let `private` = CacheOptions()

    /// The options of a shared cache.
    public static let shared = CacheOptions(mode: .shared)

    /// Creates options; each default stands at its property.
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

/// What one call asks of the cache, beside what its request's own Cache-Control says.
///
/// The stricter of both holds, except that a tolerance given here replaces the field's.
public struct CacheDirective: Sendable, Hashable {
    /// Skip the look-up; the response is stored as usual.
    public var reload: Bool

    /// Use a stored response only after the origin confirmed it, as `no-cache` does (RFC 9111 §5.2.1.4).
    public var revalidate: Bool

    /// Send nothing: answer from the store or not at all (RFC 9111 §5.2.1.7).
    public var onlyIfCached: Bool

    /// Neither look up nor store (RFC 9111 §5.2.1.5).
    public var noStore: Bool

    /// How far past its lifetime a response may be used; nil leaves it to the request's fields.
    public var maxStale: Duration?

    /// How long the response must stay fresh from now on; nil leaves it to the request's fields.
    public var minFresh: Duration?

    /// Take anything stored that matches, whatever its age and whatever it says of revalidation.
    public var ignoresAge: Bool

    /// How long to wait for the origin while something stale is at hand that may stand in; nil leaves it to the cache's options.
    public var serveStaleAfter: Duration?

    /// How long a response of this call counts as fresh where its server does not say; nil leaves it to the cache's rules.
    ///
    /// Kept with the entry. It replaces the guess from Last-Modified for a 2xx or 3xx that may be guessed at (RFC 9111 §4.2.2),
    /// and nothing the server says: max-age, Expires, no-cache and no-store stand. Negative counts as zero.
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

    /// Skip the look-up and store the response.
    public static let reload = CacheDirective(reload: true)

    /// Confirm with the origin before use.
    public static let revalidate = CacheDirective(revalidate: true)

    /// Answer from the store or not at all.
    public static let onlyIfCached = CacheDirective(onlyIfCached: true)

    /// Pass the cache by.
    public static let noStore = CacheDirective(noStore: true)

    /// Accept a response this far past its lifetime.
    ///
    /// - Parameter duration: the greatest staleness; negative counts as none.
    public static func maxStale(_ duration: Duration) -> CacheDirective {
        CacheDirective(maxStale: duration)
    }

    /// Count the response as fresh for so long where its server does not say.
    ///
    /// - Parameter duration: the lifetime, counted from the making of the response; negative counts as zero.
    public static func lifetime(_ duration: Duration) -> CacheDirective {
        CacheDirective(lifetime: duration)
    }
}

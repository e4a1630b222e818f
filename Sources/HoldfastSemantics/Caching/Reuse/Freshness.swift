// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// How long a response is fresh, and by which rule (RFC 9111 §4.2.1).
public struct FreshnessLifetime: Sendable, Hashable {
    /// The rule that determined the lifetime.
    public enum Source: Sendable, Hashable {
        /// `s-maxage`, in a shared cache.
        case sMaxAge
        /// `max-age`.
        case maxAge
        /// Expires minus Date.
        case expires
        /// The cache's options, whatever the server says (``CacheOptions/fixedLifetime``).
        case fixed
        /// The call that got it, or the cache's options, because its server says nothing (``CacheDirective/lifetime``,
        /// ``CacheOptions/defaultLifetime``).
        case given
        /// The cache's options, for an error whose server says nothing (``CacheOptions/negativeLifetime``).
        case negative
        /// A share of the time since the last modification (RFC 9111 §4.2.2).
        case heuristic
        /// No rule: the response is stale at once.
        case none
    }

    /// The lifetime in seconds, never negative.
    public let seconds: Int64

    /// The rule that determined it.
    public let source: Source

    /// Creates a lifetime; negative seconds count as 0.
    public init(seconds: Int64, source: Source) {
        self.seconds = max(0, seconds)
        self.source = source
    }
}

extension StoredResponse {
    /// The options with the rules for this response applied.
    private func ruled(_ options: CacheOptions) -> CacheOptions { options.ruled(for: self) ?? options }

    /// How long this response is fresh, counted from its creation (RFC 9111 §4.2.1), or from its receipt if the options fix the
    /// lifetime.
    ///
    /// - Parameter options: the cache's mode, heuristics and limits.
    public func freshnessLifetime(_ options: CacheOptions) -> FreshnessLifetime { facts.lifetime(ruled(options)) }

    /// How much too old the response looks by its Date alone, in seconds (RFC 9111 §4.2.3).
    public var apparentAge: Int64 { facts.apparentAge / 1000 }

    /// The age of the response when it arrived, in seconds: the larger of the age by Date, and of Age plus the time of the exchange
    /// (RFC 9111 §4.2.3).
    public var correctedInitialAge: Int64 { facts.initialAge / 1000 }

    /// The age of the response in whole seconds, rounded down; a clock that was set back adds nothing (RFC 9111 §4.2.3).
    public func currentAge(now: Timestamp) -> Int64 { facts.currentAge(now: now) }

    /// Whether the response is fresh: its lifetime exceeds its age (RFC 9111 §4.2), or equals it if the options fix the lifetime.
    public func isFresh(now: Timestamp, options: CacheOptions) -> Bool {
        !standing(now: now, options: options).isStale
    }

    /// The response's age and lifetime.
    ///
    /// - Parameters:
    ///   - now: the time of the request.
    ///   - options: the cache's mode, heuristics and limits.
    package func standing(now: Timestamp, options: CacheOptions) -> FreshnessStanding {
        facts.standing(now: now, options: ruled(options))
    }

    /// The instant after which the entry can be neither reused nor revalidated, and may be evicted first.
    ///
    /// An entry with a validator, or one that may be served stale, stays useful after its lifetime for the options' retention; any
    /// other is useless once stale. One that must be confirmed and cannot be is useless at once.
    public func uselessAfter(_ options: CacheOptions) -> Timestamp {
        if needsConfirmation, !hasValidator { return responseTime }
        let ruled = ruled(options)
        let staleFrom = facts.staleFrom(ruled)
        guard hasValidator || !forbidsStale(ruled) else { return staleFrom }
        return staleFrom.advanced(by: ruled.retention)
    }

    /// Whether the response must not be used once stale, whatever the caller accepts (RFC 9111 §4.2.4).
    public func forbidsStale(_ options: CacheOptions) -> Bool {
        needsConfirmation || facts.forbidsStale(ruled(options))
    }

    /// Whether its lifetime is fixed by the cache, whatever its server says.
    package func hasFixedLifetime(_ options: CacheOptions) -> Bool { ruled(options).fixedLifetime != nil }

    /// Whether this response to a request without credentials may answer one whose only credential is a Cookie, although
    /// each principal of a private cache has entries of its own.
    ///
    /// RFC 9111 §4 allows this, since a Cookie selects nothing unless Vary says so. The response must be fresh, because what the
    /// origin says about it to a user is for that user. It must be neither `private` nor a part, which the user's request would
    /// complete. Never if the cache fixes lifetimes itself: it then keeps responses that no server has declared suitable.
    ///
    /// - Parameters:
    ///   - now: the time of the request.
    ///   - options: the cache's rules.
    public func mayAnswerCookies(now: Timestamp, options: CacheOptions) -> Bool {
        let ruled = ruled(options)
        return ranges == nil && facts.mayAnswerCookies(ruled) && !facts.standing(now: now, options: ruled).isStale
    }
}

/// The rules, for options without rules by route (``CacheOptions/rules``) or with those applied.
extension ResponseFacts {
    func lifetime(_ options: CacheOptions) -> FreshnessLifetime {
        let lifetime = unlimitedLifetime(options)
        guard let limit = options.maximumLifetime?.wholeSeconds, limit < lifetime.seconds else { return lifetime }
        return FreshnessLifetime(seconds: limit, source: lifetime.source)
    }

    private func unlimitedLifetime(_ options: CacheOptions) -> FreshnessLifetime {
        if let fixed = options.fixedLifetime { return FreshnessLifetime(seconds: fixed.wholeSeconds, source: .fixed) }
        if options.mode == .shared, let sMaxAge { return FreshnessLifetime(seconds: sMaxAge, source: .sMaxAge) }
        if let maxAge { return FreshnessLifetime(seconds: maxAge, source: .maxAge) }
        guard flags.contains(.expires) else { return unstatedLifetime(options) }
        guard !flags.contains(.invalidExpires) else { return FreshnessLifetime(seconds: 0, source: .expires) }
        return FreshnessLifetime(seconds: date.millisecondsUntil(expires) / 1000, source: .expires)
    }

    /// The lifetime of a response whose server does not say.
    private func unstatedLifetime(_ options: CacheOptions) -> FreshnessLifetime {
        let mayBeEstimated = status.isHeuristicallyCacheable || flags.contains(.public)
        if status.rawValue < 400, mayBeEstimated,
            let seconds = givenLifetime ?? options.defaultLifetime?.wholeSeconds
        {
            return FreshnessLifetime(seconds: seconds, source: .given)
        }
        if let negative = options.negativeLifetime, flags.contains(.allowsNegativeCaching) {
            return FreshnessLifetime(seconds: negative.wholeSeconds, source: .negative)
        }
        guard options.heuristicFreshness, let lastModified, mayBeEstimated else {
            return FreshnessLifetime(seconds: 0, source: .none)
        }
        let unchanged = max(0, lastModified.millisecondsUntil(date))
        // The product is at most the Int64 that it came from, and halving keeps its rounding away from the upper end.
        let share = min(Double(unchanged) * options.heuristicFraction, Double(Int64.max / 2))
        let seconds = min(Int64(share) / 1000, options.heuristicCap.wholeSeconds)
        return FreshnessLifetime(seconds: seconds, source: .heuristic)
    }

    /// In milliseconds.
    var apparentAge: Int64 { max(0, date.millisecondsUntil(responseTime)) }

    /// In milliseconds.
    var initialAge: Int64 {
        let delay = max(0, requestTime.millisecondsUntil(responseTime))
        return max(apparentAge, saturatedSum(ageValue * 1000, delay))
    }

    func currentAge(now: Timestamp) -> Int64 {
        saturatedSum(initialAge, max(0, responseTime.millisecondsUntil(now))) / 1000
    }

    func standing(now: Timestamp, options: CacheOptions) -> FreshnessStanding {
        let lifetime = lifetime(options).seconds
        guard let fixed = options.fixedMilliseconds else {
            let age = currentAge(now: now)
            return FreshnessStanding(age: age, lifetime: lifetime, isStale: lifetime <= age)
        }
        let resident = max(0, responseTime.millisecondsUntil(now))
        return FreshnessStanding(age: resident / 1000, lifetime: lifetime, isStale: resident > fixed)
    }

    /// The age and lifetime of a whole response to a GET that answers a request without conditions, ranges and directives of the
    /// caller at once; nil if it is not fresh, or not fresh enough for the request: then ``ReuseJudgement`` decides.
    ///
    /// - Parameter cacheControl: the request's field value; nil if it has none.
    package func standing(
        now: Timestamp,
        for cacheControl: String?,
        options: CacheOptions
    ) -> FreshnessStanding? {
        guard !options.neverStores, !requiresValidation(options) else { return nil }
        let standing = standing(now: now, options: options)
        guard !standing.isStale else { return nil }
        guard let cacheControl else { return standing }
        let asked = CacheControl(parsing: cacheControl)
        let demand = FreshnessDemand(asked, directive: .default, isImmutable: isImmutable(options))
        return !asked.noStore && demand.accepts(standing) ? standing : nil
    }

    /// Whether its server says that the origin must be asked each time, or that it must not be stored: what a cache with other
    /// options stored against the server's word is not used by a cache that respects it.
    func requiresValidation(_ options: CacheOptions) -> Bool {
        options.fixedLifetime == nil && (flags.contains(.noCache) || isAgainstItsWord)
    }

    /// Whether a reload by the caller need not confirm it while it is fresh (RFC 8246).
    func isImmutable(_ options: CacheOptions) -> Bool { options.fixedLifetime == nil && flags.contains(.immutable) }

    /// Whether its server says that it must not be stored, so that only a fixed lifetime can have kept it.
    private var isAgainstItsWord: Bool { flags.contains(.noStore) && !flags.contains(.mustUnderstand) }

    /// ``StoredResponse/mayAnswerCookies(now:options:)``, of a whole response that is fresh.
    package func mayAnswerCookies(_ options: CacheOptions) -> Bool {
        options.fixedLifetime == nil && !flags.contains(.private)
    }

    func forbidsStale(_ options: CacheOptions) -> Bool {
        if flags.contains(.mustRevalidate) || flags.contains(.noCache) { return true }
        // Stored anyway because of a fixed lifetime, which has ended or was since removed from the options.
        if flags.contains(.noStore), options.fixedLifetime != nil || isAgainstItsWord { return true }
        return options.mode == .shared && (flags.contains(.proxyRevalidate) || sMaxAge != nil)
    }

    func staleFrom(_ options: CacheOptions) -> Timestamp {
        if let fixed = options.fixedMilliseconds {
            return responseTime.advanced(byMilliseconds: fixed).advanced(byMilliseconds: 1)
        }
        let lifetime = lifetime(options).seconds.multipliedReportingOverflow(by: 1000)
        let remaining = (lifetime.overflow ? .max : lifetime.partialValue) - initialAge
        return responseTime.advanced(byMilliseconds: max(0, remaining))
    }

    private func saturatedSum(_ left: Int64, _ right: Int64) -> Int64 {
        let (sum, overflow) = left.addingReportingOverflow(right)
        return overflow ? .max : sum
    }
}

/// A stored response's age and lifetime at one moment.
package struct FreshnessStanding: Sendable, Hashable {
    /// Its age in whole seconds: since its creation (RFC 9111 §4.2.3), or since its receipt if the cache fixes the lifetime.
    package let age: Int64

    /// Its lifetime in whole seconds.
    package let lifetime: Int64

    /// Whether it is past its lifetime; more precise than seconds if the cache fixes the lifetime.
    package let isStale: Bool

    /// For how many seconds it has been stale; 0 while it is fresh, and in the first second after that.
    package var staleness: Int64 { isStale ? max(0, age - lifetime) : 0 }

    /// For how many seconds it stays fresh; 0 or less once it is stale.
    package var freshnessLeft: Int64 { isStale ? min(0, lifetime - age) : max(1, lifetime - age) }

    init(age: Int64, lifetime: Int64, isStale: Bool) {
        self.age = age
        self.lifetime = lifetime
        self.isStale = isStale
    }
}

extension CacheOptions {
    /// The fixed lifetime in milliseconds, limited by the maximum lifetime; nil if none is fixed.
    var fixedMilliseconds: Int64? {
        guard let fixedLifetime else { return nil }
        return min(fixedLifetime, maximumLifetime ?? fixedLifetime).wholeMilliseconds
    }
}

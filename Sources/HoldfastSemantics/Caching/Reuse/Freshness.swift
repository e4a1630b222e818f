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
    /// How long this response is fresh, counted from its creation (RFC 9111 §4.2.1), or from its receipt if the options fix the
    /// lifetime.
    ///
    /// - Parameter options: the cache's mode, heuristics and limits.
    public func freshnessLifetime(_ options: CacheOptions) -> FreshnessLifetime {
        if let ruled = options.ruled(for: self) { return freshnessLifetime(ruled) }
        let lifetime = unlimitedLifetime(options)
        guard let limit = options.maximumLifetime?.wholeSeconds, limit < lifetime.seconds else { return lifetime }
        return FreshnessLifetime(seconds: limit, source: lifetime.source)
    }

    private func unlimitedLifetime(_ options: CacheOptions) -> FreshnessLifetime {
        if let fixed = options.fixedLifetime { return FreshnessLifetime(seconds: fixed.wholeSeconds, source: .fixed) }
        if options.mode == .shared, let seconds = cacheControl.sMaxAge {
            return FreshnessLifetime(seconds: seconds, source: .sMaxAge)
        }
        if let seconds = cacheControl.maxAge {
            return FreshnessLifetime(seconds: seconds, source: .maxAge)
        }
        switch expires {
        case .invalid:
            return FreshnessLifetime(seconds: 0, source: .expires)
        case .at(let expires):
            let milliseconds = date.millisecondsUntil(expires.timestamp)
            return FreshnessLifetime(seconds: milliseconds / 1000, source: .expires)
        case .absent:
            return unstatedLifetime(options)
        }
    }

    /// How much too old the response looks by its Date alone, in seconds (RFC 9111 §4.2.3).
    public var apparentAge: Int64 { apparentAgeMilliseconds / 1000 }

    /// The age of the response when it arrived, in seconds: the larger of the age by Date, and of Age plus the time of the exchange
    /// (RFC 9111 §4.2.3).
    public var correctedInitialAge: Int64 { initialAgeMilliseconds / 1000 }

    /// The age of the response in whole seconds, rounded down; a clock that was set back adds nothing (RFC 9111 §4.2.3).
    public func currentAge(now: Timestamp) -> Int64 {
        let resident = max(0, responseTime.millisecondsUntil(now))
        return saturatedSum(initialAgeMilliseconds, resident) / 1000
    }

    /// Whether the response is fresh: its lifetime exceeds its age (RFC 9111 §4.2), or equals it if the options fix the lifetime.
    public func isFresh(now: Timestamp, options: CacheOptions) -> Bool {
        !standing(now: now, options: options).isStale
    }

    /// The instant after which the entry can be neither reused nor revalidated, and may be evicted first.
    ///
    /// An entry with a validator, or one that may be served stale, stays useful after its lifetime for the options' retention; any
    /// other is useless once stale. One that must be confirmed and cannot be is useless at once.
    public func uselessAfter(_ options: CacheOptions) -> Timestamp {
        if let ruled = options.ruled(for: self) { return uselessAfter(ruled) }
        if needsConfirmation, !hasValidator { return responseTime }
        let staleFrom = staleFrom(options)
        guard hasValidator || !forbidsStale(options) else { return staleFrom }
        return staleFrom.advanced(by: options.retention)
    }

    /// Whether the response must not be used once stale, whatever the caller accepts (RFC 9111 §4.2.4).
    public func forbidsStale(_ options: CacheOptions) -> Bool {
        if let ruled = options.ruled(for: self) { return forbidsStale(ruled) }
        if needsConfirmation || cacheControl.mustRevalidate || cacheControl.noCache == .unqualified { return true }
        // Stored anyway because of a fixed lifetime, which has ended or was since removed from the options.
        if cacheControl.noStore, options.fixedLifetime != nil || isAgainstItsWord { return true }
        guard options.mode == .shared else { return false }
        return cacheControl.proxyRevalidate || cacheControl.sMaxAge != nil
    }

    /// Whether its server says that it must not be stored, so that only a fixed lifetime can have kept it.
    var isAgainstItsWord: Bool { cacheControl.noStore && !cacheControl.mustUnderstand }

    /// Whether its lifetime is fixed by the cache, whatever its server says.
    package func hasFixedLifetime(_ options: CacheOptions) -> Bool {
        if let ruled = options.ruled(for: self) { return ruled.fixedLifetime != nil }
        return options.fixedLifetime != nil
    }

    /// The lifetime of a response whose server does not say.
    private func unstatedLifetime(_ options: CacheOptions) -> FreshnessLifetime {
        let isError = head.status.rawValue >= 400
        if !isError, let seconds = givenLifetime ?? options.defaultLifetime?.wholeSeconds,
            head.status.isHeuristicallyCacheable || cacheControl.public
        {
            return FreshnessLifetime(seconds: seconds, source: .given)
        }
        if let negative = options.negativeLifetime, head.allowsNegativeCaching {
            return FreshnessLifetime(seconds: negative.wholeSeconds, source: .negative)
        }
        return heuristicLifetime(options)
    }

    private func heuristicLifetime(_ options: CacheOptions) -> FreshnessLifetime {
        guard options.heuristicFreshness, let lastModified,
            head.status.isHeuristicallyCacheable || cacheControl.public
        else { return FreshnessLifetime(seconds: 0, source: .none) }
        let unchanged = max(0, lastModified.timestamp.millisecondsUntil(date))
        // The product is at most the Int64 that it came from, and halving keeps its rounding away from the upper end.
        let share = min(Double(unchanged) * options.heuristicFraction, Double(Int64.max / 2))
        let seconds = min(Int64(share) / 1000, options.heuristicCap.wholeSeconds)
        return FreshnessLifetime(seconds: seconds, source: .heuristic)
    }

    private var apparentAgeMilliseconds: Int64 {
        max(0, date.millisecondsUntil(responseTime))
    }

    private func staleFrom(_ options: CacheOptions) -> Timestamp {
        if let fixed = options.fixedMilliseconds {
            return responseTime.advanced(byMilliseconds: fixed).advanced(byMilliseconds: 1)
        }
        let lifetime = freshnessLifetime(options).seconds.multipliedReportingOverflow(by: 1000)
        let remaining = (lifetime.overflow ? .max : lifetime.partialValue) - initialAgeMilliseconds
        return responseTime.advanced(byMilliseconds: max(0, remaining))
    }

    var initialAgeMilliseconds: Int64 {
        let delay = max(0, requestTime.millisecondsUntil(responseTime))
        return max(apparentAgeMilliseconds, saturatedSum(ageValue * 1000, delay))
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

extension StoredResponse {
    /// The response's age and lifetime.
    ///
    /// - Parameters:
    ///   - now: the time of the request.
    ///   - options: the cache's mode, heuristics and limits.
    package func standing(now: Timestamp, options: CacheOptions) -> FreshnessStanding {
        if let ruled = options.ruled(for: self) { return standing(now: now, options: ruled) }
        let lifetime = freshnessLifetime(options).seconds
        guard let fixed = options.fixedMilliseconds else {
            let age = currentAge(now: now)
            return FreshnessStanding(age: age, lifetime: lifetime, isStale: lifetime <= age)
        }
        let resident = max(0, responseTime.millisecondsUntil(now))
        return FreshnessStanding(age: resident / 1000, lifetime: lifetime, isStale: resident > fixed)
    }
}

extension CacheOptions {
    /// The fixed lifetime in milliseconds, limited by the maximum lifetime; nil if none is fixed.
    var fixedMilliseconds: Int64? {
        guard let fixedLifetime else { return nil }
        return min(fixedLifetime, maximumLifetime ?? fixedLifetime).wholeMilliseconds
    }
}

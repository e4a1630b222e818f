// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// How a stored response stands against its lifetime at one moment.
package struct FreshnessStanding: Sendable, Hashable {
    /// Its age in whole seconds: since its making (RFC 9111 §4.2.3), or since its receipt where the lifetime is the cache's own.
    package let age: Int64

    /// Its lifetime in whole seconds.
    package let lifetime: Int64

    /// Whether it is past its lifetime; finer than the seconds where the lifetime is the cache's own.
    package let isStale: Bool

    /// For how many seconds it has been stale; 0 while it is fresh, and in the first second after that.
    package var staleness: Int64 { isStale ? max(0, age - lifetime) : 0 }

    /// How many seconds it stays fresh; 0 or less once it is stale.
    package var freshnessLeft: Int64 { isStale ? min(0, lifetime - age) : max(1, lifetime - age) }

    init(age: Int64, lifetime: Int64, isStale: Bool) {
        self.age = age
        self.lifetime = lifetime
        self.isStale = isStale
    }
}

extension StoredResponse {
    /// How the response stands against its lifetime.
    ///
    /// - Parameters:
    ///   - now: the time of the request.
    ///   - options: the cache's mode, heuristics and limits.
    package func standing(now: Timestamp, options: CacheOptions) -> FreshnessStanding {
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
    /// The lifetime of the cache's own in milliseconds, no longer than the limit to all lifetimes; nil without one.
    var fixedMilliseconds: Int64? {
        guard let fixedLifetime else { return nil }
        return min(fixedLifetime, maximumLifetime ?? fixedLifetime).wholeMilliseconds
    }
}

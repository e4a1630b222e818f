// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import HoldfastSemantics

/// What a cache did: since it was made, in a window of time, or for one origin; docs/measuring-hit-rates.md defines every figure.
///
/// Each request that reached the cache is exactly one of: hit, stale hit (accepted, or while revalidating), stale on error,
/// revalidated, collapsed, miss, bypass; or still in progress.
public struct CacheStatistics: Sendable, Hashable {
    /// Calls (hops, where redirects were followed) that reached the cache.
    public internal(set) var requests = 0
    /// Answered from the store, fresh, without asking the origin.
    public internal(set) var hits = 0
    /// Answered from the store although stale, because the caller accepts that.
    public internal(set) var staleHits = 0
    /// Answered from the store although stale, while a revalidation ran in the background.
    public internal(set) var revalidatingHits = 0
    /// Answered from the store although stale, because the origin failed, could not be reached, or took too long; these are not
    /// hits.
    public internal(set) var staleOnError = 0
    /// Answered with a stored body after the origin said 304.
    public internal(set) var revalidated = 0
    /// Answered by the exchange of another call.
    public internal(set) var collapsed = 0
    /// Looked up and not answered from the store.
    public internal(set) var misses = 0
    /// Not looked up: another method, `reload`, a URL that cannot be a key.
    public internal(set) var bypasses = 0
    /// Responses whose storing was completed.
    public internal(set) var stored = 0
    /// Store failures that were treated as misses.
    public internal(set) var storeFailures = 0
    /// Revalidations begun in the background, including those that failed.
    public internal(set) var backgroundRevalidations = 0
    public internal(set) var backgroundFailures = 0
    /// How often each reason decided, except for fresh hits: why the origin was asked, or why a stale response was used.
    public internal(set) var reasons: [CacheReason: Int] = [:]
    /// How often each reason kept a response from being stored.
    public internal(set) var notStored: [CacheReason: Int] = [:]
    /// Body bytes delivered by hits, stale ones included.
    public internal(set) var hitBytes = 0
    /// Body bytes delivered by stale responses that replaced a failure.
    public internal(set) var staleOnErrorBytes = 0
    /// Body bytes delivered from the store after a 304.
    public internal(set) var revalidatedBytes = 0
    /// Body bytes delivered from the exchanges of other calls.
    public internal(set) var collapsedBytes = 0
    /// Body bytes delivered from the network to calls that were looked up.
    public internal(set) var networkBytes = 0
    /// The waiting time that hits, including stale ones, saved: for each, the time that the origin took to answer with the
    /// stored response, minus the time that the hit took.
    ///
    /// The origin's time is that from sending the request to the response head, in the exchange that fetched the stored
    /// response or last confirmed it. Each hit counts at least zero and at most a minute, since the clock may have been set in
    /// between.
    public internal(set) var timeSaved: Duration = .zero

    /// All zero.
    public init() {}

    /// Body bytes that came from the store.
    public var bytesFromStore: Int { hitBytes + staleOnErrorBytes + revalidatedBytes }

    /// Body bytes that callers got without a transfer of their own: from the store, or from the exchanges of other calls.
    public var bytesSaved: Int { bytesFromStore + collapsedBytes }

    /// Hits, including stale ones, but not responses that replaced a failure, since the origin was asked.
    public var allHits: Int { hits + staleHits + revalidatingHits }

    /// The share of hits, including stale ones, in all requests that were looked up; 0 if there were none.
    public var hitRatio: Double { ratio(allHits, of: requests - bypasses) }

    /// The share of requests answered with a stored body after a 304, in all requests that were looked up; 0 if there were
    /// none.
    public var revalidationRatio: Double { ratio(revalidated, of: requests - bypasses) }

    /// The share of delivered body bytes that hits delivered; 0 when there were none.
    public var byteHitRatio: Double {
        ratio(hitBytes, of: hitBytes + staleOnErrorBytes + revalidatedBytes + collapsedBytes + networkBytes)
    }

    private func ratio(_ part: Int, of whole: Int) -> Double {
        whole > 0 ? Double(part) / Double(whole) : 0
    }
}

/// Adding counts, and counts between two times.
extension CacheStatistics {
    /// Adds a request that was a fresh hit.
    mutating func addHit(bytes: Int, saved: Duration) {
        requests += 1
        hits += 1
        hitBytes += bytes
        timeSaved += saved
    }

    static func += (left: inout CacheStatistics, right: CacheStatistics) {
        left.combine(right, join: { $0 &+= $1 }, joinTimes: { $0 += $1 })
    }

    /// The counts since `earlier`.
    static func - (left: CacheStatistics, earlier: CacheStatistics) -> CacheStatistics {
        var difference = left
        difference.combine(earlier, join: { $0 &-= $1 }, joinTimes: { $0 -= $1 })
        return difference
    }

    private mutating func combine(
        _ other: CacheStatistics,
        join: (inout Int, Int) -> Void,
        joinTimes: (inout Duration, Duration) -> Void
    ) {
        for figure in CacheStatistics.figures { join(&self[keyPath: figure], other[keyPath: figure]) }
        for (reason, count) in other.reasons { join(&reasons[reason, default: 0], count) }
        for (reason, count) in other.notStored { join(&notStored[reason, default: 0], count) }
        joinTimes(&timeSaved, other.timeSaved)
        reasons = reasons.filter { $0.value != 0 }
        notStored = notStored.filter { $0.value != 0 }
    }

    /// Every simple count.
    private static var figures: [WritableKeyPath<CacheStatistics, Int>] {
        [
            \.requests, \.hits, \.staleHits, \.revalidatingHits, \.staleOnError, \.revalidated, \.collapsed, \.misses,
            \.bypasses, \.stored, \.storeFailures, \.backgroundRevalidations, \.backgroundFailures, \.hitBytes,
            \.staleOnErrorBytes, \.revalidatedBytes, \.collapsedBytes, \.networkBytes,
        ]
    }
}

/// A cache's counts, in total and by origin, since it was made and recently.
///
/// Minutes are those of the pipelines' clock: a window consists of whole minutes and the current one. A body counts in the minute
/// in which it is read. Reading takes some microseconds and delays no call for longer.
extension HTTPCache {
    /// What was counted since the cache was made.
    public var statistics: CacheStatistics { meter.total }

    /// What was counted in the current minute and in as many before it as `duration` covers.
    ///
    /// - Parameters:
    ///   - duration: rounded up to whole minutes; at least one and at most 60 of them.
    ///   - now: by the clock of the pipelines that use the cache; the system's by default.
    public func statistics(
        overLast duration: Duration,
        now: MonotonicInstant = SystemClock().now
    ) -> CacheStatistics {
        meter.total(in: HTTPCache.minutes(duration, now: now, limit: MeterState.totalMinutes))
    }

    /// What was counted minute by minute, the oldest first, the current one last.
    ///
    /// - Parameters:
    ///   - duration: how far back, as in ``statistics(overLast:now:)``.
    ///   - now: as in ``statistics(overLast:now:)``.
    public func statisticsByMinute(
        overLast duration: Duration,
        now: MonotonicInstant = SystemClock().now
    ) -> [CacheStatistics] {
        meter.totals(in: HTTPCache.minutes(duration, now: now, limit: MeterState.totalMinutes))
    }

    /// What was counted for an origin since the cache was made; zeros if it is not counted separately.
    ///
    /// At least 64 origins are counted separately; ``originStatistics`` says which, if there are more.
    ///
    /// - Parameter origin: such as `https://example.com:8443`; a longer URL stands for its origin.
    public func statistics(of origin: String) -> CacheStatistics {
        HTTPCache.name(of: origin).map { meter.origin($0) } ?? CacheStatistics()
    }

    /// What was counted for an origin in the current minute and in as many before it as `duration` covers.
    ///
    /// - Parameters:
    ///   - origin: as in ``statistics(of:)``.
    ///   - duration: rounded up to whole minutes; at least one and at most 5 of them.
    ///   - now: as in ``statistics(overLast:now:)``.
    public func statistics(
        of origin: String,
        overLast duration: Duration,
        now: MonotonicInstant = SystemClock().now
    ) -> CacheStatistics {
        let minutes = HTTPCache.minutes(duration, now: now, limit: MeterState.originMinutes)
        return HTTPCache.name(of: origin).map { meter.origin($0, in: minutes) } ?? CacheStatistics()
    }

    /// What was counted for each origin since the cache was made: up to 64 origins, those with the most requests first, and
    /// then all others together.
    ///
    /// The sum is ``statistics``. If there are more origins, a new one replaces the one with the fewest recent requests
    /// (weights halve every ten minutes), whose counts are added to the others. An origin with more than one in 64 of the
    /// recent requests is never replaced. Requests whose URL cannot be a key, and store failures, also count under the others.
    public var originStatistics: [OriginStatistics] {
        let (each, other) = meter.origins
        return each.map { OriginStatistics(origin: $0.name, statistics: $0.counts) }
            + [OriginStatistics(origin: nil, statistics: other)]
    }

    private static func name(of origin: String) -> String? { (try? TargetURI(origin))?.origin }

    private static func minutes(_ duration: Duration, now: MonotonicInstant, limit: Int) -> Range<Int64> {
        let (seconds, attoseconds) = duration.components
        let whole = min(max(seconds, 0), Int64(limit) * 60)
        let minutes = min(max((whole + (attoseconds > 0 ? 1 : 0) + 59) / 60, 1), Int64(limit))
        return now.minute - minutes..<now.minute + 1
    }
}

/// What a cache did for one origin.
public struct OriginStatistics: Sendable, Hashable {
    /// Scheme, host and port, such as `https://example.com:8443`; nil: all origins that are not counted separately.
    public let origin: String?
    /// What was counted.
    public let statistics: CacheStatistics
}

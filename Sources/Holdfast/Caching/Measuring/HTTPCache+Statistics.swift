// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics

/// What a cache has done, in total and by origin, since it was made and lately.
///
/// Minutes are those of the clock of the pipelines: a window consists of whole minutes and the one that is running. What a body
/// delivers counts in the minute in which it is read. Reading costs some microseconds and holds no call up for longer.
extension HTTPCache {
    /// What was counted since the cache was made.
    public var statistics: CacheStatistics { meter.total }

    /// What was counted in the running minute and in as many before it as `duration` takes.
    ///
    /// - Parameters:
    ///   - duration: rounded up to whole minutes; at least one and at most 60 of them.
    ///   - now: by the clock of the pipelines that use the cache; the system's by default.
    public func statistics(
        overLast duration: Duration,
        now: MonotonicInstant = SystemClock().now
    ) -> CacheStatistics {
        meter.total(in: HTTPCache.minutes(duration, now, limit: MeterState.totalMinutes))
    }

    /// What was counted minute by minute, the oldest first, the running one last.
    ///
    /// - Parameters:
    ///   - duration: how far back, as in ``statistics(overLast:now:)``.
    ///   - now: as there.
    public func statisticsByMinute(
        overLast duration: Duration,
        now: MonotonicInstant = SystemClock().now
    ) -> [CacheStatistics] {
        meter.totals(in: HTTPCache.minutes(duration, now, limit: MeterState.totalMinutes))
    }

    /// What was counted for an origin since the cache was made; zeros where it has no place.
    ///
    /// At least 64 origins have a place; by which rule when there are more: ``originStatistics``.
    ///
    /// - Parameter origin: such as `https://example.com:8443`; a longer URL names its origin.
    public func statistics(of origin: String) -> CacheStatistics {
        HTTPCache.name(of: origin).map { meter.origin($0) } ?? CacheStatistics()
    }

    /// What was counted for an origin in the running minute and in as many before it as `duration` takes.
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
        let minutes = HTTPCache.minutes(duration, now, limit: MeterState.originMinutes)
        return HTTPCache.name(of: origin).map { meter.origin($0, in: minutes) } ?? CacheStatistics()
    }

    /// What was counted since the cache was made for each origin, those with the most requests first, 64 of them at most, and
    /// last for all others together.
    ///
    /// The sum is ``statistics``. When there are more origins than places, a new one takes that of the origin with the fewest
    /// requests lately (weights halve every ten minutes), whose counts go over to the others: an origin with more than one in 64 of
    /// the recent requests keeps its place. To the others also belong requests whose URL is no key, and store failures.
    public var originStatistics: [OriginStatistics] {
        let (each, other) = meter.origins
        return each.map { OriginStatistics(origin: $0.name, statistics: $0.counts) }
            + [OriginStatistics(origin: nil, statistics: other)]
    }

    private static func name(of origin: String) -> String? { (try? TargetURI(origin))?.origin }

    private static func minutes(_ duration: Duration, _ now: MonotonicInstant, limit: Int) -> Range<Int64> {
        let (seconds, attoseconds) = duration.components
        let whole = min(max(seconds, 0), Int64(limit) * 60)
        let minutes = min(max((whole + (attoseconds > 0 ? 1 : 0) + 59) / 60, 1), Int64(limit))
        return now.minute - minutes..<now.minute + 1
    }
}

/// What a cache did for one origin.
public struct OriginStatistics: Sendable, Hashable {
    /// Scheme, host and port, such as `https://example.com:8443`; nil: all origins that are not told apart.
    public let origin: String?
    /// What was counted.
    public let statistics: CacheStatistics
}

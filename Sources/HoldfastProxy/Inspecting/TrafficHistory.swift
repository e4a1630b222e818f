// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Holdfast

    /// The traffic in each of the last seconds: differences between readings of counters that only grow.
    ///
    /// A reading is made when something happens in a second without one, so what was counted since the previous reading
    /// belongs to the second of that reading.
    struct TrafficHistory: Sendable {
        /// How many seconds are kept.
        static let length = 300

        private var ring = [TrafficFigures](repeating: TrafficFigures(), count: TrafficHistory.length)
        private var known: TrafficFigures
        private var second: Int64

        /// Creates a history that begins in `second`, with counters at `figures`.
        init(second: Int64, figures: TrafficFigures) {
            self.second = second
            known = figures
        }

        /// Reads the counters; a reading for a past second counts for the current one.
        mutating func look(second now: Int64, figures: TrafficFigures) {
            let news = figures.since(known)
            ring[TrafficHistory.place(of: second)] += news
            // Not `figures`: of two concurrent readings the older may come last, and must not be counted backward.
            known += news
            guard now > second else { return }
            let passed = min(now &- second, Int64(TrafficHistory.length))
            for back in 0..<passed { ring[TrafficHistory.place(of: now &- back)] = TrafficFigures() }
            second = now
        }

        /// The seconds up to the latest reading, the oldest first.
        var seconds: [TrafficFigures] {
            (0..<Int64(TrafficHistory.length)).reversed().map { ring[TrafficHistory.place(of: second &- $0)] }
        }

        private static func place(of second: Int64) -> Int {
            let rest = second % Int64(length)
            return Int(rest < 0 ? rest + Int64(length) : rest)
        }
    }

    /// What a cache has done, in the few figures that a chart shows.
    struct TrafficFigures: Sendable, Hashable {
        var requests = 0
        var hits = 0
        /// Answered from the store, although stale.
        var stale = 0
        var revalidated = 0
        var collapsed = 0
        var misses = 0
        var bypasses = 0
        /// Body bytes that callers got without a transfer over the network.
        var bytesSaved = 0
        /// Body bytes that came over the network.
        var bytesFetched = 0

        init() {}

        init(_ statistics: CacheStatistics) {
            requests = statistics.requests
            hits = statistics.hits
            stale = statistics.staleHits &+ statistics.revalidatingHits &+ statistics.staleOnError
            revalidated = statistics.revalidated
            collapsed = statistics.collapsed
            misses = statistics.misses
            bypasses = statistics.bypasses
            bytesSaved = statistics.bytesSaved
            bytesFetched = statistics.networkBytes
        }

        /// The difference between two readings; never negative, because the counters of a cache are read one after
        /// another.
        func since(_ earlier: TrafficFigures) -> TrafficFigures {
            var difference = TrafficFigures()
            for (_, figure) in TrafficFigures.all {
                difference[keyPath: figure] = max(0, self[keyPath: figure] &- earlier[keyPath: figure])
            }
            return difference
        }

        static func += (left: inout TrafficFigures, right: TrafficFigures) {
            for (_, figure) in all { left[keyPath: figure] &+= right[keyPath: figure] }
        }

        /// Figures over time, one list by each name.
        static func series(_ figures: [TrafficFigures]) -> [String: [Int]] {
            var series: [String: [Int]] = [:]
            for (name, figure) in all { series[name] = figures.map { $0[keyPath: figure] } }
            return series
        }

        private static var all: [(name: String, figure: WritableKeyPath<TrafficFigures, Int>)] {
            [
                ("requests", \.requests), ("hits", \.hits), ("stale", \.stale), ("revalidated", \.revalidated),
                ("collapsed", \.collapsed), ("misses", \.misses), ("bypasses", \.bypasses),
                ("bytesSaved", \.bytesSaved), ("bytesFetched", \.bytesFetched),
            ]
        }
    }
#endif

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Holdfast

    /// What was counted in each of the last seconds: differences between looks at counters that only grow.
    ///
    /// A look is taken when something happens in a second in which none was taken yet, so what was counted since the look before
    /// belongs to the second of that one.
    struct TrafficHistory: Sendable {
        /// How many seconds are kept.
        static let length = 300

        private var ring = [TrafficFigures](repeating: TrafficFigures(), count: TrafficHistory.length)
        private var known: TrafficFigures
        private var second: Int64

        /// A history that begins in `second`, with counters that stand at `figures`.
        init(second: Int64, figures: TrafficFigures) {
            self.second = second
            known = figures
        }

        /// Takes a look at the counters; one from a second that is past counts for the running one.
        mutating func look(second now: Int64, figures: TrafficFigures) {
            let news = figures.since(known)
            ring[TrafficHistory.place(of: second)] += news
            // Not `figures`: of two looks at the same time the older may come in last, and must not be counted back.
            known += news
            guard now > second else { return }
            let passed = min(now &- second, Int64(TrafficHistory.length))
            for back in 0..<passed { ring[TrafficHistory.place(of: now &- back)] = TrafficFigures() }
            second = now
        }

        /// The seconds up to the latest look, the oldest first, that of the look last.
        var seconds: [TrafficFigures] {
            (0..<Int64(TrafficHistory.length)).reversed().map { ring[TrafficHistory.place(of: second &- $0)] }
        }

        private static func place(of second: Int64) -> Int {
            let rest = second % Int64(length)
            return Int(rest < 0 ? rest + Int64(length) : rest)
        }
    }

    /// What a cache has done, in the few numbers that a chart shows.
    struct TrafficFigures: Sendable, Hashable {
        var requests = 0
        var hits = 0
        /// Answered from the store although stale.
        var stale = 0
        var revalidated = 0
        var collapsed = 0
        var misses = 0
        var bypasses = 0
        /// Body bytes that callers were given and that did not come over the network for them.
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

        /// What was counted between two looks; never less than nothing, since the counters of a cache are read one after another.
        func since(_ earlier: TrafficFigures) -> TrafficFigures {
            var difference = TrafficFigures()
            for figure in TrafficFigures.all {
                difference[keyPath: figure] = max(0, self[keyPath: figure] &- earlier[keyPath: figure])
            }
            return difference
        }

        static func += (left: inout TrafficFigures, right: TrafficFigures) {
            for figure in all { left[keyPath: figure] &+= right[keyPath: figure] }
        }

        private static var all: [WritableKeyPath<TrafficFigures, Int>] {
            [
                \.requests, \.hits, \.stale, \.revalidated, \.collapsed, \.misses, \.bypasses, \.bytesSaved,
                \.bytesFetched,
            ]
        }
    }
#endif

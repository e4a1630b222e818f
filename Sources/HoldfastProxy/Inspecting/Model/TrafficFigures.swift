// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Holdfast

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
            stale = statistics.staleHits &+ statistics.revalidatingHits &+ statistics.errorHits
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

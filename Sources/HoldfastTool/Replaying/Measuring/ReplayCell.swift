// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import HoldfastSimulation
    internal import HoldfastStorage

    /// What one policy at one size hits, of all requests that a cache looks up.
    struct ReplayCell: Sendable {
        let policy: ReplayPolicy
        let size: CacheSize
        /// Bytes of the whole cache, also where a sample was replayed.
        let capacity: Int
        let objectHitRatio: Double
        let byteHitRatio: Double
        /// Requests that find a copy past its life, of all.
        let expiredRatio: Double

        func hitRatio(_ measure: HitRateMeasure) -> Double {
            switch measure {
            case .object: objectHitRatio
            case .byte: byteHitRatio
            }
        }
    }

    /// How ratios of the requests replayed become ratios of all that a cache looks up.
    struct ReplayScale: Sendable {
        /// Requests replayed of all looked up, and the same of their bytes.
        let objectShare: Double
        let byteShare: Double
        /// Requests that the sample would have if chance had been fair; as many as it has where it is no sample.
        private let expectedRequests: Double
        /// The share of all objects that is replayed.
        let rate: Double

        init(_ input: InputReader.Input) {
            let trace = input.trace
            rate = input.rate
            let offered = Double(max(1, input.account.lookups))
            let kept = Double(input.account.lookups - input.account.unstored.total - input.cut)
            objectShare = max(0, kept) / max(1, offered - Double(input.cut))
            let bytes = Double(trace.totalBytes) / rate
            let all = bytes + Double(input.account.unstoredBytes)
            byteShare = all > 0 ? bytes / all : 0
            expectedRequests = rate < 1 ? rate * kept : Double(trace.requests.count)
        }

        /// A sample has a few of the most wanted objects too many or too few, which would hit in a cache of any size: what it has in
        /// requests beyond its share is taken from its hits, and what it lacks is added (SHARDS-adj, Waldspurger et al. 2015).
        func cell(_ policy: ReplayPolicy, _ size: CacheSize, _ capacity: Int, _ result: HitRateResult) -> ReplayCell {
            let objects =
                rate < 1 && expectedRequests > 0
                ? min(max(1 - Double(result.requests - result.hits) / expectedRequests, 0), 1) : result.objectHitRatio
            return ReplayCell(
                policy: policy,
                size: size,
                capacity: capacity,
                objectHitRatio: objects * objectShare,
                byteHitRatio: result.byteHitRatio * byteShare,
                expiredRatio: result.requests > 0
                    ? Double(result.revalidations) / Double(result.requests) * objectShare : 0
            )
        }
    }
#endif

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import HoldfastStorage

/// What a hit ratio counts; there are these two.
public enum HitRateMeasure: String, Sendable, Hashable, CaseIterable {
    /// Requests.
    case object
    /// Their bytes.
    case byte
}

extension HitRateResult {
    /// The hit ratio in one of the two measures.
    public func hitRatio(_ measure: HitRateMeasure) -> Double {
        switch measure {
        case .object: objectHitRatio
        case .byte: byteHitRatio
        }
    }
}

/// How many requests a policy misses at each of several sizes.
public struct MissRatioCurve: Sendable, Hashable {
    /// One size.
    public struct Point: Sendable, Hashable {
        /// Bytes of the cache, or another measure of its size.
        public let size: Double
        /// Misses of all requests, or of their bytes: 0 ... 1.
        public let missRatio: Double

        /// A point.
        public init(size: Double, missRatio: Double) {
            self.size = size
            self.missRatio = missRatio
        }
    }

    /// Whose curve it is.
    public let name: String
    /// The points, the smallest size first.
    public let points: [Point]

    /// A curve through points in any order; those without a size above 0 are left out.
    public init(name: String, points: [Point]) {
        self.name = name
        self.points = points.filter { $0.size > 0 && $0.size.isFinite && $0.missRatio.isFinite }.sorted {
            $0.size < $1.size
        }
    }

    /// The curve of one policy's results at several sizes. What is no hit is missed, revalidations too.
    public init(name: String, results: [HitRateResult], measure: HitRateMeasure = .object) {
        self.init(
            name: name,
            points: results.map { Point(size: Double($0.capacity), missRatio: 1 - $0.hitRatio(measure)) }
        )
    }

    /// Replays a trace through a policy at each of these sizes.
    ///
    /// - Parameters:
    ///   - strategy: the policy.
    ///   - trace: the requests.
    ///   - sizes: one simulation each; ``CacheSize/curve`` by default.
    ///   - measure: what is counted: requests, by default, or bytes.
    ///   - rate: the share of all keys that the trace has; the curve's sizes are those of the whole.
    ///   - seed: what the policy draws its random numbers from, if it does.
    public init(
        _ strategy: EvictionStrategy,
        _ trace: RequestTrace,
        sizes: [CacheSize] = CacheSize.curve,
        measure: HitRateMeasure = .object,
        rate: Double = 1,
        seed: UInt64 = 0
    ) {
        var simulator = HitRateSimulator()
        for size in sizes {
            simulator.add(strategy, capacity: size.bytes(uniqueBytes: trace.uniqueBytes, rate: rate), seed: seed)
        }
        simulator.replay(trace)
        self.init(
            name: strategy.description,
            points: simulator.results.map {
                Point(size: Double($0.capacity) / rate, missRatio: 1 - $0.hitRatio(measure))
            }
        )
    }

    /// The miss ratio at a size; between two points on a straight line over the logarithm of the size.
    ///
    /// nil outside the points: nothing is guessed.
    public func missRatio(at size: Double) -> Double? {
        guard let upper = points.firstIndex(where: { $0.size >= size }) else { return nil }
        let right = points[upper]
        if right.size == size { return right.missRatio }
        guard upper > 0, size > 0 else { return nil }
        let left = points[upper - 1]
        let share = Logarithm.ten(size / left.size) / Logarithm.ten(right.size / left.size)
        return left.missRatio + (right.missRatio - left.missRatio) * share
    }

    /// The smallest size among the points whose miss ratio is at most this one; nil when there is none.
    public func smallestSize(missingAtMost ratio: Double) -> Double? {
        points.first { $0.missRatio <= ratio }?.size
    }
}

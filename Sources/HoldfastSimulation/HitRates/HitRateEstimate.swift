// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Holdfast
public import HoldfastStorage

/// Estimates for the recorded requests.
extension HitRateRecorder {
    /// The requests recorded so far; keys are numbered in the order of their first requests.
    public var trace: RequestTrace {
        var trace = RequestTrace()
        held.forEach { trace.append(key: $0, size: $1) }
        return trace
    }

    /// The hits that caches of these sizes, empty at first, would have had for the recorded requests.
    ///
    /// Runs on the caller's thread, for about a second per million requests, size and policy; recording continues meanwhile.
    ///
    /// - Parameters:
    ///   - capacities: bytes of whole caches, as for an `HTTPCache`; this method applies the recorder's rate.
    ///   - policies: by default the memory store's policy.
    ///   - seed: the source of the policies' random numbers; 0 by default.
    /// - Returns: one for each policy and size, size by size within each policy.
    public func estimate(
        capacities: [Int],
        policies: [EvictionStrategy] = [.memory],
        seed: UInt64 = 0
    ) -> [HitRateEstimate] {
        let held = held
        var trace = RequestTrace()
        held.forEach { trace.append(key: $0, size: $1) }
        // The keys distinguish versions, and a body of unknown length that was read in part has another size.
        var simulator = HitRateSimulator(sizesTellVersions: false)
        var asked: [Int] = []
        for policy in policies {
            for capacity in capacities {
                simulator.add(policy, capacity: scaled(capacity), seed: seed)
                asked.append(capacity)
            }
        }
        simulator.replay(trace)
        return zip(asked, simulator.results).map { capacity, result in
            HitRateEstimate(
                capacity: capacity,
                replayed: result,
                expectedRequests: rate < 1 ? rate * Double(held.seen) : Double(result.requests),
                expectedBytes: rate < 1 ? rate * Double(held.seenBytes) : Double(result.requestedBytes)
            )
        }
    }

    private func scaled(_ capacity: Int) -> Int {
        rate < 1 ? Int(min(Double(max(0, capacity)) * rate, 0x1p62)) : max(0, capacity)
    }
}

/// The estimated hits of one policy at one size, from a sample.
public struct HitRateEstimate: Sendable, Hashable, CustomStringConvertible {
    /// Bytes of the whole cache.
    public let capacity: Int
    /// The counts of the sample's replay; its capacity is that of the cache for the sample.
    public let replayed: HitRateResult
    /// The share of requests that are hits, 0 to 1.
    public let objectHitRatio: Double
    /// The share of requested bytes that are hits, 0 to 1.
    public let byteHitRatio: Double

    /// A sample has a few of the most popular keys too many or too few, and these hit in a cache of any size. So the sample's
    /// requests beyond its share are subtracted from its hits, and missing ones are added (SHARDS-adj, Waldspurger et al. 2015).
    init(capacity: Int, replayed: HitRateResult, expectedRequests: Double, expectedBytes: Double) {
        self.capacity = capacity
        self.replayed = replayed
        objectHitRatio = HitRateEstimate.ratio(replayed.hits, of: replayed.requests, expected: expectedRequests)
        byteHitRatio = HitRateEstimate.ratio(replayed.hitBytes, of: replayed.requestedBytes, expected: expectedBytes)
    }

    private static func ratio(_ hits: Int, of whole: Int, expected: Double) -> Double {
        guard whole > 0, expected > 0 else { return 0 }
        return min(max(1 - Double(whole - hits) / expected, 0), 1)
    }

    /// The policy's name.
    public var policy: String { replayed.policy }

    /// One line, such as "lru at 268435456 bytes: 41.2 % of requests, 33.0 % of bytes".
    public var description: String {
        "\(policy) at \(capacity) bytes: \(percent(objectHitRatio)) of requests, \(percent(byteHitRatio)) of bytes"
    }

    private func percent(_ ratio: Double) -> String {
        "\((ratio * 1000).rounded() / 10) %"
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Replays requests through eviction policies and counts what they would have hit.
///
/// One pass over the requests serves any number of policies and sizes.
public struct HitRateSimulator: Sendable {
    /// One policy at one size.
    struct Run: Sendable {
        var result: HitRateResult
        var policy: any EvictionPolicy

        mutating func replay(key: UInt32, size: UInt32, _ victims: inout [UInt32]) {
            result.requests += 1
            result.requestedBytes += Int(size)
            if policy.holds(key) {
                result.hits += 1
                result.hitBytes += Int(size)
                return policy.use(key)
            }
            victims.removeAll(keepingCapacity: true)
            policy.insert(key, key: HitRateSimulator.mixed(UInt64(key)), size: Int(size), victims: &victims)
            let isAdmitted = policy.holds(key)
            if isAdmitted { result.writtenBytes += Int(size) }
            result.evictions += victims.count - (isAdmitted ? 0 : 1)
            result.movedBytes = policy.bytesMoved
        }
    }

    private(set) var runs: [Run] = []
    private var victims: [UInt32] = []

    /// A simulator of nothing yet.
    public init() {}

    /// Adds a policy at a size in bytes.
    public mutating func add(_ strategy: EvictionStrategy, capacity: Int, seed: UInt64 = 0) {
        runs.append(
            Run(
                result: HitRateResult(policy: strategy.description, capacity: capacity),
                policy: strategy.makePolicy(capacity: capacity, seed: seed)
            )
        )
    }

    /// What was counted so far, in the order in which the policies were added.
    public var results: [HitRateResult] { runs.map(\.result) }

    /// Replays one request.
    ///
    /// - Parameters:
    ///   - key: numbered from 0 without large gaps.
    public mutating func replay(key: UInt32, size: UInt32) {
        for index in runs.indices {
            runs[index].replay(key: key, size: size, &victims)
        }
    }

    /// A mix of all bits, so that numbers that count up serve as hashes (the finalizer of SplitMix64, Steele et al. 2014).
    static func mixed(_ key: UInt64) -> UInt64 {
        var hash = key &+ 0x9E37_79B9_7F4A_7C15
        hash = (hash ^ hash >> 30) &* 0xBF58_476D_1CE4_E5B9
        hash = (hash ^ hash >> 27) &* 0x94D0_49BB_1331_11EB
        return hash ^ hash >> 31
    }
}

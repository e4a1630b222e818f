// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Chooses the window's part of the capacity: small caches with a window each, which see a sample of the keys.
///
/// Four trials of ``DensityTinyLFUPolicy``'s rules run beside the real cache, over the same keys, so that what they hit
/// compares fairly; the window of the one that hits most of late is taken. A change in the requests shows in all four at
/// once, where a climb on the real cache would have to walk there and would take the change for its own doing. At most
/// 2,048 keys, whatever the cache's size.
package struct WindowTrials: Sendable {
    /// The parts of the capacity that are tried.
    package static let shares = [0.01, 0.10, 0.30, 0.70]
    /// Entries that a trial is meant to hold; up to twice as many before the sample is halved.
    private static let entries = 128
    private static let mostKeys = 2_048
    /// What a trial's hits are worth a quarter of ``entries`` later: half after four times as many sampled requests.
    private static let fading = 0.9576

    private var keys = TrialKeys()
    private var trials = WindowTrials.shares.indices.map { WindowTrial(index: $0) }
    private var hits = WindowTrials.shares.map { _ in 0.0 }
    private var random: PolicyRandom
    private let beta: Int
    /// Half of the sampled keys drop out with each step.
    package private(set) var rarity: UInt32 = 0
    private var requests = 0
    private var best = 1

    /// Trials of a cache that has seen nothing; `beta` in 1/1024.
    package init(beta: Int, seed: UInt64) {
        self.beta = beta
        random = PolicyRandom(seed: ~seed)
    }

    /// The window's part of the capacity.
    package var share: Double { Self.shares[best] }
    /// The bytes of memory taken.
    package var bytes: Int { keys.bytes + trials.reduce(0) { $0 + $1.bytes } }

    /// Whether the trials see the key with this hash.
    package func samples(_ hash: UInt32) -> Bool { Self.samples(hash, rarity: rarity) }

    /// Whether trials of this ``rarity`` see the key with this hash; of 32 they see none.
    package static func samples(_ hash: UInt32, rarity: UInt32) -> Bool {
        rarity < 32 && (hash &* 0x9E37_79B1) >> (32 - rarity) == 0
    }

    /// The entries that a cache holds when it is full, going by those held and the bytes that they take.
    package static func expected(held: Int, used: Int, capacity: Int) -> Int {
        guard held >= 32, used > 0, used < capacity else { return held }
        return Int(min(Double(held) * Double(capacity) / Double(used), 1e9))
    }

    /// Plays a request of a sampled key.
    ///
    /// - Parameters:
    ///   - weight: of the key's frequency, this request included.
    ///   - capacity: the cache's bytes.
    ///   - expected: the entries that the cache holds when it is full.
    package mutating func note(_ hash: UInt32, size: Int, weight: Int32, now: UInt32, capacity: Int, expected: Int) {
        fit(expected)
        guard samples(hash) else { return }
        let id = keys.note(hash, size: UInt32(clamping: size), weight: weight, now: now)
        for index in trials.indices {
            switch keys[id].place(index) {
            case .main, .usedInWindow: hits[index] += 1
            case .window:
                hits[index] += 1
                keys.setPlace(id, index, .usedInWindow)
            case .absent:
                let bytes = capacity >> Int(rarity)
                trials[index].insert(
                    id,
                    capacity: bytes,
                    window: Int(Self.shares[index] * Double(bytes)),
                    beta: beta,
                    now: now,
                    &keys,
                    &random
                )
            }
        }
        keys.release(id)
        requests += 1
        if requests >= max(64, expected >> Int(rarity) / 4) { choose() }
    }

    private mutating func choose() {
        requests = 0
        for index in hits.indices where hits[index] > hits[best] { best = index }
        for index in hits.indices { hits[index] *= Self.fading }
    }

    /// Begins again where the sample is too small or too large for the cache's entries, and where the trials hold too many keys.
    ///
    /// A cache may hold few entries though many keys are seen, because its owner takes them away again. Then the trials begin again
    /// with the same sample: a smaller one would be too small for the entries at the next request.
    private mutating func fit(_ expected: Int) {
        let held = expected >> Int(rarity)
        let isFew = held < Self.entries / 4
        if isFew, rarity > 0 {
            rarity -= 1
        } else if held > 2 * Self.entries || keys.count > Self.mostKeys {
            if !isFew, rarity < 31 { rarity += 1 }
        } else {
            return
        }
        keys = TrialKeys()
        trials = Self.shares.indices.map { WindowTrial(index: $0) }
    }
}

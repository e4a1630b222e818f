// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import HoldfastStorage

/// The policies to compare the tiers with, and the model of the disk tier.
extension EvictionStrategy {
    /// Least recently used.
    public static let lru = EvictionStrategy(named: "lru") { capacity, _ in LRUPolicy(capacity: capacity) }

    /// W-TinyLFU (2017), whose window follows the hit ratio: what is asked for more often than others stays.
    public static let wtinylfu = EvictionStrategy(named: "wtinylfu") { capacity, _ in
        WTinyLFUPolicy(capacity: capacity)
    }

    /// SIEVE (NSDI 2024): the oldest entry that was not used lately leaves.
    public static let sieve = EvictionStrategy(named: "sieve") { capacity, _ in SievePolicy(capacity: capacity) }

    /// S3-FIFO (SOSP 2023): three queues, of which one remembers what left.
    public static let s3fifo = EvictionStrategy(named: "s3fifo") { capacity, _ in S3FIFOPolicy(capacity: capacity) }

    /// Greedy-Dual-Size-Frequency (1998): the fewest uses for each byte leave.
    public static let gdsf = EvictionStrategy(named: "gdsf") { capacity, _ in GDSFPolicy(capacity: capacity) }

    /// First in, first out.
    public static let fifo = EvictionStrategy(named: "fifo") { capacity, _ in FIFOPolicy(capacity: capacity) }

    /// 3L-Cache (FAST 2025), which learns when entries are asked for next, for few misses. LRU until it has seen enough requests.
    public static let threeLCache = EvictionStrategy(named: "3lcache") { capacity, seed in
        ThreeLCachePolicy(capacity: capacity, objective: .objects, seed: seed)
    }

    /// 3L-Cache for few bytes missed.
    public static let threeLCacheForBytes = EvictionStrategy(named: "3lcache-bytes") { capacity, seed in
        ThreeLCachePolicy(capacity: capacity, objective: .bytes, seed: seed)
    }

    /// The disk tier's: the rules by which a `DiskStore` admits and reclaims, over segments, dead bytes counted.
    public static let disk = EvictionStrategy(named: "disk") { capacity, seed in
        SegmentedPolicy(capacity: capacity, seed: seed)
    }

    /// Every strategy with a name of its own, the tiers' defaults first.
    public static let all: [EvictionStrategy] = [
        .memory, .disk, .lru, .wtinylfu, .sieve, .s3fifo, .gdsf, .threeLCache, .threeLCacheForBytes, .fifo,
    ]

    /// The strategy with this name, as its description spells it: one of ``all``, or `dtlfu-B` with a B from 0 to 1.
    public init?(named name: String) {
        if name.hasPrefix("dtlfu-"), let beta = Double(name.dropFirst(6)), (0...1).contains(beta) {
            self = .densityTinyLFU(beta: beta)
            return
        }
        guard let found = Self.all.first(where: { $0.description == name }) else { return nil }
        self = found
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastTesting
import Testing

@testable import HoldfastSimulation
@testable import HoldfastStorage

@Suite("Eviction invariants", .timeLimit(.minutes(20)))
struct EvictionInvariantTests {
    @Test("After random calls the policy holds what a model holds", arguments: EvictionStrategy.all)
    func random(strategy: EvictionStrategy) {
        for seed in 1...6 as ClosedRange<UInt64> {
            var generator = SeededGenerator(seed: seed)
            let capacity = [0, 1, 7, 100, 1_000, 20_000][Int(seed - 1)]
            var owner = PolicyOwner(strategy, capacity: capacity, seed: seed)
            for _ in 0..<4_000 {
                let key = UInt64.random(in: 0..<200, using: &generator)
                let size = Int.random(in: 0..<max(2, capacity / 8), using: &generator)
                switch Int.random(in: 0..<100, using: &generator) {
                case 0..<90: owner.request(key, size: size)
                case 90..<95: owner.remove(key)
                case 95..<99: owner.resize(key, to: Int.random(in: 0..<capacity + 2, using: &generator))
                default: owner.setCapacity(Int.random(in: 0..<2 * capacity + 2, using: &generator))
                }
            }
            #expect(owner.faults.isEmpty, "\(strategy), seed \(seed): \(owner.faults.prefix(3))")
        }
    }

    @Test("The same calls and the same seed give the same victims", arguments: EvictionStrategy.all)
    func deterministic(strategy: EvictionStrategy) {
        func victims() -> [UInt32] {
            var generator = SeededGenerator(seed: 11)
            var owner = PolicyOwner(strategy, capacity: 3_000, seed: 5)
            for _ in 0..<5_000 {
                let key = UInt64.random(in: 0..<400, using: &generator)
                owner.request(key, size: Int(key) % 90)
            }
            return owner.gone
        }
        let first = victims()
        #expect(!first.isEmpty)
        #expect(first == victims())
    }

    /// Keys and sizes that are meant to do harm.
    enum Flood: String, CaseIterable, Sendable {
        case oneSize, oneKey, scan, oversize, empty, huge, alternating, growing

        func request(_ step: Int, capacity: Int) -> (key: UInt64, size: Int) {
            switch self {
            case .oneSize: (UInt64(step * step % 997), 10)
            case .oneKey: (1, 10)
            case .scan: (UInt64(step), 10)
            case .oversize: (UInt64(step), capacity + 1)
            case .empty: (UInt64(step % 700), 0)
            case .huge: (UInt64(step % 5), Int.max - step % 3)
            case .alternating: (UInt64(step), step % 2 == 0 ? 1 : capacity)
            case .growing: (UInt64(step), step)
            }
        }
    }

    @Test("Harmful requests break nothing", arguments: EvictionStrategy.all, Flood.allCases)
    func flood(strategy: EvictionStrategy, flood: Flood) {
        for capacity in [0, 1, 1_000, Int.max - 1] {
            var owner = PolicyOwner(strategy, capacity: capacity, seed: 3)
            for step in 0..<700 {
                let (key, size) = flood.request(step, capacity: capacity)
                owner.request(key, size: size)
            }
            #expect(owner.faults.isEmpty, "\(strategy), \(flood), \(capacity): \(owner.faults.prefix(3))")
            // Whatever left was offered once before.
            #expect(owner.gone.count <= owner.offers)
        }
    }

    @Test("Sizes beside the largest number do not overflow", arguments: EvictionStrategy.all)
    func resizedToHuge(strategy: EvictionStrategy) {
        var owner = PolicyOwner(strategy, capacity: .max, seed: 1)
        for key in 0..<20 as Range<UInt64> { owner.request(key, size: 1_000) }
        for key in 0..<20 as Range<UInt64> { owner.resize(key, to: .max - Int(key)) }
        owner.setCapacity(5_000)
        owner.setCapacity(-1)
        #expect(owner.faults.isEmpty, "\(strategy): \(owner.faults.prefix(3))")
    }

    /// What learns keeps its lessons, and as much of what it evicted as of what it holds.
    private static let learners: Set<EvictionStrategy> = [.threeLCache, .threeLCacheForBytes]

    @Test(
        "A full cache takes at most 24 bytes of memory per entry, a learning one 300",
        arguments: EvictionStrategy.all
    )
    func metadata(strategy: EvictionStrategy) {
        for capacity in [29_500] {
            var policy = strategy.makePolicy(capacity: capacity, seed: 1)
            var free: [UInt32] = []
            var slots: UInt32 = 0
            var victims: [UInt32] = []
            for step in 0..<capacity * 5 / 4 {
                let slot = free.popLast() ?? slots
                if slot == slots { slots += 1 }
                policy.insert(slot, key: SplitMix64.mixed(UInt64(step)), size: 1, victims: &victims)
                free.append(contentsOf: victims)
                victims.removeAll(keepingCapacity: true)
            }
            #expect(policy.count > capacity * 9 / 10)
            let perEntry = Double(policy.metadataBytes) / Double(policy.count)
            #expect(perEntry <= (Self.learners.contains(strategy) ? 300 : 24), "\(strategy) at \(capacity)")
        }
    }
}

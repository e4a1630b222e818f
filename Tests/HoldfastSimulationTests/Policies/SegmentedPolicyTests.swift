// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastTestKit
import HoldfastTesting
import Testing

@testable import HoldfastSimulation
@testable import HoldfastStorage

@Suite("The disk store's rules as a policy")
struct SegmentedPolicyTests {
    private static func hash(_ key: UInt32) -> UInt64 { SplitMix64.mixed(UInt64(key)) }

    @Test("Room for a large entry is made at once, whatever small entries are in the way", .timeLimit(.minutes(1)))
    func longAfterShort() {
        var policy = SegmentedPolicy(capacity: 4_000_000_000, seed: 7)
        var victims: [UInt32] = []
        policy.insert(1, key: Self.hash(1), size: 1, victims: &victims)
        policy.insert(2, key: Self.hash(2), size: 3_960_000_000, victims: &victims)
        #expect(victims == [1] && policy.holds(2))
    }

    @Test(
        "Bytes stay within the capacity, and every slot is held until it is handed out once",
        arguments: [0, 1, 7, 90, 5_000, 300_000]
    )
    func promises(_ capacity: Int) {
        var generator = SeededGenerator(seed: 11)
        var policy = SegmentedPolicy(capacity: capacity, seed: 7)
        var held: [UInt32: Int] = [:]
        var victims: [UInt32] = []
        for step in 0..<20_000 {
            let slot = UInt32.random(in: 0..<400, using: &generator)
            victims.removeAll()
            switch Int.random(in: 0..<40, using: &generator) {
            case 0:
                policy.remove(slot)
                held[slot] = nil
            case 1 where held[slot] != nil:
                let size = Int.random(in: 0...2_000, using: &generator)
                policy.resize(slot, to: size, victims: &victims)
                held[slot] = size
            case 2 where step % 500 == 0:
                policy.setCapacity(step % 1_000 == 0 ? capacity / 2 : capacity, victims: &victims)
            default:
                if policy.holds(slot) {
                    policy.use(slot)
                } else {
                    let size = Int.random(in: 0...(slot % 10 == 0 ? 3_000 : 90), using: &generator)
                    policy.insert(slot, key: Self.hash(slot), size: size, victims: &victims)
                    held[slot] = size
                }
            }
            for victim in victims {
                #expect(held.removeValue(forKey: victim) != nil, "step \(step): \(victim) was not held")
            }
            #expect(policy.used == held.values.reduce(0, +))
            #expect(policy.used <= policy.capacity && policy.occupied <= max(policy.capacity, policy.used))
            #expect(policy.count == held.count && policy.holds(slot) == (held[slot] != nil))
        }
    }

    @Test("The same calls give the same answers")
    func deterministic() {
        func run() -> [UInt32] {
            var generator = SeededGenerator(seed: 4)
            var policy = SegmentedPolicy(capacity: 40_000, seed: 7)
            var victims: [UInt32] = []
            for _ in 0..<30_000 {
                let slot = UInt32.random(in: 0..<3_000, using: &generator)
                if policy.holds(slot) {
                    policy.use(slot)
                } else {
                    policy.insert(slot, key: Self.hash(slot), size: Int(slot % 60), victims: &victims)
                }
            }
            return victims
        }
        #expect(run() == run())
    }

    @Test("A popular set survives a flood of keys requested once")
    func flood() {
        var policy = SegmentedPolicy(capacity: 64_000, seed: 7)
        var victims: [UInt32] = []
        func ask(_ slot: UInt32) -> Bool {
            if policy.holds(slot) {
                policy.use(slot)
                return true
            }
            policy.insert(slot, key: Self.hash(slot), size: 100, victims: &victims)
            return false
        }
        var hits = 0
        for step in 0..<30_000 {
            if step % 3 == 0 {
                _ = ask(UInt32(1_000 + step % 50_000))
            } else if ask(UInt32(step * 31 % 300)), step > 10_000 {
                hits += 1
            }
        }
        #expect(hits > 13_333 * 95 / 100)
    }

    @Test("Insertions and removals alone leave nothing behind")
    func churn() {
        var policy = SegmentedPolicy(capacity: 6_400, seed: 7)
        var victims: [UInt32] = []
        for step in 0..<70_000 {
            let slot = UInt32(step % 3)
            policy.insert(slot, key: Self.hash(slot), size: [500, 3, 0][step % 3], victims: &victims)
            policy.remove(slot)
        }
        #expect(policy.used == 0 && policy.count == 0)
        #expect(policy.metadataBytes < 60_000)
    }

    @Test(
        "Large entries that come and go leave nothing behind, and no more segments than can be numbered",
        arguments: [true, false]
    )
    func longEntriesComeAndGo(leavesOne: Bool) {
        let capacity = 1 << 20
        var owner = PolicyOwner(.disk, capacity: capacity, seed: 1, looksAtAllEvery: 5_000)
        for step in 0..<9_000 as Range<UInt64> {
            // Beside a segment, which is full with that; then one byte into the next one.
            owner.request(1 << 32 + step, size: capacity / 60)
            if leavesOne { owner.request(step, size: 1) }
            owner.remove(1 << 32 + step)
        }
        #expect(owner.faults == [])
        #expect(owner.policy.metadataBytes < (leavesOne ? 2_000_000 : 30_000))
    }

    @Test("Entries of large segments do not fit into any number of small ones")
    func segmentsBecomeSmaller() {
        var owner = PolicyOwner(.disk, capacity: 64 << 20, seed: 1, looksAtAllEvery: 100_000)
        for key in 0..<30_000 as Range<UInt64> { owner.request(key, size: 100) }
        for key in 0..<30_000 as Range<UInt64> { owner.request(key, size: 100) }
        owner.setCapacity(640)
        owner.checkAll()
        #expect(owner.faults == [])
    }

    @Test("An entry takes at most 24 bytes of memory")
    func memory() {
        var policy = SegmentedPolicy(capacity: 600_000, seed: 7)
        var victims: [UInt32] = []
        var free: [UInt32] = []
        var next: UInt32 = 0
        for key in 0..<150_000 {
            let slot = free.popLast() ?? next
            if slot == next { next += 1 }
            policy.insert(slot, key: SplitMix64.mixed(UInt64(key)), size: 10, victims: &victims)
            free += victims
            victims.removeAll()
        }
        #expect(policy.count >= 50_000)
        let perEntry = Double(policy.metadataBytes) / Double(policy.count)
        #expect(perEntry <= 24, "\(perEntry) bytes an entry")
    }

    @Test("Entries as large as the capacity, alone in their segments, come and go without end")
    func largeEntries() {
        var owner = PolicyOwner(.disk, capacity: 1_000, seed: 1)
        for step in 0..<3_000 as Range<UInt64> { owner.request(step % 7, size: [1_000, 700, 300, 1][Int(step % 4)]) }
        #expect(owner.faults == [])
    }

    /// With the bar at 35 to 40 % of the bytes a pass over the main log gives back that much, so not much more than half of
    /// what is put is copied.
    @Test("Carrying writes at most half as much again as is put", arguments: [1] as [UInt64])
    func amplification(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var policy = SegmentedPolicy(capacity: 1 << 20, seed: seed)
        var victims: [UInt32] = []
        var put = 0
        for _ in 0..<100_000 {
            let uniform = Double.random(in: 0..<1, using: &generator)
            let slot = UInt32(30_000 * uniform * uniform * uniform)
            if policy.holds(slot) {
                policy.use(slot)
            } else {
                let size = 40 + Int(slot % 200)
                policy.insert(slot, key: Self.hash(slot), size: size, victims: &victims)
                put += size
            }
        }
        #expect(policy.bytesMoved > 0)
        let amplification = Double(put + policy.bytesMoved) / Double(put)
        #expect(amplification <= 1.5, "\(amplification)")
    }
}

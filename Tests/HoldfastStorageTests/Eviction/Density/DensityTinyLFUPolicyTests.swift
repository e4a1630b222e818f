// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastTesting
import Testing

@testable import HoldfastSimulation
@testable import HoldfastStorage

@Suite("Density TinyLFU", .timeLimit(.minutes(20)))
struct DensityTinyLFUPolicyTests {
    /// A policy with keys in place of slots, which checks each call's promises.
    private struct Checked {
        var policy: DensityTinyLFUPolicy
        var sizes: [UInt32: Int] = [:]
        var log: [UInt32] = []

        mutating func check(_ victims: [UInt32]) {
            var isKept = true
            for victim in victims {
                isKept = isKept && sizes.removeValue(forKey: victim) != nil && !policy.holds(victim)
            }
            log += victims
            #expect(isKept, "handed out twice, or never held")
            #expect(policy.used <= policy.capacity && policy.count == sizes.count)
        }

        /// What need not be looked at after each request.
        func checkAll() {
            #expect(policy.used == sizes.values.reduce(0, +))
            #expect(sizes.keys.allSatisfy { policy.holds($0) }, "lost")
        }

        mutating func request(_ slot: UInt32, _ size: Int) {
            if policy.holds(slot) { return policy.use(slot) }
            var victims: [UInt32] = []
            sizes[slot] = max(0, size)
            policy.insert(slot, key: SplitMix64.mixed(UInt64(slot)), size: size, victims: &victims)
            check(victims)
        }
    }

    private func randomised(seed: UInt64, beta: Double) -> [UInt32] {
        var generator = SeededGenerator(seed: seed)
        var checked = Checked(policy: DensityTinyLFUPolicy(capacity: 1_000, beta: beta, seed: seed))
        for request in 0..<4_000 {
            let slot = UInt32.random(in: 0..<UInt32.random(in: 1...200, using: &generator), using: &generator)
            let size = [-1, 0, 1, 10, 50, 200, 1_000, 1_001, .max][Int.random(in: 0..<9, using: &generator)]
            var victims: [UInt32] = []
            switch Int.random(in: 0..<20, using: &generator) {
            case 0..<14: checked.request(slot, size)
            case 14..<17:
                checked.policy.remove(slot)
                checked.sizes[slot] = nil
            case 17..<19:
                if checked.sizes[slot] != nil { checked.sizes[slot] = max(0, size) }
                checked.policy.resize(slot, to: size, victims: &victims)
            default:
                checked.policy.setCapacity(
                    [-5, 0, 500, 1_000, 990, 3_000][Int.random(in: 0..<6, using: &generator)],
                    victims: &victims
                )
            }
            checked.check(victims)
            if request % 16 == 0 { checked.checkAll() }
        }
        return checked.log
    }

    @Test(
        "Never above capacity, no slot lost or doubled, and the same result for the same seed",
        arguments: [1, 2, 3, 4] as [UInt64],
        [0, 0.5, 1]
    )
    func promises(seed: UInt64, beta: Double) {
        #expect(randomised(seed: seed, beta: beta) == randomised(seed: seed, beta: beta))
    }

    @Test("A slot that is used repeatedly in the window leaves no trail of items")
    func trail() {
        var checked = Checked(policy: DensityTinyLFUPolicy(capacity: 1_000, beta: 0.5, seed: 1))
        for slot in 0..<20 as Range<UInt32> { checked.request(slot, 1) }
        for _ in 0..<5_000 {
            checked.policy.remove(3)
            checked.sizes[3] = nil
            checked.request(3, 1)
        }
        #expect(checked.policy.window.count <= 2 * 20 + 66)
        #expect(checked.policy.main.count <= 2 * 20 + 66)
        for slot in 20..<3_000 as Range<UInt32> { checked.request(slot, 1) }
    }

    @Test(
        "Keys requested once do not displace popular ones, even if those fill the main part"
    )
    func admission() {
        var checked = Checked(policy: DensityTinyLFUPolicy(capacity: 200, beta: 0.5, seed: 1))
        for _ in 0..<10 { for slot in 0..<175 as Range<UInt32> { checked.request(slot, 1) } }
        for slot in 1_000..<3_000 as Range<UInt32> { checked.request(slot, 1) }
        #expect((0..<175).filter { checked.policy.holds($0) }.count >= 168)
    }

    @Test("A scan passes and leaves the popular entries")
    func scan() {
        var checked = Checked(policy: DensityTinyLFUPolicy(capacity: 200, beta: 0.5, seed: 1))
        for _ in 0..<10 { for slot in 0..<100 as Range<UInt32> { checked.request(slot, 1) } }
        for slot in 1_000..<3_000 as Range<UInt32> { checked.request(slot, 1) }
        #expect((0..<100).filter { checked.policy.holds($0) }.count >= 95)
    }

    @Test(
        "Of equally popular entries the small ones stay with beta 0.5; with beta 0 size does not matter",
        arguments: [(0.5, 0.9, 1.0), (0, 0.2, 0.8)]
    )
    func density(beta: Double, least: Double, most: Double) {
        var checked = Checked(policy: DensityTinyLFUPolicy(capacity: 20_000, beta: beta, seed: 1))
        // 100 of size 100 and 100 of size 400 in turns: half of the bytes fit.
        for _ in 0..<60 {
            for slot in 0..<200 as Range<UInt32> { checked.request(slot, slot % 2 == 0 ? 100 : 400) }
        }
        let small = Double((0..<200 as Range<UInt32>).filter { $0 % 2 == 0 && checked.policy.holds($0) }.count) / 100
        #expect(small >= least && small <= most, "\(small) of the small are held")
    }

    @Test("Newly popular entries displace formerly popular ones")
    func forgets() {
        var checked = Checked(policy: DensityTinyLFUPolicy(capacity: 100, beta: 0.5, seed: 1))
        for _ in 0..<100 { for slot in 0..<80 as Range<UInt32> { checked.request(slot, 1) } }
        for _ in 0..<200 { for slot in 100..<180 as Range<UInt32> { checked.request(slot, 1) } }
        #expect((100..<180).filter { checked.policy.holds($0) }.count >= 75)
    }

    @Test("A capacity change that evicts nothing changes nothing else")
    func smallChanges() {
        var plain = DensityTinyLFUPolicy(capacity: 1_000, beta: 0.5, seed: 1)
        var changed = plain
        var victims: [UInt32] = []
        var others: [UInt32] = []
        for request in 0..<20_000 {
            let slot = UInt32((request * request / 7) % 1_500)
            if plain.holds(slot) {
                plain.use(slot)
            } else {
                plain.insert(slot, key: SplitMix64.mixed(UInt64(slot)), size: 1, victims: &victims)
            }
            if changed.holds(slot) {
                changed.use(slot)
            } else {
                changed.insert(slot, key: SplitMix64.mixed(UInt64(slot)), size: 1, victims: &others)
            }
            changed.setCapacity(1_000 + request % 50, victims: &others)
            changed.setCapacity(1_000, victims: &others)
        }
        #expect(victims == others)
    }

    @Test(
        "A full cache takes at most 24 bytes per entry, sketch and trials included",
        arguments: [100_000, 110_000]
    )
    func memory(entries: Int) {
        var policy = DensityTinyLFUPolicy(capacity: entries * 10, beta: 0.5, seed: 1)
        var victims: [UInt32] = []
        var free: [UInt32] = []
        var next: UInt32 = 0
        for key in 0..<UInt64(entries * 5 / 4) {
            let slot = free.popLast() ?? next
            if slot == next { next += 1 }
            policy.insert(slot, key: SplitMix64.mixed(key), size: 10, victims: &victims)
            free += victims
            victims.removeAll(keepingCapacity: true)
        }
        #expect(policy.count == entries)
        let each = Double(policy.metadataBytes) / Double(policy.count)
        #expect(each <= 24, "\(each) bytes")
    }

    @Test("Large candidates that lose to the last of many victims cost only their share")
    func flood() {
        // Three in five of 5,000 entries are used often; candidates of half the cache beat the other 2,000 and then lose.
        var policy = DensityTinyLFUPolicy(capacity: 5_000, beta: 0, seed: 1)
        var victims: [UInt32] = []
        for slot in 0..<5_000 as Range<UInt32> {
            policy.insert(slot, key: SplitMix64.mixed(UInt64(slot)), size: 1, victims: &victims)
        }
        for slot in 0..<5_000 as Range<UInt32> where slot % 5 < 3 { for _ in 0..<40 { policy.use(slot) } }
        var draws = policy.random
        for key in 0..<500 as Range<UInt64> {
            let hash = SplitMix64.mixed(5_000 + key % 20)
            policy.insert(5_000 + UInt32(key % 20), key: hash, size: 2_500, victims: &victims)
        }
        #expect(policy.used <= policy.capacity && policy.count >= 4_000)
        // 8 victims and 8 of credit for each, 4,096 of credit from before.
        let count = (0..<(500 * 18 + 4_096) * 32).first { _ in
            if draws == policy.random { return true }
            _ = draws.next(below: 1)
            return false
        }
        #expect(count != nil)
    }

    @Test(
        "Names survive a round trip",
        arguments: ["memory", "dtlfu-0.5", "dtlfu-0.1", "dtlfu-0.0", "dtlfu-1.0", "dtlfu-0.25"]
    )
    func names(name: String) {
        #expect(EvictionStrategy(named: name)?.description == name)
    }

    @Test(
        "Unknown names are refused",
        arguments: ["dtlfu-", "dtlfu-1.1", "dtlfu--0.5", "dtlfu-nan", "dtlfu", "dtlfu-x"]
    )
    func noNames(name: String) {
        #expect(EvictionStrategy(named: name) == nil)
    }
}

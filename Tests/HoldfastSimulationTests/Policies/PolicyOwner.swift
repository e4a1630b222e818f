// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics

@testable import HoldfastSimulation
@testable import HoldfastStorage

/// Owns the entries of a policy as a store does, and notes each broken promise.
struct PolicyOwner {
    private(set) var policy: any EvictionPolicy
    private var slots: [UInt64: UInt32] = [:]
    private var entries: [UInt32: (key: UInt64, size: Int)] = [:]
    private var free: [UInt32] = []
    private var used = 0
    private var calls = 0
    private let looksAtAllEvery: Int

    /// The first things that were broken, in words.
    private(set) var faults: [String] = []
    /// The slots that left because space was needed, in order; of long histories the last ones.
    private(set) var gone: [UInt32] = []
    /// Calls of insert.
    private(set) var offers = 0
    /// The slots there ever were.
    private(set) var next: UInt32 = 0

    /// The entries held.
    var count: Int { entries.count }

    /// - Parameter looksAtAllEvery: after how many calls every entry is looked for, and not only those concerned.
    init(_ strategy: EvictionStrategy, capacity: Int, seed: UInt64, looksAtAllEvery: Int = 1) {
        self.init(strategy.makePolicy(capacity: capacity, seed: seed), looksAtAllEvery: looksAtAllEvery)
    }

    /// Owns the entries of a policy that holds nothing yet.
    init(_ policy: any EvictionPolicy, looksAtAllEvery: Int = 1) {
        self.policy = policy
        self.looksAtAllEvery = looksAtAllEvery
    }

    /// Uses an entry or offers it.
    mutating func request(_ key: UInt64, size: Int) {
        if let slot = slots[key] {
            policy.use(slot)
            return check(slot)
        }
        let slot = free.popLast() ?? next
        next = max(next, slot + 1)
        var victims: [UInt32] = []
        offers += 1
        policy.insert(slot, key: SplitMix64.mixed(key), size: size, victims: &victims)
        if !victims.contains(slot) {
            slots[key] = slot
            entries[slot] = (key, max(0, size))
            used &+= max(0, size)
        } else {
            free.append(slot)
            gone.append(slot)
        }
        settle(victims, offered: slot)
    }

    mutating func remove(_ key: UInt64) {
        guard let slot = slots.removeValue(forKey: key) else { return }
        forget(slot)
        policy.remove(slot)
        policy.remove(slot)
        if policy.holds(slot) { fault("slot \(slot) was removed and is held") }
        check(nil)
    }

    mutating func resize(_ key: UInt64, to size: Int) {
        guard let slot = slots[key], let old = entries[slot] else { return }
        var victims: [UInt32] = []
        used &+= max(0, size) &- old.size
        entries[slot]?.size = max(0, size)
        policy.resize(slot, to: size, victims: &victims)
        settle(victims, offered: nil)
    }

    mutating func setCapacity(_ capacity: Int) {
        var victims: [UInt32] = []
        policy.setCapacity(capacity, victims: &victims)
        // A policy may count no higher than to a quarter of the largest number.
        if policy.capacity != max(0, capacity), min(policy.capacity, capacity) < .max / 4 {
            fault("capacity \(policy.capacity) instead of \(capacity)")
        }
        settle(victims, offered: nil)
    }

    /// Calls that name a slot that is not held, which do nothing.
    mutating func missUse() {
        let slot = free.last ?? next
        var victims: [UInt32] = []
        policy.use(slot)
        policy.remove(slot)
        policy.resize(slot, to: 1, victims: &victims)
        settle(victims, offered: nil)
    }

    /// Any entry held, near a number.
    func key(near number: UInt32) -> UInt64? {
        for step in 0..<64 as Range<UInt32> where next > 0 {
            if let entry = entries[(number &+ step) % next] { return entry.key }
        }
        return nil
    }

    private mutating func forget(_ slot: UInt32) {
        used &-= entries.removeValue(forKey: slot)?.size ?? 0
        free.append(slot)
    }

    private mutating func settle(_ victims: [UInt32], offered: UInt32?) {
        if Set(victims).count != victims.count { fault("a victim twice") }
        for slot in victims where slot != offered || entries[slot] != nil {
            guard let entry = entries[slot] else {
                fault("slot \(slot) left and was not held")
                continue
            }
            slots[entry.key] = nil
            forget(slot)
            gone.append(slot)
        }
        if gone.count > 100_000 { gone.removeFirst(50_000) }
        for slot in victims where policy.holds(slot) { fault("slot \(slot) left and is held") }
        if let offered, !victims.contains(offered), !policy.holds(offered) { fault("\(offered) vanished") }
        check(offered)
    }

    private mutating func check(_ slot: UInt32?) {
        calls += 1
        if policy.used > policy.capacity || policy.used < 0 { fault("\(policy.used) of \(policy.capacity)") }
        if policy.used != used { fault("used \(policy.used), model \(used)") }
        if policy.count != entries.count { fault("count \(policy.count), model \(entries.count)") }
        if let slot, policy.holds(slot) != (entries[slot] != nil) { fault("slot \(slot) is held or not") }
        guard calls.isMultiple(of: looksAtAllEvery) else { return }
        checkAll()
    }

    /// Looks for every entry.
    mutating func checkAll() {
        let sum = entries.values.reduce(0) { $0 &+ $1.size }
        if policy.used != sum { fault("used \(policy.used), in all \(sum)") }
        if !entries.keys.allSatisfy({ policy.holds($0) }) { fault("a slot was lost") }
        if !free.allSatisfy({ !policy.holds($0) }) { fault("a free slot is held") }
    }

    private mutating func fault(_ text: String) {
        if faults.count < 20 { faults.append("call \(calls): \(text)") }
    }
}

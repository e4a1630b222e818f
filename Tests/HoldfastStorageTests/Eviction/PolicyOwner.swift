// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

@testable import HoldfastStorage

/// Owns the entries of a policy as a store does, and notes each broken promise.
struct PolicyOwner {
    private var policy: any EvictionPolicy
    private var slots: [UInt64: UInt32] = [:]
    private var entries: [UInt32: (key: UInt64, size: Int)] = [:]
    private var free: [UInt32] = []
    private var next: UInt32 = 0
    private var used = 0

    /// What was broken, in words.
    private(set) var faults: [String] = []
    /// The slots that left because space was needed, in order.
    private(set) var gone: [UInt32] = []
    /// Calls of insert.
    private(set) var offers = 0

    init(_ strategy: EvictionStrategy, capacity: Int, seed: UInt64) {
        policy = strategy.makePolicy(capacity: capacity, seed: seed)
    }

    /// Uses an entry or offers it.
    mutating func request(_ key: UInt64, size: Int) {
        if let slot = slots[key] {
            policy.use(slot)
            return check()
        }
        let slot = free.popLast() ?? next
        next = max(next, slot + 1)
        var victims: [UInt32] = []
        offers += 1
        policy.insert(slot, key: HitRateSimulator.mixed(key), size: size, victims: &victims)
        if !victims.contains(slot) {
            slots[key] = slot
            entries[slot] = (key, size)
        } else {
            free.append(slot)
            gone.append(slot)
        }
        settle(victims, offered: slot)
    }

    mutating func remove(_ key: UInt64) {
        guard let slot = slots.removeValue(forKey: key) else { return }
        entries[slot] = nil
        free.append(slot)
        policy.remove(slot)
        policy.remove(slot)
        check()
    }

    mutating func resize(_ key: UInt64, to size: Int) {
        guard let slot = slots[key] else { return }
        var victims: [UInt32] = []
        entries[slot]?.size = size
        policy.resize(slot, to: size, victims: &victims)
        settle(victims, offered: nil)
    }

    mutating func setCapacity(_ capacity: Int) {
        var victims: [UInt32] = []
        policy.setCapacity(capacity, victims: &victims)
        if policy.capacity != max(0, capacity) { faults.append("capacity \(policy.capacity)") }
        settle(victims, offered: nil)
    }

    private mutating func settle(_ victims: [UInt32], offered: UInt32?) {
        if Set(victims).count != victims.count { faults.append("a victim twice") }
        for slot in victims where slot != offered || entries[slot] != nil {
            guard let entry = entries.removeValue(forKey: slot) else {
                faults.append("slot \(slot) was not held")
                continue
            }
            slots[entry.key] = nil
            free.append(slot)
            gone.append(slot)
        }
        for slot in victims where policy.holds(slot) { faults.append("slot \(slot) left and is held") }
        if let offered, !victims.contains(offered), !policy.holds(offered) { faults.append("\(offered) vanished") }
        check()
    }

    private mutating func check() {
        let sum = entries.values.reduce(0) { $0.addingReportingOverflow($1.size).partialValue }
        if policy.used > policy.capacity { faults.append("\(policy.used) above \(policy.capacity)") }
        if policy.used != sum { faults.append("used \(policy.used), model \(sum)") }
        if policy.count != entries.count { faults.append("count \(policy.count), model \(entries.count)") }
        if !entries.keys.allSatisfy({ policy.holds($0) }) { faults.append("a slot was lost") }
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastStorage

/// Admits only keys that were offered before, up to the capacity; evicts the smallest slot.
struct PickyPolicy: EvictionPolicy {
    private(set) var capacity: Int
    private var sizes: [Slot: Int] = [:]
    private var offered: Set<UInt64> = []
    private(set) var uses: [Slot] = []

    init(capacity: Int) {
        self.capacity = capacity
    }

    var used: Int { sizes.values.reduce(0, +) }
    var count: Int { sizes.count }
    var metadataBytes: Int { 0 }

    func holds(_ slot: Slot) -> Bool { sizes[slot] != nil }

    mutating func use(_ slot: Slot) {
        if holds(slot) { uses.append(slot) }
    }

    mutating func insert(_ slot: Slot, key: UInt64, size: Int, victims: inout [Slot]) {
        guard !offered.insert(key).inserted, size <= capacity else { return victims.append(slot) }
        evict(until: capacity - size, &victims)
        sizes[slot] = size
    }

    mutating func remove(_ slot: Slot) { sizes[slot] = nil }

    mutating func resize(_ slot: Slot, to size: Int, victims: inout [Slot]) {
        guard holds(slot) else { return }
        sizes[slot] = size
        evict(until: capacity, &victims)
    }

    mutating func setCapacity(_ capacity: Int, victims: inout [Slot]) {
        self.capacity = capacity
        evict(until: capacity, &victims)
    }

    private mutating func evict(until bytes: Int, _ victims: inout [Slot]) {
        while used > bytes, let slot = sizes.keys.min() {
            sizes[slot] = nil
            victims.append(slot)
        }
    }
}

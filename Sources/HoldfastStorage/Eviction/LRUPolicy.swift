// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Evicts what was used longest ago.
///
/// Every use moves an entry in a list. 12 bytes an entry, every step O(1).
struct LRUPolicy: EvictionPolicy {
    private(set) var capacity: Int
    private var sizes = SlotSizes()
    private var order = SlotList()

    /// A policy for so many bytes; a negative number means 0.
    init(capacity: Int) {
        self.capacity = max(0, capacity)
    }

    var used: Int { sizes.sum }
    var count: Int { sizes.count }
    var metadataBytes: Int { sizes.bytes + order.bytes }

    func holds(_ slot: Slot) -> Bool { sizes.holds(slot) }

    mutating func use(_ slot: Slot) {
        guard holds(slot) else { return }
        order.remove(slot)
        order.prepend(slot)
    }

    mutating func insert(_ slot: Slot, key: UInt64, size: Int, victims: inout [Slot]) {
        guard size <= capacity else { return victims.append(slot) }
        // Before the entry is in, so that it is not its own victim.
        evict(until: capacity - max(0, size), &victims)
        sizes.set(slot, size)
        order.prepend(slot)
    }

    mutating func remove(_ slot: Slot) {
        guard holds(slot) else { return }
        sizes.remove(slot)
        order.remove(slot)
    }

    mutating func resize(_ slot: Slot, to size: Int, victims: inout [Slot]) {
        guard holds(slot) else { return }
        sizes.set(slot, size)
        evict(until: capacity, &victims)
    }

    mutating func setCapacity(_ capacity: Int, victims: inout [Slot]) {
        self.capacity = max(0, capacity)
        evict(until: self.capacity, &victims)
    }

    private mutating func evict(until bytes: Int, _ victims: inout [Slot]) {
        while used > bytes, let slot = order.last {
            remove(slot)
            victims.append(slot)
        }
    }
}

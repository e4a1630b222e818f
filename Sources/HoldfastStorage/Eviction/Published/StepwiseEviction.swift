// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// A policy that evicts one entry after another until the rest fits, and does not refuse what fits.
///
/// What such policies share: sums never exceed the capacity, not even for a moment, so that sizes near the largest number
/// do not overflow.
protocol StepwiseEviction: EvictionPolicy {
    var capacity: Int { get set }
    /// The sizes of the entries held; ``enter(_:key:size:)`` and ``leave(_:)`` keep them.
    var sizes: SlotSizes { get set }

    /// Bytes of the largest entry that is let in.
    var largestEntry: Int { get }

    /// Notes that an entry is offered, before anything leaves for it.
    mutating func prepare(key: UInt64)

    /// Puts an entry in its place; there is room for it.
    mutating func enter(_ slot: Slot, key: UInt64, size: Int)

    /// Takes an entry that is held out of its place.
    mutating func leave(_ slot: Slot)

    /// Takes the entry out that is to leave first; nil when none is held.
    mutating func evictOne() -> Slot?

    /// Gives an entry that is held another size, for which there is room.
    mutating func change(_ slot: Slot, to size: Int)

    /// Draws what depends on the capacity from the new one.
    mutating func capacityChanged()
}

extension StepwiseEviction {
    var used: Int { sizes.sum }
    var count: Int { sizes.count }
    var largestEntry: Int { capacity }

    func holds(_ slot: Slot) -> Bool { sizes.holds(slot) }

    mutating func prepare(key: UInt64) {}

    mutating func insert(_ slot: Slot, key: UInt64, size: Int, victims: inout [Slot]) {
        let size = Swift.max(0, size)
        prepare(key: key)
        guard size <= largestEntry else { return victims.append(slot) }
        evict(until: capacity - size, &victims)
        enter(slot, key: key, size: size)
    }

    mutating func remove(_ slot: Slot) {
        if holds(slot) { leave(slot) }
    }

    mutating func resize(_ slot: Slot, to size: Int, victims: inout [Slot]) {
        guard holds(slot) else { return }
        let size = Swift.max(0, size)
        if size > capacity {
            leave(slot)
            return victims.append(slot)
        }
        while holds(slot), used - sizes[slot] > capacity - size, let victim = evictOne() { victims.append(victim) }
        if holds(slot) { change(slot, to: size) }
    }

    mutating func change(_ slot: Slot, to size: Int) { sizes.set(slot, size) }

    mutating func setCapacity(_ capacity: Int, victims: inout [Slot]) {
        self.capacity = Swift.max(0, capacity)
        capacityChanged()
        evict(until: self.capacity, &victims)
    }

    mutating func capacityChanged() {}

    private mutating func evict(until bytes: Int, _ victims: inout [Slot]) {
        while used > bytes, let victim = evictOne() { victims.append(victim) }
    }
}

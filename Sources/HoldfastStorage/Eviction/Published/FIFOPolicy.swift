// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Evicts what came in longest ago.
///
/// The least that a cache can do, and the measure of what every other policy gains. A use moves nothing and is not even
/// noted, so hits cost nothing and take no lock; what is popular leaves as soon as what is not and has to be fetched again.
///
/// An entry larger than the capacity is not let in, and then nothing leaves. 12 bytes an entry, every step O(1); what is
/// resized keeps its place.
struct FIFOPolicy: StepwiseEviction {
    var capacity: Int
    var sizes = SlotSizes()
    private var order = SlotList()

    /// A policy for so many bytes; a negative number means 0.
    init(capacity: Int) {
        self.capacity = max(0, capacity)
    }

    var metadataBytes: Int { sizes.bytes + order.bytes }

    mutating func use(_ slot: Slot) {}

    mutating func enter(_ slot: Slot, key: UInt64, size: Int) {
        sizes.set(slot, size)
        order.prepend(slot)
    }

    mutating func leave(_ slot: Slot) {
        sizes.remove(slot)
        order.remove(slot)
    }

    mutating func evictOne() -> Slot? {
        guard let slot = order.last else { return nil }
        leave(slot)
        return slot
    }
}

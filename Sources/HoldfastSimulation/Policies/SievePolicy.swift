// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastStorage

/// Sweeps a hand over the entries from the oldest to the newest, and evicts the first one it finds unused since its last pass.
///
/// SIEVE of Zhang et al., "SIEVE is simpler than LRU" (NSDI 2024). A use sets a mark and moves nothing; new entries come
/// in at the front, and the hand stays where it is. 13 bytes an entry; every step O(1), an eviction amortized over the uses
/// whose marks it clears.
struct SievePolicy: StepwiseEviction {
    var capacity: Int
    var sizes = SlotSizes()
    private var links = SlotLinks()
    private var order = SlotLinks.Ends()
    private var isUsed: [Bool] = []
    /// Where the next sweep begins; nil for the oldest entry.
    private var hand: Slot?

    /// A policy for so many bytes; a negative number means 0.
    init(capacity: Int) {
        self.capacity = max(0, capacity)
    }

    var metadataBytes: Int { sizes.bytes + links.bytes + isUsed.capacity }

    mutating func use(_ slot: Slot) {
        if holds(slot) { isUsed[Int(slot)] = true }
    }

    mutating func enter(_ slot: Slot, key: UInt64, size: Int) {
        sizes.set(slot, size)
        links.prepend(slot, to: &order)
        isUsed.extend(through: slot, with: false)
        isUsed[Int(slot)] = false
    }

    mutating func leave(_ slot: Slot) {
        if hand == slot { hand = links.before(slot) }
        sizes.remove(slot)
        links.remove(slot, from: &order)
    }

    mutating func evictOne() -> Slot? {
        guard var slot = hand ?? order.last, let oldest = order.last else { return nil }
        while isUsed[Int(slot)] {
            isUsed[Int(slot)] = false
            slot = links.before(slot) ?? oldest
        }
        hand = links.before(slot)
        leave(slot)
        return slot
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The slots in a window, the first that came in first; every step O(1) on average.
///
/// A slot that leaves early leaves its item behind, which the queue's user knows to pass over.
struct WindowQueue: Sendable {
    private var slots = CompactArray<UInt32>()
    private var head = 0

    /// The bytes of memory taken.
    var bytes: Int { slots.bytes }
    /// The items, those left behind included.
    var count: Int { slots.count - head }

    /// Adds an item at the end.
    mutating func append(_ slot: UInt32) { slots.append(slot) }

    /// Takes the first item.
    mutating func popFirst() -> UInt32? {
        guard head < slots.count else { return nil }
        let slot = slots[head]
        head += 1
        if head > 16 + slots.count / 16 { flush() }
        return slot
    }

    /// Keeps the items that `isKept` names, asked from the first to the last.
    mutating func keep(where isKept: (UInt32) -> Bool) {
        flush()
        slots.keep(where: isKept)
    }

    private mutating func flush() {
        slots.removeFirst(head)
        head = 0
    }
}

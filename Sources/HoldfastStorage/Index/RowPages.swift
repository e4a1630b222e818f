// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Rows in mapped memory, sorted by key with gaps between them: linear probing whose hash is monotone.
///
/// A row's *home* is `key * homes >> 64`, by the key's high part, so a higher key never has a lower home, and the slots from `homes` on take what
/// runs over at the end: nothing wraps around. Three invariants hold after every call, and all searching rests on them:
///
/// 1. A row lies at its home or behind it.
/// 2. No slot from a row's home to the row is empty.
/// 3. Keys ascend strictly from slot to slot, empty ones left out.
///
/// *Search.* Take any slot s at or behind the home of key k. If s is empty, a row behind s with a key of at most k would
/// have a home of at most k's, hence at most s, against 2. If s holds a key of at least k, every row behind has a higher one, by 3.
/// So "s is empty or holds a key of at least k" never turns false again from k's home on, and the first such slot can be found
/// by doubling steps. A row before k's home has a lower home than k (1), hence a lower key. So that first slot is k's, or
/// where k belongs.
///
/// *Insertion* of an absent key k at that slot p moves the rows from p up to the first empty slot e one slot on. 1: they move
/// away from their homes, and p is not before k's. 2: all slots from k's home up to p are full, by choice of p, and e is filled.
/// 3: by the search, lower keys lie before p and higher ones from p on.
///
/// *Removal* at p moves the rows behind p one slot back, up to the first slot e that is empty or whose row is at its home;
/// e - 1 becomes empty. 1: each moved row was behind its home. 2: p up to e - 2 are full; a row at e or behind has its
/// home at e or behind (if e holds a row at home, by monotony; if e is empty, by 2), so its way does not cross e - 1.
/// 3: the order is unchanged.
struct RowPages: ~Copyable {
    /// The slots there are.
    let slots: Int
    /// The slots that are home to a key; the rest take what runs over.
    let homes: Int

    private let memory: MappedPages
    private let rows: UnsafeMutablePointer<PackedRow>?

    /// How many neighbours are looked at before the steps double.
    private static let nearby = 16

    /// No slots.
    init() {
        slots = 0
        homes = 0
        memory = MappedPages()
        rows = nil
    }

    /// Empty slots in the fewest pages that hold `bytes` bytes, the last `spare` of them home to no key; nil when the system
    /// gives no memory.
    init?(bytes: Int, spare: Int) {
        guard let memory = MappedPages(bytes: bytes) else { return nil }
        slots = memory.bytes / PackedRow.size
        homes = max(1, slots - max(0, spare))
        rows = memory.base?.bindMemory(to: PackedRow.self, capacity: slots)
        self.memory = memory
    }

    /// The bytes of the pages.
    var bytes: Int { memory.bytes }

    /// What a slot holds; an empty row outside the slots.
    subscript(slot: Int) -> PackedRow {
        get {
            guard let rows, slot >= 0, slot < slots else { return .empty }
            return rows[slot]
        }
        set {
            guard let rows, slot >= 0, slot < slots else { return }
            rows[slot] = newValue
        }
    }

    /// The slot where the search for a key begins.
    func home(_ key: PackedRow.Key) -> Int {
        Int(truncatingIfNeeded: key.high.multipliedFullWidth(by: UInt64(truncatingIfNeeded: homes)).high)
    }

    /// The first slot from the key's home on that is empty or holds this key or a higher one; ``slots`` if there is none.
    func firstSlot(notBelow key: PackedRow.Key) -> Int {
        guard let rows else { return 0 }
        var low = home(key)
        let near = min(low + Self.nearby, slots)
        while low < near {
            if rows[low].isNotBelow(key) { return low }
            low += 1
        }
        // Many rows of one fragment push others far from their homes: no search may take longer for it.
        var step = Self.nearby
        var high = low
        while high < slots, !rows[high].isNotBelow(key) {
            low = high + 1
            high += step
            step *= 2
        }
        high = min(high, slots)
        while low < high {
            let middle = low + (high - low) / 2
            if rows[middle].isNotBelow(key) { high = middle } else { low = middle + 1 }
        }
        return low
    }

    /// Puts a row with an absent key where ``firstSlot(notBelow:)`` says it belongs; false when no slot behind is empty.
    mutating func insert(_ row: PackedRow, at slot: Int) -> Bool {
        guard let rows else { return false }
        var end = slot
        while end < slots, !rows[end].isEmpty { end += 1 }
        guard end < slots else { return false }
        (rows + slot + 1).update(from: rows + slot, count: end - slot)
        rows[slot] = row
        return true
    }

    /// Removes the row in a slot.
    mutating func remove(at slot: Int) {
        guard let rows, slot < slots else { return }
        var end = slot + 1
        while end < slots, !rows[end].isEmpty, home(rows[end].key) < end { end += 1 }
        (rows + slot).update(from: rows + slot + 1, count: end - slot - 1)
        rows[end - 1] = .empty
    }

    /// Puts all rows of `other` into these pages, which are empty; false when they do not all fit, and then the pages are
    /// of no use.
    mutating func copy(_ other: borrowing RowPages) -> Bool {
        guard let source = other.rows, let rows else { return true }
        var next = 0
        for slot in 0..<other.slots where !source[slot].isEmpty {
            // In ascending order each row's place is its home or right behind the one before it.
            let place = max(next, home(source[slot].key))
            guard place < slots else { return false }
            rows[place] = source[slot]
            next = place + 1
        }
        return true
    }

    /// The slot behind the last row.
    var end: Int {
        guard let rows else { return 0 }
        var end = slots
        while end > 0, rows[end - 1].isEmpty { end -= 1 }
        return end
    }
}

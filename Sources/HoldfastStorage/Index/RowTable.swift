// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if canImport(Darwin)
    internal import Darwin
#elseif canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#endif

/// The rows of a shard: a sorted hash table in whole pages of memory, 24 bytes a row.
///
/// It is filled to 0.92 before it grows by a fifth, and to 0.7 before it shrinks, so a row takes 26 to 35 bytes from some thousands
/// on. A lookup costs one or two cache lines however full it is, because the rows are sorted: see ``RowPages``. If the system has
/// no memory, nothing is lost: the rows stay and the change throws.
struct RowTable: ~Copyable {
    /// The number of rows.
    private(set) var count = 0

    private var pages = RowPages()
    /// From how many rows on it must grow, and below how many it must shrink.
    private var growsAt = 0
    private var shrinksBelow = 0
    private let limit: Int

    /// An empty table, which takes no memory yet and never takes more than `limit` bytes.
    init(limit: Int = .max) { self.limit = limit }

    /// The bytes of memory held, in whole pages.
    var bytes: Int { pages.bytes }

    // MARK: Reading

    /// The rows of a fragment.
    func rows(_ fragment: UInt64) -> RowMatches {
        rows(fragment, from: pages.firstSlot(notBelow: PackedRow.Key(fragment: fragment, variant: 0)))
    }

    /// The row of a fragment and variant.
    func row(_ fragment: UInt64, variant: UInt32) -> IndexRow? {
        slot(fragment, variant: variant).map { pages[$0].row }
    }

    /// Calls `body` with every row, by ascending fragment and variant.
    func forEach(_ body: (IndexRow) -> Void) {
        for slot in 0..<pages.slots where !pages[slot].isEmpty { body(pages[slot].row) }
    }

    /// At most `limit` rows, starting at a fragment, by ascending fragment and variant.
    ///
    /// To go through a table in steps with changes in between, continue from the last row's fragment and variant, and skip that row
    /// if it comes again.
    func rows(from fragment: UInt64, variant: UInt32 = 0, limit: Int) -> [IndexRow] {
        var rows: [IndexRow] = []
        var slot = pages.firstSlot(notBelow: PackedRow.Key(fragment: fragment, variant: variant))
        while slot < pages.slots, rows.count < limit {
            if !pages[slot].isEmpty { rows.append(pages[slot].row) }
            slot += 1
        }
        return rows
    }

    /// The given number of rows drawn at random, possibly some of them twice; each once if that many are there or fewer.
    ///
    /// Each has the same probability in a table of more than a page; in a smaller one, rows after a gap have a higher one.
    func draw(_ wanted: Int, using random: inout PolicyRandom) -> [IndexRow] {
        if wanted >= count || pages.slots >= UInt32.max { return rows(from: 0, limit: min(wanted, count)) }
        return (0..<wanted).map { _ in
            var slot = random.next(below: pages.slots)
            var tries = 32
            while pages[slot].isEmpty, tries > 0 {
                slot = random.next(below: pages.slots)
                tries -= 1
            }
            while pages[slot].isEmpty { slot = slot + 1 < pages.slots ? slot + 1 : 0 }
            return pages[slot].row
        }
    }

    // MARK: Changing

    /// Inserts a row and returns the one with the same fragment and variant that it replaced.
    ///
    /// - Throws: ``StoreError`` with code `noSpace` if the table must grow and the system has no memory; the table is unchanged.
    ///   Replacing never throws.
    mutating func insert(_ row: IndexRow) throws(StoreError) -> IndexRow? {
        let packed = PackedRow(row)
        while true {
            let slot = pages.firstSlot(notBelow: packed.key)
            let found = pages[slot]
            if !found.isEmpty, found.key == packed.key {
                pages[slot] = packed
                return found.row
            }
            if count < growsAt {
                if pages.insert(packed, at: slot) { break }
                // The rows overflow the last slot: the next pages have more room for that.
                try rebuild(bytes: pages.bytes, spare: 2 * (pages.slots - pages.homes))
            } else {
                do {
                    try grow()
                } catch {
                    // A table that cannot grow accepts rows until nearly every slot is full.
                    guard count < pages.slots - pages.slots / 32, pages.insert(packed, at: slot) else { throw error }
                    break
                }
            }
        }
        count += 1
        return nil
    }

    /// Changes the row of a fragment and variant wherever its record is; returns whether there is one.
    ///
    /// The change must not set another fragment or variant.
    @discardableResult
    mutating func change(_ fragment: UInt64, variant: UInt32, change: (inout IndexRow) -> Void) -> Bool {
        guard let slot = slot(fragment, variant: variant) else { return false }
        let old = pages[slot].row
        var row = old
        change(&row)
        row.fragment = old.fragment
        row.variant = old.variant
        pages[slot] = PackedRow(row)
        return true
    }

    /// Counts a use of each row of a fragment and returns the updated rows.
    mutating func useRows(_ fragment: UInt64, frequencies: inout KeyFrequencies) -> RowMatches {
        let first = pages.firstSlot(notBelow: PackedRow.Key(fragment: fragment, variant: 0))
        var slot = first
        while isRow(slot, of: fragment) {
            pages[slot].mark = frequencies.noteUse(pages[slot].mark)
            slot += 1
        }
        return rows(fragment, from: first)
    }

    /// Removes the row of a fragment and variant if it is still at a place, and returns it.
    @discardableResult
    mutating func remove(_ fragment: UInt64, variant: UInt32, at place: RecordLocation) -> IndexRow? {
        guard let slot = slot(fragment, variant: variant), pages[slot].place == place else { return nil }
        let row = pages[slot].row
        pages.remove(at: slot)
        count -= 1
        if count < shrinksBelow { shrink() }
        return row
    }

    /// Removes every row and releases all memory.
    mutating func removeAll() {
        self = RowTable(limit: limit)
    }

    /// Makes room for `rows` rows in total, so that they can be inserted without growing.
    ///
    /// - Throws: As ``insert(_:)``.
    mutating func reserve(_ rows: Int) throws(StoreError) {
        guard rows > growsAt else { return }
        guard let bytes = Self.bytes(for: rows, fullness: Self.fullest) else { throw Self.noMemory }
        try rebuild(bytes: bytes)
    }

    /// Inserts many rows; fastest for rows by ascending fragment and variant into an empty table.
    ///
    /// If several rows have the same fragment and variant, the one with the highest order stays.
    /// - Returns: The rows that did not stay.
    /// - Throws: As ``insert(_:)``; the rows before the one that found no room are in the table.
    @discardableResult
    mutating func fill(_ rows: some Sequence<IndexRow>) throws(StoreError) -> [IndexRow] {
        let (expected, overflow) = count.addingReportingOverflow(rows.underestimatedCount)
        if !overflow { try reserve(expected) }
        var losers: [IndexRow] = []
        // The slot after the last row, as long as the rows come in ascending order.
        var end: Int? = pages.end
        for row in rows {
            if let free = end, count < growsAt, let next = append(PackedRow(row), behind: free) {
                end = next
                continue
            }
            let isGrowing = count >= growsAt
            if let loser = try insertHighest(row) { losers.append(loser) }
            // Growing moves the last row; unordered rows are inserted one by one from here on.
            end = isGrowing && end != nil ? pages.end : nil
        }
        return losers
    }

    /// Appends a row after the last one and returns the slot after it; nil if it does not belong or does not fit there.
    private mutating func append(_ row: PackedRow, behind end: Int) -> Int? {
        guard end == 0 || pages[end - 1].key < row.key else { return nil }
        let slot = max(end, pages.home(row.key))
        guard slot < pages.slots else { return nil }
        pages[slot] = row
        count += 1
        return slot + 1
    }

    /// Inserts a row unless one with a higher order is there; returns the one of the two that is not in the table.
    private mutating func insertHighest(_ row: IndexRow) throws(StoreError) -> IndexRow? {
        guard let old = try insert(row) else { return nil }
        guard old.order > row.order else { return old }
        _ = try insert(old)
        return row
    }
}

// MARK: - Size

extension RowTable {
    /// How full a table is before it grows, and after it shrank, in percent.
    private static let fullest = 92
    private static let relaxed = 82

    private static let noMemory = StoreError(
        .noSpace,
        "There is no memory for more index entries; lower the store's capacity, or give the process more memory."
    )

    private func slot(_ fragment: UInt64, variant: UInt32) -> Int? {
        let key = PackedRow.Key(fragment: fragment, variant: variant)
        let slot = pages.firstSlot(notBelow: key)
        let found = pages[slot]
        return !found.isEmpty && found.key == key ? slot : nil
    }

    private func isRow(_ slot: Int, of fragment: UInt64) -> Bool {
        let row = pages[slot]
        return !row.isEmpty && row.fragment == fragment
    }

    /// The rows of a fragment, which begin at a slot if there are any.
    private func rows(_ fragment: UInt64, from first: Int) -> RowMatches {
        guard isRow(first, of: fragment) else { return .none }
        guard isRow(first + 1, of: fragment) else { return .one(pages[first].row) }
        var rows: [IndexRow] = []
        var slot = first
        while isRow(slot, of: fragment) {
            rows.append(pages[slot].row)
            slot += 1
        }
        return .many(rows)
    }

    /// The bytes in which `rows` rows fill `fullness` percent of the slots; nil on overflow.
    private static func bytes(for rows: Int, fullness: Int) -> Int? {
        let (bytes, overflow) = rows.multipliedReportingOverflow(by: PackedRow.size * 100)
        return overflow ? nil : MappedPages.wholePages(bytes / fullness + PackedRow.size)
    }

    /// A fifth more, at least a page.
    private mutating func grow() throws(StoreError) {
        try rebuild(bytes: pages.bytes + max(MappedPages.pageSize, pages.bytes / 5))
    }

    /// Releases pages if a smaller table would be no fuller than one that grew.
    private mutating func shrink() {
        guard let bytes = Self.bytes(for: count, fullness: Self.relaxed), bytes < pages.bytes else { return }
        // Without memory for the smaller table, the larger one is good enough.
        try? rebuild(bytes: bytes)
    }

    /// Moves all rows into new pages of at least this many bytes.
    private mutating func rebuild(bytes: Int, spare: Int = 0) throws(StoreError) {
        var bytes = bytes
        var spare = max(spare, min(16 + bytes / PackedRow.size / 64, 96))
        while bytes <= limit, var fresh = RowPages(bytes: bytes, spare: spare) {
            if fresh.copy(pages) {
                pages = fresh
                growsAt = pages.slots / 100 * Self.fullest + pages.slots % 100 * Self.fullest / 100
                shrinksBelow = pages.bytes <= MappedPages.pageSize ? 0 : pages.slots / 10 * 7
                return
            }
            // Too many rows of the last fragments for the room after the last home.
            spare *= 2
            bytes = fresh.bytes + spare * PackedRow.size
        }
        throw Self.noMemory
    }
}

/// Rows in mapped memory, sorted by key with gaps between them: linear probing with a monotone hash.
///
/// A row's *home* is `key * homes >> 64`, by the key's high part, so a higher key never has a lower home, and the slots from
/// `homes` on take the overflow at the end: nothing wraps around. Three invariants hold after every call, and every search relies
/// on them:
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
    /// The number of slots.
    let slots: Int
    /// The number of slots that are home to a key; the rest take the overflow.
    let homes: Int

    private let memory: MappedPages
    private let rows: UnsafeMutablePointer<PackedRow>?

    /// How many neighbors are examined before the steps double.
    private static let nearby = 16

    /// No slots.
    init() {
        slots = 0
        homes = 0
        memory = MappedPages()
        rows = nil
    }

    /// Empty slots in the fewest pages that hold `bytes` bytes, the last `spare` of them home to no key; nil if the system has no
    /// memory.
    init?(bytes: Int, spare: Int) {
        guard let memory = MappedPages(bytes: bytes) else { return nil }
        slots = memory.bytes / PackedRow.size
        homes = max(1, slots - max(0, spare))
        rows = memory.base?.bindMemory(to: PackedRow.self, capacity: slots)
        self.memory = memory
    }

    /// The bytes of the pages.
    var bytes: Int { memory.bytes }

    /// The row in a slot; an empty row outside the slots.
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
        // Many rows of one fragment push others far from their homes: that must not make searches longer.
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

    /// Inserts a row with an absent key where ``firstSlot(notBelow:)`` says it belongs; false if no later slot is empty.
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

    /// Copies all rows of `other` into these pages, which are empty; false if they do not all fit, and then the pages are useless.
    mutating func copy(_ other: borrowing RowPages) -> Bool {
        guard let source = other.rows, let rows else { return true }
        var next = 0
        for slot in 0..<other.slots where !source[slot].isEmpty {
            // In ascending order, each row's place is its home or right after the one before it.
            let place = max(next, home(source[slot].key))
            guard place < slots else { return false }
            rows[place] = source[slot]
            next = place + 1
        }
        return true
    }

    /// The slot after the last row.
    var end: Int {
        guard let rows else { return 0 }
        var end = slots
        while end > 0, rows[end - 1].isEmpty { end -= 1 }
        return end
    }
}

/// Whole pages of zeroed memory straight from the system, released with their owner.
///
/// Tables that are rebuilt as they grow would leave holes of ever different sizes in the heap; pages leave none, and unwritten ones
/// take no memory.
struct MappedPages: ~Copyable {
    /// The first byte; nil only if there are no pages.
    let base: UnsafeMutableRawPointer?
    /// The bytes of all pages together.
    let bytes: Int

    /// The bytes of one page.
    static let pageSize = max(4_096, Int(getpagesize()))

    /// No pages.
    init() {
        base = nil
        bytes = 0
    }

    /// The fewest pages that hold `bytes` bytes; nil if the system has no memory.
    init?(bytes: Int) {
        guard bytes > 0, let whole = MappedPages.wholePages(bytes) else { return nil }
        #if canImport(Darwin)
            let flags = MAP_PRIVATE | MAP_ANON
        #else
            let flags = MAP_PRIVATE | MAP_ANONYMOUS
        #endif
        guard let address = mmap(nil, whole, PROT_READ | PROT_WRITE, flags, -1, 0),
            // The address that means "failed", whose name is a cast and not imported everywhere.
            UInt(bitPattern: address) != UInt.max
        else { return nil }
        base = address
        self.bytes = whole
    }

    deinit {
        if let base { munmap(base, bytes) }
    }

    /// `bytes` rounded up to whole pages; nil on overflow.
    static func wholePages(_ bytes: Int) -> Int? {
        let (padded, overflow) = bytes.addingReportingOverflow(pageSize - 1)
        return overflow ? nil : padded / pageSize * pageSize
    }
}

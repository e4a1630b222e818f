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
/// It is full to 0.92 before it grows by a fifth, and to 0.7 before it shrinks, so a row takes 26 to 35 bytes from some
/// thousands on. Looking up costs one or two cache lines however full it is, because the rows are sorted: see
/// ``RowPages``. When the system gives no memory nothing is lost: what was there stays and the change throws.
struct RowTable: ~Copyable {
    /// The rows held.
    private(set) var count = 0

    private var pages = RowPages()
    /// From how many rows on it should grow, and below how many it should shrink.
    private var growsAt = 0
    private var shrinksBelow = 0
    private let limit: Int

    /// An empty table, which takes no memory yet and will never take more than `limit` bytes.
    init(limit: Int = .max) {
        self.limit = limit
    }

    /// The bytes of memory held, whole pages.
    var bytes: Int { pages.bytes }

    // MARK: Reading

    /// The rows of a fragment.
    func rows(_ fragment: UInt64) -> RowMatches {
        rows(fragment, from: pages.firstSlot(notBelow: PackedRow.Key(fragment: fragment, variant: 0)))
    }

    /// The row of a fragment and variant.
    func row(_ fragment: UInt64, variant: UInt32) -> IndexRow? {
        slot(fragment, variant).map { pages[$0].row }
    }

    /// Hands over every row, by ascending fragment and variant.
    func forEach(_ body: (IndexRow) -> Void) {
        for slot in 0..<pages.slots where !pages[slot].isEmpty { body(pages[slot].row) }
    }

    /// At most `limit` rows from a fragment on, by ascending fragment and variant.
    ///
    /// To go through a table in steps with changes between them, go on from the last row's fragment and variant, and leave
    /// that row out if it comes again.
    func rows(from fragment: UInt64, variant: UInt32 = 0, limit: Int) -> [IndexRow] {
        var rows: [IndexRow] = []
        var slot = pages.firstSlot(notBelow: PackedRow.Key(fragment: fragment, variant: variant))
        while slot < pages.slots, rows.count < limit {
            if !pages[slot].isEmpty { rows.append(pages[slot].row) }
            slot += 1
        }
        return rows
    }

    /// So many rows drawn at random, some of them perhaps twice; each once if as many are wanted as there are.
    ///
    /// Each has the same chance in a table of more than a page; in a smaller one those behind a gap have a better one.
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

    /// Puts a row in and returns the one with the same fragment and variant that it replaced.
    ///
    /// - Throws: ``StoreError`` with code `noSpace` when the table must grow and the system gives no memory; the table is
    ///   unchanged. Replacing never throws.
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
                // The rows run over the last slot: more of the room is kept for that.
                try rebuild(bytes: pages.bytes, spare: 2 * (pages.slots - pages.homes))
            } else {
                do {
                    try grow()
                } catch {
                    // A table that cannot grow takes rows until nearly every slot is full.
                    guard count < pages.slots - pages.slots / 32, pages.insert(packed, at: slot) else { throw error }
                    break
                }
            }
        }
        count += 1
        return nil
    }

    /// Changes the row of a fragment and variant if it is still at a place; whether it was.
    ///
    /// The change may not give the row another fragment or variant: these stay.
    mutating func update(
        _ fragment: UInt64,
        variant: UInt32,
        at place: RecordPlace,
        _ change: (inout IndexRow) -> Void
    ) -> Bool {
        guard let slot = slot(fragment, variant), pages[slot].place == place else { return false }
        replace(slot, change)
        return true
    }

    /// Changes the row of a fragment and variant wherever its record lies; whether there is one.
    ///
    /// The change may not give the row another fragment or variant: these stay.
    @discardableResult
    mutating func change(_ fragment: UInt64, variant: UInt32, _ change: (inout IndexRow) -> Void) -> Bool {
        guard let slot = slot(fragment, variant) else { return false }
        replace(slot, change)
        return true
    }

    /// Notes a use of each row of a fragment and returns them with it.
    mutating func useRows(_ fragment: UInt64, _ frequencies: inout KeyFrequencies) -> RowMatches {
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
    mutating func remove(_ fragment: UInt64, variant: UInt32, at place: RecordPlace) -> IndexRow? {
        guard let slot = slot(fragment, variant), pages[slot].place == place else { return nil }
        let row = pages[slot].row
        pages.remove(at: slot)
        count -= 1
        if count < shrinksBelow { shrink() }
        return row
    }

    /// Removes every row and gives all memory back.
    mutating func removeAll() {
        pages = RowPages()
        count = 0
        growsAt = 0
        shrinksBelow = 0
    }

    /// Makes room for `rows` rows in all, so that so many can be put in without growing.
    ///
    /// - Throws: As ``insert(_:)``.
    mutating func reserve(_ rows: Int) throws(StoreError) {
        guard rows > growsAt else { return }
        guard let bytes = Self.bytes(for: rows, fullness: Self.fullest) else { throw Self.noMemory }
        try rebuild(bytes: bytes)
    }

    /// Puts many rows in; fastest for rows by ascending fragment and variant into an empty table.
    ///
    /// Of rows with the same fragment and variant the one with the highest order stays.
    /// - Returns: The rows that did not stay.
    /// - Throws: As ``insert(_:)``; the rows before the one that found no room are in.
    @discardableResult
    mutating func fill(_ rows: some Sequence<IndexRow>) throws(StoreError) -> [IndexRow] {
        let (expected, overflow) = count.addingReportingOverflow(rows.underestimatedCount)
        if !overflow { try reserve(expected) }
        var losers: [IndexRow] = []
        // The slot behind the last row, as long as the rows come in ascending order.
        var end: Int? = pages.end
        for row in rows {
            if let free = end, count < growsAt, let next = append(PackedRow(row), behind: free) {
                end = next
                continue
            }
            let isGrowing = count >= growsAt
            if let loser = try insertHighest(row) { losers.append(loser) }
            // Growing moves the last row; rows that come in no order are put in one by one from here on.
            end = isGrowing && end != nil ? pages.end : nil
        }
        return losers
    }

    /// Puts a row behind the last one and returns the slot behind it; nil where it does not belong or does not fit there.
    private mutating func append(_ row: PackedRow, behind end: Int) -> Int? {
        guard end == 0 || pages[end - 1].key < row.key else { return nil }
        let slot = max(end, pages.home(row.key))
        guard slot < pages.slots else { return nil }
        pages[slot] = row
        count += 1
        return slot + 1
    }

    /// Puts a row in unless one of a higher order is there; returns the one of both that is not in.
    private mutating func insertHighest(_ row: IndexRow) throws(StoreError) -> IndexRow? {
        guard let old = try insert(row) else { return nil }
        guard old.order > row.order else { return old }
        _ = try insert(old)
        return row
    }
}

// MARK: - Size

extension RowTable {
    /// How full a table is before it grows, and after it shrank, of 100.
    private static let fullest = 92
    private static let relaxed = 82

    private static let noMemory = StoreError(
        .noSpace,
        "The index found no memory for more entries; lower the store's capacity or give the process more memory."
    )

    private func slot(_ fragment: UInt64, _ variant: UInt32) -> Int? {
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

    private mutating func replace(_ slot: Int, _ change: (inout IndexRow) -> Void) {
        let old = pages[slot].row
        var row = old
        change(&row)
        row.fragment = old.fragment
        row.variant = old.variant
        pages[slot] = PackedRow(row)
    }

    /// The bytes in which `rows` rows fill `fullness` of 100 slots; nil where there is no such number.
    private static func bytes(for rows: Int, fullness: Int) -> Int? {
        let (bytes, overflow) = rows.multipliedReportingOverflow(by: PackedRow.size * 100)
        return overflow ? nil : MappedPages.wholePages(bytes / fullness + PackedRow.size)
    }

    /// A fifth more, at least a page.
    private mutating func grow() throws(StoreError) {
        try rebuild(bytes: pages.bytes + max(MappedPages.pageSize, pages.bytes / 5))
    }

    /// Gives pages back where a smaller table would be no fuller than one that grew.
    private mutating func shrink() {
        guard let bytes = Self.bytes(for: count, fullness: Self.relaxed), bytes < pages.bytes else { return }
        // Without memory for the smaller table the larger one does as well.
        try? rebuild(bytes: bytes)
    }

    /// Moves all rows into new pages of at least so many bytes.
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
            // Too many rows of the last fragments for the room behind the last home.
            spare *= 2
            bytes = fresh.bytes + spare * PackedRow.size
        }
        throw Self.noMemory
    }
}

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

/// Whole pages of zeroed memory straight from the system, given back when their owner ends.
///
/// Tables that are rebuilt as they grow would leave holes of ever other sizes in the heap; pages leave none, and those
/// nobody wrote to take no memory.
struct MappedPages: ~Copyable {
    /// The first byte; nil only when there are no pages.
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

    /// The fewest pages that hold `bytes` bytes; nil when the system does not give them.
    init?(bytes: Int) {
        guard bytes > 0, let whole = MappedPages.wholePages(bytes) else { return nil }
        #if canImport(Darwin)
            let flags = MAP_PRIVATE | MAP_ANON
        #else
            let flags = MAP_PRIVATE | MAP_ANONYMOUS
        #endif
        guard let address = mmap(nil, whole, PROT_READ | PROT_WRITE, flags, -1, 0),
            // The address that says "failed", whose name is a cast and not imported everywhere.
            UInt(bitPattern: address) != UInt.max
        else { return nil }
        base = address
        self.bytes = whole
    }

    deinit {
        if let base { munmap(base, bytes) }
    }

    /// `bytes` rounded up to whole pages; nil where there is no such number.
    static func wholePages(_ bytes: Int) -> Int? {
        let (padded, overflow) = bytes.addingReportingOverflow(pageSize - 1)
        return overflow ? nil : padded / pageSize * pageSize
    }
}

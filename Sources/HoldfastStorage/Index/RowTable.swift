// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

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

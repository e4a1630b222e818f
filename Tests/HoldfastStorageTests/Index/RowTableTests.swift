// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastTesting
import Testing

@testable import HoldfastStorage

@Suite("Tables of rows", .timeLimit(.minutes(20)))
struct RowTableTests {
    private static func place(_ number: Int) -> RecordLocation {
        RecordLocation(slot: UInt16(number % 4_095), unit: UInt32(truncatingIfNeeded: number), units: 3)
    }

    private static func row(_ fragment: UInt64, _ variant: UInt32 = 0, number: Int = 1) -> IndexRow {
        IndexRow(fragment: fragment, variant: variant, place: place(number), order: UInt64(number))
    }

    @Test("An empty table takes no memory and finds nothing")
    func empty() throws {
        var table = RowTable()
        let matches = table.rows(5)
        let (count, bytes) = (table.count, table.bytes)
        #expect(matches == .none)
        #expect(count == 0)
        #expect(bytes == 0)
        #expect(table.remove(5, variant: 0, at: Self.place(1)) == nil)
        table.removeAll()
    }

    @Test("All rows of a fragment are found, and a row of the same fragment and variant is replaced")
    func sharedFragments() throws {
        var table = RowTable()
        for (fragment, variant) in [(7, 2), (6, 0), (7, 1), (8, 0), (7, 3)] as [(UInt64, UInt32)] {
            #expect(try table.insert(Self.row(fragment, variant)) == nil)
        }
        let seven = table.rows(7)
        let six = table.rows(6)
        let five = table.rows(5)
        #expect(seven == .many([Self.row(7, 1), Self.row(7, 2), Self.row(7, 3)]))
        #expect(six == .one(Self.row(6)))
        #expect(five == .none)
        #expect(try table.insert(Self.row(7, 2, number: 9)) == Self.row(7, 2))
        let replaced = table.row(7, variant: 2)
        let count = table.count
        #expect(replaced == Self.row(7, 2, number: 9))
        #expect(count == 5)
    }

    @Test("Removing needs the location, and a change cannot make a row another entry's")
    func place() throws {
        var table = RowTable()
        _ = try table.insert(Self.row(1, 1, number: 4))
        #expect(table.remove(1, variant: 1, at: Self.place(5)) == nil)
        let untouched = table.row(1, variant: 1)
        #expect(untouched == Self.row(1, 1, number: 4))
        let isThere = table.change(1, variant: 1) {
            $0.isPinned = true
            $0.place = Self.place(6)
            $0.fragment = 77
            $0.variant = 77
        }
        #expect(isThere)
        var expected = Self.row(1, 1, number: 4)
        expected.isPinned = true
        expected.place = Self.place(6)
        #expect(table.remove(1, variant: 1, at: Self.place(6)) == expected)
        let count = table.count
        #expect(count == 0)
    }

    @Test("A fragment's rows are marked as used together, and a row can be changed wherever it is")
    func together() throws {
        var table = RowTable()
        for (fragment, variant) in [(7, 1), (7, .max), (8, 0)] as [(UInt64, UInt32)] {
            _ = try table.insert(Self.row(fragment, variant))
        }
        var expected = [Self.row(7, 1), Self.row(7, .max)]
        var (frequencies, same) = (KeyFrequencies(seed: 1), KeyFrequencies(seed: 1))
        for _ in 0..<100 {
            for index in expected.indices { expected[index].mark = same.noteUse(expected[index].mark) }
            let used = table.useRows(7, frequencies: &frequencies)
            #expect(used == .many(expected))
        }
        let eight = table.rows(8)
        #expect(eight == .one(Self.row(8)))
        let none = table.useRows(9, frequencies: &frequencies)
        #expect(none == RowMatches.none)
        let isChanged = table.change(7, variant: .max) {
            $0.place = Self.place(3)
            $0.fragment = 5
        }
        let isFound = table.change(7, variant: 2) { $0.isPinned = true }
        #expect(isChanged)
        #expect(!isFound)
        expected[1].place = Self.place(3)
        #expect(table.rows(7) == .many(expected))
    }

    @Test("Rows come in ascending order, whole or in steps between which others make changes")
    func steps() throws {
        var table = RowTable()
        for number in (0..<1_000).reversed() { _ = try table.insert(Self.row(UInt64(number) << 33, 1)) }
        var seen: [UInt64] = []
        table.forEach { seen.append($0.fragment) }
        #expect(seen == (0..<1_000).map { UInt64($0) << 33 })
        let first = table.rows(from: 0, limit: 10)
        #expect(first.map(\.fragment) == Array(seen[..<10]))
        _ = table.remove(first[9].fragment, variant: 1, at: first[9].place)
        let second = table.rows(from: first[9].fragment, variant: 1, limit: 2_000)
        #expect(second.map(\.fragment) == Array(seen[10...]))
    }

    @Test("Of many rows inserted at once the highest order of an identity remains", arguments: [true, false])
    func fill(sorted: Bool) throws {
        var generator = SeededGenerator(seed: 11)
        var rows = (0..<20_000).map { number in
            Self.row(generator.next() >> 21, number: number + 2)
        }
        rows.append(Self.row(rows[77].fragment, number: 1))
        rows.append(Self.row(rows[78].fragment, number: 30_000))
        if sorted { rows.sort { ($0.fragment, $0.order) < ($1.fragment, $1.order) } }
        var expected: [UInt64: IndexRow] = [:]
        var losers: Set<IndexRow> = []
        for row in rows {
            guard let old = expected[row.fragment] else {
                expected[row.fragment] = row
                continue
            }
            expected[row.fragment] = row.order > old.order ? row : old
            losers.insert(row.order > old.order ? old : row)
        }
        var table = RowTable()
        // Half with its number known, half without.
        let given = try table.fill(rows[..<10_000]) + table.fill(rows[10_000...].lazy.filter { _ in true })
        #expect(Set(given) == losers)
        #expect(losers.count >= 2)
        var held: [IndexRow] = []
        table.forEach { held.append($0) }
        #expect(held == expected.values.sorted { $0.fragment < $1.fragment })
        let count = table.count
        #expect(count == held.count)
    }

    @Test("Memory follows the number of rows, up and down")
    func memory() throws {
        var table = RowTable()
        var generator = SeededGenerator(seed: 5)
        let rows = (1...40_000).map { Self.row(generator.next() >> 21, number: $0) }
        var worst = 0.0
        for row in rows {
            _ = try table.insert(row)
            if table.count > 4_000 { worst = max(worst, Double(table.bytes) / Double(table.count)) }
        }
        #expect(worst < 34)
        worst = 0
        for row in rows {
            table.remove(row.fragment, variant: 0, at: row.place)
            if table.count > 4_000 { worst = max(worst, Double(table.bytes) / Double(table.count)) }
        }
        #expect(worst < 38)
        #expect(table.bytes <= MappedPages.pageSize)
        table.removeAll()
        #expect(table.bytes == 0)
    }

    @Test("Reserved capacity is sufficient")
    func reserve() throws {
        var table = RowTable()
        try table.reserve(30_000)
        let bytes = table.bytes
        #expect(bytes < 30_000 * 28)
        for number in 1...30_000 {
            _ = try table.insert(Self.row((UInt64(number) &* 0x9E37_79B9_7F4A_7C15) >> 21, number: number))
        }
        #expect(table.bytes == bytes)
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Testing

@testable import HoldfastStorage

@Suite("Index rows and locations, bit by bit")
struct IndexRowTests {
    @Test(
        "A location keeps its 58 bits",
        arguments: [
            RecordLocation(slot: 0, unit: 0, units: 0),
            RecordLocation(slot: 4_094, unit: 1 << 30 - 1, units: .max),
            RecordLocation(slot: 1, unit: 0x2000_0001, units: 0x8001),
        ]
    )
    func place(_ place: RecordLocation) {
        #expect(RecordLocation(packed: place.packed) == place)
        #expect(place.packed >> 58 == 0)
    }

    static let rows: [IndexRow] = {
        let place = RecordLocation(slot: 4_094, unit: 1 << 30 - 1, units: .max)
        var rows = [
            IndexRow(fragment: 0, variant: 0, place: RecordLocation(slot: 0, unit: 0, units: 0), order: 1),
            IndexRow(fragment: 1 << 43 - 1, variant: .max, place: place, order: IndexRow.highestOrder, mark: .max),
            IndexRow(fragment: 1, variant: .max, place: place, order: 0x8000_0000_0001, mark: 2),
        ]
        // Each bit of fragment and variant alone, so that none is lost.
        for bit in 0..<43 { rows.append(rows[0].with(fragment: 1 << UInt64(bit), variant: 0)) }
        for bit in 0..<32 { rows.append(rows[0].with(fragment: 0, variant: 1 << UInt32(bit))) }
        // Each flag alone, so that no two share a bit.
        for flag in 0..<3 {
            var row = rows[0]
            row.isPinned = flag == 0
            row.hasBlob = flag == 1
            row.shadows = flag == 2
            rows.append(row)
        }
        return rows
    }()

    @Test("A row of 24 bytes keeps every part", arguments: rows)
    func row(_ row: IndexRow) {
        #expect(PackedRow.size == 24)
        #expect(PackedRow(row).row == row)
        #expect(!PackedRow(row).isEmpty)
    }

    @Test("Fresh pages are full of empty rows")
    func empty() {
        #expect(PackedRow.empty.isEmpty)
        #expect(withUnsafeBytes(of: PackedRow.empty) { $0.allSatisfy { $0 == 0 } })
    }

    @Test("Numbers out of range are stored as the nearest one in range")
    func clamped() {
        var row = Self.rows[0]
        row.order = 0
        #expect(PackedRow(row).row.order == 1)
        row.order = .max
        #expect(PackedRow(row).row.order == IndexRow.highestOrder)
        #expect(!PackedRow(row).row.isPinned)
    }

    @Test("A mark keeps its 8 bits and changes nothing else", arguments: rows)
    func mark(row: IndexRow) {
        var packed = PackedRow(row)
        for mark in 0...255 as ClosedRange<UInt8> {
            packed.mark = mark
            var expected = row
            expected.mark = mark
            #expect(packed.mark == mark && packed.row == expected)
        }
    }

    @Test("Rows are ordered by fragment before variant")
    func order() {
        let keys = [(1, 0), (1, 1), (1, 0x7FF), (1, 0x800), (1, .max), (2, 0), (1 << 43 - 1, 0)].map {
            PackedRow.Key(fragment: $0, variant: $1)
        }
        for (lower, higher) in zip(keys, keys.dropFirst()) { #expect(lower < higher) }
    }
}

extension IndexRow {
    fileprivate func with(fragment: UInt64, variant: UInt32) -> IndexRow {
        var row = self
        row.fragment = fragment
        row.variant = variant
        return row
    }
}

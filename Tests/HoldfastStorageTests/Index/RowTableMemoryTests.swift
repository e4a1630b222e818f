// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Testing

@testable import HoldfastStorage

@Suite("Tables of rows without memory")
struct RowTableMemoryTests {
    private static func row(_ number: Int) -> IndexRow {
        IndexRow(
            fragment: (UInt64(number) &* 0x9E37_79B9_7F4A_7C15) >> 21,
            variant: 0,
            place: RecordLocation(slot: 0, unit: UInt32(truncatingIfNeeded: number), units: 1),
            order: UInt64(number)
        )
    }

    @Test("If the system has no memory, the table refuses and does not trap", arguments: [1 << 48, 1 << 58, Int.max])
    func refused(_ rows: Int) throws {
        var table = RowTable()
        _ = try table.insert(Self.row(1))
        var code: StoreError.Code?
        do { try table.reserve(rows) } catch { code = error.code }
        #expect(code == .noSpace)
        let found = table.row(Self.row(1).fragment, variant: 0)
        #expect(found == Self.row(1))
        if MappedPages(bytes: .max) != nil { Issue.record("more memory than there is") }
    }

    @Test("A table that cannot grow accepts rows until it is nearly full, then refuses new ones and keeps the rest")
    func limit() throws {
        let page = MappedPages.pageSize
        var table = RowTable(limit: 2 * page)
        var held = 0
        var code: StoreError.Code?
        while code == nil {
            do {
                _ = try table.insert(Self.row(held + 1))
                held += 1
            } catch { code = error.code }
        }
        #expect(code == .noSpace)
        #expect(table.bytes == 2 * page)
        #expect(held > 2 * page / 24 * 94 / 100)
        #expect(table.count == held)
        for number in 1...held { #expect(table.row(Self.row(number).fragment, variant: 0) == Self.row(number)) }
        // Replacing needs no room, and what was removed makes room.
        #expect(try table.insert(Self.row(5)) == Self.row(5))
        let removed = table.remove(Self.row(6).fragment, variant: 0, at: Self.row(6).place)
        #expect(removed == Self.row(6))
        #expect(try table.insert(Self.row(held + 1)) == nil)
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastTesting
import Testing

@testable import HoldfastStorage

@Suite("Pages of sorted rows", .timeLimit(.minutes(20)))
struct RowPagesTests {
    private static func key(_ key: UInt64) -> PackedRow.Key { packed(key).key }

    private static func packed(_ key: UInt64) -> PackedRow {
        PackedRow(
            IndexRow(
                fragment: key >> 21,
                variant: UInt32(truncatingIfNeeded: key << 11),
                place: RecordLocation(slot: 0, unit: 0, units: 1),
                order: 1
            )
        )
    }

    /// The keys in order, after the three invariants were found to hold.
    private func keys(_ pages: borrowing RowPages, _ note: Comment) -> [UInt64] {
        var keys: [UInt64] = []
        var lastEmpty = -1
        var isBeforeHome = false
        var isBehindGap = false
        var isUnordered = false
        for slot in 0..<pages.slots {
            let row = pages[slot]
            if row.isEmpty {
                lastEmpty = slot
                continue
            }
            let home = pages.home(row.key)
            if slot < home { isBeforeHome = true }
            if lastEmpty >= home { isBehindGap = true }
            if let last = keys.last, last >= row.key.high { isUnordered = true }
            keys.append(row.key.high)
        }
        #expect(!isBeforeHome, note)
        #expect(!isBehindGap, note)
        #expect(!isUnordered, note)
        return keys
    }

    @Test("The invariants survive any insertions and removals", arguments: [1, 2, 3, 4, 5, 6] as [UInt64])
    func invariants(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        guard var pages = RowPages(bytes: 1, spare: 20) else {
            Issue.record("no memory")
            return
        }
        let note: Comment = "seed \(seed)"
        var model: Set<UInt64> = []
        // Odd seeds draw keys from all over, even ones from the last few homes.
        let lowest: UInt64 = seed % 2 == 1 ? 0 : .max / 100 * 99
        for step in 0..<4_000 {
            let growing = step / 700 % 2 == 0
            if growing, model.count < pages.slots {
                let key = UInt64.random(in: lowest ... .max, using: &generator)
                let slot = pages.firstSlot(notBelow: Self.key(key))
                let found = pages[slot]
                #expect(found.isEmpty || found.key.high > key, note)
                // No room means that the slots behind are all taken, which changes nothing.
                if pages.insert(Self.packed(key), at: slot) { model.insert(key) }
            } else if let key = model.randomElement(using: &generator) {
                let slot = pages.firstSlot(notBelow: Self.key(key))
                let found = pages[slot].key.high
                #expect(found == key, note)
                pages.remove(at: slot)
                model.remove(key)
            }
            if step % 50 == 0 {
                let held = keys(pages, note)
                #expect(held == model.sorted(), note)
            }
        }
    }

    @Test("Copies into more or fewer slots keep every row, or report that they cannot")
    func copies() throws {
        var generator = SeededGenerator(seed: 3)
        let page = MappedPages.pageSize
        guard var pages = RowPages(bytes: 4 * page, spare: 20), var larger = RowPages(bytes: 7 * page, spare: 20),
            var smaller = RowPages(bytes: 2 * page, spare: 20), var tiny = RowPages(bytes: page, spare: 20)
        else {
            Issue.record("no memory")
            return
        }
        for _ in 0..<(3 * page / 48) {
            let key = UInt64.random(in: .min ... .max, using: &generator)
            let slot = pages.firstSlot(notBelow: Self.key(key))
            #expect(pages.insert(Self.packed(key), at: slot) == true)
        }
        let expected = keys(pages, "made")
        #expect(larger.copy(pages) == true)
        #expect(smaller.copy(larger) == true)
        let (inLarger, inSmaller) = (keys(larger, "larger"), keys(smaller, "smaller"))
        #expect(inLarger == expected)
        #expect(inSmaller == expected)
        #expect(tiny.copy(pages) == false)
    }

    @Test("Every key is in its own slot or the next one after a lower key, however long the run")
    func longRuns() throws {
        guard var pages = RowPages(bytes: 64 * MappedPages.pageSize, spare: 5_000) else {
            Issue.record("no memory")
            return
        }
        // A long run pushes what follows far from home.
        for variant in stride(from: 0, to: 9_000, by: 3) as StrideTo<UInt64> {
            let key = 0xFFFF_FF00_0000_0000 | variant
            let slot = pages.firstSlot(notBelow: Self.key(key))
            #expect(pages.insert(Self.packed(key), at: slot) == true)
        }
        for variant in 0..<8_998 as Range<UInt64> {
            let slot = pages.firstSlot(notBelow: Self.key(0xFFFF_FF00_0000_0000 | variant))
            let found = pages[slot].key.high & 0xFFFF
            #expect(found == (variant + 2) / 3 * 3)
        }
        let behind = pages.firstSlot(notBelow: Self.key(0xFFFF_FF00_0000_FFFF))
        #expect(behind == pages.end)
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastTesting
import Testing

@testable import HoldfastStorage

@Suite("What was evicted lately", .timeLimit(.minutes(20)))
struct GhostTableTests {
    private func notes(_ count: Int, _ generator: inout SeededGenerator) -> [UInt64] {
        (0..<count).map { _ in generator.next() }
    }

    /// How many of the keys are taken for lately evicted; asking forgets them.
    private func taken(_ keys: some Sequence<UInt64>, of table: inout GhostTable) -> Int {
        var count = 0
        for key in keys where table.takes(key) { count += 1 }
        return count
    }

    @Test("A noted key is taken once, however often it was noted")
    func once() {
        var table = GhostTable()
        let before = table.takes(9)
        #expect(!before)
        #expect(table.bytes == 0)
        table.note(9, entries: 0)
        table.note(9, entries: 0)
        let answers = (table.takes(9), table.takes(9))
        #expect(answers == (true, false))
    }

    @Test("Forgetting one key leaves the others", arguments: [1, 2] as [UInt64])
    func others(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var table = GhostTable()
        // Thirty-two keys of one bucket fill it.
        let keys = (0..<32).map { UInt64($0 * 2 + 1) << 32 | 77 }.shuffled(using: &generator)
        for key in keys { table.note(key, entries: 0) }
        for key in keys.shuffled(using: &generator) {
            let isTaken = table.takes(key)
            let isTakenAgain = table.takes(key)
            #expect(isTaken, "seed \(seed)")
            #expect(!isTakenAgain, "seed \(seed)")
        }
    }

    @Test("The oldest note of a full bucket goes first, and a note again makes young again")
    func age() {
        var table = GhostTable()
        for number in 1...32 { table.note(UInt64(number) << 32, entries: 0) }
        table.note(1 << 32, entries: 0)
        table.note(33 << 32, entries: 0)
        let answers = (table.takes(1 << 32), table.takes(2 << 32), table.takes(3 << 32), table.takes(33 << 32))
        #expect(answers == (true, false, true, true))
    }

    @Test("As many evictions as half the entries are remembered, four times as many ago are not", arguments: [20_000])
    func window(entries: Int) {
        var generator = SeededGenerator(seed: 21)
        var table = GhostTable()
        let old = notes(entries, &generator)
        let between = notes(entries * 4, &generator)
        let recent = notes(entries / 2, &generator)
        for key in old + between + recent { table.note(key, entries: entries) }
        let remembered = taken(recent, of: &table)
        let kept = taken(old, of: &table)
        #expect(Double(remembered) > Double(recent.count) * 0.99)
        #expect(Double(kept) < Double(old.count) * 0.01)
    }

    @Test("Fewer than one in a thousand keys never noted is taken for one that was")
    func falsePositives() {
        var generator = SeededGenerator(seed: 22)
        var table = GhostTable()
        for key in notes(60_000, &generator) { table.note(key, entries: 15_000) }
        let strangers = notes(200_000, &generator)
        let count = taken(strangers, of: &table)
        #expect(count < strangers.count / 1_000)
        #expect(count > 0)
    }

    @Test("Memory follows the entries at two bytes each, up and down, and most notes outlive it")
    func memory() {
        var generator = SeededGenerator(seed: 23)
        var table = GhostTable()
        for entries in stride(from: 1_000, through: 100_000, by: 500) {
            let key = generator.next()
            table.note(key, entries: entries)
            let isKept = table.takes(key)
            #expect(isKept)
            #expect(table.bytes <= max(entries * 5 / 2, 0) + 2 * MappedPages.pageSize)
        }
        // What was noted before a step stays known after it, for buckets half full.
        let keys = notes(40_000, &generator)
        for key in keys { table.note(key, entries: 100_000) }
        let before = table.bytes
        table.note(1, entries: 130_000)
        #expect(table.bytes > before)
        let kept = taken(keys, of: &table)
        #expect(kept > 36_000)
        table.note(2, entries: 10_000)
        #expect(table.bytes <= 20_000 + MappedPages.pageSize)
        let isKept = table.takes(2)
        #expect(isKept)
        table.removeAll()
        #expect(table.bytes == 0)
        let isForgotten = !table.takes(2)
        #expect(isForgotten)
    }

    @Test("A table that cannot have more memory goes on with what it has")
    func refused() {
        var table = GhostTable()
        table.note(1 << 32, entries: 1)
        table.note(2 << 32, entries: .max)
        table.note(3 << 32, entries: .max / 4)
        let answers = (table.takes(1 << 32), table.takes(2 << 32), table.takes(3 << 32))
        #expect(answers == (true, true, true))
    }
}

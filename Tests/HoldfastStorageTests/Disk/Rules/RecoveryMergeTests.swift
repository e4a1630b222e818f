// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastTesting
import Testing

@testable import HoldfastStorage

@Suite("The fold of all records finds what counts")
struct RecoveryMergeTests {
    private static func row(
        _ primary: UInt64,
        _ kind: RecordKind = .entry,
        order: UInt64,
        variant: UInt32 = 0,
        place: UInt32 = 4
    ) -> TableRow {
        TableRow(primary: primary, variant: variant, place: place, order: order, units: 7, kind: kind)
    }

    private static func winners(_ segments: [[TableRow]]) -> [RecoveryMerge.Winner] {
        let runs = segments.enumerated().map { slot, rows in
            RecoveryMerge.Run(slot: UInt16(slot), rows: rows.sorted { $0.precedes($1) })
        }
        var all: [RecoveryMerge.Winner] = []
        RecoveryMerge(runs.reversed()).forEachShard { shard, winners in
            #expect(winners.allSatisfy { ShardedIndex.number(of: $0.primary) == shard })
            all += winners
        }
        return all
    }

    @Test("The highest order wins and hides what it superseded")
    func highestOrderWins() {
        let winners = Self.winners([[Self.row(1, order: 5)], [Self.row(1, order: 3)]])
        #expect(winners.map(\.row.order) == [5])
        #expect(winners.map(\.row.place.slot) == [0])
        #expect(winners.map(\.row.shadows) == [true])
        #expect(Self.winners([[Self.row(1, order: 5)]]).map(\.row.shadows) == [false])
    }

    @Test("Of two copies the one in the higher slot is used, and it hides the other")
    func copiesShadow() {
        let winners = Self.winners([[Self.row(1, order: 5)], [Self.row(1, order: 5, place: 99)]])
        #expect(winners.map(\.row.place) == [RecordLocation(slot: 1, unit: 99, units: 7)])
        #expect(winners.map(\.row.shadows) == [true])
    }

    @Test("A tombstone removes its order and lower ones", arguments: [RecordKind.primaryTombstone, .variantTombstone])
    func tombstonesKill(_ kind: RecordKind) {
        for (entry, survives) in [(4, false), (5, false), (6, true)] as [(UInt64, Bool)] {
            let winners = Self.winners([[Self.row(1, order: entry)], [Self.row(1, kind, order: 5)]])
            #expect(winners.count == (survives ? 1 : 0))
        }
    }

    @Test("A tombstone of a variant leaves the others, one of a primary key removes all, none affects another key")
    func reachOfTombstones() {
        let entries = [Self.row(1, order: 1), Self.row(1, order: 2, variant: 7), Self.row(2, order: 3, variant: 7)]
        let one = Self.winners([entries + [Self.row(1, .variantTombstone, order: 9, variant: 7)]])
        #expect(one.map(\.row.order) == [1, 3])
        let all = Self.winners([entries + [Self.row(1, .primaryTombstone, order: 9)]])
        #expect(all.map(\.row.order) == [3])
    }

    @Test("Marks are ignored, whatever hash is in their rows")
    func marksSayNothing() {
        let marks = [Self.row(1, .tagMark, order: 9), Self.row(1, .prefixMark, order: 9)]
        #expect(Self.winners([[Self.row(1, order: 5)], marks]).map(\.row.order) == [5])
    }

    @Test("Keys that the index cannot distinguish are one identity")
    func collidingKeys() {
        let other: UInt64 = 1 | 1 << 50
        let winners = Self.winners([[Self.row(1, order: 5)], [Self.row(other, order: 6)]])
        #expect(winners.map(\.primary) == [other])
        #expect(winners.map(\.row.shadows) == [true])
        #expect(Self.winners([[Self.row(1, order: 5)], [Self.row(other, .primaryTombstone, order: 6)]]).isEmpty)
    }

    @Test("Random records fold like a dictionary", arguments: 0..<20 as Range<UInt64>)
    func agreesWithDictionary(_ seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let keys = (0..<12).map { _ in UInt64.random(in: 0 ... .max, using: &generator) }
        var segments: [[TableRow]] = (0..<6).map { _ in [] }
        let kinds: [RecordKind] = [.entry, .entry, .entry, .entry, .primaryTombstone, .variantTombstone, .tagMark]
        for place in 0..<400 as Range<UInt32> {
            var row = Self.row(
                keys.randomElement(using: &generator) ?? 0,
                kinds.randomElement(using: &generator) ?? .entry,
                order: UInt64.random(in: 1...300, using: &generator),
                variant: UInt32.random(in: 0...2, using: &generator),
                place: place + 4
            )
            if row.kind == .primaryTombstone { row.variant = 0 }
            segments[Int.random(in: 0..<6, using: &generator)].append(row)
        }
        var expected: Set<[UInt64]> = []
        let all = segments.joined()
        for key in keys {
            for variant in 0...2 as ClosedRange<UInt32> {
                let entries = all.filter { $0.kind == .entry && $0.primary == key && $0.variant == variant }
                let killers = all.filter {
                    $0.primary == key
                        && ($0.kind == .primaryTombstone || ($0.kind == .variantTombstone && $0.variant == variant))
                }
                let killed = killers.map(\.order).max() ?? 0
                guard let order = entries.map(\.order).max(), order > killed else { continue }
                expected.insert([key, UInt64(variant), order, entries.count > 1 ? 1 : 0])
            }
        }
        let found = Self.winners(segments).map { winner in
            [winner.primary, UInt64(winner.row.variant), winner.row.order, winner.row.shadows ? 1 : 0]
        }
        #expect(Set(found) == expected, "seed \(seed)")
        #expect(found.count == expected.count)
    }
}

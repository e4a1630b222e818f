// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastTesting
import Testing

@testable import HoldfastStorage

@Suite("SegmentTable", .timeLimit(.minutes(20)))
struct SegmentTableTests {
    private static let seed = FormatSamples.seed

    private static func rows(_ count: Int, using generator: inout SeededGenerator) -> [TableRow] {
        (0..<count).map { index in
            let primary: UInt64 = generator.next() % 40
            return TableRow(
                primary: primary &* 0x0123_4567_89AB_CDEF,
                variant: UInt32.random(in: 0..<4, using: &generator),
                place: UInt32(4 + index * 20),
                order: generator.next() >> 20,
                units: UInt16.random(in: 7...20, using: &generator),
                kind: RecordKind.allCases.randomElement(using: &generator) ?? .entry,
                isPinned: Bool.random(using: &generator),
                hasBlob: index % 5 == 0
            )
        }
    }

    private static func blobs(_ rows: [TableRow], using generator: inout SeededGenerator) -> [BlobRow] {
        rows.filter(\.hasBlob).map { BlobRow(place: $0.place, number: generator.next(), storedBytes: generator.next()) }
    }

    private static func decode(_ bytes: [UInt8], segment: UInt64 = 9, seed: UInt64 = seed) -> ([TableRow], [BlobRow])? {
        guard let footer = SegmentTable.footer(Array(bytes.suffix(64)), segment: segment, seed: seed) else {
            return nil
        }
        return SegmentTable.decode(bytes, footer: footer, seed: seed).map { ($0.rows, $0.blobs) }
    }

    @Test("What was encoded is decoded, sorted", arguments: [0, 1, 2, 57, 600])
    func roundTrip(count: Int) throws {
        var generator = SeededGenerator(seed: UInt64(count) + 1)
        let rows = Self.rows(count, using: &generator)
        let blobs = Self.blobs(rows, using: &generator)
        let offset = 64 + count * 320
        let bytes = SegmentTable.encode(
            rows: rows.shuffled(using: &generator),
            blobs: blobs.shuffled(using: &generator),
            segment: 9,
            tableOffset: offset,
            seed: Self.seed
        )
        #expect(bytes.count == SegmentTable.size(rows: count, blobs: blobs.count))
        let footer = try #require(SegmentTable.footer(Array(bytes.suffix(64)), segment: 9, seed: Self.seed))
        #expect((footer.rows, footer.blobs, footer.tableOffset) == (count, blobs.count, offset))
        #expect(footer.highestOrder == rows.map(\.order).max() ?? 0)
        #expect(footer.fileSize == offset + bytes.count)
        let decoded = try #require(SegmentTable.decode(bytes, footer: footer, seed: Self.seed))
        #expect(decoded.rows == rows.sorted { $0.precedes($1) })
        #expect(decoded.blobs == blobs)
        #expect(SegmentTable.footer(Array(bytes.suffix(64)), segment: 8, seed: Self.seed) == nil)
        #expect(SegmentTable.footer(Array(bytes.suffix(64)), segment: 9, seed: 0) == nil)
        #expect(SegmentTable.decode(bytes, footer: footer, seed: 0) == nil)
    }

    @Test("The fields are at their documented positions")
    func layout() {
        let row = TableRow(
            primary: 1,
            variant: 2,
            place: 4,
            order: 5,
            units: 7,
            kind: .entry,
            isPinned: true,
            hasBlob: true
        )
        let bytes = SegmentTable.encode(
            rows: [row],
            blobs: [BlobRow(place: 4, number: 8, storedBytes: 9)],
            segment: 10,
            tableOffset: 176,
            seed: Self.seed
        )
        #expect([0, 8, 12, 16, 24, 26, 27, 32, 40, 48].map { bytes[$0] } == [1, 2, 4, 5, 7, 1, 3, 4, 8, 9])
        #expect(Array(bytes[56..<64]) == Array("HFTABLE2".utf8))
        #expect([64, 72, 76, 80, 88].map { bytes[$0] } == [10, 1, 1, 176, 5])
        let sum = BodySum.of(Array(bytes[..<56]), seed: Self.seed ^ 10)
        #expect(bytes[96..<104].reversed().reduce(0) { $0 << 8 | UInt64($1) } == sum)
    }

    @Test("A table with any damage is refused")
    func damage() {
        var generator = SeededGenerator(seed: 2)
        let rows = Self.rows(12, using: &generator)
        let bytes = SegmentTable.encode(
            rows: rows,
            blobs: Self.blobs(rows, using: &generator),
            segment: 9,
            tableOffset: 64 + 12 * 320,
            seed: Self.seed
        )
        #expect(Self.decode(bytes) != nil)
        FormatSamples.damaged(bytes) { damaged, place in
            #expect(Self.decode(damaged) == nil, "byte \(place)")
        }
    }

    @Test(
        "Impossible footers are refused even with a correct checksum",
        arguments: [
            (16, 4, 0xFFFF_FFFF), (16, 4, 0), (20, 4, 0xFFFF_FFFF), (20, 4, 2), (24, 8, 0), (24, 8, 48), (24, 8, 177),
            (24, 8, 1 << 40), (24, 8, 1 << 63), (24, 8, .max), (48, 8, 1),
        ] as [(Int, Int, UInt64)]
    )
    func impossible(place: Int, width: Int, value: UInt64) {
        let row = TableRow(primary: 1, variant: 2, place: 4, order: 5, units: 7, kind: .entry, hasBlob: true)
        let blob = BlobRow(place: 4, number: 1, storedBytes: 2)
        let table = SegmentTable.encode(rows: [row], blobs: [blob], segment: 9, tableOffset: 176, seed: Self.seed)
        var footer = Array(table.suffix(64))
        #expect(SegmentTable.footer(footer, segment: 9, seed: Self.seed) != nil)
        for byte in 0..<width { footer[place + byte] = UInt8(truncatingIfNeeded: value >> UInt64(8 * byte)) }
        let hash = HeadHash.of(Array(footer[..<56]), seed: Self.seed)
        for byte in 0..<8 { footer[56 + byte] = UInt8(truncatingIfNeeded: hash >> UInt64(8 * byte)) }
        #expect(SegmentTable.footer(footer, segment: 9, seed: Self.seed) == nil)
    }

    @Test(
        "Impossible rows are refused even with a correct checksum",
        arguments: [
            TableRow(primary: 1, variant: 0, place: 3, order: 1, units: 7, kind: .entry),
            TableRow(primary: 1, variant: 0, place: 4, order: 1, units: 6, kind: .entry),
            TableRow(primary: 1, variant: 0, place: 4, order: 1, units: 8, kind: .entry),
            TableRow(primary: 1, variant: 0, place: .max, order: 1, units: .max, kind: .entry),
        ]
    )
    func impossibleRow(row: TableRow) {
        let bytes = SegmentTable.encode(rows: [row], blobs: [], segment: 9, tableOffset: 176, seed: Self.seed)
        #expect(Self.decode(bytes) == nil)
        var right = row
        right.place = 4
        right.units = 7
        let table = SegmentTable.encode(rows: [right], blobs: [], segment: 9, tableOffset: 176, seed: Self.seed)
        #expect(Self.decode(table)?.0 == [right])
    }

    @Test("Rows that are repeated or out of order, and blobs without a position, are refused")
    func order() {
        let row = TableRow(primary: 1, variant: 0, place: 4, order: 1, units: 7, kind: .entry)
        let twice = SegmentTable.encode(rows: [row, row], blobs: [], segment: 9, tableOffset: 640, seed: Self.seed)
        #expect(Self.decode(twice) == nil)
        let blob = BlobRow(place: 4, number: 1, storedBytes: 2)
        for blobs in [[blob, blob], [BlobRow(place: 40, number: 1, storedBytes: 2)]] {
            let rows = [row, TableRow(primary: 1, variant: 0, place: 11, order: 1, units: 7, kind: .entry)]
            let bytes = SegmentTable.encode(rows: rows, blobs: blobs, segment: 9, tableOffset: 640, seed: Self.seed)
            #expect(Self.decode(bytes) == nil)
        }
        var generator = SeededGenerator(seed: 5)
        let bytes = SegmentTable.encode(
            rows: Self.rows(2, using: &generator),
            blobs: [],
            segment: 9,
            tableOffset: 704,
            seed: Self.seed
        )
        let swapped = Array(bytes[32..<64] + bytes[..<32])
        #expect(bytes.withUnsafeBytes { SegmentTable.decodeRows($0, count: 2, end: 704) } != nil)
        #expect(swapped.withUnsafeBytes { SegmentTable.decodeRows($0, count: 2, end: 704) } == nil)
    }

    @Test("No input makes the parser trap, even below the checksum", arguments: [1, 2] as [UInt64])
    func fuzz(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let rows = Self.rows(6, using: &generator)
        let bytes = SegmentTable.encode(rows: rows, blobs: [], segment: 9, tableOffset: 64 + 6 * 320, seed: Self.seed)
        for _ in 0..<20_000 {
            let hostile = FormatSamples.hostile(bytes, using: &generator)
            _ = Self.decode(hostile)
            let rows = hostile.withUnsafeBytes {
                SegmentTable.decodeRows($0, count: Int.random(in: 0...9, using: &generator), end: .max)
            }
            #expect(rows?.count ?? 0 <= hostile.count / 32, "seed \(seed)")
            _ = SegmentTable.footer(generator.bytes(64), segment: 9, seed: Self.seed)
        }
    }
}

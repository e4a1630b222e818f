// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastTesting
import Testing

@testable import HoldfastStorage

@Suite("RecordHeader", .timeLimit(.minutes(20)))
struct RecordHeaderTests {
    private static let seed = FormatSamples.seed

    @Test("What was encoded is decoded", arguments: RecordKind.allCases, [false, true])
    func roundTrip(kind: RecordKind, blob: Bool) {
        for seed in UInt64(0)..<50 {
            var generator = SeededGenerator(seed: seed)
            var header = FormatSamples.header(kind, blob: blob, using: &generator)
            let detail = generator.bytes(Int.random(in: 0...300, using: &generator))
            let bytes = header.encode(detail: ByteChunk(detail), seed: Self.seed)
            header.detailLength = detail.count
            #expect(bytes.count == 104 + detail.count)
            #expect(Array(bytes[104...]) == detail)
            let body = [UInt8](repeating: 1, count: header.storedBodyLength)
            #expect(RecordHeader.decode(bytes + body) == header, "seed \(seed)")
            #expect(header.recordLength == bytes.count + body.count)
            #expect(header.units * 16 >= header.recordLength && header.units * 16 < header.recordLength + 16)
            #expect(RecordHeader.decode(bytes + body, seed: Self.seed ^ 1) == nil)
            if !body.isEmpty { #expect(RecordHeader.decode(bytes + body.dropLast()) == nil) }
        }
    }

    @Test("The fields are at their documented positions")
    func layout() {
        var header = RecordHeader(kind: .entry, segment: 2, order: 3, primary: 5)
        header.isPinned = true
        header.hasBlob = true
        header.version = 4
        header.variant = 6
        header.keyID = 7
        header.storedAt = .at(-1)
        header.uselessAfter = .at(9)
        header.horizon = 10
        header.bodyLength = 11
        header.bodyWord = 12
        header.inlineLength = 13
        let bytes = header.encode(detail: ByteChunk([14, 15]), seed: Self.seed)
        #expect(Array(bytes[..<8]) == Array("HFRC".utf8) + [1, 3, 0, 0])
        #expect(
            [8, 16, 24, 32, 40, 44, 56, 64, 72, 80, 88, 92].map { bytes[$0] } == [
                2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 2, 13,
            ]
        )
        #expect(bytes[48..<56].allSatisfy { $0 == 0xFF })
        #expect(bytes[104...] == [14, 15])
        let hash = HeadHash.of(Array(bytes[..<96] + [14, 15]), seed: Self.seed ^ 0x5245_434F_5244_3A32)
        #expect(bytes[96..<104].reversed().reduce(0) { $0 << 8 | UInt64($1) } == hash)
    }

    @Test("Any damage to header or detail invalidates the record; damage to the body does not")
    func damage() {
        let record = FormatSamples.record("one")
        let bodyStart = 104 + FormatSamples.detail("one").encode().count
        let length = bodyStart + 8
        FormatSamples.damaged(Array(record.prefix(length))) { damaged, place in
            let isWhole = damaged.count == length && place >= bodyStart
            #expect((RecordHeader.decode(damaged) != nil) == isWhole, "byte \(place)")
        }
    }

    @Test(
        "Impossible numbers are refused even with a correct checksum",
        arguments: [
            (4, 1, 0), (4, 1, 6), (5, 1, 4), (5, 1, 2), (6, 2, 1), (72, 8, .max), (72, 8, 9), (72, 8, 1 << 63),
            (88, 4, 0xFFFF_FFFF), (88, 4, 1 << 20), (92, 4, 0xFFFF_FFFF), (92, 4, 0), (4, 1, 3),
        ] as [(Int, Int, UInt64)]
    )
    func impossible(place: Int, width: Int, value: UInt64) {
        var header = RecordHeader(kind: .entry, segment: 1, order: 2, primary: 3)
        header.bodyLength = 8
        header.inlineLength = 8
        var bytes = header.encode(detail: ByteChunk(), seed: Self.seed) + [UInt8](repeating: 0, count: 8)
        #expect(RecordHeader.decode(bytes) != nil)
        for byte in 0..<width { bytes[place + byte] = UInt8(truncatingIfNeeded: value >> UInt64(8 * byte)) }
        if place == 5, value == 2 {
            // A blob whose chunks would hold more than a chunk can.
            bytes[94] = 1
        }
        let hash = HeadHash.of(Array(bytes[..<96]), seed: Self.seed ^ 0x5245_434F_5244_3A32)
        for byte in 0..<8 { bytes[96 + byte] = UInt8(truncatingIfNeeded: hash >> UInt64(8 * byte)) }
        #expect(RecordHeader.decode(bytes) == nil)
    }

    @Test("No input makes the parser trap", arguments: [1, 2, 3] as [UInt64])
    func fuzz(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let record = FormatSamples.record("fuzz", body: generator.bytes(100))
        for _ in 0..<20_000 {
            let bytes = FormatSamples.hostile(record, using: &generator)
            if let header = RecordHeader.decode(bytes) { #expect(header.recordLength <= bytes.count, "seed \(seed)") }
            bytes.withUnsafeBytes { bytes in
                guard let header = RecordHeader.read(bytes) else { return }
                #expect(header.recordLength <= Geometry.maximumRecord && header.units <= Int(UInt16.max))
            }
            _ = RecordHeader.decode(generator.bytes(Int.random(in: 0...120, using: &generator)))
        }
    }

    @Test("Out-of-range lengths saturate")
    func saturation() {
        var header = RecordHeader(kind: .entry, segment: 1, order: 2, primary: 3)
        header.detailLength = .max
        header.inlineLength = .max
        #expect(header.recordLength == .max)
        #expect(header.units == .max / 16 + 1)
    }

    @Test("A verbatim copy differs only in segment number and checksum")
    func restamp() throws {
        let record = FormatSamples.record("one", segment: 5)
        var copy = record
        #expect(RecordHeader.restamp(&copy, segment: 900, seed: Self.seed))
        #expect(copy == FormatSamples.record("one", segment: 900))
        let header = try #require(RecordHeader.decode(copy))
        #expect((header.segment, header.order) == (900, 77))
        #expect(Set(record.indices.filter { record[$0] != copy[$0] }).isSubset(of: Set(8..<16).union(96..<104)))
    }

    @Test("A damaged record gets no new checksum")
    func restampDamaged() {
        for place in [0, 9, 60, 97, 110] {
            var record = FormatSamples.record("one")
            record[place] ^= 1
            let before = record
            #expect(!RecordHeader.restamp(&record, segment: 900, seed: Self.seed))
            #expect(record == before)
        }
        var short = Array(FormatSamples.record("one").prefix(103))
        #expect(!RecordHeader.restamp(&short, segment: 900, seed: Self.seed))
    }
}

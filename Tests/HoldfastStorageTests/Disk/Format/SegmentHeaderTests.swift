// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastTesting
import Testing

@testable import HoldfastStorage

@Suite("SegmentHeader", .timeLimit(.minutes(20)))
struct SegmentHeaderTests {
    private static let seed = FormatSamples.seed

    @Test("What was encoded is decoded", arguments: LogKind.allCases)
    func roundTrip(kind: LogKind) {
        var generator = SeededGenerator(seed: 3)
        for _ in 0..<100 {
            let header = SegmentHeader(
                kind: kind,
                number: generator.next(),
                epoch: generator.next(),
                createdOrder: generator.next(),
                identity: generator.next()
            )
            let bytes = header.encode(seed: Self.seed)
            #expect(bytes.count == 64)
            #expect(SegmentHeader.decode(bytes + [1, 2, 3], seed: Self.seed) == header)
            #expect(SegmentHeader.decode(bytes, seed: Self.seed ^ 1) == nil)
        }
    }

    @Test("The fields are at their documented positions")
    func layout() {
        let bytes = SegmentHeader(kind: .main, number: 2, epoch: 3, createdOrder: 4, identity: 5)
            .encode(seed: Self.seed)
        #expect(Array(bytes[..<16]) == Array("HFSEGMNT".utf8) + [3, 0, 0, 0, 1, 0, 0, 0])
        #expect([bytes[16], bytes[24], bytes[32], bytes[40]] == [2, 3, 4, 5])
        #expect(bytes[48..<56].allSatisfy { $0 == 0 })
    }

    @Test("A header with any damage is refused")
    func damage() {
        let bytes = SegmentHeader(kind: .small, number: 7, epoch: 1, createdOrder: 9).encode(seed: Self.seed)
        FormatSamples.damaged(bytes) { damaged, place in
            #expect(SegmentHeader.decode(damaged, seed: Self.seed) == nil, "byte \(place)")
        }
    }

    @Test("Reserved bytes and unknown kinds are refused even with a correct checksum", arguments: [12, 13, 15, 48, 55])
    func reserved(place: Int) {
        var bytes = SegmentHeader(kind: .small, number: 7, epoch: 1, createdOrder: 9).encode(seed: Self.seed)
        bytes[place] = 2
        let hash = HeadHash.of(Array(bytes[..<56]), seed: Self.seed)
        for byte in 0..<8 { bytes[56 + byte] = UInt8(truncatingIfNeeded: hash >> UInt64(8 * byte)) }
        #expect(SegmentHeader.decode(bytes, seed: Self.seed) == nil)
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastTesting
import Testing

@testable import HoldfastStorage

@Suite("RecordScan", .timeLimit(.minutes(20)))
struct RecordScanTests {
    /// What a scan of a whole segment found.
    private struct Outcome: Equatable {
        var offsets: [Int] = []
        var orders: [UInt64] = []
        var bodies: [Bool] = []
        var end = 0
    }

    /// Scans a file, in windows of `window` bytes where given.
    private static func scan(_ file: [UInt8], segment: UInt64 = 5, window: Int? = nil) -> Outcome {
        var scan = RecordScan(segment: segment, seed: FormatSamples.seed)
        var outcome = Outcome()
        while true {
            let start = min(scan.position, file.count)
            let stop = min(file.count, start + (window ?? file.count))
            file[start..<stop].withUnsafeBytes { bytes in
                while let found = scan.next(in: bytes, from: start, isLast: stop == file.count) {
                    outcome.offsets.append(found.offset)
                    outcome.orders.append(found.header.order)
                    outcome.bodies.append(found.bodyHolds)
                }
            }
            if stop == file.count { break }
        }
        outcome.end = scan.end
        return outcome
    }

    private static let head = [UInt8](repeating: 0, count: 64)
    private static let records = (1...4).map { FormatSamples.record("r\($0)", order: UInt64($0)) }
    private static let file = head + records.flatMap(\.self)

    @Test("Consecutive records are all found, among zeros and at the end of the file")
    func whole() {
        for tail in [0, 1, 15, 16, 4_096] {
            let outcome = Self.scan(Self.file + [UInt8](repeating: 0, count: tail))
            #expect(outcome.orders == [1, 2, 3, 4])
            #expect(outcome.bodies == [true, true, true, true])
            #expect(outcome.end == Self.file.count)
        }
        #expect(Self.scan(Self.head) == Outcome(end: 64))
        #expect(Self.scan([]) == Outcome(end: 64))
    }

    @Test("A damaged byte costs its own record and no other")
    func damage() {
        let size = Self.records[0].count
        let bodyStart = 104 + FormatSamples.detail("r1").encode().count
        for place in 64..<Self.file.count {
            for mask in [1, 0x80, 0xFF] as [UInt8] {
                var file = Self.file
                file[place] ^= mask
                let outcome = Self.scan(file)
                let victim = (place - 64) / size
                let inside = (place - 64) % size
                if inside < bodyStart {
                    #expect(outcome.orders == [1, 2, 3, 4].filter { $0 != UInt64(victim + 1) }, "byte \(place)")
                    #expect(outcome.end == (victim == 3 ? file.count - size : file.count))
                } else {
                    #expect(outcome.orders == [1, 2, 3, 4])
                    let isBody = inside < bodyStart + 8
                    #expect(outcome.bodies == (0..<4).map { $0 != victim || !isBody }, "byte \(place)")
                }
            }
        }
    }

    @Test("A truncated file yields its whole records")
    func truncation() {
        let size = Self.records[0].count
        let padding = size - (104 + FormatSamples.detail("r1").encode().count + 8)
        for count in 64...Self.file.count {
            let outcome = Self.scan(Array(Self.file.prefix(count)))
            #expect(outcome.orders.count == (count - 64 + padding) / size, "cut at \(count)")
        }
    }

    /// What a body of the record "outer" begins with, so that a record in it lies at a multiple of 16, where a scan looks.
    private static let bodyPadding = [UInt8](
        repeating: 0,
        count: (16 - (104 + FormatSamples.detail("outer").encode().count) % 16) % 16
    )

    @Test("A record inside another record's body is never used")
    func nested() {
        let inner = FormatSamples.record("inner", order: 99)
        let outer = FormatSamples.record("outer", order: 1, body: Self.bodyPadding + inner + inner)
        let outcome = Self.scan(Self.head + outer + FormatSamples.record("next", order: 2))
        #expect(outcome.orders == [1, 2])
    }

    @Test("Records of another segment or seed are not used, even if the surrounding record is damaged")
    func fakes() {
        for inner in [
            FormatSamples.record("inner", segment: 4, order: 99),
            FormatSamples.record("inner", order: 99, seed: FormatSamples.seed ^ 1),
        ] {
            var outer = FormatSamples.record("outer", order: 1, body: Self.bodyPadding + inner)
            outer[60] ^= 1
            let outcome = Self.scan(Self.head + outer + FormatSamples.record("next", order: 2))
            #expect(outcome.orders == [2])
        }
    }

    @Test("Records of an older segment after the tail of a recycled file are not used")
    func recycled() {
        let old = (1...40).map { FormatSamples.record("old \($0)", segment: 3, order: UInt64($0)) }.flatMap(\.self)
        let file = Self.file + Array((Self.head + old).dropFirst(Self.file.count))
        #expect(Self.scan(file).orders == [1, 2, 3, 4])
        #expect(Self.scan(file).end == Self.file.count)
        #expect(Self.scan(file, segment: 3).orders.last == 40)
    }

    @Test("A hole from an unfinished write is skipped")
    func hole() {
        let size = Self.records[1].count
        var file = Self.file
        file.replaceSubrange((64 + size)..<(64 + 2 * size), with: [UInt8](repeating: 0, count: size))
        let outcome = Self.scan(file)
        #expect(outcome.orders == [1, 3, 4])
        #expect(outcome.offsets == [64, 64 + 2 * size, 64 + 3 * size])
    }

    @Test("Tombstones, marks and blobs have no body to check")
    func otherKinds() {
        var generator = SeededGenerator(seed: 9)
        var file = Self.head
        for kind in RecordKind.allCases {
            var header = FormatSamples.header(kind, blob: true, using: &generator)
            header.segment = 5
            file += FormatSamples.padded(header.encode(detail: ByteChunk([1]), seed: FormatSamples.seed))
        }
        #expect(Self.scan(file).bodies == [true, true, true, true, true])
    }

    @Test("Windows of any size give the same result as one window", arguments: [1, 2] as [UInt64])
    func windows(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<40 {
            var file = Self.head
            for order in 1...30 as ClosedRange<UInt64> {
                let body = generator.bytes(Int.random(in: 0...600, using: &generator))
                var record = FormatSamples.record("w", order: order, body: body)
                if Int.random(in: 0..<6, using: &generator) == 0 {
                    record = FormatSamples.hostile(record, using: &generator)
                }
                file += FormatSamples.padded(record)
            }
            let whole = Self.scan(file)
            // No record here is longer than this.
            let window = Int.random(in: 1_024...4_000, using: &generator)
            let parts = Self.scan(file, window: RecordScan.minimumWindow)
            #expect(parts == whole, "seed \(seed)")
            let claims = Self.claimsBeyond(file, window)
            if !claims { #expect(Self.scan(file, window: window) == whole, "seed \(seed), window \(window)") }
        }
    }

    /// Whether some damaged header claims more than a small window can hold, so that a scan by such windows would stand.
    private static func claimsBeyond(_ file: [UInt8], _ window: Int) -> Bool {
        stride(from: 64, to: file.count, by: 16).contains { offset in
            file[offset...].withUnsafeBytes { RecordHeader.read($0)?.recordLength ?? 0 } > window
        }
    }

    @Test("Random bytes yield nothing, and the scan ends", arguments: [3, 4] as [UInt64])
    func noise(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<200 {
            var file = generator.bytes(Int.random(in: 0...3_000, using: &generator))
            for place in stride(from: 64, to: file.count - 8, by: 64) {
                file.replaceSubrange(place..<(place + 4), with: Array("HFRC".utf8))
                file[place + 4] = 1
                file[place + 5] = 0
            }
            #expect(Self.scan(file).offsets.isEmpty, "seed \(seed)")
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastTesting
import Testing

@testable import HoldfastStorage

@Suite("FORMAT: two copies of its head, and the list of segments", .timeLimit(.minutes(20)))
struct FormatFileTests {
    private static func sample() -> FormatFile {
        var generator = SeededGenerator(seed: 12)
        var file = FormatFile(.new(segmentSize: 1 << 20, using: &generator))
        for number in 1...9 as ClosedRange<UInt64> {
            let header = SegmentHeader(
                kind: .small,
                number: number,
                epoch: 1,
                createdOrder: 0,
                identity: generator.next()
            )
            file.rows[Int(number) * 2] = SegmentRow(header, state: [.open, .sealed, .idle][Int(number % 3)])
        }
        return file
    }

    @Test("What was encoded is decoded, each part at its documented position")
    func roundTrip() throws {
        let file = Self.sample()
        let bytes = file.encode()
        #expect(FormatFile(bytes) == file)
        #expect(FormatFile(bytes + [UInt8](repeating: 0, count: 5_000)) == file)
        #expect(bytes[0..<256] == bytes[4_096..<4_352])
        #expect(Array(bytes[0..<256]) == file.format.encode())
        let row = Array(bytes[(8_192 + 64)..<(8_192 + 96)])
        let first = try #require(file.rows[2])
        #expect(row[0] == 1)
        #expect(row[8..<16].reversed().reduce(0) { $0 << 8 | UInt64($1) } == first.identity)
        #expect(Array(row[16..<24]) == [2, 1, 0, 0, 0, 0, 0, 0])
    }

    @Test("One flipped bit anywhere costs a copy or a row and nothing else")
    func flips() throws {
        let file = Self.sample()
        let bytes = file.encode()
        for place in bytes.indices {
            var damaged = bytes
            damaged[place] ^= 1 << UInt8(place % 8)
            let found = try #require(FormatFile(damaged), "byte \(place)")
            #expect(found.format == file.format, "byte \(place)")
            let row = (place - FormatFile.listOffset) / SegmentRow.size
            let isRow = place >= FormatFile.listOffset && file.rows[row] != nil
            #expect(found.damagedRows == (isRow ? [row] : []), "byte \(place)")
            #expect(found.rows == file.rows.filter { !isRow || $0.key != row }, "byte \(place)")
        }
    }

    @Test("The newer copy is used, and the older one if the newer is damaged")
    func newerCopy() {
        let file = Self.sample()
        var newer = file
        newer.format.generation += 1
        newer.format.epoch = 2
        for copy in FormatFile.copyOffsets {
            var bytes = file.encode()
            bytes.replaceSubrange(copy..<(copy + 256), with: newer.format.encode())
            #expect(FormatFile(bytes)?.format == newer.format)
            // The segments of the older epoch are not listed any more.
            #expect(FormatFile(bytes)?.rows.isEmpty == true)
            bytes[copy + 100] ^= 1
            #expect(FormatFile(bytes) == file)
        }
    }

    @Test("Any bytes of any length are handled", arguments: 0..<60 as Range<UInt64>)
    func anyBytes(_ seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var bytes = Self.sample().encode()
        bytes += generator.bytes(Int.random(in: 0...400_000, using: &generator))
        for _ in 0..<Int.random(in: 0...40, using: &generator) {
            bytes[Int.random(in: 256..<bytes.count, using: &generator)] = UInt8.random(in: 0...255, using: &generator)
        }
        let found = FormatFile(Array(bytes.prefix(Int.random(in: 0...bytes.count, using: &generator))))
        #expect((found?.rows.count ?? 0) + (found?.damagedRows.count ?? 0) <= FormatFile.maximumRows, "seed \(seed)")
    }

    @Test(
        "A change that a kill or power loss interrupts at any step is made completely or not at all",
        arguments: 0..<12
    )
    func cutShort(_ step: Int) throws {
        var generator = SeededGenerator(seed: UInt64(step))
        for crash in [SimulatedFileSystem.Crash.process, .power(using: &generator)] {
            let files = SimulatedFileSystem()
            let file = try files.open("/FORMAT", .create)
            let before = Self.sample()
            try files.write(ByteChunk(before.encode()), to: file, at: 0)
            try files.sync(file)
            try files.syncDirectory("/")
            let manifest = Manifest(file, content: before, files: files)
            let header = SegmentHeader(kind: .main, number: 30, epoch: 1, createdOrder: 0, identity: 31)
            files.plan(.stop(within: step))
            try? manifest.note(3, is: .sealed)
            try? manifest.enter(header)
            try? manifest.remove(5)
            try? manifest.enter(header, inPlaceOf: 7)
            _ = try? manifest.write { $0.suspectBefore = 77 }
            let bytes = try #require(files.crashed(crash).contents(of: "/FORMAT"))
            let found = try #require(FormatFile(bytes))
            #expect([0, 77].contains(found.format.suspectBefore))
            // Where nothing was cut short, all of it is there.
            if !files.isStopped {
                #expect(found.format.suspectBefore == 77)
                #expect(found.rows.values.first { $0.number == 3 }?.state == .sealed)
                #expect(found.rows.values.filter { $0.number == 30 }.count >= 1)
                #expect(!found.rows.values.contains { $0.number == 5 || $0.number == 7 })
            }
            #expect(found.damagedRows.count <= 1, "step \(step)")
        }
    }
}

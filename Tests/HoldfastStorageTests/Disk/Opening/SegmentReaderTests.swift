// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastTesting
import Testing

@testable import HoldfastStorage

@Suite("A segment is read by its table, or record by record")
struct SegmentReaderTests {
    private static func content(_ sample: StoreSample, _ number: UInt64) throws -> SegmentReader.Content? {
        let reader = SegmentReader(files: sample.files, format: sample.format)
        guard let content = try reader.read(sample.layout.segment(number), number: number) else {
            return nil
        }
        return content
    }

    /// A segment of 4 MiB without a table, with records of up to 500 KiB.
    private static func large() throws -> StoreSample {
        var sample = try StoreSample()
        sample.format.segmentSize = 4 << 20
        let records = (1...12 as ClosedRange<UInt64>).map { order in
            var record = sample.entry("key \(order)", order: order)
            record.body = [UInt8](repeating: UInt8(order), count: 500_000 - Int(order) * 17_777)
            record.header.bodyLength = record.body.count
            record.header.inlineLength = record.body.count
            record.header.bodyWord = record.header.sum(of: ByteChunk(record.body))
            return record
        }
        sample.writeSegment(1, .small, records.dropLast(3) + [sample.mark(prefix: "p", order: 13)], isSealed: false)
        return sample
    }

    @Test("Records across window boundaries are found, and at most two windows are read at once")
    func windows() throws {
        let sample = try Self.large()
        let content = try #require(try Self.content(sample, 1))
        #expect(Set(content.rows.map(\.order)) == Set(1...9).union([13]))
        #expect(content.highestOrder == 13)
        #expect(content.marks.map(\.what) == [.prefix(Array("p".utf8))])
        #expect(content.torn.isEmpty)
        #expect(!content.isSealed)
        #expect(sample.files.log.filter { $0.operation == "read" }.allSatisfy { $0.count <= SegmentReader.window })
    }

    @Test("A hole costs the records in it and no others", arguments: 1...9)
    func holes(_ order: UInt64) throws {
        let sample = try Self.large()
        let path = sample.layout.segment(1)
        let row = try #require(try Self.content(sample, 1)?.rows.first { $0.order == order })
        var bytes = try #require(sample.files.contents(of: path))
        let start = Int(row.place) * Geometry.unit
        for offset in start..<(start + Int(row.units) * Geometry.unit) { bytes[offset] = 0 }
        #expect(sample.files.setContents(of: path, to: bytes))
        let content = try #require(try Self.content(sample, 1))
        #expect(Set(content.rows.map(\.order)) == Set(1...9).union([13]).subtracting([order]))
        #expect(!content.isDamaged)
    }

    @Test("A segment without its header still has its records, by table or by scan", arguments: [1, 3] as [UInt64])
    func withoutHeader(_ number: UInt64) throws {
        let sample = try StoreSample.full()
        let whole = try #require(try Self.content(sample, number))
        #expect(sample.files.flipBit(of: sample.layout.segment(number), at: 20))
        let content = try #require(try Self.content(sample, number))
        #expect(content.rows == whole.rows)
        #expect(content.blobs == whole.blobs)
        #expect(content.isDamaged)
    }

    @Test("A scan agrees with the table about blobs")
    func scanSeesBlobs() throws {
        let sample = try StoreSample.full()
        let whole = try #require(try Self.content(sample, 1))
        let path = sample.layout.segment(1)
        let size = try #require(sample.files.contents(of: path)).count
        #expect(sample.files.flipBit(of: path, at: size - 1))
        let content = try #require(try Self.content(sample, 1))
        #expect(!content.isSealed)
        #expect(content.rows == whole.rows)
        #expect(content.blobs == whole.blobs)
        #expect(content.tail == whole.tail)
        #expect(content.highestOrder == whole.highestOrder)
    }

    @Test("Records with the file's older number, after the tail of a recycled file, do not count")
    func recycledFile() throws {
        let sample = try StoreSample()
        sample.writeSegment(8, .small, (1...6).map { sample.entry("old \($0)", order: $0) }, isSealed: false)
        let old = try #require(sample.files.contents(of: sample.layout.segment(8)))
        sample.writeSegment(9, .main, [sample.entry("new", order: 7)], isSealed: false)
        let tail = try #require(try Self.content(sample, 9)).tail
        let new = try #require(sample.files.contents(of: sample.layout.segment(9)))
        let bytes = new.prefix(tail) + old.dropFirst(tail)
        #expect(sample.files.setContents(of: sample.layout.segment(9), to: Array(bytes)))
        let content = try #require(try Self.content(sample, 9))
        #expect(content.rows.map(\.order) == [7])
        #expect(!content.isDamaged)
        #expect(sample.files.setContents(of: sample.layout.segment(10), to: old))
        #expect(try Self.content(sample, 10) == nil)
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastTesting

@testable import HoldfastStorage

/// A small directory written with the encoders of the format, for tests that open, damage and cut it.
///
/// Segment 1 (small, sealed): `a` 1, `b` 2 with the tag `news`, `c` 3 with a blob, `d` 5. Segment 2 (main, sealed): `a` 4,
/// a tombstone of `d` 6, a mark of `news` 7, a mark of the prefix `p` 8. Segment 3 (small, not sealed): `e` 9, `f` 10.
struct StoreSample {
    static let segmentSize = Geometry.minimumSegmentSize
    static let blobNumber: UInt64 = 7
    /// The order that counts of each key.
    static let expected: [String: UInt64] = ["a": 4, "b": 2, "c": 3, "e": 9, "f": 10]
    /// All entries that were ever written.
    static let written: [String: Set<UInt64>] = ["a": [1, 4], "b": [2], "c": [3], "d": [5], "e": [9], "f": [10]]

    let files = SimulatedFileSystem(remembersUnsynced: false)
    let layout = StoreLayout(root: "/store")
    var format: StoreFormat
    /// The segments that FORMAT lists.
    let list = SegmentList()
    var seed: UInt64 { format.hashSeed }
    var hashing: KeyHashing { KeyHashing(seed: seed) }

    init() throws {
        var generator = SeededGenerator(seed: 1)
        format = StoreFormat.new(segmentSize: Self.segmentSize, using: &generator)
        format.bootIdentity = files.bootIdentity
        for directory in [layout.root, layout.segments, layout.blobs] { try files.createDirectory(directory) }
        try writeFormat()
    }

    /// The directory described above.
    static func full() throws -> StoreSample {
        let sample = try StoreSample()
        let stored = BlobChunk.storedSize(plain: 200, perChunk: BlobChunk.payload, overhead: 0)
        _ = sample.files.setContents(of: sample.layout.blob(blobNumber), to: [UInt8](repeating: 9, count: stored))
        sample.writeSegment(
            1,
            .small,
            [
                sample.entry("a", order: 1), sample.entry("b", order: 2, tags: ["news"]),
                sample.entry("c", order: 3, blob: blobNumber), sample.entry("d", order: 5),
            ],
            isSealed: true
        )
        sample.writeSegment(
            2,
            .main,
            [
                sample.entry("a", order: 4), sample.tombstone("d", order: 6), sample.mark(tag: "news", order: 7),
                sample.mark(prefix: "p", order: 8),
            ],
            isSealed: true
        )
        sample.writeSegment(3, .small, [sample.entry("e", order: 9), sample.entry("f", order: 10)], isSealed: false)
        return sample
    }

    struct Record {
        var header: RecordHeader
        var detail: [UInt8] = []
        var body: [UInt8] = []
    }

    func key(_ name: String) -> StoreKey { StoreKey(Array(name.utf8)) }

    /// FORMAT, as a process that wrote these segments would have left it.
    var manifest: FormatFile {
        var file = FormatFile(format)
        let rows = list.rows.values.filter { $0.epoch == format.epoch }.sorted { $0.number < $1.number }
        file.rows = Dictionary(uniqueKeysWithValues: rows.enumerated().map { ($0, $1) })
        return file
    }

    func writeFormat() throws {
        _ = files.setContents(of: layout.format, to: manifest.encode())
    }

    func entry(_ name: String, order: UInt64, tags: Set<String> = [], blob: UInt64? = nil) -> Record {
        let variant = StoreKey([])
        let detail = RecordDetail(key: key(name), variant: variant, tags: tags, metadata: ByteChunk([1, 2, 3]))
        let body = blob == nil ? Array("body of \(name) \(order)".utf8) : []
        var header = RecordHeader(kind: .entry, segment: 0, order: order, primary: hashing.primary(key(name)))
        header.variant = hashing.variant(variant, of: key(name))
        header.hasBlob = blob != nil
        header.bodyLength = blob == nil ? body.count : 200
        header.inlineLength = blob == nil ? body.count : BlobChunk.payload
        header.bodyWord = blob ?? header.sum(of: ByteChunk(body))
        return Record(header: header, detail: detail.encode(), body: body)
    }

    func tombstone(_ name: String, order: UInt64) -> Record {
        let primary = hashing.primary(key(name))
        return Record(header: RecordHeader(kind: .primaryTombstone, segment: 0, order: order, primary: primary))
    }

    func mark(tag: String, order: UInt64) -> Record {
        var header = RecordHeader(kind: .tagMark, segment: 0, order: order, primary: hashing.tag(tag))
        header.horizon = 2
        return Record(header: header)
    }

    func mark(prefix: String, order: UInt64) -> Record {
        var header = RecordHeader(kind: .prefixMark, segment: 0, order: order, primary: 0)
        header.horizon = 2
        return Record(header: header, detail: Array(prefix.utf8))
    }

    /// Writes a segment; one that is not sealed has its whole size.
    func writeSegment(_ number: UInt64, _ kind: LogKind, _ records: [Record], isSealed: Bool, epoch: UInt64 = 1) {
        let header = SegmentHeader(
            kind: kind,
            number: number,
            epoch: epoch,
            createdOrder: 1,
            identity: number + 1_000
        )
        list.rows[number] = SegmentRow(header, state: isSealed ? .sealed : .open)
        var bytes = header.encode(seed: seed)
        var rows: [TableRow] = []
        var blobs: [BlobRow] = []
        for record in records {
            var header = record.header
            header.segment = number
            let place = UInt32(bytes.count / Geometry.unit)
            let start = bytes.count
            bytes += header.encode(detail: ByteChunk(record.detail), seed: seed) + record.body
            let units = (bytes.count - start + Geometry.unit - 1) / Geometry.unit
            bytes += [UInt8](repeating: 0, count: start + units * Geometry.unit - bytes.count)
            var row = TableRow(
                primary: header.primary,
                variant: header.variant,
                place: place,
                order: header.order,
                units: UInt16(units),
                kind: header.kind
            )
            row.hasBlob = header.hasBlob
            rows.append(row)
            guard header.hasBlob else { continue }
            let stored = BlobChunk.storedSize(plain: 200, perChunk: BlobChunk.payload, overhead: 0)
            blobs.append(BlobRow(place: place, number: header.bodyWord, storedBytes: UInt64(stored)))
        }
        if isSealed {
            let offset = bytes.count
            bytes += SegmentTable.encode(rows: rows, blobs: blobs, segment: number, tableOffset: offset, seed: seed)
        } else {
            bytes += [UInt8](repeating: 0, count: format.segmentSize - bytes.count)
        }
        _ = files.setContents(of: layout.segment(number), to: bytes)
    }

    /// What recovery makes of the directory.
    struct Recovered {
        var store: RecoveredStore
        var rows: [IndexRow]

        func row(_ name: String, in sample: StoreSample) -> IndexRow? {
            let fragment = ShardedIndex.fragment(of: sample.hashing.primary(sample.key(name)))
            return rows.first { $0.fragment == fragment }
        }

        /// The order seen of each key of the sample.
        func orders(in sample: StoreSample) -> [String: UInt64] {
            StoreSample.written.keys.reduce(into: [:]) { orders, name in orders[name] = row(name, in: sample)?.order }
        }
    }

    var recovery: Recovery { Recovery(layout: layout, files: files, manifest: manifest) }

    func recover() throws -> Recovered {
        var rows: [IndexRow] = []
        var recovery = recovery
        let store = try recovery.run { _, found in rows += found }
        return Recovered(store: store, rows: rows)
    }
}

/// The segments that a sample's FORMAT lists, by number.
final class SegmentList {
    var rows: [UInt64: SegmentRow] = [:]
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastTesting

@testable import HoldfastStorage

/// Builds the files of a store by hand, record by record.
struct SampleDirectory {
    let url: URL
    let format: StoreFormat

    init(_ format: StoreFormat) throws {
        self.format = format
        url = FileManager.default.temporaryDirectory.appendingPathComponent("holdfast-sample-\(UUID().uuidString)")
        for folder in ["segments", "blobs"] {
            try FileManager.default.createDirectory(
                at: url.appendingPathComponent(folder),
                withIntermediateDirectories: true
            )
        }
        try write(FormatFile(format).encode(), to: "FORMAT")
    }

    func remove() {
        try? FileManager.default.removeItem(at: url)
    }

    func write(_ bytes: [UInt8], to name: String) throws {
        try Data(bytes).write(to: url.appendingPathComponent(name))
    }

    /// Writes the file of a blob and answers what its record must say of it.
    func writeBlob(_ number: UInt64, _ plain: [UInt8]) throws {
        var file: [UInt8] = []
        var index = 0
        while index * BlobChunk.payload < plain.count {
            let chunk = ByteChunk(Array(plain.dropFirst(index * BlobChunk.payload).prefix(BlobChunk.payload)))
            file += chunk.array + BlobChunk.trailer(for: chunk, number: number, index: index)
            index += 1
        }
        try write(file, to: "blobs/\(FileNumber.name(number)).blob")
    }
}

/// A segment under construction.
struct SampleSegment {
    let number: UInt64
    let seed: UInt64
    private let hashing: KeyHashing
    private(set) var bytes: [UInt8]
    private var rows: [TableRow] = []
    private var blobs: [BlobRow] = []

    init(_ number: UInt64, kind: LogKind = .small, epoch: UInt64 = 1, seed: UInt64) {
        self.number = number
        self.seed = seed
        hashing = KeyHashing(seed: seed)
        bytes = SegmentHeader(kind: kind, number: number, epoch: epoch, createdOrder: 0).encode(seed: seed)
    }

    /// Appends an entry; `change` sees the header before it is written. Answers the record's offset.
    @discardableResult
    mutating func entry(
        _ key: String,
        _ variant: String = "",
        order: UInt64,
        tags: Set<String> = [],
        body: [UInt8] = [1, 2, 3],
        _ change: (inout RecordHeader) -> Void = { _ in }
    ) -> Int {
        let detail = RecordDetail(
            key: StoreKey(key),
            variant: StoreKey(variant),
            tags: tags,
            metadata: ByteChunk(copying: "meta".utf8)
        )
        var header = RecordHeader(kind: .entry, segment: number, order: order, primary: hashing.primary(detail.key))
        header.variant = hashing.variant(detail.variant, of: detail.key)
        header.version = order
        header.storedAt = .at(Int64(order) * 1_000)
        header.bodyLength = body.count
        header.inlineLength = body.count
        header.bodyWord = header.sum(of: ByteChunk(body))
        change(&header)
        return append(header, ByteChunk(detail.encode()), header.hasBlob ? [] : body)
    }

    /// Appends a tombstone or a mark.
    mutating func mark(_ kind: RecordKind, _ text: String, _ variant: String = "", order: UInt64) {
        let hash = kind == .tagMark ? hashing.tag(text) : kind == .prefixMark ? 0 : hashing.primary(StoreKey(text))
        var header = RecordHeader(kind: kind, segment: number, order: order, primary: hash)
        header.variant = kind == .variantTombstone ? hashing.variant(StoreKey(variant), of: StoreKey(text)) : 0
        append(header, kind == .prefixMark ? ByteChunk(copying: text.utf8) : ByteChunk(), [])
    }

    /// Appends bytes that are no record.
    mutating func garbage(_ garbage: [UInt8]) {
        bytes += FormatSamples.padded(garbage)
    }

    /// Flips a bit.
    mutating func damage(at offset: Int) {
        bytes[offset] ^= 4
    }

    /// The whole file with its table.
    func sealed() -> [UInt8] {
        bytes + SegmentTable.encode(rows: rows, blobs: blobs, segment: number, tableOffset: bytes.count, seed: seed)
    }

    @discardableResult
    private mutating func append(_ header: RecordHeader, _ detail: ByteChunk, _ body: [UInt8]) -> Int {
        let offset = bytes.count
        let record = FormatSamples.padded(header.encode(detail: detail, seed: seed) + body)
        bytes += record
        let row = TableRow(
            primary: header.primary,
            variant: header.variant,
            place: UInt32(offset / 16),
            order: header.order,
            units: UInt16(record.count / 16),
            kind: header.kind,
            isPinned: header.isPinned,
            hasBlob: header.hasBlob
        )
        rows.append(row)
        if header.hasBlob { blobs.append(BlobRow(place: row.place, number: header.bodyWord, storedBytes: 0)) }
        return offset
    }
}

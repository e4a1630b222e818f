// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// A sealed segment's table row for one of its records.
struct TableRow: Sendable, Hashable {
    /// The size of a row in bytes.
    static let size = 32

    var primary: UInt64
    var variant: UInt32
    /// The record's offset in units of 16 bytes.
    var place: UInt32
    var order: UInt64
    /// The record's length in units of 16 bytes.
    var units: UInt16
    var kind: RecordKind
    var isPinned = false
    var hasBlob = false

    /// Whether this row is sorted before `other`: by primary hash, variant hash, order and place.
    func precedes(_ other: TableRow) -> Bool {
        if primary != other.primary { return primary < other.primary }
        if variant != other.variant { return variant < other.variant }
        if order != other.order { return order < other.order }
        return place < other.place
    }
}

/// A sealed segment's table row for one of its records whose body is a blob.
struct BlobRow: Sendable, Hashable {
    /// The size of a row in bytes.
    static let size = 24

    /// The record's offset in units of 16 bytes.
    var place: UInt32
    /// The number of the blob.
    var number: UInt64
    /// The size of the blob's file.
    var storedBytes: UInt64
}

/// The end of a sealed segment: a sorted row for each record, a row for each blob, and a footer.
enum SegmentTable {
    /// The size of the footer in bytes.
    static let footerSize = 64

    private static let magic: UInt64 = 0x3245_4C42_4154_4648  // HFTABLE2

    /// The last 64 bytes of a sealed segment.
    struct Footer: Sendable, Hashable {
        /// How many rows the table has.
        var rows: Int
        /// How many blob rows follow.
        var blobs: Int
        /// Where the table begins: a multiple of 16.
        var tableOffset: Int
        /// The highest order number among the rows; 0 without rows.
        var highestOrder: UInt64
        /// The ``BodySum`` over rows and blob rows.
        var sum: UInt64
        /// The segment's number.
        var segment: UInt64

        /// The size of rows and blob rows together.
        var tableLength: Int { rows * TableRow.size + blobs * BlobRow.size }
        /// The size of the whole file.
        var fileSize: Int { tableOffset + tableLength + footerSize }
    }

    /// What is in a table, and where it is.
    typealias Contents = (rows: [TableRow], blobs: [BlobRow], footer: Footer)

    /// The size of table and footer together for this many rows.
    static func size(rows: Int, blobs: Int) -> Int {
        rows * TableRow.size + blobs * BlobRow.size + footerSize
    }

    /// Table, blob rows and footer, to be written at `tableOffset`; the file ends after them.
    ///
    /// The rows may come in any order; they are written sorted.
    static func encode(
        rows: [TableRow],
        blobs: [BlobRow],
        segment: UInt64,
        tableOffset: Int,
        seed: UInt64
    ) -> [UInt8] {
        let sorted = rows.sorted { $0.precedes($1) }
        let sortedBlobs = blobs.sorted { $0.place < $1.place }
        let length = rows.count * TableRow.size + blobs.count * BlobRow.size
        return [UInt8](zeroed: length + footerSize) { bytes in
            var place = 0
            for row in sorted {
                bytes.put(row.primary, at: place)
                bytes.put(row.variant, at: place + 8)
                bytes.put(row.place, at: place + 12)
                bytes.put(row.order, at: place + 16)
                bytes.put(row.units, at: place + 24)
                bytes.put(row.kind.rawValue, at: place + 26)
                bytes.put(UInt8(row.isPinned ? 1 : 0) | UInt8(row.hasBlob ? 2 : 0), at: place + 27)
                place += TableRow.size
            }
            for blob in sortedBlobs {
                bytes.put(blob.place, at: place)
                bytes.put(blob.number, at: place + 8)
                bytes.put(blob.storedBytes, at: place + 16)
                place += BlobRow.size
            }
            let written = UnsafeRawBufferPointer(bytes)
            bytes.put(magic, at: length)
            bytes.put(segment, at: length + 8)
            bytes.put(UInt32(clamping: rows.count), at: length + 16)
            bytes.put(UInt32(clamping: blobs.count), at: length + 20)
            bytes.put(UInt64(clamping: tableOffset), at: length + 24)
            bytes.put(sorted.reduce(0) { max($0, $1.order) }, at: length + 32)
            bytes.put(BodySum.of(written.part(0..<length), seed: seed ^ segment), at: length + 40)
            bytes.put(HeadHash.of(written.part(length..<(length + 56)), seed: seed), at: length + 56)
        }
    }

    /// The footer in the last 64 bytes of a segment's file; nil unless they belong to this segment and seed and the numbers are
    /// possible. The caller compares ``Footer/fileSize`` with the file's size.
    static func footer(_ last64: [UInt8], segment: UInt64, seed: UInt64) -> Footer? {
        last64.withUnsafeBytes { bytes in
            guard bytes.count == footerSize,
                bytes.number(at: 0) == magic,
                bytes.number(at: 8) == segment,
                bytes.number(at: 56) == HeadHash.of(bytes.part(0..<56), seed: seed),
                bytes.number(at: 48) == UInt64(0),
                let tableOffset = Int(exactly: bytes.number(at: 24, as: UInt64.self)),
                tableOffset >= SegmentHeader.size,
                tableOffset <= .max / 2,
                tableOffset % Geometry.unit == 0,
                UInt64(tableOffset / Geometry.unit) <= UInt64(UInt32.max),
                let rows = Int(exactly: bytes.number(at: 16, as: UInt32.self)),
                let blobs = Int(exactly: bytes.number(at: 20, as: UInt32.self)),
                blobs <= rows,
                rows <= tableOffset / RecordHeader.size
            else { return nil }
            return Footer(
                rows: rows,
                blobs: blobs,
                tableOffset: tableOffset,
                highestOrder: bytes.number(at: 32),
                sum: bytes.number(at: 40),
                segment: segment
            )
        }
    }

    /// The table at the end of the file of a segment, which has this size; nil if none is intact.
    static func read(
        _ file: OpenFile,
        size: Int,
        segment: UInt64,
        files: any FileSystem,
        seed: UInt64
    ) throws(FileSystemError) -> Contents? {
        guard size >= SegmentHeader.size + footerSize else { return nil }
        let last = try files.read(file, from: size - footerSize, count: footerSize)
        guard let footer = footer(last, segment: segment, seed: seed), footer.fileSize == size else { return nil }
        let bytes = try files.read(file, from: footer.tableOffset, count: footer.tableLength)
        return decode(bytes, footer: footer, seed: seed).map { ($0.rows, $0.blobs, footer) }
    }

    /// The sorted rows in `bytes`, which begin at the table; nil unless the checksum is right and each row is possible: sorted, of
    /// a known kind, and with its record before the table.
    ///
    /// Cost: a few nanoseconds a row.
    static func decode(_ bytes: [UInt8], footer: Footer, seed: UInt64) -> (rows: [TableRow], blobs: [BlobRow])? {
        bytes.withUnsafeBytes { bytes in
            guard bytes.count >= footer.tableLength else { return nil }
            let table = bytes.part(0..<footer.tableLength)
            guard BodySum.of(table, seed: seed ^ footer.segment) == footer.sum else { return nil }
            let split = footer.rows * TableRow.size
            guard let rows = decodeRows(table.part(0..<split), count: footer.rows, end: footer.tableOffset),
                let blobs = decodeBlobs(table.part(split..<table.count), count: footer.blobs, end: footer.tableOffset)
            else { return nil }
            return (rows, blobs)
        }
    }

    /// The rows without the checksum, which fuzzing would never pass.
    static func decodeRows(_ bytes: UnsafeRawBufferPointer, count: Int, end: Int) -> [TableRow]? {
        guard count <= bytes.count / TableRow.size else { return nil }
        var isWhole = true
        let last = UInt64(clamping: end / Geometry.unit)
        let rows = [TableRow](unsafeUninitializedCapacity: count) { buffer, filled in
            for index in 0..<count {
                let place = index &* TableRow.size
                guard let row = row(bytes, place: place),
                    UInt64(row.place) + UInt64(row.units) <= last,
                    index == 0 || buffer[index &- 1].precedes(row)
                else {
                    isWhole = false
                    return
                }
                buffer.initializeElement(at: index, to: row)
                filled = index &+ 1
            }
        }
        return isWhole ? rows : nil
    }

    @inline(__always)
    private static func row(_ bytes: UnsafeRawBufferPointer, place: Int) -> TableRow? {
        let flags = bytes[place &+ 27]
        guard let kind = RecordKind(rawValue: bytes[place &+ 26]), flags <= 3,
            bytes.number(at: place &+ 28) == UInt32(0)
        else { return nil }
        let row = TableRow(
            primary: bytes.number(at: place),
            variant: bytes.number(at: place &+ 8),
            place: bytes.number(at: place &+ 12),
            order: bytes.number(at: place &+ 16),
            units: bytes.number(at: place &+ 24),
            kind: kind,
            isPinned: flags & 1 != 0,
            hasBlob: flags & 2 != 0
        )
        // A record begins after the segment's header and is at least as long as its own header.
        return row.place >= 4 && row.units >= 7 ? row : nil
    }

    private static func decodeBlobs(_ bytes: UnsafeRawBufferPointer, count: Int, end: Int) -> [BlobRow]? {
        guard count <= bytes.count / BlobRow.size else { return nil }
        var blobs: [BlobRow] = []
        blobs.reserveCapacity(count)
        for index in 0..<count {
            let place = index * BlobRow.size
            let row = BlobRow(
                place: bytes.number(at: place),
                number: bytes.number(at: place + 8),
                storedBytes: bytes.number(at: place + 16)
            )
            guard bytes.number(at: place + 4) == UInt32(0), UInt64(row.place) < UInt64(clamping: end / Geometry.unit)
            else { return nil }
            if let previous = blobs.last, previous.place >= row.place { return nil }
            blobs.append(row)
        }
        return blobs
    }
}

extension TableRow {
    /// The row of the record with this header at `place`.
    init(_ header: RecordHeader, place: UInt32) {
        self.init(
            primary: header.primary,
            variant: header.variant,
            place: place,
            order: header.order,
            units: UInt16(truncatingIfNeeded: header.units),
            kind: header.kind,
            isPinned: header.isPinned,
            hasBlob: header.hasBlob
        )
    }
}

extension BlobRow {
    /// The blob row of the record with this header at `place`.
    init(_ header: RecordHeader, place: UInt32) {
        self.init(place: place, number: header.bodyWord, storedBytes: UInt64(clamping: header.storedBlobBytes))
    }
}

/// Which of a store's two logs a segment belongs to.
package enum LogKind: UInt8, Sendable, Hashable, CaseIterable {
    /// For new entries.
    case small = 0
    /// For entries that were used, or came back soon after they were evicted.
    case main = 1
}

/// The first 64 bytes of a segment's file.
///
/// A recycled file contains the bytes of an older segment after its tail, so nothing in it counts unless this header has the number
/// in the file's name.
struct SegmentHeader: Sendable, Hashable {
    /// The size in bytes, before the first record.
    static let size = 64

    /// `HFSEGMNT`.
    static let magic: UInt64 = 0x544E_4D47_4553_4648

    /// The log it belongs to.
    var kind: LogKind
    /// The number in the file's name.
    var number: UInt64
    /// The epoch in which it was begun.
    var epoch: UInt64
    /// The next order number when it was begun: a new record has at least this one, a carried one may have a lower one.
    var createdOrder: UInt64
    /// A random number that no other segment of the directory has, including earlier ones with the same number.
    var identity: UInt64 = 0

    /// The 64 bytes.
    func encode(seed: UInt64) -> [UInt8] {
        [UInt8](zeroed: Self.size) { header in
            header.put(Self.magic, at: 0)
            header.put(StoreFormat.version, at: 8)
            header.put(kind.rawValue, at: 12)
            header.put(number, at: 16)
            header.put(epoch, at: 24)
            header.put(createdOrder, at: 32)
            header.put(identity, at: 40)
            header.put(HeadHash.of(UnsafeRawBufferPointer(header).part(0..<56), seed: seed), at: 56)
        }
    }

    /// The header at the start of `bytes`; nil if there is none of this version and seed. The caller compares ``number`` with the
    /// file's name.
    static func decode(_ bytes: [UInt8], seed: UInt64) -> SegmentHeader? {
        bytes.withUnsafeBytes { header in
            guard header.count >= size,
                header.number(at: 0) == magic,
                header.number(at: 8) == StoreFormat.version,
                header.number(at: 56) == HeadHash.of(header.part(0..<56), seed: seed),
                let kind = LogKind(rawValue: header[12]),
                header.isZero(13..<16),
                header.isZero(48..<56)
            else { return nil }
            return SegmentHeader(
                kind: kind,
                number: header.number(at: 16),
                epoch: header.number(at: 24),
                createdOrder: header.number(at: 32),
                identity: header.number(at: 40)
            )
        }
    }
}

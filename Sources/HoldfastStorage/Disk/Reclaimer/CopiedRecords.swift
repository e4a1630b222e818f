// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Copies of records that are adjacent in the main log, and are written with one call.
struct CopiedRecords {
    /// How many bytes are collected before they are written.
    private static let most = 64 << 10

    struct Item {
        let place: LogState.Reservation
        /// The row that led to the original.
        let current: IndexRow
        let row: TableRow
        let blob: BlobRow?
    }

    private(set) var items: [Item] = []
    private(set) var bytes: [UInt8] = []

    /// Whether a record at this place directly follows the collected ones.
    func fits(_ place: LogState.Reservation) -> Bool {
        guard let first = items.first else { return true }
        return first.place.segment === place.segment && bytes.count < Self.most
            && place.offset - first.place.offset == (bytes.count + Geometry.unit - 1) / Geometry.unit * Geometry.unit
    }

    /// Adds a copy of a record, with its new segment's number.
    mutating func append(
        _ source: RecordSource,
        at place: LogState.Reservation,
        for current: IndexRow,
        row: TableRow,
        seed: UInt64
    ) {
        while bytes.count % Geometry.unit != 0 { bytes.append(0) }
        let start = bytes.count
        source.bytes[0..<source.header.recordLength].append(to: &bytes)
        bytes.withUnsafeMutableBytes {
            let record = UnsafeMutableRawBufferPointer(rebasing: $0[start...])
            _ = RecordHeader.restamp(record, segment: place.segment.number, seed: seed)
        }
        let unit = place.unit
        let blob = source.header.hasBlob ? BlobRow(source.header, place: unit) : nil
        items.append(Item(place: place, current: current, row: row, blob: blob))
    }
}

/// A part of a segment that is read at once, since several of its records will be copied.
struct RecordWindow {
    /// How many bytes are read at once, and how many useless ones in a row may be among them.
    private static let most = 256 << 10
    private static let gap = 8 << 10

    /// The records to be copied, by ascending place.
    private let rows: [TableRow]
    private var next = 0
    private var bytes = ByteChunk()
    private var start = 0

    init(_ rows: [TableRow]) { self.rows = rows }

    /// The record of a row, if it is one of those to be copied and is intact.
    mutating func record(of current: IndexRow, in segment: Segment, files: any FileSystem, seed: UInt64)
        -> RecordSource?
    {
        let place = current.place.offset
        let end = place + current.place.byteCount
        guard current.place.slot == segment.slot, fill(place, end: end, segment: segment, files: files) else {
            return nil
        }
        let record = bytes[(place - start)..<(end - start)]
        let header = record.withUnsafeBytes { RecordHeader.decode($0, of: current, in: segment.number, seed: seed) }
        guard let header else { return nil }
        return RecordSource(row: current, epoch: segment.epoch, header: header, bytes: record)
    }

    private mutating func fill(_ place: Int, end: Int, segment: Segment, files: any FileSystem) -> Bool {
        if place >= start, end <= start + bytes.count { return true }
        while next < rows.count, Int(rows[next].place) * Geometry.unit < place { next += 1 }
        guard next < rows.count, Int(rows[next].place) * Geometry.unit == place else { return false }
        var last = end
        var following = next + 1
        while following < rows.count {
            let from = Int(rows[following].place) * Geometry.unit
            let to = from + Int(rows[following].units) * Geometry.unit
            guard from - last <= Self.gap, to - place <= Self.most else { break }
            last = max(last, to)
            following += 1
        }
        // A single record is read by the caller, which handles its failures; so is each record if this read fails.
        guard following > next + 1,
            let read = try? files.read(segment.file.open, from: place, count: last - place),
            read.count == last - place
        else { return false }
        (start, bytes) = (place, ByteChunk(read))
        return true
    }
}

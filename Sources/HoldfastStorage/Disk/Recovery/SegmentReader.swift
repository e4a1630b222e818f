// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Reads which records a segment file contains: from its table, or, if that is missing or damaged, record by record.
struct SegmentReader: Sendable {
    let files: any FileSystem
    let format: StoreFormat
    /// Unseals the prefixes of marks that were sealed.
    var seal: (any StoreSeal)?
    /// Whether sealed marks are ignored if there is no seal, as by a reader that only looks.
    var skipsSealed = false

    /// How much of a file is in memory at a time while it is scanned.
    static let window = RecordScan.minimumWindow

    /// A mark among the records.
    struct Mark: Sendable, Hashable {
        let what: PurgeMarks.Mark
        let order: UInt64
        let horizon: UInt64
    }

    /// What a mark's record says.
    fileprivate enum MarkReading {
        case mark(Mark)
        /// Its prefix was sealed with a key that is not known here; it can only have removed what is older than itself.
        case hidden
        case skipped
        case damaged
    }

    /// A segment's records.
    struct Content: Sendable {
        var kind: LogKind
        /// The random number in its header; nil if the header is damaged.
        var identity: UInt64?
        var fileSize: Int
        /// Sorted.
        var rows: [TableRow] = []
        var blobs: [BlobRow] = []
        var marks: [Mark] = []
        /// Entries of a lower order may have been removed by a mark that is not known here, and must be revalidated.
        var suspectBefore: UInt64 = 0
        var highestOrder: UInt64 = 0
        var isSealed = false
        /// Where the next record, or the table, belongs.
        var tail: Int
        /// Whether bytes that were once written fail their checks.
        var isDamaged = false
        /// Entries with an intact head and a damaged body, in a segment without a table.
        var torn: [TableRow] = []

        fileprivate mutating func add(_ reading: MarkReading, order: UInt64) {
            switch reading {
            case .mark(let mark): marks.append(mark)
            case .hidden: suspectBefore = max(suspectBefore, order &+ 1)
            case .skipped: break
            case .damaged: isDamaged = true
            }
        }
    }

    /// Reads the file at `path`, whose name contains `number`.
    ///
    /// - Returns: nil if it contains nothing that counts: it was never begun, is another segment's file under a new name, was
    ///   purged, or is damaged beyond use.
    /// - Throws: if the system refuses access to a file that may be good; one that has become unreadable is damaged.
    func read(_ path: String, number: UInt64) throws(FileSystemError) -> Content? {
        let file = try files.open(path, .read)
        defer { files.close(file) }
        let size = try files.size(of: file)
        guard size > 0, let head = try readable(try files.read(file, from: 0, count: SegmentHeader.size)) else {
            return nil
        }
        let header = SegmentHeader.decode(head, seed: format.hashSeed)
        // An intact header with another number: the file was renamed and not begun.
        if let header, header.number != number || header.epoch < format.epoch { return nil }
        var content = Content(
            kind: header?.kind ?? .main,
            identity: header?.identity,
            fileSize: size,
            tail: SegmentHeader.size
        )
        // Without its header, a segment still has records, which contain its number.
        content.isDamaged = header == nil
        if try readTable(file, number: number, content: &content) { return content }
        try scan(file, number: number, content: &content)
        return header != nil || !content.rows.isEmpty ? content : nil
    }

    /// What a step reads; nil if the device cannot read it any more.
    private func readable<Value>(
        _ step: @autoclosure () throws(FileSystemError) -> Value?
    ) throws(FileSystemError) -> Value? {
        do throws(FileSystemError) {
            return try step()
        } catch {
            if error.errno == SystemNumber.damaged { return nil }
            throw error
        }
    }

    // MARK: Sealed

    private func readTable(
        _ file: OpenFile,
        number: UInt64,
        content: inout Content
    ) throws(FileSystemError) -> Bool {
        let (size, seed) = (content.fileSize, format.hashSeed)
        let table = try readable(try SegmentTable.read(file, size: size, segment: number, files: files, seed: seed))
        guard let (rows, blobs, footer) = table else { return false }
        content.rows = rows
        content.blobs = blobs
        content.highestOrder = footer.highestOrder
        content.isSealed = true
        content.tail = footer.tableOffset
        for row in rows where row.kind == .tagMark || row.kind == .prefixMark {
            try readMark(row, of: file, number: number, content: &content)
        }
        return true
    }

    private func readMark(
        _ row: TableRow,
        of file: OpenFile,
        number: UInt64,
        content: inout Content
    ) throws(FileSystemError) {
        let (offset, count) = (Int(row.place) * Geometry.unit, Int(row.units) * Geometry.unit)
        let record = try readable(try files.read(file, from: offset, count: count)) ?? []
        let reading = record.withUnsafeBytes { bytes -> MarkReading in
            guard let header = RecordHeader.decode(bytes, seed: format.hashSeed), header.segment == number,
                header.kind == row.kind, header.order == row.order
            else { return .damaged }
            return mark(header, bytes: bytes)
        }
        content.add(reading, order: row.order)
        if case .damaged = reading, row.kind == .tagMark {
            // Everything except its horizon is in the table; without that, it is kept for as long as the store is open.
            content.marks.append(Mark(what: .tag(row.primary), order: row.order, horizon: .max))
        }
    }

    private func mark(_ header: RecordHeader, bytes: UnsafeRawBufferPointer) -> MarkReading {
        var what = PurgeMarks.Mark.tag(header.primary)
        if header.kind == .prefixMark {
            var prefix = Array(bytes.part(RecordHeader.size..<(RecordHeader.size + header.detailLength)))
            if header.keyID != 0 {
                guard let seal = format.binding(seal) else { return skipsSealed ? .skipped : .hidden }
                do throws(StoreError) {
                    let context = SealedPart.detail(of: header)
                    prefix = try seal.open(ByteChunk(prefix), keyID: header.keyID, context: context)
                } catch {
                    return error.code == .sealed ? .hidden : .damaged
                }
            }
            what = .prefix(prefix)
        }
        return .mark(Mark(what: what, order: header.order, horizon: header.horizon))
    }

    // MARK: Not sealed

    private func scan(_ file: OpenFile, number: UInt64, content: inout Content) throws(FileSystemError) {
        // Far more than a segment of this store, or of its last capacity, can have: someone has extended the file.
        let end = min(content.fileSize, max(64 << 20, 4 * format.segmentSize))
        if end < content.fileSize { content.isDamaged = true }
        var scan = RecordScan(segment: number, seed: format.hashSeed)
        while scan.position < end {
            let start = scan.position
            let count = min(Self.window, end - start)
            let window = try readable(try files.read(file, from: start, count: count))
            guard let window, !window.isEmpty else {
                // One unreadable page ends the scan: everything after it is lost too.
                content.isDamaged = true
                break
            }
            let isLast = start + window.count >= end || window.count < count
            window.withUnsafeBytes { window in
                while let found = scan.next(in: window, from: start, isLast: isLast) {
                    let offset = found.offset - start
                    take(found, bytes: window.part(offset..<window.count), content: &content)
                }
            }
            if isLast || scan.position == start { break }
        }
        content.tail = scan.end
        content.rows.sort { $0.precedes($1) }
    }

    private func take(_ found: RecordScan.Found, bytes: UnsafeRawBufferPointer, content: inout Content) {
        let header = found.header
        guard let place = UInt32(exactly: found.offset / Geometry.unit), UInt16(exactly: header.units) != nil else {
            return
        }
        content.highestOrder = max(content.highestOrder, header.order)
        let row = TableRow(header, place: place)
        guard found.bodyHolds else { return content.torn.append(row) }
        content.rows.append(row)
        if header.hasBlob { content.blobs.append(BlobRow(header, place: place)) }
        guard header.kind == .tagMark || header.kind == .prefixMark else { return }
        content.add(mark(header, bytes: bytes), order: header.order)
    }
}

/// Finds the records of a segment that has no table, or whose table is damaged, one after the other.
///
/// If the bytes are not a record of this segment, the scan continues 16 bytes further; if they are, it continues after the record,
/// so that nothing within a record's body is ever taken for a record. Pass it windows of the file:
///
///     var scan = RecordScan(segment: number, seed: seed)
///     while true {
///         let window = ...                       // bytes of the file from scan.position on
///         while let found = scan.next(in: window, from: start, isLast: atEnd) { ... }
///         if atEnd { break }
///     }
///
/// A window that is not the last has at least ``minimumWindow`` bytes; then the scan makes progress with each.
struct RecordScan {
    /// The longest record, and so the smallest window except the last.
    static let minimumWindow = Geometry.maximumRecord + Geometry.unit

    /// A record of this segment.
    struct Found: Sendable, Hashable {
        /// Its offset in the file.
        let offset: Int
        /// Its header, with a correct checksum.
        let header: RecordHeader
        /// Whether the inline body's checksum is correct; true if there is none to check.
        let bodyHolds: Bool
    }

    private let segment: UInt64
    private let seed: UInt64

    /// The offset in the file where the next window must begin.
    private(set) var position: Int
    /// The offset after the last record found, a multiple of 16; until one is found, where the records begin.
    private(set) var end: Int

    /// A scan of the segment with this number, from its first record or from `position`, a multiple of 16.
    init(segment: UInt64, seed: UInt64, from position: Int = SegmentHeader.size) {
        self.segment = segment
        self.seed = seed
        self.position = position
        end = position
    }

    /// The next record in `window`, whose first byte is the file's at `start`; nil if there is no other.
    ///
    /// For the last window, nil means that no record follows in the file; for others, that a window is needed that begins at
    /// ``position``. A record that is cut off by the end of the last window does not count.
    mutating func next(in window: UnsafeRawBufferPointer, from start: Int, isLast: Bool) -> Found? {
        while position >= start, position - start < window.count {
            let bytes = window.part((position - start)..<window.count)
            if bytes.count < RecordHeader.size, !isLast { return nil }
            guard let header = RecordHeader.read(bytes), header.segment == segment else {
                position += Geometry.unit
                continue
            }
            if header.recordLength > bytes.count, !isLast { return nil }
            guard header.recordLength <= bytes.count, header.isGenuine(bytes, seed: seed) else {
                position += Geometry.unit
                continue
            }
            return take(header, bytes: bytes)
        }
        return nil
    }

    private mutating func take(_ header: RecordHeader, bytes: UnsafeRawBufferPointer) -> Found {
        let bodyStart = RecordHeader.size + header.detailLength
        let body = bytes.part(bodyStart..<(bodyStart + header.storedBodyLength))
        let holds = header.kind != .entry || header.hasBlob || header.sum(of: body) == header.bodyWord
        let found = Found(offset: position, header: header, bodyHolds: holds)
        position += header.units * Geometry.unit
        end = position
        return found
    }
}

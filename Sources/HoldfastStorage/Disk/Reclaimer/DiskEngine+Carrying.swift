// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// What reclaiming keeps: copies of records in the main log, for the thread of changes.
extension DiskEngine {
    /// Copies an entry to the main log.
    ///
    /// - Parameters:
    ///   - window: what was read of the segment.
    ///   - copies: takes the copy, which is written with those beside it.
    /// - Returns: false when it is not worth it, or there is no room: then it is to be evicted.
    func carry(
        _ current: IndexRow,
        _ row: TableRow,
        in segment: Segment,
        _ window: inout RecordWindow,
        _ copies: inout CopiedRecords,
        mustStay: Bool
    ) throws(StoreError) -> Bool {
        let found: RecordRead
        if let source = window.record(of: current, in: segment, engine: self) {
            found = .record(source)
        } else {
            do throws(StoreError) {
                found = try read(current, primary: row.primary, waits: true)
            } catch {
                // What the device cannot give back must not hold up the rest; what must stay is tried again another time.
                guard !mustStay, (error.cause as? FileSystemError)?.errno == SystemNumber.damaged else { throw error }
                found = .damaged
            }
        }
        guard case .record(let source) = found else {
            counters.entriesCorrupt.add(1, ordering: .relaxed)
            return false
        }
        if !mustStay, source.header.uselessAfter.milliseconds < latestNow.load(ordering: .relaxed) { return false }
        let shard = index.shard(of: row.primary)
        let length = source.header.recordLength
        var place: LogState.Place?
        for attempt in 0..<2 {
            let isThere = shard.state.withLock { shard -> Bool in
                guard shard.table.row(current.fragment, variant: current.variant)?.order == current.order else {
                    return false
                }
                // Under the shard's lock, so that the horizon of a later tombstone reaches the copy.
                place = log.withLock { $0.reserve(.carried, length: length, hasBlob: current.hasBlob) }
                return true
            }
            if !isThere { return true }
            if place != nil { break }
            guard attempt == 0 else { return false }
            try write(&copies)
            do throws(StoreError) { try openCarried() } catch {
                if mustStay || error.code != .noSpace { throw error }
                return false
            }
        }
        guard let place else { return false }
        // Asked again now that the place is taken: a mark from here on reaches it.
        // No pin protects from it: a copy beyond the mark's horizon would come back once the mark is dropped.
        if isPurged(source) || (!mustStay && !isReadable(source)) {
            _ = log.withLock { $0.finish(place, row: nil, blob: nil) }
            return false
        }
        if !copies.fits(place) { try write(&copies) }
        copies.append(source, at: place, for: current, row, seed: seed)
        return true
    }

    /// Whether an entry can be made of a record.
    private func isReadable(_ source: RecordSource) -> Bool {
        guard source.header.keyID == 0, !isSealed else { return (try? entry(source, nil)) != nil }
        return source.detailBytes.withUnsafeBytes { RecordDetail.Layout($0) } != nil
    }

    /// Writes the copies that have gathered, all at once, and lets the index find them.
    func write(_ copies: inout CopiedRecords) throws(StoreError) {
        guard let first = copies.items.first else { return }
        let gathered = copies
        copies = CopiedRecords()
        var failure: StoreError?
        do {
            try files.write(ByteChunk(gathered.bytes), to: first.place.segment.file.open, at: first.place.offset)
        } catch {
            failure = failed(error)
        }
        var wantsTable = false
        for item in gathered.items {
            let unit = UInt32(truncatingIfNeeded: item.place.offset / Geometry.unit)
            index.shard(of: item.row.primary).state.withLock { shard in
                _ = shard.table.change(item.current.fragment, variant: item.current.variant) { found in
                    guard found.order == item.current.order else { return }
                    // A copy that may be whole all the same wants a tombstone when this one goes.
                    if failure != nil { return found.shadows = true }
                    found.place = RecordPlace(slot: item.place.segment.slot, unit: unit, units: item.row.units)
                }
            }
            var copy = item.row
            copy.place = unit
            let isLast = log.withLock {
                $0.finish(item.place, row: failure == nil ? copy : nil, blob: failure == nil ? item.blob : nil)
            }
            wantsTable = wantsTable || isLast
        }
        if wantsTable { sealFull() }
        if let failure { throw failure }
    }

    /// Carries a tombstone or mark forward while something that it kills may lie in another segment.
    func carryNote(
        _ row: TableRow,
        in segment: Segment,
        _ horizon: TombstoneHorizon
    ) throws(StoreError) {
        let bytes: [UInt8]
        do {
            bytes = try files.read(segment.file.open, from: Int(row.place) * 16, count: Int(row.units) * 16)
        } catch {
            throw failed(error)
        }
        guard let header = bytes.withUnsafeBytes({ RecordHeader.decode($0, seed: seed) }) else { return }
        guard horizon.carries(header.horizon) else { return }
        var place = log.withLock { $0.reserve(.carried, length: header.recordLength, hasBlob: false) }
        if place == nil {
            try openCarried()
            place = log.withLock { $0.reserve(.carried, length: header.recordLength, hasBlob: false) }
        }
        guard let place else { throw Self.noSpace }
        var copy = Array(bytes.prefix(header.recordLength))
        RecordHeader.restamp(&copy, segment: place.segment.number, seed: seed)
        var copied: TableRow?
        defer { _ = log.withLock { $0.finish(place, row: copied, blob: nil) } }
        do {
            try files.write(ByteChunk(copy), to: place.segment.file.open, at: place.offset)
        } catch {
            throw failed(error)
        }
        copied = row
        copied?.place = UInt32(truncatingIfNeeded: place.offset / 16)
    }
}

/// Copies of records that lie side by side in the main log, and are written with one call.
struct CopiedRecords {
    /// How many bytes are gathered before they are written.
    private static let most = 64 << 10

    struct Item {
        let place: LogState.Place
        /// The row that led to the original.
        let current: IndexRow
        let row: TableRow
        let blob: BlobRow?
    }

    private(set) var items: [Item] = []
    private(set) var bytes: [UInt8] = []

    /// Whether a record at this place goes behind those that have gathered.
    func fits(_ place: LogState.Place) -> Bool {
        guard let first = items.first else { return true }
        return first.place.segment === place.segment && bytes.count < Self.most
            && place.offset - first.place.offset == (bytes.count + Geometry.unit - 1) / Geometry.unit * Geometry.unit
    }

    /// Adds a copy of a record, which bears its new segment's number.
    mutating func append(
        _ source: RecordSource,
        at place: LogState.Place,
        for current: IndexRow,
        _ row: TableRow,
        seed: UInt64
    ) {
        while bytes.count % Geometry.unit != 0 { bytes.append(0) }
        let start = bytes.count
        source.bytes[0..<source.header.recordLength].append(to: &bytes)
        bytes.withUnsafeMutableBytes {
            let record = UnsafeMutableRawBufferPointer(rebasing: $0[start...])
            _ = RecordHeader.restamp(record, segment: place.segment.number, seed: seed)
        }
        let unit = UInt32(truncatingIfNeeded: place.offset / Geometry.unit)
        let blob = source.header.hasBlob ? BlobRow(source.header, place: unit) : nil
        items.append(Item(place: place, current: current, row: row, blob: blob))
    }
}

/// A part of a segment that is read at once, since several records in it are to be copied.
struct RecordWindow {
    /// How many bytes are read at once, and how many of them may be of no use in a row.
    private static let most = 256 << 10
    private static let gap = 8 << 10

    /// The records to be copied, by ascending place.
    private let rows: [TableRow]
    private var next = 0
    private var bytes = ByteChunk()
    private var start = 0

    init(_ rows: [TableRow]) {
        self.rows = rows
    }

    /// The record of a row, if it is one of those to be copied and is as it should be.
    mutating func record(of current: IndexRow, in segment: Segment, engine: DiskEngine) -> RecordSource? {
        let place = Int(current.place.unit) * Geometry.unit
        let end = place + Int(current.place.units) * Geometry.unit
        guard current.place.slot == segment.slot, fill(place, end, segment, engine) else { return nil }
        let record = bytes[(place - start)..<(end - start)]
        let header = record.withUnsafeBytes { RecordHeader.decode($0, seed: engine.seed) }
        guard let header, header.kind == .entry, header.segment == segment.number, header.order == current.order
        else { return nil }
        return RecordSource(row: current, epoch: segment.epoch, header: header, bytes: record)
    }

    private mutating func fill(_ place: Int, _ end: Int, _ segment: Segment, _ engine: DiskEngine) -> Bool {
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
        // One alone is read by whoever knows what its failures mean; so is each where this read fails.
        guard following > next + 1,
            let read = try? engine.files.read(segment.file.open, from: place, count: last - place),
            read.count == last - place
        else { return false }
        (start, bytes) = (place, ByteChunk(read))
        return true
    }
}

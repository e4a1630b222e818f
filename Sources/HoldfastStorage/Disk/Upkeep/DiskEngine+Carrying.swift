// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// What reclaiming keeps: copies of records in the main log, for the thread of changes.
extension DiskEngine {
    /// Copies an entry to the main log.
    ///
    /// - Returns: false when it is not worth it, or there is no room: then it is to be evicted.
    func carry(
        _ current: IndexRow,
        _ row: TableRow,
        in segment: Segment,
        mustStay: Bool
    ) throws(StoreError) -> Bool {
        let found: RecordRead
        do throws(StoreError) {
            found = try read(current, primary: row.primary, waits: true)
        } catch {
            // What the device cannot give back must not hold up the rest; what must stay is tried again another time.
            guard !mustStay, (error.cause as? FileSystemError)?.errno == SystemNumber.damaged else { throw error }
            found = .damaged
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
            do throws(StoreError) { try openCarried() } catch {
                if mustStay || error.code != .noSpace { throw error }
                return false
            }
        }
        guard let place else { return false }
        // Asked again now that the place is taken: a mark from here on reaches it.
        // No pin protects from it: a copy beyond the mark's horizon would come back once the mark is dropped.
        if isPurged(source) || (!mustStay && (try? entry(source, nil)) == nil) {
            _ = log.withLock { $0.finish(place, row: nil, blob: nil) }
            return false
        }
        try write(source, at: place, for: current, row)
        return true
    }

    private func write(
        _ source: RecordSource,
        at place: LogState.Place,
        for current: IndexRow,
        _ row: TableRow
    ) throws(StoreError) {
        var bytes = source.bytes[0..<source.header.recordLength].array
        RecordHeader.restamp(&bytes, segment: place.segment.number, seed: seed)
        var failure: StoreError?
        do {
            try files.write(ByteChunk(bytes), to: place.segment.file.open, at: place.offset)
        } catch {
            failure = failed(error)
        }
        let unit = UInt32(truncatingIfNeeded: place.offset / 16)
        var copy = row
        copy.place = unit
        let blob = source.header.hasBlob ? BlobRow(source.header, place: unit) : nil
        do {
            let isWritten = failure == nil
            index.shard(of: row.primary).state.withLock { shard in
                _ = shard.table.change(current.fragment, variant: current.variant) { found in
                    guard found.order == current.order else { return }
                    // A copy that may be whole all the same wants a tombstone when this one goes.
                    guard isWritten else {
                        found.shadows = true
                        return
                    }
                    found.place = RecordPlace(slot: place.segment.slot, unit: unit, units: row.units)
                }
            }
        }
        let wantsTable = log.withLock {
            $0.finish(place, row: failure == nil ? copy : nil, blob: failure == nil ? blob : nil)
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

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// Reclaim is eviction: the oldest segment is read once, what was hit since it was written is carried forward to the main
/// log, the rest is gone with the file. Every method here is for the thread of changes.
extension DiskEngine {
    /// Reclaims the segment that is due.
    ///
    /// - Parameters:
    ///   - kind: the log for which the file is wanted again; nil: it is removed.
    /// - Returns: the file as a new segment, its bytes granted; nil when it was removed or is still read by someone.
    /// - Throws: `.noSpace` when there is nothing to reclaim.
    func reclaimOldest(recyclingFor kind: LogKind?) throws(StoreError) -> Segment? {
        sealFull()
        if let victim = log.withLock({ $0.victim(capacity: geometry.capacity) }) {
            return try reclaim(victim, carriesAll: false, recyclingFor: kind)
        }
        // With nothing sealed what is open is all there is, and may be full of blobs.
        let closes = log.withLock { log in
            guard let kind = [LogKind.small, .main].first(where: { log.hasRecords($0) }) else { return false }
            log.close(kind)
            return true
        }
        guard closes else { throw Self.noSpace }
        sealFull()
        guard let victim = log.withLock({ $0.victim(capacity: geometry.capacity) }) else { throw Self.noSpace }
        return try reclaim(victim, carriesAll: false, recyclingFor: kind)
    }

    /// Reclaims one segment; when a step fails it stays, and nothing is lost.
    func reclaim(
        _ victim: LogState.Sealed,
        carriesAll: Bool,
        recyclingFor kind: LogKind?
    ) throws(StoreError) -> Segment? {
        settleReleases()
        // A segment goes only when every tombstone made for it is on the disk.
        payDebts()
        guard owed.withLock({ $0.notes.isEmpty }) else { throw Self.noSpace }
        // Until its file is gone what was evicted from it may be found again: removals then always leave a tombstone.
        isReclaiming.store(true, ordering: .sequentiallyConsistent)
        let table = try self.table(of: victim)
        let blobNumbers = Dictionary(table.blobs.map { ($0.place, $0) }, uniquingKeysWith: { first, _ in first })
        var budget = carriesAll ? Int.max : victim.weight / 4 * 3
        for row in table.rows.sorted(by: { $0.place < $1.place }) {
            switch row.kind {
            case .entry:
                let blob = blobNumbers[row.place]
                try reclaim(row, blob: blob, in: victim.segment, carriesAll: carriesAll, budget: &budget)
            default:
                try carryNote(row, in: victim.segment)
            }
        }
        let numbers = log.withLock { $0.numbers.filter { $0 != victim.segment.number } }
        orders.withMarks { $0.prune(lowestSegment: numbers.min()) }
        let recycled = try retire(victim, recyclingFor: kind)
        isReclaiming.store(false, ordering: .sequentiallyConsistent)
        return recycled
    }

    /// What the table of a segment says, or what is kept in memory for want of one.
    func table(of sealed: LogState.Sealed) throws(StoreError) -> (rows: [TableRow], blobs: [BlobRow]) {
        if let rows = sealed.rows { return (rows, sealed.blobs ?? []) }
        do throws(FileSystemError) {
            return try SegmentReader(files: files, seed: seed).table(of: sealed.segment)
        } catch {
            throw failed(error)
        }
    }

    private enum Fate {
        case dead
        case carry(IndexRow)
        case evict(IndexRow)
    }

    private func reclaim(
        _ row: TableRow,
        blob: BlobRow?,
        in segment: Segment,
        carriesAll: Bool,
        budget: inout Int
    ) throws(StoreError) {
        let fragment = ShardedIndex.fragment(of: row.primary)
        let length = Int(row.units) * 16
        let weight = length + Int(clamping: blob?.storedBytes ?? 0)
        let left = budget
        let fate = index.shard(of: row.primary).state.withLock { shard -> Fate in
            guard let current = shard.table.row(fragment, variant: row.variant), current.order == row.order,
                current.place.slot == segment.slot, current.place.unit == row.place
            else { return .dead }
            let isBusy = shard.pending.contains { $0.isOf(fragment, row.variant) && $0.isExclusive }
            if carriesAll || current.isPinned || isBusy { return .carry(current) }
            return current.hits > 0 && weight <= left ? .carry(current) : .evict(current)
        }
        switch fate {
        case .dead: return
        case .evict(let current):
            try evict(current, row, blob, in: segment)
        case .carry(let current):
            if try carry(current, row, in: segment, mayDrop: !carriesAll) {
                if !current.isPinned { budget -= weight }
            } else {
                try evict(current, row, blob, in: segment)
            }
        }
    }

    private func evict(_ current: IndexRow, _ row: TableRow, _ blob: BlobRow?, in segment: Segment) throws(StoreError) {
        for _ in 0..<3 {
            switch reserveRemoval(of: current, primary: row.primary, isEviction: true) {
            case .done(let removal):
                guard var removal else { return }
                // Its blob is known from the table.
                removal.rows = []
                counters.entriesEvicted.add(1, ordering: .relaxed)
                if segment.kind == .small { index.shard(of: row.primary).state.withLock { $0.noteEvicted(row.primary) } }
                try finish(removal)
                if let blob { blobs.remove(blob.number, bytes: SpaceLedger.blocks(Int(clamping: blob.storedBytes))) }
                return
            case .busy:
                _ = try carry(current, row, in: segment, mayDrop: false)
                return
            case .needsRoom:
                try makeRoomForReclaim()
            }
        }
    }

    /// Copies an entry to the main log.
    ///
    /// - Returns: false when it is not worth it, or there is no room: then it is to be evicted.
    private func carry(
        _ current: IndexRow,
        _ row: TableRow,
        in segment: Segment,
        mayDrop: Bool
    ) throws(StoreError) -> Bool {
        guard case .record(let source) = try read(current, primary: row.primary, waits: true) else {
            counters.entriesCorrupt.add(1, ordering: .relaxed)
            return false
        }
        if mayDrop, !current.isPinned {
            if source.header.uselessAfter < life.withLock({ $0.now }) { return false }
        }
        let shard = index.shard(of: row.primary)
        let length = source.header.recordLength
        var place: LogState.Place?
        for attempt in 0..<2 {
            let isThere = shard.state.withLock { shard -> Bool in
                guard shard.table.row(current.fragment, variant: current.variant)?.order == current.order else { return false }
                // Under the shard's lock, so that the horizon of a later tombstone reaches the copy.
                place = log.withLock { $0.reserve(.main, length: length, hasBlob: current.hasBlob) }
                return true
            }
            if !isThere { return true }
            if place != nil { break }
            guard attempt == 0 else { return false }
            do throws(StoreError) { try makeRoomForReclaim() } catch {
                if current.isPinned || !mayDrop || error.code != .noSpace { throw error }
                return false
            }
        }
        guard let place else { return false }
        // Asked again now that the place is taken: a mark from here on reaches it.
        if mayDrop, !current.isPinned, (try? entry(source, nil)) == nil {
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
            try files.write(ByteChunk(bytes), ByteChunk(), to: place.segment.file.open, at: place.offset)
        } catch {
            failure = failed(error)
        }
        let unit = UInt32(truncatingIfNeeded: place.offset / 16)
        var copy = row
        copy.place = unit
        var blob: BlobRow?
        if source.header.hasBlob {
            let stored = UInt64(clamping: storedBlobBytes(source.header))
            blob = BlobRow(place: unit, number: source.header.bodyWord, storedBytes: stored)
        }
        if failure == nil {
            index.shard(of: row.primary).state.withLock { shard in
                _ = shard.table.change(current.fragment, variant: current.variant) { found in
                    guard found.order == current.order else { return }
                    found.place = RecordPlace(slot: place.segment.slot, unit: unit, units: row.units)
                    found.hits = found.hits > 0 ? found.hits - 1 : 0
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
    private func carryNote(_ row: TableRow, in segment: Segment) throws(StoreError) {
        let bytes: [UInt8]
        do {
            bytes = try files.read(segment.file.open, from: Int(row.place) * 16, count: Int(row.units) * 16)
        } catch {
            throw failed(error)
        }
        guard let header = bytes.withUnsafeBytes({ RecordHeader.decode($0, seed: seed) }) else { return }
        let isNeeded = log.withLock { log in
            log.numbers.contains { $0 != segment.number && $0 <= header.horizon }
        }
        guard isNeeded else { return }
        var place = log.withLock { $0.reserve(.main, length: header.recordLength, hasBlob: false) }
        if place == nil {
            try makeRoomForReclaim()
            place = log.withLock { $0.reserve(.main, length: header.recordLength, hasBlob: false) }
        }
        guard let place else { throw Self.noSpace }
        var copy = Array(bytes.prefix(header.recordLength))
        RecordHeader.restamp(&copy, segment: place.segment.number, seed: seed)
        var copied: TableRow?
        defer { _ = log.withLock { $0.finish(place, row: copied, blob: nil) } }
        do {
            try files.write(ByteChunk(copy), ByteChunk(), to: place.segment.file.open, at: place.offset)
        } catch {
            throw failed(error)
        }
        copied = row
        copied?.place = UInt32(truncatingIfNeeded: place.offset / 16)
    }
}

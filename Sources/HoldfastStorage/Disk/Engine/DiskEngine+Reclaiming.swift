// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// Reclaim is eviction: the oldest segment is read once, what was hit since it was written is carried forward to the main
/// log, the rest is gone with the file. Every method here is for the thread of changes.
extension DiskEngine {
    /// How many segments are reclaimed in search of room: each of them, and those that this makes. What is pinned moves
    /// on for ever.
    var reclaimTries: Int { 4 * log.withLock { $0.numbers.count } + 8 }

    /// Reclaims the segment that is due.
    ///
    /// - Parameters:
    ///   - kind: the log for which the file is wanted again; nil: it is removed.
    /// - Returns: the file as a new segment, its bytes granted; nil when it was removed or is still read by someone.
    /// - Throws: `.noSpace` when there is nothing to reclaim.
    func reclaimOldest(recyclingFor kind: LogKind?) throws(StoreError) -> Segment? {
        sealFull()
        if let victim = log.withLock({ $0.victim }) {
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
        guard let victim = log.withLock({ $0.victim }) else { throw Self.noSpace }
        return try reclaim(victim, carriesAll: false, recyclingFor: kind)
    }

    /// Reclaims one segment; when a step fails it stays with what is left of it, and another is tried the next time.
    func reclaim(
        _ victim: LogState.Sealed,
        carriesAll: Bool,
        recyclingFor kind: LogKind?
    ) throws(StoreError) -> Segment? {
        do throws(StoreError) {
            return try reclaimAll(of: victim, carriesAll: carriesAll, recyclingFor: kind)
        } catch {
            log.withLock { $0.stuck(victim.segment) }
            throw error
        }
    }

    private func reclaimAll(
        of victim: LogState.Sealed,
        carriesAll: Bool,
        recyclingFor kind: LogKind?
    ) throws(StoreError) -> Segment? {
        settleReleases()
        // A segment goes only when every tombstone made for it is on the disk.
        payDebts()
        guard owed.withLock({ $0.isEmpty }) else { throw Self.noSpace }
        // Until its file is gone what was evicted from it may be found again: removals then always leave a tombstone.
        isReclaiming.store(true, ordering: .sequentiallyConsistent)
        let table = try self.table(of: victim)
        let blobNumbers = Dictionary(table.blobs.map { ($0.place, $0) }, uniquingKeysWith: { first, _ in first })
        let horizon = TombstoneHorizon(segments: log.withLock { $0.numbers }, reclaimed: victim.segment.number)
        var judge = ReclaimJudge(of: victim.segment.kind, weight: victim.weight)
        for row in table.rows.sorted(by: { $0.place < $1.place }) {
            switch row.kind {
            case .entry:
                let blob = blobNumbers[row.place]
                try reclaim(row, blob: blob, in: victim.segment, carriesAll: carriesAll, &judge)
            default:
                try carryNote(row, in: victim.segment, horizon)
            }
        }
        // What left its rows to their removers meanwhile is noted before the file is written anew.
        settleReleases()
        try awaitNotes()
        let recycled = try retire(victim, recyclingFor: kind)
        orders.withMarks { $0.prune(lowest: horizon.lowestLeft) }
        // Another that could not be reclaimed to its end may still hold what was evicted.
        isReclaiming.store(log.withLock { $0.hasStuck }, ordering: .sequentiallyConsistent)
        return recycled
    }

    /// Waits until every tombstone and mark reserved so far is on the disk.
    ///
    /// They are written by threads that wait for nothing of this one's, mostly within microseconds.
    private func awaitNotes() throws(StoreError) {
        // Two turns: after the first, the older count holds nothing but what had begun by then.
        for _ in 0..<2 {
            while !notesUnderWay.turn() { IOThreads.pause() }
        }
        payDebts()
        guard owed.withLock({ $0.isEmpty }) else { throw Self.noSpace }
    }

    /// What the table of a segment says, or what is kept in memory for want of one.
    func table(of sealed: LogState.Sealed) throws(StoreError) -> (rows: [TableRow], blobs: [BlobRow]) {
        if let rows = sealed.rows { return (rows, sealed.blobs ?? []) }
        let table = try SegmentFileReader(files: files, seed: seed).table(of: sealed.segment)
        return (table.rows, table.blobs)
    }

    private func reclaim(
        _ row: TableRow,
        blob: BlobRow?,
        in segment: Segment,
        carriesAll: Bool,
        _ judge: inout ReclaimJudge
    ) throws(StoreError) {
        guard let current = settledRow(row, in: segment) else { return }
        if carriesAll {
            if try !carry(current, row, in: segment, hits: current.hits, mustStay: true) {
                try evict(current, row, blob, in: segment, isRemembered: false)
            }
            return
        }
        // Most of what goes is told from its row alone; the rest is read, and may turn out to be of no use.
        switch judge.judge(current, isUseless: false, weight: Int(row.units) * 16) {
        case .carry(let hits):
            if try !carry(current, row, in: segment, hits: hits, mustStay: current.isPinned) {
                try evict(current, row, blob, in: segment, isRemembered: false)
            }
        case .evict(let isRemembered):
            try evict(current, row, blob, in: segment, isRemembered: isRemembered)
        case .drop:
            try evict(current, row, blob, in: segment, isRemembered: false)
        }
    }

    /// The row that points to a record, once nothing is being written in its place; nil when none does.
    ///
    /// A freshening ends on a thread that waits for nothing of this one's. Until then its base can neither go nor be judged.
    private func settledRow(_ row: TableRow, in segment: Segment) -> IndexRow? {
        let fragment = ShardedIndex.fragment(of: row.primary)
        while true {
            let found = index.shard(of: row.primary).state.withLock { shard -> (row: IndexRow, isBusy: Bool)? in
                guard let current = shard.table.row(fragment, variant: row.variant), current.order == row.order,
                    current.place.slot == segment.slot, current.place.unit == row.place
                else { return nil }
                return (current, shard.pending.contains { $0.isOf(fragment, row.variant) && $0.isExclusive })
            }
            guard let found else { return nil }
            if !found.isBusy { return found.row }
            IOThreads.pause()
        }
    }

    private func evict(
        _ current: IndexRow,
        _ row: TableRow,
        _ blob: BlobRow?,
        in segment: Segment,
        isRemembered: Bool
    ) throws(StoreError) {
        var attempts = 3
        while attempts > 0, settledRow(row, in: segment)?.order == current.order {
            switch reserveRemoval(of: current, primary: row.primary, isEviction: true) {
            case .done(let removal):
                guard var removal else { return }
                // Its blob is known from the table.
                removal.rows = []
                counters.entriesEvicted.add(1, ordering: .relaxed)
                if isRemembered { index.shard(of: row.primary).state.withLock { $0.noteEvicted(row.primary) } }
                defer {
                    if let blob {
                        blobs.remove(blob.number, bytes: SpaceLedger.blocks(Int(clamping: blob.storedBytes)))
                    }
                }
                try finish(removal)
                return
            case .busy: continue
            case .needsRoom:
                attempts -= 1
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
        hits: UInt8,
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
                place = log.withLock { $0.reserve(.main, length: length, hasBlob: current.hasBlob) }
                return true
            }
            if !isThere { return true }
            if place != nil { break }
            guard attempt == 0 else { return false }
            do throws(StoreError) { try makeRoomForReclaim() } catch {
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
        try write(source, at: place, for: current, row, hits: hits)
        return true
    }

    private func write(
        _ source: RecordSource,
        at place: LogState.Place,
        for current: IndexRow,
        _ row: TableRow,
        hits: UInt8
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
                    // Hits that came meanwhile count on.
                    found.hits = min(found.hits, hits) + (found.hits > current.hits ? 1 : 0)
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
    private func carryNote(
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

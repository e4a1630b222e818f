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
        // Copies may have taken what is kept back for them. Then the file goes, which gives that back: the next reclaim has to
        // find room for its copies and tombstones, or nothing could ever go again.
        let isKeptBack = ledger.capacity - ledger.used >= geometry.segmentSize
        let recycled = try retire(victim, recyclingFor: isKeptBack ? kind : nil)
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
        let blobBytes = blob.map { SpaceLedger.blocks(Int(clamping: $0.storedBytes)) } ?? 0
        let weight = (Int(row.units) * Geometry.unit).addingReportingOverflow(blobBytes).partialValue
        switch judge.judge(current, isUseless: false, weight: weight) {
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
}

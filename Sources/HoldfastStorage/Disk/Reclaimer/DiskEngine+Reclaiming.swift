// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// Reclaim is eviction: the oldest segment is read once, what ``CarryJudge`` says is carried forward to the main log, the rest is
/// gone with the file. Every method here is for the thread of changes.
extension DiskEngine {
    /// Reclaims the segment that is due.
    ///
    /// - Parameters:
    ///   - kind: the log for which the file is wanted again; nil: it is removed.
    ///   - dropsUnpinned: whether nothing is carried that may go.
    ///   - isDeviceFull: whether the device gives no new segment: then what must be carried has to fit into the open one.
    /// - Returns: the file as a new segment, its bytes granted; nil when it was removed or is still read by someone.
    /// - Throws: `.noSpace` when there is nothing to reclaim.
    func reclaimOldest(
        recyclingFor kind: LogKind?,
        dropsUnpinned: Bool = false,
        isDeviceFull: Bool = false
    ) throws(StoreError) -> Segment? {
        sealFull()
        awaitRetired()
        let (window, isMainDead) = (trials.share, try isMainDead())
        log.withLock { ($0.window, $0.isMainDead) = (window, isMainDead) }
        guard let victim = try nextVictim(isDeviceFull: isDeviceFull) else { throw Self.noSpace }
        return try reclaim(
            victim.segment,
            mode: victim.mustDrop || dropsUnpinned ? .drop : .judge,
            recyclingFor: kind
        )
    }

    /// Whether the main log's oldest segment is mostly dead.
    private func isMainDead() throws(StoreError) -> Bool {
        guard let oldest = log.withLock({ $0.oldest(.main) }) else { return false }
        let table = try table(of: oldest)
        let live = table.rows.reduce(0) { sum, row in
            guard row.kind == .entry else { return sum }
            let fragment = ShardedIndex.fragment(of: row.primary)
            let isLive = index.shard(of: row.primary).state.withLock { shard in
                shard.table.row(fragment, variant: row.variant).map { points($0, to: row, in: oldest.segment) } ?? false
            }
            return isLive ? sum + Int(row.units) * Geometry.unit : sum
        }
        let blobBytes = oldest.blobBytes
        return CarryJudge.isMostlyDead(live: live, recordBytes: oldest.segment.size, blobBytes: blobBytes)
    }

    /// Whether an index row points to a record of a segment.
    private func points(_ current: IndexRow, to row: TableRow, in segment: Segment) -> Bool {
        current.order == row.order && current.place.slot == segment.slot && current.place.unit == row.place
    }

    /// The segment to reclaim next, and whether nothing of it can be carried that may go.
    private func nextVictim(isDeviceFull: Bool) throws(StoreError) -> (segment: LogState.Sealed, mustDrop: Bool)? {
        // With nothing sealed what is open is all there is, and may be full of blobs; writes into it end without this thread.
        var patience = 20_000
        while log.withLock({ $0.victim == nil }), patience > 0 {
            let isLeft = log.withLock { log in
                for destination in LogState.Destination.allCases where log.hasRecords(destination) {
                    log.close(destination)
                    return true
                }
                return !log.full.isEmpty
            }
            guard isLeft else { return nil }
            sealFull()
            noteRoomAhead()
            if log.withLock({ $0.victim != nil }) { break }
            patience -= 1
            IOThreads.pause()
        }
        // An open segment that is older keeps every tombstone since then alive: it is the next to go.
        if log.withLock({ $0.closeOlderThanVictim() }) {
            sealFull()
            noteRoomAhead()
        }
        guard let victim = log.withLock({ $0.victim }) else { return nil }
        if !isDeviceFull, hasSegmentForReclaimer { return (victim, false) }
        // A device that failed midway has eaten the reserve: what needs no more than is left brings it back.
        let room = log.withLock { $0.roomAhead }
        if try mustCarry(of: victim) <= room { return (victim, true) }
        for number in log.withLock({ $0.sealedSegments.map(\.number) }) {
            guard let sealed = log.withLock({ $0.sealed(number) }) else { continue }
            if try mustCarry(of: sealed) <= room { return (sealed, true) }
        }
        return nil
    }

    /// What a reclaim of a segment writes at least, and cannot do without: what is pinned, tombstones and marks.
    private func mustCarry(of victim: LogState.Sealed) throws(StoreError) -> Int {
        let note = RecordHeader.size / 16 * 16 + 16 + TableRow.size
        return try table(of: victim).rows.reduce(0) { sum, row in
            guard row.kind == .entry else { return sum + Int(row.units) * 16 + TableRow.size }
            let fragment = ShardedIndex.fragment(of: row.primary)
            return sum
                + index.shard(of: row.primary).state.withLock { shard in
                    guard let current = shard.table.row(fragment, variant: row.variant),
                        points(current, to: row, in: victim.segment)
                    else { return 0 }
                    if current.isPinned { return Int(row.units) * 16 + TableRow.size + BlobRow.size }
                    return current.shadows || shard.mayHide(row.primary, fragment, row.variant) ? note : 0
                }
        }
    }

    /// Waits a moment for readers that are about to let go of segments that are gone: their bytes come back with that.
    func awaitRetired() {
        var patience = 2_000
        while ledger.retired > 0, !hasSegmentForReclaimer, patience > 0 {
            patience -= 1
            IOThreads.pause()
        }
    }

    /// What a reclaim does with entries that are not pinned.
    enum ReclaimMode: Sendable {
        /// ``CarryJudge`` says which are carried.
        case judge
        /// All are carried.
        case carryAll
        /// None is carried.
        case drop
    }

    /// Reclaims one segment; when a step fails it stays with what is left of it, and another is tried the next time.
    func reclaim(
        _ victim: LogState.Sealed,
        mode: ReclaimMode,
        recyclingFor kind: LogKind?
    ) throws(StoreError) -> Segment? {
        defer { noteRoomAhead() }
        do throws(StoreError) {
            return try reclaimAll(of: victim, mode: mode, recyclingFor: kind)
        } catch {
            log.withLock { $0.stuck(victim.segment) }
            throw error
        }
    }

    private func reclaimAll(
        of victim: LogState.Sealed,
        mode: ReclaimMode,
        recyclingFor kind: LogKind?
    ) throws(StoreError) -> Segment? {
        assert(isReserveWhole, "free \(ledger.free) of \(ledger.capacity), with the open segment \(ledger.reserve)")
        settleReleases()
        // A segment goes only when every tombstone made for it is on the disk.
        payDebts()
        guard owed.withLock({ $0.isEmpty }) else { throw Self.noSpace }
        // Until its file is gone what was evicted from it may be found again: removals then always leave a tombstone.
        isReclaiming.store(true, ordering: .sequentiallyConsistent)
        let table = try self.table(of: victim)
        let blobNumbers = Dictionary(table.blobs.map { ($0.place, $0) }, uniquingKeysWith: { first, _ in first })
        let horizon = TombstoneHorizon(segments: log.withLock { $0.numbers }, reclaimed: victim.segment.number)
        let rows = Self.byPlace(table.rows)
        let carried = mode == .judge ? judged(rows, blobNumbers, of: victim.segment) : []
        var window = RecordWindow(mode == .carryAll ? rows : rows.filter { carried.contains($0.place) })
        var copies = CopiedRecords()
        do throws(StoreError) {
            for row in rows {
                switch row.kind {
                case .entry:
                    let isCarried = carried.contains(row.place)
                    let blob = blobNumbers[row.place]
                    try reclaim(row, blob: blob, in: victim.segment, &window, &copies, mode, isCarried: isCarried)
                default:
                    try write(&copies)
                    try carryNote(row, in: victim.segment, horizon)
                }
            }
        } catch {
            // What was promised to them is written or given up; the first failure is told.
            try? write(&copies)
            throw error
        }
        try write(&copies)
        // What left its rows to their removers meanwhile is noted before the file is written anew.
        settleReleases()
        try awaitNotes()
        noteRoomAhead()
        // Copies may have taken what is kept back for them. Then the file goes, which gives that back.
        let recycled = try retire(victim, recyclingFor: kind)
        orders.withMarks { $0.prune(lowest: horizon.lowestLeft) }
        // Another that could not be reclaimed to its end may still hold what was evicted.
        isReclaiming.store(log.withLock { $0.hasStuck }, ordering: .sequentiallyConsistent)
        return recycled
    }

    /// The invariant that makes every reclaim end ("Room" in `docs/disk-format.md`); a device that failed may have broken it.
    private var isReserveWhole: Bool {
        ledger.reserve >= 2 * geometry.segmentSize || counters.failures.load(ordering: .relaxed) > 0
            || counters.entriesCorrupt.load(ordering: .relaxed) > 0
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

    /// Rows in the order in which their records lie.
    private static func byPlace(_ rows: [TableRow]) -> [TableRow] {
        let places = rows.indices.map { UInt64(rows[$0].place) << 32 | UInt64($0) }.sorted()
        return places.map { rows[Int($0 & 0xFFFF_FFFF)] }
    }

    /// What the table of a segment says, or what is kept in memory for want of one.
    func table(of sealed: LogState.Sealed) throws(StoreError) -> (rows: [TableRow], blobs: [BlobRow]) {
        if let rows = sealed.rows { return (rows, sealed.blobs ?? []) }
        if let kept = lastTable.withLock({ $0 }), kept.number == sealed.segment.number {
            return (kept.rows, kept.blobs)
        }
        let table = try SegmentFileReader(files: files, seed: seed).table(of: sealed.segment)
        lastTable.withLock { $0 = KeptTable(number: sealed.segment.number, rows: table.rows, blobs: table.blobs) }
        return (table.rows, table.blobs)
    }

    /// Which records of a segment are worth carrying, by their places.
    private func judged(_ rows: [TableRow], _ blobs: [UInt32: BlobRow], of segment: Segment) -> Set<UInt32> {
        var random = PolicyRandom(seed: seed ^ segment.number)
        let bar = bar(using: &random)
        var places: [UInt32] = []
        var candidates: [CarryJudge.Candidate] = []
        for row in rows where row.kind == .entry {
            guard let current = settledRow(row, in: segment) else { continue }
            let recordBytes = Int(row.units) * Geometry.unit
            let blobBytes = blobs[row.place]?.blocks ?? 0
            let score = index.shard(of: row.primary).state.withLock {
                $0.score(of: current, bytes: recordBytes.addingSaturated(blobBytes))
            }
            places.append(row.place)
            candidates.append(
                CarryJudge.Candidate(
                    score: score,
                    recordBytes: recordBytes,
                    blobBytes: blobBytes,
                    isPinned: current.isPinned
                )
            )
        }
        let blobBytes = candidates.reduce(0) { $0.addingSaturated($1.blobBytes) }
        let carried = judge.withLock {
            $0.carried(of: candidates, bar: bar, recordBytes: segment.size, blobBytes: blobBytes)
        }
        return Set(zip(places, carried).lazy.filter(\.1).map(\.0))
    }

    /// The least score that is carried, by rows drawn from all shards.
    private func bar(using random: inout PolicyRandom) -> Int {
        let meanBlobs = log.withLock { $0.meanBlobs }
        let counts = index.shards.map { shard in shard.state.withLock { $0.table.count } }
        var sample: [(score: Int, bytes: Int)] = []
        for (shard, count) in zip(index.shards, CarryJudge.draws(from: counts, using: &random)) where count > 0 {
            shard.state.withLock { shard in
                for row in shard.table.draw(count, using: &random) {
                    let blobBytes = row.hasBlob ? meanBlobs[row.place.slot] ?? 0 : 0
                    let bytes = (Int(row.place.units) * Geometry.unit).addingSaturated(blobBytes)
                    sample.append((shard.score(of: row, bytes: bytes), bytes))
                }
            }
        }
        return CarryJudge.bar(of: sample)
    }

    private func reclaim(
        _ row: TableRow,
        blob: BlobRow?,
        in segment: Segment,
        _ window: inout RecordWindow,
        _ copies: inout CopiedRecords,
        _ mode: ReclaimMode,
        isCarried: Bool
    ) throws(StoreError) {
        guard let current = settledRow(row, in: segment) else { return }
        // What is read stays where it would be held on the disk all the same, beyond what may be.
        let isHeld = blob.map { blobs.isRead($0.number) && ledger.held + $0.blocks > ledger.budget.held } ?? false
        let mustStay = mode == .carryAll || isHeld || current.isPinned
        // What goes is told from its row alone; the rest is read, and may turn out to be of no use.
        if mustStay || isCarried,
            try carry(current, row, in: segment, &window, &copies, mustStay: mustStay)
        {
            return
        }
        try evict(current, row, blob, in: segment, &copies)
    }

    /// The row that points to a record, once nothing is being written in its place; nil when none does.
    ///
    /// A freshening ends on a thread that waits for nothing of this one's. Until then its base can neither go nor be judged.
    private func settledRow(_ row: TableRow, in segment: Segment) -> IndexRow? {
        let fragment = ShardedIndex.fragment(of: row.primary)
        while true {
            let found = index.shard(of: row.primary).state.withLock { shard -> (row: IndexRow, isBusy: Bool)? in
                guard let current = shard.table.row(fragment, variant: row.variant),
                    points(current, to: row, in: segment)
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
        _ copies: inout CopiedRecords
    ) throws(StoreError) {
        var attempts = 3
        while attempts > 0, settledRow(row, in: segment)?.order == current.order {
            switch reserveRemoval(of: current, primary: row.primary, isEviction: true) {
            case .done(let removal):
                guard var removal else { return }
                // Its blob is known from the table.
                removal.rows = []
                counters.entriesEvicted.add(1, ordering: .relaxed)
                defer {
                    if let blob {
                        blobs.remove(blob.number, bytes: blob.blocks)
                    }
                }
                try finish(removal)
                return
            case .busy: continue
            case .needsRoom:
                attempts -= 1
                try write(&copies)
                try openCarried()
            }
        }
    }
}

/// A search for room: reclaims segment after segment until its caller has what it wants.
///
/// What ``CarryJudge`` says is carried at first. Once every segment has been looked at, only what is pinned is.
struct RoomSearch {
    private let segments: Int
    private var turns = 0

    init(segments: Int) {
        self.segments = segments
    }

    /// Reclaims the next segment.
    ///
    /// - Throws: `.noSpace` once all that can go is gone.
    mutating func next(
        _ engine: DiskEngine,
        recyclingFor kind: LogKind?,
        isDeviceFull: Bool = false
    ) throws(StoreError) -> Segment? {
        guard turns < 4 * segments + 8 else { throw DiskEngine.noSpace }
        turns += 1
        return try engine.reclaimOldest(
            recyclingFor: kind,
            dropsUnpinned: turns > segments + 2,
            isDeviceFull: isDeviceFull
        )
    }
}

/// The table that was read last: which segment is to go is asked several times before it goes.
struct KeptTable: Sendable {
    let number: UInt64
    let rows: [TableRow]
    let blobs: [BlobRow]
}

extension BlobRow {
    /// What the blob takes on the disk.
    var blocks: Int { SpaceLedger.blocks(Int(clamping: storedBytes)) }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// Reclaiming is eviction: the oldest segment is read once, the entries that ``RetentionPolicy`` chooses are carried forward to
/// the main log, and the rest is gone with the file. Every method here is for the thread of changes.
final class Reclaimer: Sendable {
    private let index: ShardedIndex
    private let orders: SequenceAllocator
    private let log: Log
    private let remover: Remover
    private let lookup: Lookup
    private let blobs: BlobFiles
    private let health: StoreHealth
    /// Decides what a reclaim carries.
    private let policy: Mutex<RetentionPolicy>

    init(_ opened: OpenedStore, log: Log, remover: Remover, lookup: Lookup) {
        (index, orders, blobs, health) = (opened.index, opened.orders, opened.blobs, opened.health)
        (self.log, self.remover, self.lookup) = (log, remover, lookup)
        policy = Mutex(RetentionPolicy(capacity: log.geometry.capacity, segmentSize: log.geometry.segmentSize))
    }

    /// Reclaims the segment that is due.
    ///
    /// - Parameters:
    ///   - kind: the log that needs the file again; nil: it is removed.
    ///   - dropsUnpinned: whether nothing is carried that may be evicted.
    ///   - isDeviceFull: whether the device has no space for a new segment: then what must be carried has to fit into the open one.
    /// - Returns: the file as a new segment, with its bytes granted; nil if it was removed or is still being read.
    /// - Throws: `.noSpace` if there is nothing to reclaim.
    func reclaimOldest(
        recyclingFor kind: LogKind?,
        dropsUnpinned: Bool = false,
        isDeviceFull: Bool = false
    ) throws(StoreError) -> Segment? {
        log.sealFull()
        awaitRetired()
        let main = log.ask { $0.oldest(.main) }.flatMap(contents)
        let window = lookup.tuner.share
        log.change { log in
            log.window = window
            log.isMainDead = main?.isMostlyDead ?? false
            log.isMainRequired = main?.isMostlyRequired ?? false
        }
        guard let victim = nextVictim(dropsUnpinned: dropsUnpinned, isDeviceFull: isDeviceFull) else {
            throw StoreError.noSpace
        }
        return try reclaim(victim.segment, mode: victim.mustDrop || dropsUnpinned ? .drop : .select, recyclingFor: kind)
    }

    /// What a segment holds that is still of use.
    private struct Contents {
        /// The number of entries that are still those of their keys, and the bytes of their records and blobs.
        var entries = 0
        var entryBytes = 0
        var blobBytes = 0
        /// The bytes of tombstones and marks that something older may still need.
        var markBytes = 0
        /// What a reclaim must write in any case, with its rows: pinned entries, tombstones and marks; and the bytes of pinned blobs.
        var requiredBytes = 0
        var pinnedBlobBytes = 0
        let segmentBytes: Int

        var isMostlyDead: Bool {
            RetentionPolicy.isMostlyDead(live: entryBytes + markBytes, recordBytes: segmentBytes, blobBytes: blobBytes)
        }

        var isMostlyRequired: Bool {
            RetentionPolicy.isMostlyRequired(
                required: requiredBytes.addingSaturated(pinnedBlobBytes),
                of: segmentBytes.addingSaturated(blobBytes)
            )
        }
    }

    /// The table of a segment; nil if it cannot be read, and then other segments are reclaimed first.
    private func table(of sealed: LogState.Sealed) -> (rows: [TableRow], blobs: [BlobRow])? {
        if sealed.isUnreadable { return nil }
        if let table = try? log.table(of: sealed) { return table }
        health.counters.failures.add(1, ordering: .relaxed)
        log.change { $0.stuck(sealed.segment, isUnreadable: true) }
        return nil
    }

    private func contents(of sealed: LogState.Sealed) -> Contents? {
        let tombstone = RecordHeader.size / 16 * 16 + 16 + TableRow.size
        guard let table = table(of: sealed) else { return nil }
        let blobs = Dictionary(table.blobs.map { ($0.place, $0.blocks) }, uniquingKeysWith: { first, _ in first })
        let keepsMarks = isNewerThanAnother(sealed.segment)
        return table.rows.reduce(into: Contents(segmentBytes: sealed.segment.size)) { contents, row in
            let bytes = Int(row.units) * Geometry.unit
            guard row.kind == .entry else {
                contents.markBytes += keepsMarks ? bytes : 0
                contents.requiredBytes += bytes + TableRow.size
                return
            }
            let found = withRow(of: row, in: sealed.segment) { shard, current in
                let hidesOlder =
                    current.shadows || shard.mayHide(row.primary, fragment: current.fragment, variant: row.variant)
                return (isPinned: current.isPinned, hidesOlder: hidesOlder)
            }
            guard let found else { return }
            let blobBytes = blobs[row.place] ?? 0
            contents.entries += 1
            contents.entryBytes += bytes
            contents.blobBytes = contents.blobBytes.addingSaturated(blobBytes)
            if found.isPinned {
                contents.requiredBytes += bytes + TableRow.size + BlobRow.size
                contents.pinnedBlobBytes = contents.pinnedBlobBytes.addingSaturated(blobBytes)
            } else if found.hidesOlder {
                contents.requiredBytes += tombstone
            }
        }
    }

    /// Whether there is a segment with a lower number, which may hold what the tombstones and marks of this one remove.
    private func isNewerThanAnother(_ segment: Segment) -> Bool {
        log.ask { $0.numbers.contains { $0 < segment.number } }
    }

    /// Calls `body` with the index row that points to a record, under the lock of its shard; nil if there is none.
    private func withRow<Value: Sendable>(
        of row: TableRow,
        in segment: Segment,
        _ body: (borrowing Shard, IndexRow) -> Value
    ) -> Value? {
        index.shard(of: row.primary).state.withLock { shard in
            guard let current = shard.table.row(ShardedIndex.fragment(of: row.primary), variant: row.variant),
                current.order == row.order, current.place.slot == segment.slot, current.place.unit == row.place
            else { return nil }
            return body(shard, current)
        }
    }

    /// The segment to reclaim next, and whether none of its entries may be carried unless they must be.
    private func nextVictim(dropsUnpinned: Bool, isDeviceFull: Bool) -> (segment: LogState.Sealed, mustDrop: Bool)? {
        // With nothing sealed, the open segments are all there is, and may have many blobs; writes into them end without this
        // thread.
        var patience = 20_000
        while log.ask({ $0.victim == nil }), patience > 0 {
            let open = log.ask { log in LogState.Destination.allCases.first { log.hasRecords($0) } }
            guard open != nil || log.ask({ !$0.full.isEmpty }) else { return nil }
            log.close(open.map { [$0] } ?? [], isCut: true)
            if log.ask({ $0.victim != nil }) { break }
            patience -= 1
            IOThreads.pause()
        }
        // One whose table cannot be read is passed over at once, so that no put is refused for it.
        while let due = log.ask({ $0.victim }), !due.isStuck, table(of: due) == nil {}
        // What is dropped may leave tombstones, which would stay as long as an older segment is open: that must go next.
        log.closeOlderThanVictim(atOnce: dropsUnpinned || isDeviceFull)
        guard let victim = log.ask({ $0.victim }) else { return nil }
        if !isDeviceFull, log.hasSegmentForReclaimer { return (victim, false) }
        // A device that failed midway has used up the reserve: a segment that needs no more than what is left restores it.
        let room = log.ask { $0.roomAhead }
        for number in [victim.segment.number] + log.ask({ $0.sealedSegments.map(\.number) }) {
            guard let sealed = log.ask({ $0.sealed(number) }), let contents = contents(of: sealed) else { continue }
            if contents.requiredBytes <= room { return (sealed, true) }
        }
        return nil
    }

    /// Waits a moment for readers that will soon release segments that are gone, which releases their bytes.
    func awaitRetired() {
        for _ in 0..<2_000 {
            guard log.quota.retired > 0, !log.hasSegmentForReclaimer else { return }
            IOThreads.pause()
        }
    }

    /// What a reclaim does with entries that are not pinned.
    enum ReclaimMode: Sendable {
        /// ``RetentionPolicy`` decides which are carried.
        case select
        /// All are carried.
        case carryAll
        /// None is carried.
        case drop
    }

    /// The reclaim of one segment in progress.
    private struct Pass {
        let segment: Segment
        let mode: ReclaimMode
        /// The places of the records that the policy chose.
        let selected: Set<UInt32>
        /// The part of the segment that was read.
        var window: RecordWindow
        /// Copies that are written together with adjacent ones.
        var copies = CopiedRecords()

        init(segment: Segment, mode: ReclaimMode, selected: Set<UInt32>, rows: [TableRow]) {
            (self.segment, self.mode, self.selected) = (segment, mode, selected)
            window = RecordWindow(mode == .carryAll ? rows : rows.filter { selected.contains($0.place) })
        }
    }

    /// Reclaims one segment; if a step fails, the rest of it stays, and another is tried next time.
    func reclaim(
        _ victim: LogState.Sealed,
        mode: ReclaimMode,
        recyclingFor kind: LogKind?
    ) throws(StoreError) -> Segment? {
        defer { log.noteRoomAhead() }
        do throws(StoreError) {
            return try reclaimAll(of: victim, mode: mode, recyclingFor: kind)
        } catch {
            log.change { $0.stuck(victim.segment) }
            throw error
        }
    }

    private func reclaimAll(
        of victim: LogState.Sealed,
        mode: ReclaimMode,
        recyclingFor kind: LogKind?
    ) throws(StoreError) -> Segment? {
        assert(
            isReserveWhole,
            "free \(log.quota.free) of \(log.quota.capacity), with the open segment \(log.quota.reserve)"
        )
        remover.removePendingBlobs()
        // A segment is removed only once every tombstone made for it is on the disk.
        remover.writePendingTombstones()
        guard !remover.hasPendingTombstones else { throw StoreError.noSpace }
        // Until its file is gone, entries evicted from it may be found again: removals then always leave a tombstone.
        remover.isReclaiming.store(true, ordering: .sequentiallyConsistent)
        let table = try log.table(of: victim)
        let blobNumbers = Dictionary(table.blobs.map { ($0.place, $0) }, uniquingKeysWith: { first, _ in first })
        let horizon = TombstoneHorizon(segments: log.ask { $0.numbers }, reclaimed: victim.segment.number)
        let rows = Self.byPlace(table.rows)
        let selected = mode == .select ? selected(rows, blobs: blobNumbers, of: victim.segment) : []
        var pass = Pass(segment: victim.segment, mode: mode, selected: selected, rows: rows)
        do throws(StoreError) {
            for row in rows {
                if row.kind == .entry {
                    try reclaim(row, blob: blobNumbers[row.place], pass: &pass)
                } else {
                    try write(&pass.copies)
                    try carryTombstone(row, in: victim.segment, horizon: horizon)
                }
            }
        } catch {
            // Their reserved places are written or given up; the first failure is reported.
            try? write(&pass.copies)
            throw error
        }
        try write(&pass.copies)
        // Blobs whose removal was noted meanwhile are removed before the file is rewritten.
        remover.removePendingBlobs()
        try remover.awaitTombstones()
        log.noteRoomAhead()
        // Copies may have used the space that is reserved for them. Removing the file then restores it.
        let recycled = try log.retire(victim, recyclingFor: kind)
        orders.withMarks { $0.prune(lowest: horizon.lowestLeft) }
        // Another segment that could not be reclaimed completely may still contain evicted entries.
        remover.isReclaiming.store(log.ask { $0.hasStuck }, ordering: .sequentiallyConsistent)
        return recycled
    }

    /// The invariant that makes every reclaim end ("Room" in `docs/disk-format.md`); a device that failed may have broken it.
    private var isReserveWhole: Bool {
        log.quota.reserve >= 2 * log.geometry.segmentSize || health.counters.failures.load(ordering: .relaxed) > 0
            || health.counters.entriesCorrupt.load(ordering: .relaxed) > 0
    }

    /// Rows in the order of their records.
    private static func byPlace(_ rows: [TableRow]) -> [TableRow] {
        let places = rows.indices.map { UInt64(rows[$0].place) << 32 | UInt64($0) }.sorted()
        return places.map { rows[Int($0 & 0xFFFF_FFFF)] }
    }

    /// Which records of a segment are worth carrying, by their places.
    private func selected(_ rows: [TableRow], blobs: [UInt32: BlobRow], of segment: Segment) -> Set<UInt32> {
        var random = PolicyRandom(seed: log.seed ^ segment.number)
        let bar = bar(using: &random)
        var places: [UInt32] = []
        var candidates: [RetentionPolicy.Candidate] = []
        for row in rows where row.kind == .entry {
            guard let current = quiescentRow(row, in: segment) else { continue }
            let recordBytes = Int(row.units) * Geometry.unit
            let blobBytes = blobs[row.place]?.blocks ?? 0
            let score = index.shard(of: row.primary).state.withLock {
                $0.score(of: current, bytes: recordBytes.addingSaturated(blobBytes))
            }
            places.append(row.place)
            candidates.append(
                RetentionPolicy.Candidate(
                    score: score,
                    recordBytes: recordBytes,
                    blobBytes: blobBytes,
                    isPinned: current.isPinned
                )
            )
        }
        let blobBytes = candidates.reduce(0) { $0.addingSaturated($1.blobBytes) }
        let marks = isNewerThanAnother(segment) ? rows.filter { $0.kind != .entry } : []
        let markBytes = marks.reduce(0) { $0 + Int($1.units) * Geometry.unit }
        let carried = policy.withLock {
            $0.carried(of: candidates, bar: bar, recordBytes: segment.size - markBytes, blobBytes: blobBytes)
        }
        return Set(zip(places, carried).lazy.filter(\.1).map(\.0))
    }

    /// The lowest score that is carried, from rows drawn from all shards.
    private func bar(using random: inout PolicyRandom) -> Int {
        let meanBlobs = log.ask { $0.meanBlobs }
        let counts = index.shards.map { shard in shard.state.withLock { $0.table.count } }
        var sample: [(score: Int, bytes: Int)] = []
        for (shard, count) in zip(index.shards, RetentionPolicy.draws(from: counts, using: &random)) where count > 0 {
            shard.state.withLock { shard in
                for row in shard.table.draw(count, using: &random) {
                    let blobBytes = row.hasBlob ? meanBlobs[row.place.slot] ?? 0 : 0
                    let bytes = (row.place.byteCount).addingSaturated(blobBytes)
                    sample.append((shard.score(of: row, bytes: bytes), bytes))
                }
            }
        }
        return RetentionPolicy.bar(of: sample)
    }

    private func reclaim(_ row: TableRow, blob: BlobRow?, pass: inout Pass) throws(StoreError) {
        guard let current = quiescentRow(row, in: pass.segment) else { return }
        // An entry that is being read stays if its blob would stay on the disk anyway, beyond the limit for such blobs.
        let isHeld =
            blob.map { blobs.isRead($0.number) && log.quota.held + $0.blocks > log.quota.budget.held } ?? false
        let mustStay = pass.mode == .carryAll || isHeld || current.isPinned
        // Evicted entries are known from their rows alone; the rest is read, and may turn out to be useless.
        if mustStay || pass.selected.contains(row.place), try carry(current, row: row, mustStay: mustStay, pass: &pass)
        {
            return
        }
        try evict(current, row: row, blob: blob, pass: &pass)
    }

    /// The row that points to a record, once nothing is being written to replace it; nil if there is none.
    ///
    /// A freshening ends on a thread that does not wait for this one. Until then, its base can be neither removed nor evicted.
    private func quiescentRow(_ row: TableRow, in segment: Segment) -> IndexRow? {
        while true {
            let found = withRow(of: row, in: segment) { shard, current in
                (row: current, isBusy: shard.isReplacing(current.fragment, variant: current.variant))
            }
            guard let found else { return nil }
            if !found.isBusy { return found.row }
            IOThreads.pause()
        }
    }

    private func evict(_ current: IndexRow, row: TableRow, blob: BlobRow?, pass: inout Pass) throws(StoreError) {
        var attempts = 3
        while attempts > 0, quiescentRow(row, in: pass.segment)?.order == current.order {
            switch remover.reserveRemoval(of: current, primary: row.primary, isEviction: true) {
            case .done(let removal):
                guard var removal else { return }
                // Its blob is known from the table.
                removal.rows = []
                health.counters.entriesEvicted.add(1, ordering: .relaxed)
                defer { if let blob { blobs.remove(blob.number, bytes: blob.blocks) } }
                return try remover.finish(removal)
            case .busy: continue
            case .needsRoom:
                attempts -= 1
                try write(&pass.copies)
                try log.openCarried()
            }
        }
    }

    /// Copies an entry to the main log.
    ///
    /// - Returns: false if it is not worth it, or there is no room: then it must be evicted.
    private func carry(
        _ current: IndexRow,
        row: TableRow,
        mustStay: Bool,
        pass: inout Pass
    ) throws(StoreError) -> Bool {
        let found: Lookup.RecordRead
        if let source = pass.window.record(of: current, in: pass.segment, files: log.files, seed: log.seed) {
            found = .record(source)
        } else {
            do throws(StoreError) {
                found = try lookup.read(current, primary: row.primary, waits: true)
            } catch {
                // Records that the device cannot read must not delay the rest; those that must stay are tried again another time.
                guard !mustStay, error.isOfDamagedPlace else { throw error }
                found = .damaged
            }
        }
        guard case .record(let source) = found else {
            health.counters.entriesCorrupt.add(1, ordering: .relaxed)
            return false
        }
        if !mustStay, source.header.uselessAfter.milliseconds < health.latestNow.load(ordering: .relaxed) {
            return false
        }
        let shard = index.shard(of: row.primary)
        let length = source.header.recordLength
        let request = LogState.Request(destination: .carried, length: length, hasBlob: current.hasBlob)
        var place: LogState.Reservation?
        for attempt in 0..<2 {
            let isThere = shard.state.withLock { shard -> Bool in
                guard shard.table.row(current.fragment, variant: current.variant)?.order == current.order else {
                    return false
                }
                // Under the shard's lock, so that the horizon of a later tombstone covers the copy.
                place = log.reserve(request)
                return true
            }
            if !isThere { return true }
            if place != nil { break }
            guard attempt == 0 else { return false }
            try write(&pass.copies)
            do throws(StoreError) { try log.openCarried() } catch {
                if mustStay || error.code != .noSpace { throw error }
                return false
            }
        }
        guard let place else { return false }
        // Checked again now that the place is reserved: a mark from here on covers it. Being pinned does not protect from it: a
        // copy beyond the mark's horizon would come back once the mark is dropped.
        if lookup.isPurged(source) || (!mustStay && !isReadable(source)) {
            log.finish(place, row: nil, blob: nil)
            return false
        }
        if !pass.copies.fits(place) {
            do throws(StoreError) {
                try write(&pass.copies)
            } catch {
                log.finish(place, row: nil, blob: nil)
                throw error
            }
        }
        pass.copies.append(source, at: place, for: current, row: row, seed: log.seed)
        return true
    }

    /// Whether a record can be read as an entry.
    private func isReadable(_ source: RecordSource) -> Bool {
        guard source.header.keyID == 0, lookup.seal == nil else { return (try? lookup.entry(source, nil)) != nil }
        return source.detailBytes.withUnsafeBytes { RecordDetail.Layout($0) } != nil
    }

    /// Writes the collected copies, all at once, and adds them to the index.
    func write(_ copies: inout CopiedRecords) throws(StoreError) {
        guard let first = copies.items.first else { return }
        let gathered = copies
        copies = CopiedRecords()
        var failure: StoreError?
        do {
            try log.files.write(ByteChunk(gathered.bytes), to: first.place.segment.file.open, at: first.place.offset)
        } catch {
            failure = health.failed(error)
        }
        var wantsTable = false
        for item in gathered.items {
            let unit = item.place.unit
            index.shard(of: item.row.primary).state.withLock { shard in
                _ = shard.table.change(item.current.fragment, variant: item.current.variant) { found in
                    guard found.order == item.current.order else { return }
                    // A copy that may still be complete needs a tombstone when this one is removed.
                    if failure != nil { return found.shadows = true }
                    found.place = RecordLocation(slot: item.place.segment.slot, unit: unit, units: item.row.units)
                }
            }
            var copy = item.row
            copy.place = unit
            let isWritten = failure == nil
            let isLast = log.change { log in
                log.finish(item.place, row: isWritten ? copy : nil, blob: isWritten ? item.blob : nil)
            }
            wantsTable = wantsTable || isLast
        }
        if wantsTable { log.sealFull() }
        if let failure { throw failure }
    }

    /// Carries a tombstone or mark forward as long as something that it kills may be in another segment.
    func carryTombstone(
        _ row: TableRow,
        in segment: Segment,
        horizon: TombstoneHorizon
    ) throws(StoreError) {
        let (offset, count) = (Int(row.place) * Geometry.unit, Int(row.units) * Geometry.unit)
        var bytes: [UInt8] = []
        do throws(StoreError) {
            bytes = try health.checked(try log.files.read(segment.file.open, from: offset, count: count))
        } catch {
            guard error.isOfDamagedPlace else { throw error }
        }
        let header = bytes.withUnsafeBytes { RecordHeader.decode($0, seed: log.seed) }
        guard let header, header.kind == row.kind, header.order == row.order, header.segment == segment.number else {
            if row.kind != .prefixMark {
                // Its row says all that counts.
                remover.postpone(.init(kind: row.kind, order: row.order, primary: row.primary, variant: row.variant))
                return
            }
            // The prefix is nowhere else, and what it removes may be back at the next opening.
            if log.manifest.content.format.suspectBefore <= row.order {
                try log.writeFormat { $0.suspectBefore = orders.last + 1 }
            }
            return
        }
        guard horizon.carries(header.horizon) else { return }
        let request = LogState.Request(destination: .carried, length: header.recordLength, hasBlob: false)
        var place = log.reserve(request)
        if place == nil {
            try log.openCarried()
            place = log.reserve(request)
        }
        guard let place else { throw StoreError.noSpace }
        var copy = Array(bytes.prefix(header.recordLength))
        RecordHeader.restamp(&copy, segment: place.segment.number, seed: log.seed)
        var copied: TableRow?
        defer { log.finish(place, row: copied, blob: nil) }
        try health.checked(try log.files.write(ByteChunk(copy), to: place.segment.file.open, at: place.offset))
        copied = row
        copied?.place = place.unit
    }

    /// Removes what an earlier, larger capacity let in, oldest first; until then, as much space is free for carrying as it had.
    func fitCapacity() {
        do throws(StoreError) {
            try reclaimExcess()
            // Segments larger than those of this capacity: the reserve is not made for them.
            var turns = log.slots.all.count
            while turns > 0, let sealed = log.ask({ $0.oldest(above: log.geometry.segmentSize) }) {
                turns -= 1
                let isRoomy = log.quota.free >= sealed.segment.size + log.geometry.segmentSize
                _ = try reclaim(sealed, mode: isRoomy ? .carryAll : .select, recyclingFor: nil)
            }
            try reclaimExcess()
        } catch {
            // What cannot be removed now is removed when the next put needs room.
        }
    }

    private func reclaimExcess() throws(StoreError) {
        while log.quota.excess > 0 {
            let used = log.quota.used
            // One large segment can become many small ones, and each of them takes turns.
            var search = ReclaimAttempts(segments: log.slots.all.count)
            do throws(StoreError) {
                while log.quota.excess > 0 { _ = try search.next(self, recyclingFor: nil) }
            } catch {
                guard log.quota.used < used else { throw error }
            }
        }
    }

    /// Carries what is in the smallest segments to one, while there are more segments than usual.
    ///
    /// A segment is full when its blobs weigh enough. So if bodies with files of their own are often replaced, segments with one dead
    /// record each are left, which take too few bytes to be reclaimed for room.
    func mergeSmall() {
        // Two for each segment that a caller opens: so there are soon fewer.
        for _ in 0..<2 {
            guard log.ask({ $0.count }) >= log.geometry.usualSegments, log.hasSegmentForReclaimer,
                let smallest = log.ask({ $0.smallest }), smallest.segment.size <= log.geometry.segmentSize / 2,
                (try? reclaim(smallest, mode: .carryAll, recyclingFor: nil)) != nil
            else { return }
        }
    }

    /// Changes: moves the live entries of a sealed segment to the main log and removes it, if that frees something.
    ///
    /// - Returns: how many entries were moved.
    func compact(_ number: UInt64) throws(StoreError) -> Int {
        guard let sealed = log.ask({ $0.sealed(number) }), let live = contents(of: sealed) else { return 0 }
        // A segment that is mostly alive is left as it is: copying it frees almost nothing.
        guard live.entryBytes + live.markBytes < sealed.segment.size / 4 * 3 else { return 0 }
        _ = try reclaim(sealed, mode: .carryAll, recyclingFor: nil)
        return live.entries
    }
}

extension BlobRow {
    /// The space that the blob takes on the disk.
    var blocks: Int { SpaceQuota.blocks(Int(clamping: storedBytes)) }
}

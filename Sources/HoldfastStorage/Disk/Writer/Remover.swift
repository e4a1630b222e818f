// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// Removal: rows leave the index under the same lock under which the place of their tombstone is reserved; blobs are removed after
/// their rows.
final class Remover: Sendable {
    private let seal: (any StoreSeal)?
    private let index: ShardedIndex
    private let hashing: KeyHashing
    private let orders: SequenceAllocator
    private let log: Log
    private let pins: PinRegistry
    private let blobs: BlobFiles
    private let threads: IOThreads
    private let health: StoreHealth
    private let pending: Mutex<PendingTombstones>
    private let tombstonesInFlight = TombstonesInFlight()
    /// Removed entries whose blobs must be removed.
    private let blobRemovals = Mutex<[RemovedRow]>([])
    /// Whether the pending tombstones will be written soon.
    private let isWritingPending = Atomic<Bool>(false)
    /// Whether a segment is being reclaimed that is not gone yet.
    let isReclaiming = Atomic<Bool>(false)

    init(_ opened: OpenedStore, log: Log) {
        (seal, index, orders, pins) = (opened.seal, opened.index, opened.orders, opened.pins)
        (blobs, threads, health) = (opened.blobs, opened.threads, opened.health)
        (self.log, hashing) = (log, opened.hashing)
        pending = Mutex(PendingTombstones(opened.pendingTombstones, limit: log.quota.budget.pending))
    }

    /// How many tombstones are pending and blobs must be removed.
    var pendingCount: Int {
        pending.withLock { $0.all.count + ($0.isOverfull ? 1 : 0) } + blobRemovals.withLock { $0.count }
    }

    /// Whether a tombstone is pending.
    var hasPendingTombstones: Bool { pending.withLock { !$0.isEmpty } }

    /// Forgets the pending tombstones, since everything was purged.
    func discardPendingTombstones() {
        pending.withLock { $0 = PendingTombstones(limit: log.quota.budget.pending) }
    }

    /// Forgets the blobs of entries of other epochs: all of them are removed.
    func forgetBlobRemovals(but epoch: UInt64) {
        blobRemovals.withLock { blobRemovals in blobRemovals.removeAll { $0.segment?.epoch != epoch } }
    }

    /// A tombstone or a mark whose place is reserved.
    struct ReservedTombstone: Sendable {
        let tombstone: Tombstone
        let place: LogState.Reservation
        let header: RecordHeader
        let handle: TombstonesInFlight.Ticket
    }

    /// What a removal took out of the index, and what must be written to make it durable.
    struct Removal: Sendable {
        var rows: [RemovedRow] = []
        var tombstone: ReservedTombstone?
    }

    /// Removes one row, if it is still the one of its identity.
    ///
    /// - Parameters:
    ///   - isEviction: an evicted entry needs a tombstone only if an older record of it may be on the disk.
    ///   - mayPostpone: whether it is removed even if the log has no room for its tombstone, which is then pending.
    ///   - claimed: where room is reserved for it, if it is.
    func reserveRemoval(
        of row: IndexRow,
        primary: UInt64,
        isEviction: Bool,
        mayPostpone: Bool = false,
        claimed: LogState.Destination? = nil
    ) -> Reserved<Removal?> {
        let request = Self.request(in: claimed ?? (isEviction ? .carried : .main))
        return index.shard(of: primary).state.withLock { shard -> Reserved<Removal?> in
            guard let current = shard.table.row(row.fragment, variant: row.variant), current.order == row.order else {
                return .done(nil)
            }
            if shard.isReplacing(row.fragment, variant: row.variant) { return .busy }
            var removal = Removal()
            if !isEviction || current.shadows || shard.uncertain.contains(primary) || shard.removing.contains(primary) {
                // A record left by a failed write may have a higher order than the row. So does a put in progress, which must
                // outlive this.
                let isAlone = !shard.pending.contains { $0.isOf(row.fragment, variant: row.variant) }
                let order = isAlone && shard.uncertain.contains(primary) ? orders.next() : row.order
                let reserved = reserve(
                    Tombstone(kind: .variantTombstone, order: order, primary: primary, variant: row.variant),
                    of: &shard,
                    for: request,
                    hasClaim: claimed != nil,
                    mayPostpone: mayPostpone
                )
                guard case .done(let tombstone) = reserved else { return .needsRoom(request) }
                removal.tombstone = tombstone
            }
            if let gone = shard.remove(row.fragment, variant: row.variant, at: current.place) {
                removal.rows = [RemovedRow(row: gone, segment: log.slots.underLock(gone.place.slot))]
                // The blob of an evicted entry is known from its segment's table.
                if !isEviction { removal.rows.forEach(noteBlobRemoval) }
            }
            if current.isPinned { pins.release(EntryIdentity(primary: primary, variant: row.variant)) }
            return .done(removal)
        }
    }

    /// Removes all variants of a key, including those being written.
    func reserveInvalidation(
        of key: StoreKey,
        mayPostpone: Bool = false,
        claimed: LogState.Destination? = nil
    ) -> Reserved<Removal?> {
        let primary = hashing.primary(key)
        let fragment = ShardedIndex.fragment(of: primary)
        let request = Self.request(in: claimed ?? .main)
        return index.shard(of: primary).state.withLock { shard -> Reserved<Removal?> in
            let rows = shard.table.rows(fragment).all
            let isWritten = shard.writers.hasWriters(of: key)
            let mayHide =
                shard.uncertain.contains(primary) || shard.removing.contains(primary)
                || shard.pending.contains { $0.fragment == fragment }
            // With nothing in the index, everything on the disk is already dead, and something there says so, except for entries
            // that were just evicted from a segment that still exists.
            if rows.isEmpty, !isWritten, !mayHide, !isReclaiming.load(ordering: .acquiring) { return .done(nil) }
            // The order is taken under the shard's lock: a put that reserves later has a higher one.
            let reserved = reserve(
                Tombstone(kind: .primaryTombstone, order: orders.next(), primary: primary, variant: 0),
                of: &shard,
                for: request,
                hasClaim: claimed != nil,
                mayPostpone: mayPostpone
            )
            guard case .done(let tombstone) = reserved else { return .needsRoom(request) }
            shard.writers.supersede { $0.key == key }
            shard.supersedePuts(fragment)
            let gone = rows.map { RemovedRow(row: $0, segment: log.slots.underLock($0.place.slot)) }
            gone.forEach(noteBlobRemoval)
            for row in rows {
                shard.remove(row.fragment, variant: row.variant, at: row.place)
                if row.isPinned { pins.release(EntryIdentity(primary: primary, variant: row.variant)) }
            }
            return .done(Removal(rows: gone, tombstone: tombstone))
        }
    }

    private static func request(in destination: LogState.Destination) -> LogState.Request {
        LogState.Request(destination: destination, length: RecordHeader.size, hasBlob: false)
    }

    /// Reserves the place of a tombstone under the lock of its shard; if the log has no room, it is pending, if it may be.
    ///
    /// - Returns: nil inside if it is pending.
    private func reserve(
        _ tombstone: Tombstone,
        of shard: inout Shard,
        for request: LogState.Request,
        hasClaim: Bool,
        mayPostpone: Bool
    ) -> Reserved<ReservedTombstone?> {
        if let reserved = reserve(tombstone, in: request.destination, hasClaim: hasClaim) {
            shard.removing.append(tombstone.primary)
            return .done(reserved)
        }
        guard mayPostpone, !log.ask({ $0.isClosed }) else { return .needsRoom(request) }
        postpone(tombstone)
        shard.uncertain.note(tombstone.primary)
        return .done(nil)
    }

    /// The length of the record of a tombstone or mark.
    func length(of tombstone: Tombstone) -> Int {
        RecordHeader.size + tombstone.detail.count + (tombstone.detail.isEmpty ? 0 : (seal?.overhead ?? 0))
    }

    /// Reserves the place of a tombstone or mark; nil if the log has no room.
    func reserve(
        _ tombstone: Tombstone,
        horizon: UInt64? = nil,
        in destination: LogState.Destination,
        hasClaim: Bool = false
    ) -> ReservedTombstone? {
        let length = length(of: tombstone)
        let request = LogState.Request(destination: destination, length: length, hasBlob: false)
        guard let place = log.reserve(request, hasClaim: hasClaim) else { return nil }
        var header = RecordHeader(
            kind: tombstone.kind,
            segment: place.segment.number,
            order: tombstone.order,
            version: tombstone.order,
            primary: tombstone.primary,
            variant: tombstone.variant
        )
        header.horizon = horizon ?? place.horizon
        header.detailLength = length - RecordHeader.size
        if !tombstone.detail.isEmpty { header.keyID = seal?.keyID ?? 0 }
        let handle = tombstonesInFlight.begin()
        return ReservedTombstone(tombstone: tombstone, place: place, header: header, handle: handle)
    }

    /// Writes what makes a removal durable, then removes the blobs that it freed.
    ///
    /// - Throws: `.io` if the tombstone could not be written: then it is pending and tried again, and the entry may come back
    ///   if the process ends before that.
    func finish(_ removal: Removal) throws(StoreError) {
        defer { if removal.rows.contains(where: \.row.hasBlob) { removeBlobsSoon() } }
        guard let reserved = removal.tombstone else { return }
        let primary = reserved.tombstone.primary
        var failure: StoreError?
        do throws(StoreError) { try write(reserved, mayPostpone: true) } catch { failure = error }
        index.shard(of: primary).state.withLock { $0.endRemoving(primary, failed: failure != nil) }
        if let failure { throw failure }
    }

    /// Writes a tombstone or mark and adds it to its segment's table.
    ///
    /// - Parameter mayPostpone: whether it is pending if that fails.
    func write(_ reserved: ReservedTombstone, mayPostpone: Bool = false) throws(StoreError) {
        var failure: StoreError?
        do throws(StoreError) { try put(reserved) } catch { failure = error }
        if mayPostpone, failure != nil { postpone(reserved.tombstone) }
        let row = TableRow(reserved.header, place: reserved.place.unit)
        tombstonesInFlight.end(reserved.handle)
        log.finish(reserved.place, row: failure == nil ? row : nil, blob: nil)
        if let failure { throw failure }
    }

    private func put(_ reserved: ReservedTombstone) throws(StoreError) {
        var detail = reserved.tombstone.detail
        if let seal, !detail.isEmpty {
            detail = ByteChunk(try seal.seal(detail, context: SealedPart.detail(of: reserved.header)))
        }
        let head = ByteChunk(reserved.header.encode(detail: detail, seed: log.seed))
        let place = reserved.place
        try health.checked(try log.files.write(head, to: place.segment.file.open, at: place.offset))
        health.succeeded()
    }

    /// Remembers a tombstone or mark that could not be written.
    func postpone(_ tombstone: Tombstone) { pending.withLock { $0.append(tombstone) } }

    /// Changes: tries again to write the pending tombstones and marks.
    func writePendingTombstones() {
        if pending.withLock({ $0.isEmpty }) { return }
        defer { log.noteRoomAhead() }
        while let next = pending.withLock({ $0.all.last }) {
            var reserved = reserve(next, in: .carried)
            if reserved == nil, (try? log.openCarried()) != nil { reserved = reserve(next, in: .carried) }
            guard let reserved, (try? write(reserved)) != nil else { return }
            pending.withLock { pending in
                // Another may have been added after it meanwhile.
                if let place = pending.all.lastIndex(of: next) { pending.all.remove(at: place) }
            }
        }
        guard pending.withLock({ $0.isOverfull }) else { return }
        // It is unknown which ones, so after a crash none can be trusted. More may come while this is written.
        pending.withLock { $0.isOverfull = false }
        if (try? log.writeFormat { $0.suspectBefore = orders.last + 1 }) == nil {
            pending.withLock { $0.isOverfull = true }
        }
    }

    /// Changes: like ``writePendingTombstones()``.
    ///
    /// - Throws: `.noSpace` if a removal is in force that is still not recorded.
    func recordPending() throws(StoreError) {
        writePendingTombstones()
        if hasPendingTombstones { throw StoreError.noSpace.unrecorded }
    }

    /// Has the pending tombstones and marks written, if there are any: there may be room now.
    func writePendingTombstonesSoon() {
        guard hasPendingTombstones, !isWritingPending.exchange(true, ordering: .acquiringAndReleasing) else { return }
        let isQueued = threads.later(.changes) { [self] in
            isWritingPending.store(false, ordering: .releasing)
            writePendingTombstones()
        }
        if !isQueued { isWritingPending.store(false, ordering: .releasing) }
    }

    /// Removes a row from a thread that cannot wait: if the log has no room, its tombstone is pending.
    func drop(_ row: IndexRow, primary: UInt64) {
        health.counters.entriesCorrupt.add(1, ordering: .relaxed)
        guard
            case .done(let removal?) = reserveRemoval(of: row, primary: primary, isEviction: false, mayPostpone: true)
        else { return }
        // If the removal cannot be recorded on the disk, the entry is found damaged again after the next opening.
        try? finish(removal)
        writePendingTombstonesSoon()
    }

    /// Records that the blob of a row that leaves the index must be removed; under the lock of its shard.
    func noteBlobRemoval(_ gone: RemovedRow) {
        if gone.row.hasBlob { blobRemovals.withLock { $0.append(gone) } }
    }

    /// Has those blobs removed.
    func removeBlobsSoon() {
        threads.later(.changes) { [self] in removePendingBlobs() }
    }

    /// Changes: removes the blobs of entries that are gone, before any of their records is reclaimed.
    func removePendingBlobs() {
        for gone in blobRemovals.withLock({ blobRemovals in
            defer { blobRemovals = [] }
            return blobRemovals
        }) {
            guard let segment = gone.segment, let header = header(of: gone.row, in: segment), header.hasBlob else {
                continue
            }
            blobs.remove(header.bodyWord, bytes: SpaceQuota.blocks(header.storedBlobBytes))
        }
    }

    private func header(of row: IndexRow, in segment: Segment) -> RecordHeader? {
        let count = row.place.byteCount
        guard let bytes = try? log.files.read(segment.file.open, from: row.place.offset, count: count) else {
            return nil
        }
        let header = bytes.withUnsafeBytes { RecordHeader.decode($0, seed: log.seed) }
        return header?.segment == segment.number && header?.order == row.order ? header : nil
    }

    /// Waits until every tombstone and mark reserved so far is on the disk.
    ///
    /// They are written by threads that do not wait for this one, mostly within microseconds.
    func awaitTombstones() throws(StoreError) {
        // Two turns: after the first, the older count contains only what had begun by then.
        for _ in 0..<2 {
            while !tombstonesInFlight.turn() { IOThreads.pause() }
        }
        writePendingTombstones()
        guard pending.withLock({ $0.isEmpty }) else { throw StoreError.noSpace }
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// Removal: rows leave the index under the same lock under which the place of their tombstone is reserved; blobs are removed after
/// their rows.
final class Remover: Sendable {
    private let files: any FileSystem
    private let seed: UInt64
    private let seal: (any StoreSeal)?
    private let index: ShardedIndex
    private let hashing: KeyHashing
    private let orders: SequenceAllocator
    private let log: Log
    private let pins: PinBook
    private let blobs: BlobFiles
    private let threads: IOThreads
    private let health: StoreHealth
    private let owed: Mutex<PendingTombstones>
    private let notesUnderWay = NotesUnderWay()
    /// Removed entries whose blobs must be removed.
    private let releases = Mutex<[GoneRow]>([])
    /// Whether a segment is being reclaimed that is not gone yet.
    let isReclaiming = Atomic<Bool>(false)

    init(_ opened: OpenedStore, log: Log) {
        (files, seal, index, orders, pins) = (opened.files, opened.seal, opened.index, opened.orders, opened.pins)
        (blobs, threads, health) = (opened.blobs, opened.threads, opened.health)
        (self.log, seed, hashing) = (log, log.seed, opened.hashing)
        owed = Mutex(PendingTombstones(notes: opened.owed))
    }

    /// How many tombstones are owed and blobs must be removed.
    var debts: Int { owed.withLock { $0.notes.count + ($0.isOverfull ? 1 : 0) } + releases.withLock { $0.count } }

    /// Whether a tombstone is owed.
    var owes: Bool { owed.withLock { !$0.isEmpty } }

    /// Forgets what is owed, since everything was purged.
    func forgetDebts() {
        owed.withLock { $0 = PendingTombstones() }
    }

    /// Forgets the blobs of entries of other epochs: all of them are removed.
    func forgetReleases(but epoch: UInt64) {
        releases.withLock { releases in releases.removeAll { $0.segment?.epoch != epoch } }
    }

    /// A tombstone or a mark whose place is reserved.
    struct ReservedNote: Sendable {
        let place: LogState.Place
        var header: RecordHeader
        let detail: ByteChunk
        let ticket: NotesUnderWay.Ticket
    }

    /// What a removal took out of the index, and what must be written to make it durable.
    struct Removal: Sendable {
        var rows: [GoneRow] = []
        var note: ReservedNote?
    }

    /// Removes one row, if it is still the one of its identity.
    ///
    /// - Parameters:
    ///   - isEviction: an evicted entry needs a tombstone only if an older record of it may be on the disk.
    ///   - mayOwe: whether it is removed even if the log has no room for its tombstone, which is then owed.
    ///   - isTurn: whether room is reserved for it.
    func reserveRemoval(
        of row: IndexRow,
        primary: UInt64,
        isEviction: Bool,
        mayOwe: Bool = false,
        isTurn: Bool = false
    ) -> Reserved<Removal?> {
        let destination = isEviction ? LogState.Destination.carried : .main
        return index.shard(of: primary).state.withLock { shard -> Reserved<Removal?> in
            guard let current = shard.table.row(row.fragment, variant: row.variant), current.order == row.order else {
                return .done(nil)
            }
            if shard.pending.contains(where: { $0.isOf(row.fragment, variant: row.variant) && $0.isExclusive }) {
                return .busy
            }
            var removal = Removal()
            if !isEviction || current.shadows || shard.lingering.contains(primary) || shard.removing.contains(primary) {
                // A lingering record may have a higher order than the row. So does a put in progress, which must outlive this.
                let isAlone = !shard.pending.contains { $0.isOf(row.fragment, variant: row.variant) }
                removal.note = reserveNote(
                    .variantTombstone,
                    order: isAlone && shard.lingering.contains(primary) ? nil : row.order,
                    primary: primary,
                    variant: row.variant,
                    in: destination,
                    isTurn: isTurn
                )
                if removal.note != nil {
                    shard.removing.append(primary)
                } else if mayOwe, !log.ask({ $0.isClosed }) {
                    owe(.variantTombstone, order: row.order, primary: primary, variant: row.variant)
                    shard.lingering.note(primary)
                } else {
                    return .needsRoom(destination, length: RecordHeader.size, hasBlob: false)
                }
            }
            if let gone = shard.remove(row.fragment, variant: row.variant, at: current.place) {
                removal.rows = [GoneRow(row: gone, segment: log.slots.underLock(gone.place.slot))]
                // The blob of an evicted entry is known from its segment's table.
                if !isEviction { removal.rows.forEach(noteRelease) }
            }
            if current.isPinned { pins.release(EntryIdentity(primary: primary, variant: row.variant)) }
            return .done(removal)
        }
    }

    /// Removes all variants of a key, including those being written.
    func reserveInvalidation(of key: StoreKey, mayOwe: Bool = false, isTurn: Bool = false) -> Reserved<Removal?> {
        let primary = hashing.primary(key)
        let fragment = ShardedIndex.fragment(of: primary)
        return index.shard(of: primary).state.withLock { shard -> Reserved<Removal?> in
            let rows = shard.table.rows(fragment).all
            let isWritten = shard.writers.hasWriters(of: key)
            let mayHide =
                shard.lingering.contains(primary) || shard.removing.contains(primary)
                || shard.pending.contains { $0.fragment == fragment }
            // With nothing in the index, everything on the disk is already dead, and something there says so, except for entries
            // that were just evicted from a segment that still exists.
            if rows.isEmpty, !isWritten, !mayHide, !isReclaiming.load(ordering: .acquiring) { return .done(nil) }
            // The order is taken under the shard's lock: a put that reserves later has a higher one.
            let note = reserveNote(
                .primaryTombstone,
                order: nil,
                primary: primary,
                variant: 0,
                in: .main,
                isTurn: isTurn
            )
            if note != nil {
                shard.removing.append(primary)
            } else if mayOwe, !log.ask({ $0.isClosed }) {
                owe(.primaryTombstone, order: orders.next(), primary: primary, variant: 0)
                shard.lingering.note(primary)
            } else {
                return .needsRoom(.main, length: RecordHeader.size, hasBlob: false)
            }
            shard.writers.supersede(key)
            shard.supersedePuts(fragment)
            let gone = rows.map { GoneRow(row: $0, segment: log.slots.underLock($0.place.slot)) }
            gone.forEach(noteRelease)
            for row in rows {
                shard.remove(row.fragment, variant: row.variant, at: row.place)
                if row.isPinned { pins.release(EntryIdentity(primary: primary, variant: row.variant)) }
            }
            return .done(Removal(rows: gone, note: note))
        }
    }

    /// Reserves the place of a tombstone or mark; nil if the log has no room.
    func reserveNote(
        _ kind: RecordKind,
        order: UInt64?,
        primary: UInt64,
        variant: UInt32,
        detail: ByteChunk = ByteChunk(),
        horizon: UInt64? = nil,
        in destination: LogState.Destination,
        isTurn: Bool = false
    ) -> ReservedNote? {
        let length = RecordHeader.size + detail.count + (detail.isEmpty ? 0 : (seal?.overhead ?? 0))
        guard let place = log.reserve(destination, length: length, hasBlob: false, isTurn: isTurn) else { return nil }
        let order = order ?? orders.next()
        var header = RecordHeader(
            kind: kind,
            segment: place.segment.number,
            order: order,
            version: order,
            primary: primary,
            variant: variant
        )
        header.horizon = horizon ?? place.horizon
        header.detailLength = length - RecordHeader.size
        if !detail.isEmpty { header.keyID = seal?.keyID ?? 0 }
        return ReservedNote(place: place, header: header, detail: detail, ticket: notesUnderWay.begin())
    }

    /// Writes what makes a removal durable, then releases what it freed.
    ///
    /// - Throws: `.io` if the note could not be written: then it is owed and tried again, and the entry may come back if the
    ///   process ends before that.
    func finish(_ removal: Removal) throws(StoreError) {
        defer { if removal.rows.contains(where: \.row.hasBlob) { releaseSoon() } }
        if let note = removal.note {
            let primary = note.header.primary
            do throws(StoreError) {
                try write(note, owes: true)
            } catch {
                index.shard(of: primary).state.withLock { $0.endRemoving(primary, failed: true) }
                throw error
            }
            index.shard(of: primary).state.withLock { $0.endRemoving(primary, failed: false) }
        }
    }

    /// Writes a note and adds it to its segment's table.
    ///
    /// - Parameter owes: whether it is owed if that fails.
    func write(_ note: ReservedNote, owes: Bool = false) throws(StoreError) {
        var failure: StoreError?
        do throws(StoreError) { try put(note) } catch { failure = error }
        if owes, failure != nil {
            owe(note.header.kind, order: note.header.order, primary: note.header.primary, variant: note.header.variant)
        }
        let row = TableRow(note.header, place: UInt32(truncatingIfNeeded: note.place.offset / 16))
        notesUnderWay.end(note.ticket)
        log.finish(note.place, row: failure == nil ? row : nil, blob: nil)
        if let failure { throw failure }
    }

    private func put(_ note: ReservedNote) throws(StoreError) {
        var detail = note.detail
        if let seal, !detail.isEmpty {
            detail = ByteChunk(try seal.seal(detail, context: SealedPart.detail(order: note.header.order).context))
        }
        let head = ByteChunk(note.header.encode(detail: detail, seed: seed))
        do {
            try files.write(head, to: note.place.segment.file.open, at: note.place.offset)
        } catch {
            throw health.failed(error)
        }
        health.succeeded()
    }

    /// Remembers a tombstone that could not be written.
    private func owe(_ kind: RecordKind, order: UInt64, primary: UInt64, variant: UInt32) {
        let note = PendingTombstones.Note(kind: kind, order: order, primary: primary, variant: variant)
        owed.withLock { owed in
            if owed.notes.count < PendingTombstones.maximum { owed.notes.append(note) } else { owed.isOverfull = true }
        }
    }

    /// Changes: tries again to write what is owed.
    func payDebts() {
        if owed.withLock({ $0.isEmpty }) { return }
        defer { log.noteRoomAhead() }
        if owed.withLock({ $0.isOverfull && $0.notes.isEmpty }) {
            // It is unknown which ones, so after a crash none can be trusted.
            guard (try? log.writeFormat { $0.suspectBefore = orders.last + 1 }) != nil else { return }
            owed.withLock { $0.isOverfull = false }
        }
        while let owing = owed.withLock({ $0.notes.last }) {
            func reserve() -> ReservedNote? {
                reserveNote(
                    owing.kind,
                    order: owing.order,
                    primary: owing.primary,
                    variant: owing.variant,
                    in: .carried
                )
            }
            var note = reserve()
            if note == nil, (try? log.openCarried()) != nil { note = reserve() }
            guard let note, (try? write(note)) != nil else { return }
            owed.withLock { owed in
                // Another may have been added after it meanwhile.
                if let place = owed.notes.lastIndex(of: owing) { owed.notes.remove(at: place) }
            }
        }
    }

    /// Removes a row from a thread that cannot wait: if the log has no room, its tombstone is owed.
    func drop(_ row: IndexRow, primary: UInt64) {
        health.counters.entriesCorrupt.add(1, ordering: .relaxed)
        guard
            case .done(let removal?) = reserveRemoval(of: row, primary: primary, isEviction: false, mayOwe: true)
        else { return }
        // If the removal cannot be recorded on the disk, the entry is found damaged again after the next opening.
        try? finish(removal)
        if !owed.withLock({ $0.notes.isEmpty }) { threads.later(.changes) { [self] in payDebts() } }
    }

    /// Records that the blob of a row that leaves the index must be removed; under the lock of its shard.
    func noteRelease(_ gone: GoneRow) {
        if gone.row.hasBlob { releases.withLock { $0.append(gone) } }
    }

    /// Has those blobs removed.
    func releaseSoon() {
        threads.later(.changes) { [self] in settleReleases() }
    }

    /// Changes: removes the blobs of entries that are gone, before any of their records is reclaimed.
    func settleReleases() {
        for gone in releases.withLock({ releases in
            defer { releases = [] }
            return releases
        }) {
            guard let segment = gone.segment, let header = header(of: gone.row, in: segment), header.hasBlob else {
                continue
            }
            blobs.remove(header.bodyWord, bytes: SpaceLedger.blocks(header.storedBlobBytes))
        }
    }

    private func header(of row: IndexRow, in segment: Segment) -> RecordHeader? {
        let count = Int(row.place.units) * 16
        guard let bytes = try? files.read(segment.file.open, from: Int(row.place.unit) * 16, count: count) else {
            return nil
        }
        let header = bytes.withUnsafeBytes { RecordHeader.decode($0, seed: seed) }
        return header?.segment == segment.number && header?.order == row.order ? header : nil
    }

    /// Waits until every tombstone and mark reserved so far is on the disk.
    ///
    /// They are written by threads that do not wait for this one, mostly within microseconds.
    func awaitNotes() throws(StoreError) {
        // Two turns: after the first, the older count contains only what had begun by then.
        for _ in 0..<2 {
            while !notesUnderWay.turn() { IOThreads.pause() }
        }
        payDebts()
        guard owed.withLock({ $0.isEmpty }) else { throw StoreError.noSpace }
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// Removal: rows leave the index in the same lock in which the place of their tombstone is reserved.
extension DiskEngine {
    /// A tombstone or a mark whose place is reserved.
    struct ReservedNote: Sendable {
        let place: LogState.Place
        var header: RecordHeader
        let detail: ByteChunk
        let ticket: NotesUnderWay.Ticket
    }

    /// What a removal took out of the index, and what must be written for it to hold.
    struct Removal: Sendable {
        var rows: [GoneRow] = []
        var note: ReservedNote?
    }

    /// Takes one row out, if it is still the one of its identity.
    ///
    /// - Parameters:
    ///   - isEviction: an evicted entry needs a tombstone only where an older record of it may lie on the disk.
    ///   - mayOwe: whether it goes though the log has no room for its tombstone, which is owed then.
    ///   - isTurn: whether room is set aside for it.
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
            if shard.pending.contains(where: { $0.isOf(row.fragment, row.variant) && $0.isExclusive }) { return .busy }
            var removal = Removal()
            if !isEviction || current.shadows || shard.lingering.contains(primary) || shard.removing.contains(primary) {
                // A record that lingers may bear a higher order than the row. A put in flight does, too, and must outlive this.
                let isAlone = !shard.pending.contains { $0.isOf(row.fragment, row.variant) }
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
                } else if mayOwe, !log.withLock({ $0.isClosed }) {
                    owe(.variantTombstone, order: row.order, primary: primary, variant: row.variant)
                    shard.lingering.note(primary)
                } else {
                    return .needsRoom(destination, length: RecordHeader.size, hasBlob: false)
                }
            }
            if let gone = shard.remove(row.fragment, variant: row.variant, at: current.place) {
                removal.rows = [GoneRow(row: gone, segment: slots.underLock(gone.place.slot))]
                // The blob of an evicted entry is known from its segment's table.
                if !isEviction { removal.rows.forEach(noteRelease) }
            }
            if current.isPinned { pins.release(EntryIdentity(primary: primary, variant: row.variant)) }
            return .done(removal)
        }
    }

    /// Takes out all variants of a key, those being written included.
    func reserveInvalidation(of key: StoreKey, mayOwe: Bool = false, isTurn: Bool = false) -> Reserved<Removal?> {
        let primary = hashing.primary(key)
        let fragment = ShardedIndex.fragment(of: primary)
        return index.shard(of: primary).state.withLock { shard -> Reserved<Removal?> in
            let rows = shard.table.rows(fragment).all
            let isWritten = shard.writers.hasWriters(of: key)
            let mayHide =
                shard.lingering.contains(primary) || shard.removing.contains(primary)
                || shard.pending.contains { $0.fragment == fragment }
            // With nothing in the index all that lies on the disk is dead already, and something there says so; but for
            // what was just evicted from a segment that is still there.
            if rows.isEmpty, !isWritten, !mayHide, !isReclaiming.load(ordering: .acquiring) { return .done(nil) }
            // The order is taken under the shard's lock: a put that reserves later bears a higher one.
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
            } else if mayOwe, !log.withLock({ $0.isClosed }) {
                owe(.primaryTombstone, order: orders.next(), primary: primary, variant: 0)
                shard.lingering.note(primary)
            } else {
                return .needsRoom(.main, length: RecordHeader.size, hasBlob: false)
            }
            shard.writers.supersede(key)
            shard.supersedePuts(fragment)
            let gone = rows.map { GoneRow(row: $0, segment: slots.underLock($0.place.slot)) }
            gone.forEach(noteRelease)
            for row in rows {
                shard.remove(row.fragment, variant: row.variant, at: row.place)
                if row.isPinned { pins.release(EntryIdentity(primary: primary, variant: row.variant)) }
            }
            return .done(Removal(rows: gone, note: note))
        }
    }

    /// Reserves the place of a tombstone or mark; nil when the log has no room.
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
        let length = RecordHeader.size + detail.count + (detail.isEmpty ? 0 : sealOverhead)
        let reserved = log.withLock { $0.reserve(destination, length: length, hasBlob: false, isTurn: isTurn) }
        guard let place = reserved else { return nil }
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
        if !detail.isEmpty { header.keyID = isSealed ? seal?.keyID ?? 0 : 0 }
        return ReservedNote(place: place, header: header, detail: detail, ticket: notesUnderWay.begin())
    }

    /// Writes what a removal needs to hold, then lets go of what it freed.
    ///
    /// - Throws: `.io` when the note could not be written: then it is owed and tried again, and the entry may come back
    ///   should the process end before that.
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

    /// Writes a note and enters it in its segment's table.
    ///
    /// - Parameter owes: whether it is owed where that fails.
    func write(_ note: ReservedNote, owes: Bool = false) throws(StoreError) {
        var failure: StoreError?
        do throws(StoreError) { try put(note) } catch { failure = error }
        if owes, failure != nil {
            owe(note.header.kind, order: note.header.order, primary: note.header.primary, variant: note.header.variant)
        }
        let row = TableRow(note.header, place: UInt32(truncatingIfNeeded: note.place.offset / 16))
        notesUnderWay.end(note.ticket)
        let wantsTable = log.withLock { $0.finish(note.place, row: failure == nil ? row : nil, blob: nil) }
        if wantsTable { threads.later(.changes) { [self] in sealFull() } }
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
            throw failed(error)
        }
        succeeded()
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
        defer { noteRoomAhead() }
        if owed.withLock({ $0.isOverfull && $0.notes.isEmpty }) {
            // Which ones are not remembered, so after a crash none may be believed.
            guard (try? writeFormat { $0.suspectBefore = orders.last + 1 }) != nil else { return }
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
            if note == nil, (try? openCarried()) != nil { note = reserve() }
            guard let note, (try? write(note)) != nil else { return }
            owed.withLock { owed in
                // Another may have been added behind it meanwhile.
                if let place = owed.notes.lastIndex(of: owing) { owed.notes.remove(at: place) }
            }
        }
    }

    /// Takes one row out, with a tombstone.
    ///
    /// - Returns: whether it was still there.
    /// - Throws: what the device said. Then the entry is gone all the same, and its tombstone is owed.
    func remove(_ row: IndexRow, primary: UInt64) async throws(StoreError) -> Bool {
        try await settle { [self] mayOwe, isTurn in
            reserveRemoval(of: row, primary: primary, isEviction: false, mayOwe: mayOwe, isTurn: isTurn)
        } != nil
    }

    /// Takes out all variants of a key, those being written included; fails as ``remove(_:primary:)`` does.
    func invalidate(_ key: StoreKey) async throws(StoreError) {
        let removal = try await settle { [self] mayOwe, isTurn in
            reserveInvalidation(of: key, mayOwe: mayOwe, isTurn: isTurn)
        }
        counters.entriesRemoved.add(removal?.rows.count ?? 0, ordering: .relaxed)
    }

    private func settle(
        _ reserve: @escaping @Sendable (_ mayOwe: Bool, _ isTurn: Bool) -> Reserved<Removal?>
    ) async throws(StoreError) -> Removal? {
        var failure: StoreError?
        while true {
            var reserved = reserve(failure != nil, false)
            if case .needsRoom(let destination, let length, let hasBlob) = reserved {
                do throws(StoreError) {
                    reserved = try await threads.run(.changes, isUrgent: true) { [self] () throws(StoreError) in
                        try withRoom(destination, length: length, hasBlob: hasBlob) { reserve(false, true) }
                    }
                } catch {
                    // Once the store is closed nothing goes any more, since nothing could be noted of it.
                    if error.code == .closed { throw error }
                    failure = error
                    continue
                }
            }
            switch reserved {
            case .done(let removal):
                guard let removal else { return nil }
                if inPlace.admits(RecordHeader.size) {
                    try finish(removal)
                } else {
                    try await threads.run(.writes, isUrgent: true) { [self] () throws(StoreError) in
                        try finish(removal)
                    }
                }
                if let failure { throw failure }
                return removal
            case .busy:
                try await threads.run(.writes, isUrgent: true) {}
            case .needsRoom:
                try checkOpen()
                failure = Self.noSpace
            }
        }
    }

    /// Takes a row out from a thread that cannot wait: where the log has no room, its tombstone is owed.
    func drop(_ row: IndexRow, primary: UInt64) {
        counters.entriesCorrupt.add(1, ordering: .relaxed)
        guard
            case .done(let removal?) = reserveRemoval(of: row, primary: primary, isEviction: false, mayOwe: true)
        else { return }
        // What cannot be noted on the disk is found damaged again after the next opening.
        try? finish(removal)
        if !owed.withLock({ $0.notes.isEmpty }) { threads.later(.changes) { [self] in payDebts() } }
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// Records on their way to the disk: a place is reserved under the lock of the key's shard, the bytes are written without
/// any lock, and the index is told under the lock again.
extension DiskEngine {
    /// What reserving gave.
    enum Reserved<Value: Sendable>: Sendable {
        case done(Value)
        /// The log has no room; nothing has changed.
        case needsRoom(LogState.Destination, length: Int, hasBlob: Bool)
        /// Something else is being written for this identity; nothing has changed.
        case busy
    }

    /// What publishing a record did.
    struct Published: Sendable {
        /// Whether it is in the index, or was followed there at once by a newer one.
        var isIn = false
        /// Whether a newer one had come before it: then it never was to be seen.
        var isOvertaken = false
        /// Whether it was written and must never be seen: its key was invalidated or purged, or its base is gone.
        var isRefused = false
        /// Whether it may be found after a crash all the same.
        var lingers = false
        /// Its row, where its identity had none before.
        var added: IndexRow?
        /// What it put out of the index.
        var replaced: GoneRow?
        /// A variant that is now one too many.
        var surplus: IndexRow?
    }

    /// Why an entry is written.
    enum Purpose: Sendable {
        /// A writer commits it.
        case commit(writer: UInt64, since: UInt64)
        /// It is put in one step, so that it is known of from the reservation of its place on.
        case put(since: UInt64)
        /// It takes the place of the row of this order and nothing else; no mark up to the order `since` had taken that row.
        case replace(order: UInt64, since: UInt64)

        /// The writer that commits it.
        var writer: UInt64? {
            if case .commit(let writer, _) = self { writer } else { nil }
        }

        /// The last order before it began: a later mark takes it.
        var since: UInt64 {
            switch self {
            case .commit(_, let since), .put(let since), .replace(_, let since): since
            }
        }

        /// Whether it is a new entry, in the place of whatever has its identity.
        var isNew: Bool {
            if case .replace = self { false } else { true }
        }
    }

    /// The length of a draft's record.
    func length(of record: RecordBytes) -> Int {
        let overhead = sealOverhead
        let body = record.body.isEmpty ? 0 : record.body.count + overhead
        return RecordHeader.size + record.detailLength + overhead + body
    }

    /// Reserves a place for an entry.
    ///
    /// - Parameters:
    ///   - wanted: the segment for which room was made for it.
    ///   - isTurn: whether room is set aside for it.
    ///   - purpose: a put that finds no room becomes the commit of a writer.
    /// - Throws: `.superseded` when a writer may not commit any more. Nil inside: the row to replace is gone.
    func reserve(
        _ draft: EntryDraft,
        _ bytes: RecordBytes,
        tags: Set<String>,
        isPinned: Bool?,
        wanted: LogState.Destination? = nil,
        isTurn: Bool = false,
        _ purpose: inout Purpose
    ) throws(StoreError) -> Reserved<ReservedRecord?> {
        let length = length(of: bytes)
        let identity = draft.identity
        let fragment = ShardedIndex.fragment(of: identity.primary)
        return try index.shard(of: identity.primary).state.withLock {
            shard throws(StoreError) -> Reserved<ReservedRecord?> in
            let old = shard.table.row(fragment, variant: identity.variant)
            var destination = wanted ?? .small
            switch purpose {
            case .commit(let writer, _):
                guard let maySucceed = shard.writers.maySucceed(writer) else { throw Self.ended }
                guard maySucceed else { throw Self.superseded }
                if shard.pending.contains(where: { $0.isOf(fragment, identity.variant) && $0.isExclusive }) {
                    return .busy
                }
            case .put:
                if shard.pending.contains(where: { $0.isOf(fragment, identity.variant) && $0.isExclusive }) {
                    return .busy
                }
            case .replace(let order, _):
                guard let old, old.order == order else { return .done(nil) }
                if shard.pending.contains(where: { $0.isOf(fragment, identity.variant) }) { return .busy }
                destination = wanted ?? slots.underLock(old.place.slot).map { LogState.Destination($0.kind) } ?? .small
            }
            let reserved = log.withLock {
                $0.reserve(destination, length: length, hasBlob: draft.hasBlob, isTurn: isTurn)
            }
            guard let place = reserved else {
                // What waits for room may wait long: from here on a writer stands for it.
                if case .put(let since) = purpose {
                    purpose = .commit(writer: shard.writers.begin(draft), since: since)
                }
                return .needsRoom(destination, length: length, hasBlob: draft.hasBlob)
            }
            // The marks are asked after the place is taken, so that a later mark's horizon reaches it.
            // So is a purge of all, which has removed the blobs of those who began before it.
            let isPurged = draft.blobNumber.map { $0 <= blobsPurgedUpTo.load(ordering: .acquiring) } ?? false
            guard !isPurged, let order = orders.next(since: purpose.since, key: draft.key, tags: tags) else {
                _ = log.withLock { $0.finish(place, row: nil, blob: nil) }
                if case .replace = purpose { return .done(nil) }
                throw Self.superseded
            }
            var isExclusive = false
            if case .replace = purpose {
                // The new record may be the one that is left behind: until it is published nothing vouches for it.
                shard.table.change(fragment, variant: identity.variant) { $0.shadows = true }
                isExclusive = true
            }
            shard.pending.append(
                PendingWrite(
                    fragment: fragment,
                    variant: identity.variant,
                    order: order,
                    isExclusive: isExclusive,
                    writer: purpose.writer
                )
            )
            let header = self.header(
                of: draft,
                detailLength: bytes.detailLength,
                place: place,
                order: order,
                isPinned: isPinned ?? old?.isPinned ?? false
            )
            return .done(
                ReservedRecord(
                    place: place,
                    header: header,
                    blob: draft.blobRow(offset: place.offset)
                )
            )
        }
    }

    private func header(
        of draft: EntryDraft,
        detailLength: Int,
        place: LogState.Place,
        order: UInt64,
        isPinned: Bool
    ) -> RecordHeader {
        var header = RecordHeader(
            kind: .entry,
            segment: place.segment.number,
            order: order,
            version: draft.version ?? order,
            primary: draft.identity.primary,
            variant: draft.identity.variant
        )
        header.isPinned = isPinned
        header.storedAt = draft.storedAt
        header.uselessAfter = draft.description.uselessAfter
        header.horizon = place.horizon
        header.bodyLength = draft.bodyLength
        header.keyID = isSealed ? seal?.keyID ?? 0 : 0
        header.detailLength = detailLength + sealOverhead
        switch draft.body {
        case .inline(let bytes):
            header.inlineLength = bytes.isEmpty ? 0 : bytes.count + sealOverhead
        case .blob(let number, _, _, let plainPerChunk):
            header.hasBlob = true
            header.bodyWord = number
            header.inlineLength = plainPerChunk
        }
        return header
    }

    /// Writes a reserved record; blocks for as long as a copy into the page cache takes, or longer.
    func write(_ record: ReservedRecord, _ bytes: consuming RecordBytes) throws(StoreError) {
        var header = record.header
        if !isSealed, !header.hasBlob { header.bodyWord = BodySum.of(bytes.body, seed: header.order) }
        do {
            let file = record.place.segment.file.open
            if isSealed, let seal {
                let (head, body) = try sealed(&header, bytes, seal)
                try files.write(head, body, to: file, at: record.place.offset)
            } else {
                let follows = bytes.holdsBody
                let body = bytes.body
                var head = bytes.bytes
                bytes.bytes = []
                header.put(into: &head, seed: seed)
                if follows || body.isEmpty {
                    try files.write(ByteChunk(head), to: file, at: record.place.offset)
                } else {
                    try files.write(ByteChunk(head), body, to: file, at: record.place.offset)
                }
            }
        } catch let error as FileSystemError {
            throw failed(error)
        } catch {
            throw error as? StoreError ?? StoreError(.io, "The entry could not be sealed.", cause: error)
        }
        succeeded()
    }

    private func sealed(
        _ header: inout RecordHeader,
        _ bytes: RecordBytes,
        _ seal: any StoreSeal
    ) throws(StoreError) -> (head: ByteChunk, body: ByteChunk) {
        let detail = try seal.seal(bytes.detail, context: SealedPart.detail(order: header.order).context)
        var body = bytes.body
        if !body.isEmpty {
            body = ByteChunk(try seal.seal(body, context: SealedPart.body(order: header.order).context))
        }
        if !header.hasBlob { header.bodyWord = BodySum.of(body, seed: header.order) }
        return (ByteChunk(header.encode(detail: ByteChunk(detail), seed: seed)), body)
    }

    static let ended = StoreError(.abandoned, "The writer has already committed or abandoned; start a new one.")
    static let superseded = StoreError(
        .superseded,
        "The key was invalidated while this entry was written; fetch it again."
    )
}

extension EntryDraft {
    fileprivate func blobRow(offset: Int) -> BlobRow? {
        guard case .blob(let number, _, let storedBytes, _) = body else { return nil }
        return BlobRow(
            place: UInt32(truncatingIfNeeded: offset / 16),
            number: number,
            storedBytes: UInt64(clamping: storedBytes)
        )
    }
}

/// What comes after a record's bytes: the index is told, or the record is wiped.
extension DiskEngine {
    /// Wipes the head of a record whose write failed, of which some or all may have reached the disk.
    ///
    /// - Returns: whether nothing of it can be found any more.
    func wipe(_ place: LogState.Place) -> Bool {
        let zeros = ByteChunk([UInt8](repeating: 0, count: 16))
        return (try? files.write(zeros, to: place.segment.file.open, at: place.offset)) != nil
    }

    /// Ends a reserved record: enters it in the index if it was written and nothing has overtaken it.
    func publish(_ record: ReservedRecord, isWritten: Bool, lingers: Bool, _ purpose: Purpose) -> Published {
        var outcome = enter(record, isWritten: isWritten, lingers: lingers, purpose)
        if outcome.isRefused {
            // A predicate leaves no tombstone, so the record itself goes; while it is pending, so that a purge can wait for it.
            outcome.lingers = !wipe(record.place)
            let primary = record.header.primary
            index.shard(of: primary).state.withLock { shard in
                _ = shard.endPending(
                    ShardedIndex.fragment(of: primary),
                    record.header.variant,
                    order: record.header.order
                )
                if outcome.lingers { shard.lingering.note(primary) }
            }
        }
        let isThere = isWritten && !(outcome.isRefused && !outcome.lingers)
        let wantsTable = log.withLock {
            $0.finish(record.place, row: isThere ? record.tableRow : nil, blob: isThere ? record.blob : nil)
        }
        if wantsTable { threads.later(.changes) { [self] in sealFull() } }
        if let added = outcome.added {
            tryOut(added, primary: record.header.primary, size: record.header.bytesTaken)
        }
        return outcome
    }

    private func enter(_ record: ReservedRecord, isWritten: Bool, lingers: Bool, _ purpose: Purpose) -> Published {
        let identity = EntryIdentity(primary: record.header.primary, variant: record.header.variant)
        let fragment = ShardedIndex.fragment(of: identity.primary)
        let order = record.header.order
        return index.shard(of: identity.primary).state.withLock { shard -> Published in
            let old = shard.table.row(fragment, variant: identity.variant)
            let isVoid = record.place.segment.epoch < epoch.load(ordering: .acquiring)
            if isWritten, !isVoid, !shard.accepts(purpose, old, fragment, record) { return Published(isRefused: true) }
            let pending = shard.endPending(fragment, identity.variant, order: order)
            guard isWritten else {
                if lingers { shard.lingering.note(identity.primary) }
                return Published()
            }
            if isVoid { return Published() }
            if let writer = purpose.writer { shard.writers.end(writer) }
            if purpose.isNew {
                if pending?.isOvertaken == true || (old?.order ?? 0) > order {
                    shard.table.change(fragment, variant: identity.variant) { $0.shadows = true }
                    return Published(isIn: true, isOvertaken: true)
                }
            }
            var row = IndexRow(fragment: fragment, variant: identity.variant, place: record.indexPlace, order: order)
            row.isPinned = record.header.isPinned
            row.hasBlob = record.header.hasBlob
            row.shadows =
                old != nil || shard.mayHide(identity.primary, fragment, identity.variant)
                || isReclaiming.load(ordering: .acquiring)
            row.mark = old?.mark ?? shard.frequencies.noteMiss(row.keyHash)
            do {
                _ = try shard.table.insert(row)
            } catch {
                shard.lingering.note(identity.primary)
                return Published()
            }
            if old == nil {
                shard.frequencies.fit(held: shard.table.count, used: ledger.used, capacity: ledger.capacity)
            }
            shard.overtake(fragment, identity.variant, below: row.order)
            let replaced = old.map { GoneRow(row: $0, segment: slots.underLock($0.place.slot)) }
            // Under the lock, so that the segment is not reclaimed before the number of the blob was read from it.
            if purpose.isNew, let replaced { noteRelease(replaced) }
            return Published(
                isIn: true,
                added: old == nil ? row : nil,
                replaced: replaced,
                surplus: shard.table.surplus(fragment)
            )
        }
    }
}

extension Shard {
    /// Whether a record that is written may be seen.
    fileprivate func accepts(
        _ purpose: DiskEngine.Purpose,
        _ old: IndexRow?,
        _ fragment: UInt64,
        _ record: ReservedRecord
    ) -> Bool {
        switch purpose {
        case .commit(let writer, _): writers.maySucceed(writer) == true
        case .put:
            pending.contains { $0.order == record.header.order && $0.fragment == fragment && !$0.isSuperseded }
        case .replace(let order, _): old?.order == order
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// Writes records to the disk: a place is reserved under the lock of the key's shard, the bytes are written without any lock, and
/// the index is updated under the lock again. If there is no place, room is made.
final class Writer: Sendable {
    let files: any FileSystem
    let maximumEntrySize: Int
    private let seed: UInt64
    private let seal: (any StoreSeal)?
    private let isSealed: Bool
    /// The bytes that sealing adds, 0 without a seal; needed for each record.
    private let sealOverhead: Int
    private let index: ShardedIndex
    private let orders: SequenceAllocator
    private let log: Log
    private let slots: SegmentSlots
    private let geometry: Geometry
    private let lookup: Lookup
    private let remover: Remover
    private let room: SpaceAllocator
    private let pins: PinRegistry
    private let threads: IOThreads
    private let health: StoreHealth
    private let counters: DiskCounters
    private let inPlace = InlineWritePolicy()
    /// Blobs up to this number were removed by a purge of everything.
    let blobsPurgedUpTo = Atomic<UInt64>(0)

    init(_ opened: OpenedStore, log: Log, lookup: Lookup, remover: Remover, room: SpaceAllocator) {
        (files, seal, index, orders) = (opened.files, opened.seal, opened.index, opened.orders)
        (pins, threads, health) = (opened.pins, opened.threads, opened.health)
        (seed, isSealed, sealOverhead) = (log.seed, opened.seal != nil, opened.seal?.overhead ?? 0)
        maximumEntrySize = opened.quota.budget.entry
        (self.log, self.lookup, self.remover, self.room) = (log, lookup, remover, room)
        (slots, geometry, counters) = (log.slots, log.geometry, opened.health.counters)
    }

    // MARK: Whole operations

    /// Writes an entry.
    ///
    /// - Returns: nil if the entry to be replaced is gone, or a removal has overtaken it.
    func store(
        _ draft: EntryDraft,
        body: GrowingDiskBody? = nil,
        purpose: Purpose
    ) async throws(StoreError) -> StoredEntry? {
        let bytes = RecordBytes(draft, isSealed: isSealed)
        guard length(of: bytes) <= geometry.recordLimit else { throw descriptionTooLong }
        var purpose = purpose
        let given = purpose.writer
        // A writer that reserving began ends with this call, whatever the result.
        defer {
            if let writer = purpose.writer, given == nil {
                index.shard(of: draft.identity.primary).state.withLock { _ = $0.writers.end(writer) }
            }
        }
        while true {
            var reserved = try reserve(draft, bytes: bytes, purpose: &purpose)
            if case .needsRoom(let request) = reserved {
                let registered = purpose
                reserved = try await threads.run(.changes, isUrgent: true) { [self] () throws(StoreError) in
                    try room.withRoom(request) { () throws(StoreError) in
                        var purpose = registered
                        return try reserve(draft, bytes: bytes, claimed: request.destination, purpose: &purpose)
                    }
                }
            }
            switch reserved {
            case .done(nil):
                return nil
            case .done(let record?):
                var failure: StoreError?
                do throws(StoreError) {
                    if inPlace.admits(record.place.length) {
                        try writeInPlace(record, bytes: bytes)
                    } else {
                        try await threads.run(.writes) { [self] () throws(StoreError) in
                            try write(record, bytes: bytes)
                        }
                    }
                } catch {
                    failure = error
                }
                let (entry, surplus) = try finish(record, failure: failure, draft: draft, body: body, purpose: purpose)
                remover.writePendingTombstonesSoon()
                // The entry is stored, whether or not the removal of the one too many can be recorded.
                if let surplus, (try? await remove(surplus, primary: record.header.primary)) == true {
                    counters.entriesEvicted.add(1, ordering: .relaxed)
                }
                return entry
            case .needsRoom:
                // Room made for this record alone is enough for it; only closing takes it away.
                try health.checkOpen()
                throw StoreError.noSpace
            case .busy:
                // What is in progress for the entry ends on one of the store's threads or takes microseconds.
                try await threads.run(.writes, isUrgent: true) {}
            }
        }
    }

    /// How often a change looks again for an entry that others change meanwhile.
    private static let attempts = 64

    /// Writes a reserved record on this thread, and sometimes measures the time.
    private func writeInPlace(_ record: ReservedRecord, bytes: consuming RecordBytes) throws(StoreError) {
        let start = inPlace.times ? ContinuousClock.now : nil
        try write(record, bytes: bytes)
        if let start { inPlace.took(start.duration(to: .now)) }
    }

    /// Everything after the write of a record, whether it failed or not.
    ///
    /// - Returns: the entry, nil if the one to be replaced is gone or a removal has overtaken it; and a variant in excess of the
    ///   limit.
    func finish(
        _ record: ReservedRecord,
        failure: StoreError?,
        draft: EntryDraft,
        body: GrowingDiskBody?,
        purpose: Purpose
    ) throws(StoreError) -> (entry: StoredEntry?, surplus: IndexRow?) {
        let mayRemain = failure != nil && !log.wipe(record.place)
        // A record that may have been written may be found after a crash, and then needs its blob.
        if mayRemain { body?.keepBlob() }
        let published = publish(record, isWritten: failure == nil, mayRemain: mayRemain, purpose: purpose)
        if published.mayRemain { body?.keepBlob() }
        if let failure { throw failure }
        if let replaced = published.replaced, replaced.row.hasBlob { remover.removeBlobsSoon() }
        guard published.isIn else { return (nil, published.surplus) }
        if purpose.isNew {
            counters.entriesWritten.add(1, ordering: .relaxed)
            counters.bytesWritten.add(draft.bodyLength, ordering: .relaxed)
        }
        if !published.isOvertaken, let blob = draft.blob {
            body?.keepBlob()
            room.makeRoomForBlobSoon(blob.storedBytes)
        }
        return (entry(of: draft, record, isPinned: published.isPinned), published.surplus)
    }

    private func entry(of draft: EntryDraft, _ record: ReservedRecord, isPinned: Bool) -> StoredEntry {
        StoredEntry(
            key: draft.key,
            variant: draft.variant,
            version: StoredEntry.Version(number: record.header.version),
            description: draft.description,
            bodyLength: draft.bodyLength,
            storedAt: draft.storedAt,
            isPinned: isPinned
        )
    }

    /// Gives an entry another description or another pin.
    ///
    /// - Parameters:
    ///   - description: nil keeps it, and the version too.
    /// - Returns: nil if the version is gone.
    func rewrite(
        _ entry: StoredEntry,
        description: EntryDescription?,
        isPinned: Bool?
    ) async throws(StoreError) -> StoredEntry? {
        for _ in 0..<Self.attempts {
            // Before the lookup, which checks the marks: an earlier mark of a tag that the entry gets only now does not apply.
            let since = orders.last
            guard let source = try await lookup.source(of: entry, isUrgent: true) else { return nil }
            let header = source.header
            if let isPinned, source.row.isPinned == isPinned, header.isPinned == isPinned {
                return entry.changed(isPinned: isPinned)
            }
            let body: EntryDraft.Body
            if header.hasBlob {
                body = .blob(BlobShape(header))
            } else {
                body = .inline(try lookup.inlineBody(of: source))
            }
            let draft = EntryDraft(
                key: entry.key,
                variant: entry.variant,
                identity: EntryIdentity(header),
                description: description ?? entry.description,
                body: body,
                storedAt: header.storedAt,
                version: description == nil ? header.version : nil,
                isPinned: isPinned,
                tagsBefore: entry.description.tags
            )
            let stored = try await store(draft, purpose: .replace(order: header.order, since: since))
            if let stored { return stored }
            // Carried, pinned or freshened meanwhile: its version shows whether it is still there.
        }
        return nil
    }

    /// Removes one row, with a tombstone.
    ///
    /// - Returns: whether it was still there.
    /// - Throws: the device's error, `.noSpace`. The entry is gone even so, and its tombstone is pending.
    func remove(_ row: IndexRow, primary: UInt64) async throws(StoreError) -> Bool {
        try await performRemoval { [self] mayPostpone, claimed in
            remover.reserveRemoval(
                of: row,
                primary: primary,
                isEviction: false,
                mayPostpone: mayPostpone,
                claimed: claimed
            )
        } != nil
    }

    /// Removes all variants of a key, including those being written; fails like ``remove(_:primary:)``.
    func invalidate(_ key: StoreKey) async throws(StoreError) {
        let removal = try await performRemoval { [self] mayPostpone, claimed in
            remover.reserveInvalidation(of: key, mayPostpone: mayPostpone, claimed: claimed)
        }
        counters.entriesRemoved.add(removal?.rows.count ?? 0, ordering: .relaxed)
    }

    private func performRemoval(
        _ reserve:
            @escaping @Sendable (_ mayPostpone: Bool, _ claimed: LogState.Destination?) -> Reserved<Remover.Removal?>
    ) async throws(StoreError) -> Remover.Removal? {
        var failure: StoreError?
        while true {
            var reserved = reserve(failure != nil, nil)
            if case .needsRoom(let request) = reserved {
                do throws(StoreError) {
                    reserved = try await threads.run(.changes, isUrgent: true) { [self] () throws(StoreError) in
                        try room.withRoomForRemoval(request) { reserve(false, $0) }
                    }
                } catch {
                    // Once the store is closed, nothing is removed any more, since that could not be recorded.
                    if error.code == .closed { throw error }
                    failure = error
                    continue
                }
            }
            switch reserved {
            case .done(let removal):
                guard let removal else { return nil }
                if inPlace.admits(RecordHeader.size) {
                    try remover.finish(removal)
                } else {
                    try await threads.run(.writes, isUrgent: true) { [self] () throws(StoreError) in
                        try remover.finish(removal)
                    }
                }
                if let failure, removal.tombstone == nil { throw failure.unrecorded }
                return removal
            case .busy:
                try await threads.run(.writes, isUrgent: true) {}
            case .needsRoom:
                try health.checkOpen()
                failure = StoreError.noSpace
            }
        }
    }

    // MARK: One record

    /// The length of a draft's record.
    func length(of record: RecordBytes) -> Int {
        let overhead = sealOverhead
        let body = record.body.isEmpty ? 0 : record.body.count + overhead
        return RecordHeader.size + record.detailLength + overhead + body
    }

    /// Reserves a place for an entry.
    ///
    /// - Parameters:
    ///   - claimed: where room is reserved for it, if it is.
    ///   - purpose: a put that finds no room becomes the commit of a writer.
    /// - Throws: `.superseded` if a writer may not commit any more. Nil inside: the row to replace is gone.
    func reserve(
        _ draft: EntryDraft,
        bytes: RecordBytes,
        claimed: LogState.Destination? = nil,
        purpose: inout Purpose
    ) throws(StoreError) -> Reserved<ReservedRecord?> {
        let length = length(of: bytes)
        let (tags, before) = (draft.description.tags, draft.tagsBefore)
        let marked = before.isEmpty ? tags : tags.union(before)
        let identity = draft.identity
        let fragment = ShardedIndex.fragment(of: identity.primary)
        return try index.shard(of: identity.primary).state.withLock {
            shard throws(StoreError) -> Reserved<ReservedRecord?> in
            let old = shard.table.row(fragment, variant: identity.variant)
            var destination = claimed ?? .small
            switch purpose {
            case .commit(let writer, _):
                guard let mayCommit = shard.writers.mayCommit(writer) else { throw StoreError.ended }
                guard mayCommit else { throw overtaken }
                if shard.isReplacing(fragment, variant: identity.variant) { return .busy }
            case .put(let since):
                if shard.isReplacing(fragment, variant: identity.variant) {
                    // Invalidations must find it while it waits: from now on, a writer represents it.
                    purpose = .commit(writer: shard.writers.begin(draft), since: since)
                    return .busy
                }
            case .replace(let order, _):
                guard let old, old.order == order else { return .done(nil) }
                if shard.pending.contains(where: { $0.isOf(fragment, variant: identity.variant) }) { return .busy }
                destination =
                    claimed ?? slots.underLock(old.place.slot).map { LogState.Destination($0.kind) } ?? .small
            }
            let request = LogState.Request(destination: destination, length: length, hasBlob: draft.blob != nil)
            guard let place = log.reserve(request, hasClaim: claimed != nil) else {
                // Waiting for room may take long: from now on, a writer represents it.
                if case .put(let since) = purpose {
                    purpose = .commit(writer: shard.writers.begin(draft), since: since)
                }
                return .needsRoom(request)
            }
            // The marks are checked after the place is reserved, so that a later mark's horizon covers it. The same applies to a
            // purge of everything, which has removed the blobs of writers that began before it.
            let isPurged = draft.blob.map { $0.number <= blobsPurgedUpTo.load(ordering: .acquiring) } ?? false
            guard !isPurged, let order = orders.next(since: purpose.since, key: draft.key, tags: marked) else {
                log.finish(place, row: nil, blob: nil)
                if case .replace = purpose { return .done(nil) }
                throw StoreError.superseded
            }
            var isExclusive = false
            if case .replace = purpose {
                // The new record may be the one that is left behind: until it is published, that is unknown.
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
                isPinned: draft.isPinned ?? old?.isPinned ?? false
            )
            return .done(ReservedRecord(place: place, header: header))
        }
    }

    private func header(
        of draft: EntryDraft,
        detailLength: Int,
        place: LogState.Reservation,
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
        case .blob(let shape):
            header.hasBlob = true
            header.bodyWord = shape.number
            header.inlineLength = shape.plainPerChunk
        }
        return header
    }

    /// Writes a reserved record; blocks for as long as a copy into the page cache takes, or longer.
    func write(_ record: ReservedRecord, bytes: consuming RecordBytes) throws(StoreError) {
        var header = record.header
        let head: ByteChunk
        let body: ByteChunk
        if isSealed, let seal {
            (head, body) = try sealed(&header, bytes: bytes, seal: seal)
        } else {
            if !header.hasBlob { header.bodyWord = BodySum.of(bytes.body, seed: header.order) }
            body = bytes.holdsBody ? ByteChunk() : bytes.body
            var filled = bytes.bytes
            bytes.bytes = []
            header.put(into: &filled, seed: seed)
            head = ByteChunk(filled)
        }
        let (file, offset) = (record.place.segment.file.open, record.place.offset)
        try health.checked(
            body.isEmpty
                ? try files.write(head, to: file, at: offset) : try files.write(head, body, to: file, at: offset)
        )
        health.succeeded()
    }

    private func sealed(
        _ header: inout RecordHeader,
        bytes: RecordBytes,
        seal: any StoreSeal
    ) throws(StoreError) -> (head: ByteChunk, body: ByteChunk) {
        let detail = try seal.seal(bytes.detail, context: SealedPart.detail(of: header))
        var body = bytes.body
        if !body.isEmpty {
            body = ByteChunk(try seal.seal(body, context: SealedPart.body(order: header.order)))
        }
        if !header.hasBlob { header.bodyWord = BodySum.of(body, seed: header.order) }
        return (ByteChunk(header.encode(detail: ByteChunk(detail), seed: seed)), body)
    }

    /// Ends a reserved record: adds it to the index if it was written and nothing has overtaken it.
    func publish(_ record: ReservedRecord, isWritten: Bool, mayRemain: Bool, purpose: Purpose) -> Published {
        var outcome = enter(record, isWritten: isWritten, mayRemain: mayRemain, purpose: purpose)
        if outcome.isRefused {
            // A predicate leaves no tombstone, so the record itself is wiped; while it is pending, so that a purge can wait for it.
            outcome.mayRemain = !log.wipe(record.place)
            let primary = record.header.primary
            index.shard(of: primary).state.withLock { shard in
                _ = shard.endPending(
                    ShardedIndex.fragment(of: primary),
                    variant: record.header.variant,
                    order: record.header.order
                )
                if outcome.mayRemain { shard.uncertain.note(primary) }
            }
        }
        let isThere = isWritten && !(outcome.isRefused && !outcome.mayRemain)
        log.finish(record.place, row: isThere ? record.tableRow : nil, blob: isThere ? record.blobRow : nil)
        if let added = outcome.added {
            lookup.recordInTuner(added, primary: record.header.primary, size: record.header.bytesTaken)
        }
        return outcome
    }

    private func enter(_ record: ReservedRecord, isWritten: Bool, mayRemain: Bool, purpose: Purpose) -> Published {
        let identity = EntryIdentity(record.header)
        let fragment = ShardedIndex.fragment(of: identity.primary)
        let order = record.header.order
        return index.shard(of: identity.primary).state.withLock { shard -> Published in
            let old = shard.table.row(fragment, variant: identity.variant)
            let isVoid = record.place.segment.epoch < log.epoch.load(ordering: .acquiring)
            if isWritten, !isVoid, !shard.accepts(purpose, old: old, fragment: fragment, record: record) {
                return Published(isRefused: true)
            }
            let pending = shard.endPending(fragment, variant: identity.variant, order: order)
            guard isWritten else {
                if mayRemain { shard.uncertain.note(identity.primary) }
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
            // Under the lock, so that the pin's weight is that of the row. Without room for it, the entry is not pinned.
            row.isPinned = record.header.isPinned && pins.pin(identity, weight: pinWeight(record.header))
            row.hasBlob = record.header.hasBlob
            row.shadows =
                old != nil || shard.mayHide(identity.primary, fragment: fragment, variant: identity.variant)
                || remover.isReclaiming.load(ordering: .acquiring)
            row.mark = old?.mark ?? shard.frequencies.noteMiss(row.keyHash)
            do {
                _ = try shard.table.insert(row)
            } catch {
                pins.release(identity)
                shard.uncertain.note(identity.primary)
                return Published()
            }
            if !row.isPinned, old?.isPinned == true { pins.release(identity) }
            if old == nil {
                shard.frequencies.fit(held: shard.table.count, used: log.quota.used, capacity: log.quota.capacity)
            }
            shard.overtake(fragment, variant: identity.variant, below: row.order)
            let replaced = old.map { RemovedRow(row: $0, segment: slots.underLock($0.place.slot)) }
            // Under the lock, so that the segment is not reclaimed before the number of the blob was read from it.
            if purpose.isNew, let replaced { remover.noteBlobRemoval(replaced) }
            return Published(
                isIn: true,
                isPinned: row.isPinned,
                added: old == nil ? row : nil,
                replaced: replaced,
                surplus: shard.table.surplus(fragment)
            )
        }
    }

    // MARK: Bounds

    /// The most variants of one key; one more replaces the oldest that is not pinned.
    static let maximumVariants = 16

    /// The weight of a pinned entry toward the limit for pins.
    func pinWeight(_ header: RecordHeader) -> Int {
        header.bytesTaken.addingSaturated(TableRow.size + BlobRow.size)
    }

    var tooLarge: StoreError { .tooLarge(limit: maximumEntrySize) }

    /// What a record holds besides the body, which has a file of its own if it is long.
    var descriptionTooLong: StoreError {
        var error = StoreError(
            .tooLarge,
            "The keys and the description are longer than the \(geometry.recordLimit) bytes that a store of this capacity has for "
                + "them; store shorter ones, or raise the capacity."
        )
        error.limit = geometry.recordLimit
        return error
    }

    /// Why an entry that was being written is not kept: its key was invalidated or purged, or the store is being closed.
    var overtaken: StoreError { health.isClosed ? .closed : .superseded }
}

extension Shard {
    /// Whether a written record may become visible.
    fileprivate func accepts(
        _ purpose: Writer.Purpose,
        old: IndexRow?,
        fragment: UInt64,
        record: ReservedRecord
    ) -> Bool {
        switch purpose {
        case .commit(let writer, _): writers.mayCommit(writer) == true
        case .put:
            pending.contains { $0.order == record.header.order && $0.fragment == fragment && !$0.isSuperseded }
        case .replace(let order, _): old?.order == order
        }
    }
}

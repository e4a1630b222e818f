// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// Whole operations that write an entry: they reserve, make room where there is none, write and publish.
extension DiskEngine {
    /// Writes an entry.
    ///
    /// - Parameters:
    ///   - isPinned: whether it is pinned; nil: as the entry that it replaces.
    /// - Returns: nil when what it was to replace is gone, or a removal has overtaken it.
    func store(
        _ draft: EntryDraft,
        tagsBefore: Set<String> = [],
        isPinned: Bool?,
        body: GrowingDiskBody? = nil,
        _ purpose: Purpose
    ) async throws(StoreError) -> StoredEntry? {
        let bytes = RecordBytes(draft, isSealed: isSealed)
        guard length(of: bytes) <= geometry.recordLimit else { throw tooLarge }
        let tags = tagsBefore.isEmpty ? draft.description.tags : draft.description.tags.union(tagsBefore)
        var purpose = purpose
        let given = purpose.writer
        // A writer that reserving made ends with this call, whatever comes of it.
        defer {
            if let writer = purpose.writer, given == nil {
                index.shard(of: draft.identity.primary).state.withLock { _ = $0.writers.end(writer) }
            }
        }
        while true {
            var reserved = try reserve(draft, bytes, tags: tags, isPinned: isPinned, &purpose)
            if case .needsRoom(let destination, let length, let hasBlob) = reserved {
                let registered = purpose
                reserved = try await threads.run(.changes, isUrgent: true) { [self] () throws(StoreError) in
                    try withRoom(destination, length: length, hasBlob: hasBlob) { () throws(StoreError) in
                        var purpose = registered
                        return try reserve(
                            draft,
                            bytes,
                            tags: tags,
                            isPinned: isPinned,
                            wanted: destination,
                            isTurn: true,
                            &purpose
                        )
                    }
                }
            }
            switch reserved {
            case .done(nil):
                return nil
            case .done(let record?):
                var failure: StoreError?
                if inPlace.admits(record.place.length) {
                    failure = writeInPlace(record, bytes)
                } else {
                    do throws(StoreError) {
                        try await threads.run(.writes) { [self] () throws(StoreError) in try write(record, bytes) }
                    } catch {
                        failure = error
                    }
                }
                let finished = try finish(record, failure, draft, body, purpose)
                if let surplus = finished.surplus, try await remove(surplus, primary: record.header.primary) {
                    counters.entriesEvicted.add(1, ordering: .relaxed)
                }
                return finished.entry
            case .needsRoom:
                // What was made for this record alone has room for it; only closing takes that away.
                try checkOpen()
                throw Self.noSpace
            case .busy:
                // What is under way for the entry ends on one of the store's threads or is a matter of microseconds.
                try await threads.run(.writes, isUrgent: true) {}
            }
        }
    }

    /// Writes a new entry whose whole body is in memory and needs a blob.
    func putLong(_ draft: EntryDraft, _ whole: ByteChunk, since: UInt64) async throws(StoreError) -> StoredEntry {
        // It takes a while: an invalidation meanwhile must know of it.
        let writer = index.shard(of: draft.identity.primary).state.withLock { $0.writers.begin(draft) }
        let body = GrowingDiskBody(whole, engine: self)
        do throws(StoreError) {
            try await body.settle(isEnd: true)
            guard let place = body.place else { throw Self.ended }
            var draft = draft
            draft.body = place
            let purpose = Purpose.commit(writer: writer, since: since)
            guard let stored = try await store(draft, isPinned: nil, body: body, purpose) else { throw Self.superseded }
            body.letGo()
            return stored
        } catch {
            index.shard(of: draft.identity.primary).state.withLock { _ = $0.writers.end(writer) }
            body.abandon()
            throw error
        }
    }

    /// How often a change looks for the entry again that others change meanwhile.
    private static let attempts = 64

    /// Writes a reserved record here and now, and times that now and then.
    private func writeInPlace(_ record: ReservedRecord, _ bytes: consuming RecordBytes) -> StoreError? {
        let start = inPlace.times ? ContinuousClock.now : nil
        do throws(StoreError) {
            try write(record, bytes)
        } catch {
            return error
        }
        if let start { inPlace.took(start.duration(to: .now)) }
        return nil
    }

    /// What is left to do once an entry is in the index.
    private struct Finished {
        /// Nil where what it was to replace is gone, or a removal has overtaken it.
        var entry: StoredEntry?
        /// A variant that is one too many.
        var surplus: IndexRow?
    }

    /// What follows the write of a record, whether it failed or not.
    private func finish(
        _ record: ReservedRecord,
        _ failure: StoreError?,
        _ draft: EntryDraft,
        _ body: GrowingDiskBody?,
        _ purpose: Purpose
    ) throws(StoreError) -> Finished {
        let lingers = failure != nil && !wipe(record.place)
        // What may have been written may be found after a crash, and then wants its blob.
        if lingers { body?.keepBlob() }
        let published = publish(record, isWritten: failure == nil, lingers: lingers, purpose)
        if published.lingers { body?.keepBlob() }
        if let failure { throw failure }
        if let replaced = published.replaced, replaced.row.hasBlob { releaseSoon() }
        var finished = Finished(surplus: published.surplus)
        guard published.isIn else { return finished }
        finished.entry = entry(of: draft, record)
        if published.isOvertaken { return finished }
        if draft.hasBlob {
            body?.keepBlob()
            makeRoomForBlobSoon(draft.blobBytes)
        }
        settlePin(record, published.replaced)
        if purpose.isNew {
            counters.entriesWritten.add(1, ordering: .relaxed)
            counters.bytesWritten.add(draft.bodyLength, ordering: .relaxed)
        }
        return finished
    }

    private func entry(of draft: EntryDraft, _ record: ReservedRecord) -> StoredEntry {
        StoredEntry(
            key: draft.key,
            variant: draft.variant,
            version: StoredEntry.Version(number: record.header.version),
            description: draft.description,
            bodyLength: draft.bodyLength,
            storedAt: draft.storedAt,
            isPinned: record.header.isPinned
        )
    }

    /// Gives an entry another description or another pin.
    ///
    /// - Parameters:
    ///   - description: nil keeps it, and the version with it.
    /// - Returns: nil when the version is gone.
    func rewrite(
        _ entry: StoredEntry,
        _ description: EntryDescription?,
        isPinned: Bool?
    ) async throws(StoreError) -> StoredEntry? {
        for _ in 0..<Self.attempts {
            // Before the look-up, which asks the marks: an earlier one of a tag that the entry gets only now has no say.
            let since = orders.last
            guard let source = try await source(of: entry) else { return nil }
            let header = source.header
            if let isPinned, source.row.isPinned == isPinned { return entry.changed(isPinned: isPinned) }
            let body: EntryDraft.Body
            if header.hasBlob {
                body = .blob(
                    number: header.bodyWord,
                    length: header.bodyLength,
                    storedBytes: header.storedBlobBytes,
                    plainPerChunk: header.inlineLength
                )
            } else {
                body = .inline(try inlineBody(of: source))
            }
            let draft = EntryDraft(
                key: entry.key,
                variant: entry.variant,
                identity: EntryIdentity(primary: header.primary, variant: header.variant),
                description: description ?? entry.description,
                body: body,
                storedAt: header.storedAt,
                version: description == nil ? header.version : nil
            )
            let stored = try await store(
                draft,
                tagsBefore: entry.description.tags,
                isPinned: isPinned,
                .replace(order: header.order, since: since)
            )
            if let stored { return stored }
            // Carried, pinned or freshened meanwhile: its version tells whether it is still there.
        }
        return nil
    }

    /// The record of a version as it is now; nil when that version is gone.
    func source(of entry: StoredEntry) async throws(StoreError) -> RecordSource? {
        func find(_ entries: [StoredEntry]) -> RecordSource? {
            entries.first { $0.version == entry.version && $0.variant == entry.variant }?.source
        }
        if let cached = try look(entry.key, waits: false, for: .store) { return find(cached) }
        return find(try await lookOnThread(entry.key, for: .store))
    }

    /// The variants of a key, read on the thread of reads.
    func lookOnThread(_ key: StoreKey, for asker: Asker) async throws(StoreError) -> [StoredEntry] {
        try await threads.run(.reads) { [self] () throws(StoreError) in try look(key, waits: true, for: asker) ?? []
        }
    }

    /// The body of an entry whose record holds it in the clear, checked; nil elsewhere.
    func bodyAtHand(of entry: StoredEntry) throws(StoreError) -> (any StoredBody)? {
        let isWhole: Bool? = entry.content.holdsBody
        guard let isWhole else { return nil }
        guard isWhole else { throw entry.source.map { dropDamaged($0) } == true ? Self.damaged : Self.gone }
        counters.bytesRead.add(entry.bodyLength, ordering: .relaxed)
        return entry.content
    }

    /// The plain inline body of a record, checked.
    func inlineBody(of source: RecordSource) throws(StoreError) -> ByteChunk {
        let stored = source.inlineBytes
        guard source.header.sum(of: stored) == source.header.bodyWord else {
            // A record that was overtaken while it was read is no damage.
            throw dropDamaged(source) ? Self.damaged : Self.gone
        }
        return try source.openedBody(seal: seal)
    }

    /// Takes out an entry whose body is damaged, unless it has moved or gone meanwhile.
    ///
    /// - Returns: whether it was there as it was read.
    @discardableResult
    func dropDamaged(_ source: RecordSource) -> Bool {
        let primary = source.header.primary
        let isThere = index.shard(of: primary).state.withLock { shard in
            shard.table.row(source.row.fragment, variant: source.row.variant).map {
                $0.order == source.row.order && $0.place == source.row.place
            } ?? false
        }
        if isThere { drop(source.row, primary: primary) }
        return isThere
    }

    /// Bytes of key, variant and description, as they count towards the size of an entry.
    func size(_ key: StoreKey, _ variant: StoreKey, _ description: EntryDescription) -> Int {
        RecordHeader.size + key.bytes.count + variant.bytes.count + description.byteCount
    }

    var tooLarge: StoreError {
        StoreError(
            .tooLarge,
            "The entry is larger than the \(maximumEntrySize) bytes that one entry may take, or its metadata alone fills a record."
        )
    }

    static let gone = StoreError(.superseded, "This version of the entry is gone; treat it as a miss.")
}

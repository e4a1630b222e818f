// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Changes of single entries: the ledger says who leaves, the shards show what is there.
extension MemoryStore {
    public func write(
        _ key: StoreKey,
        variant: StoreKey,
        description: EntryDescription,
        expectedLength: Int?,
        now: StoreInstant
    ) async throws(StoreError) -> any EntryWriter {
        let description = description.kept
        let cost = MemoryLimits.cost(key, variant, description, body: 0)
        let id = try change(now: now) { book throws(StoreError) in
            try limits.check(cost, and: max(0, expectedLength ?? 0))
            try book.ledger.makeRoom(cost, &book.leaving)
            return book.ledger.begin(.init(key: key, variant: variant, description: description, reserved: cost))
        }
        return MemoryWriter(store: self, id: id)
    }

    @discardableResult
    public func replaceDescription(
        of entry: StoredEntry,
        with description: EntryDescription,
        now: StoreInstant
    ) async throws(StoreError) -> StoredEntry? {
        let description = description.kept
        let hash = hash(of: entry.key)
        return try change(now: now) { book throws(StoreError) in
            guard let old = record(of: entry, hash) else { return nil }
            let cost = MemoryLimits.cost(entry.key, entry.variant, description, body: old.entry.bodyLength)
            try limits.check(cost)
            let growth = cost - MemoryLimits.cost(old.entry)
            // In use it now comes last to leave, so that room is rather made at others' cost.
            book.ledger.use(old.ticket, &book.leaving)
            try book.ledger.makeRoom(growth, &book.leaving)
            guard book.ledger.owner(of: old.ticket) != nil else {
                throw StoreError(.noSpace, "There is no room for the longer description; the entry was evicted.")
            }
            let isPinned = old.entry.isPinned && book.ledger.pinnedBytes + growth <= limits.pins
            let changed = old.entry.changed(description: description, version: book.nextVersion(), isPinned: isPinned)
            book.ledger.change(
                old.ticket,
                cost: cost,
                uselessAfter: description.uselessAfter,
                isPinned: isPinned,
                &book.leaving
            )
            let record = MemoryRecord(changed, HeldBody(old.held.bytes, ticket: old.ticket, in: shards))
            publish(record, hash, &book)
            return record.entry
        }
    }

    @discardableResult
    public func setPinned(_ pinned: Bool, _ entry: StoredEntry) async throws(StoreError) -> Bool {
        let hash = hash(of: entry.key)
        return try change { book throws(StoreError) in
            guard let old = record(of: entry, hash) else { return false }
            if old.entry.isPinned == pinned { return true }
            if pinned, book.ledger.pinnedBytes + MemoryLimits.cost(old.entry) > limits.pins { return false }
            book.ledger.setPinned(
                pinned,
                old.ticket,
                uselessAfter: old.entry.description.uselessAfter,
                &book.leaving
            )
            let changed = old.entry.changed(isPinned: pinned)
            takeOut(&book)
            changeShard(of: hash) { state in
                var records = state.table.records(of: entry.key, hash)
                guard let place = records.firstIndex(where: { $0.ticket == old.ticket }) else { return }
                records[place] = MemoryRecord(changed, old.held)
                state.table.replace(entry.key, hash, with: records)
            }
            return true
        }
    }

    public func remove(_ entry: StoredEntry) async throws(StoreError) {
        let hash = hash(of: entry.key)
        try change { book throws(StoreError) in
            guard let old = record(of: entry, hash) else { return }
            book.ledger.remove(old.ticket)
            book.counts.entriesRemoved &+= 1
            if let gone = changeShard(of: hash, { $0.remove(old.ticket, hash) }) { book.gone.append(gone) }
        }
    }

    public func invalidate(_ key: StoreKey) async throws(StoreError) {
        let hash = hash(of: key)
        try change { book throws(StoreError) in
            book.ledger.writers.supersede(key)
            let records = changeShard(of: hash) { state in
                let records = state.table.records(of: key, hash)
                state.table.replace(key, hash, with: [])
                return records
            }
            for record in records { book.ledger.remove(record.ticket) }
            book.counts.entriesRemoved &+= records.count
            book.gone += records
        }
    }

    // MARK: What the writers call

    func reserve(_ count: Int, for id: UInt64) throws(StoreError) {
        try change { book throws(StoreError) in
            guard let writer = book.ledger.writers[id] else { throw Self.ended }
            try limits.check(writer.reserved, and: count)
            try book.ledger.makeRoom(count, &book.leaving)
            book.ledger.reserve(count, for: id)
        }
    }

    func commit(
        _ id: UInt64,
        _ newDescription: EntryDescription?,
        body: ByteChunk,
        now: StoreInstant
    ) throws(StoreError) -> StoredEntry {
        try change(now: now) { book throws(StoreError) in
            guard let writer = book.ledger.writers[id] else { throw Self.ended }
            if writer.isSuperseded {
                throw StoreError(.superseded, "The key was invalidated while this entry was written; fetch it again.")
            }
            let description = newDescription?.kept ?? writer.description
            let cost = MemoryLimits.cost(writer.key, writer.variant, description, body: body.count)
            try limits.check(cost)
            try book.ledger.makeRoom(cost - writer.reserved, &book.leaving)
            takeOut(&book)
            let hash = hash(of: writer.key)
            var others = withShard(of: hash) { $0.table.records(of: writer.key, hash) }
            let older = others.firstIndex { $0.entry.variant == writer.variant }.map { others.remove(at: $0) }
            var tooMany: SlotTicket?
            if others.count >= limits.variants {
                tooMany = others.last { !$0.entry.isPinned }?.ticket
                guard tooMany != nil else {
                    throw StoreError(.noSpace, "Every variant of this key is pinned; release one to store another.")
                }
            }
            book.ledger.writers.end(id)
            if let tooMany { book.ledger.evict(tooMany.slot, &book.leaving) }
            // A pin means the resource, so it outlives a version as far as the room for pins allows.
            let olderPins = older.map { $0.entry.isPinned ? MemoryLimits.cost($0.entry) : 0 } ?? 0
            let isPinned = olderPins > 0 && book.ledger.pinnedBytes - olderPins + cost <= limits.pins
            let ticket = enter(writer, hash, older, cost, description.uselessAfter, isPinned, &book)
            let entry = StoredEntry(
                key: writer.key,
                variant: writer.variant,
                version: book.nextVersion(),
                description: description,
                bodyLength: body.count,
                storedAt: now,
                isPinned: isPinned
            )
            let record = MemoryRecord(entry, HeldBody(body, ticket: ticket, in: shards))
            publish(record, hash, &book)
            book.counts.entriesWritten &+= 1
            book.counts.bytesWritten &+= body.count
            return record.entry
        }
    }

    func abandon(_ id: UInt64) {
        try? change { book throws(StoreError) in
            book.ledger.writers.end(id)
            book.ledger.fit(&book.leaving)
        }
    }

    func hash(of key: StoreKey) -> UInt64 {
        HeadHash.of(key.bytes, seed: hashSeed)
    }

    /// Enters a new version into the ledger, in the slot of the older one where there is one.
    private func enter(
        _ writer: WritersInFlight.Writer,
        _ hash: UInt64,
        _ older: MemoryRecord?,
        _ cost: Int,
        _ uselessAfter: StoreInstant,
        _ isPinned: Bool,
        _ book: inout MemoryBook
    ) -> SlotTicket {
        if let older {
            book.ledger.change(
                older.ticket,
                cost: cost,
                uselessAfter: uselessAfter,
                isPinned: isPinned,
                &book.leaving
            )
            return older.ticket
        }
        return book.ledger.enter(
            hash: hash,
            policyKey: HeadHash.of(writer.variant.bytes, seed: hash),
            cost: cost,
            uselessAfter: uselessAfter,
            isPinned: isPinned,
            &book.leaving
        )
    }

    /// Shows a record in place of the older one of its variant, as the newest; what left the ledger goes first.
    private func publish(_ record: MemoryRecord, _ hash: UInt64, _ book: inout MemoryBook) {
        takeOut(&book)
        let key = record.entry.key
        let older = changeShard(of: hash) { state in
            var records = state.table.records(of: key, hash)
            let place = records.firstIndex { $0.entry.variant == record.entry.variant }
            let older = place.map { records.remove(at: $0) }
            state.table.replace(key, hash, with: [record] + records)
            return older
        }
        if let older { book.gone.append(older) }
    }

    /// The record of one version, if it is still there.
    private func record(of entry: StoredEntry, _ hash: UInt64) -> MemoryRecord? {
        withShard(of: hash) { state in
            state.record(of: entry, hash)
        }
    }

    static let ended = StoreError(.abandoned, "The writer has already committed or abandoned; start a new one.")
}

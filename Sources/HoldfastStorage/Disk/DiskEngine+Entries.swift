// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// What writers and readers ask of the engine.
extension DiskEngine {
    /// Changes: refuses a writer that may not commit.
    func checkWriter(_ id: UInt64) throws(StoreError) {
        _ = try state.withLock { state throws(StoreError) in try state.writer(id) }
    }

    /// Changes: makes an entry visible whose body is on the disk.
    func commit(
        _ id: UInt64,
        _ newDescription: EntryDescription?,
        bodyLength: Int,
        place: BodyPlace,
        now: StoreInstant
    ) throws(StoreError) -> StoredEntry {
        let (writer, version) = try state.withLock { state throws(StoreError) in
            state.note(now)
            return (try state.writer(id), state.nextVersion())
        }
        let entry = StoredEntry(
            key: writer.key,
            variant: writer.variant,
            version: version,
            description: newDescription ?? writer.description,
            bodyLength: bodyLength,
            storedAt: now
        )
        var stored = entry
        var evicted = 0
        try update(writer.key) { state throws(StoreError) in
            _ = try state.writer(id)
            let plan = try state.committing(entry, place)
            (stored, evicted) = (plan.records.first?.entry ?? entry, plan.evicted)
            return plan.records
        } finish: { state in
            state.writers.end(id)
            state.index.touch(entry.key)
            state.counts.entriesWritten &+= 1
            state.counts.bytesWritten &+= bodyLength
            state.counts.entriesEvicted &+= evicted
        }
        return stored
    }

    /// Ends a writer that does not commit; its file goes a moment later.
    func abandonWriter(_ id: UInt64, body: UInt64) {
        let leaving = state.withLock { $0.endWriter(id, body: body) }
        guard let leaving else { return }
        threads.later(.changes) { [self] in
            // A closed store has given the directory away and has removed the file itself.
            if !state.withLock({ $0.isClosed }) { remove([leaving]) }
        }
    }

    /// Opens the body of a committed entry.
    func open(_ entry: StoredEntry) async throws(StoreError) -> any StoredBody {
        let place = try state.withLock { state throws(StoreError) in
            try state.admit(now: nil)
            guard let record = state.index.record(of: entry) else { throw Self.superseded }
            if record.body.file != 0 { try state.openedBody(record.body.file) }
            return record.body
        }
        guard place.file != 0 else { return DiskBody(engine: self, entry: entry, file: nil, checksums: []) }
        let file: OpenFile?
        do throws(StoreError) {
            file = try await threads.run(.reads) { [self] () throws(StoreError) -> OpenFile? in
                do throws(FileSystemError) {
                    return try files.openIfThere(layout.bodyFile(place.file))
                } catch {
                    throw failed(error)
                }
            }
        } catch {
            state.withLock { $0.closedBody(place.file) }
            throw error
        }
        if let file {
            let open = DiskBodyFile(number: place.file, file: file, engine: self)
            return DiskBody(engine: self, entry: entry, file: open, checksums: place.checksums)
        }
        let isNamed = state.withLock { state in
            state.closedBody(place.file)
            return state.index.record(of: entry) != nil
        }
        guard isNamed else { throw Self.superseded }
        await dropCorrupt(entry)
        throw StoreError(.corrupt, "The body has vanished from the disk; the entry is removed, fetch it again.")
    }

    /// Removes an entry that failed a check, and counts it.
    func dropCorrupt(_ entry: StoredEntry) async {
        _ = try? await threads.run(.changes, isUrgent: true) { [self] () throws(StoreError) in
            let taken = state.withLock { state in
                if state.isClosed { return DiskState.Taken() }
                let taken = state.take(entry.key) { $0.version == entry.version }
                state.counts.entriesCorrupt &+= taken.entries
                return taken
            }
            try finish(taken, of: entry.key)
        }
    }

    private static let superseded = StoreError(
        .superseded,
        "This version of the entry is gone; look the key up again."
    )
}

extension DiskState {
    /// The writer, if it may still commit.
    func writer(_ id: UInt64) throws(StoreError) -> WritersInFlight.Writer {
        try checkOpen()
        guard let writer = writers[id] else { throw DiskWriter.ended }
        if writer.isSuperseded {
            throw StoreError(.superseded, "The key was invalidated while this entry was written; fetch it again.")
        }
        return writer
    }

    /// The group as it is once `entry` is in it, newest first, and how many entries leave for that.
    func committing(_ entry: StoredEntry, _ place: BodyPlace) throws(StoreError) -> (records: [Record], evicted: Int) {
        try checkSize(Self.size(entry.key, entry.variant, entry.description, body: entry.bodyLength))
        var records = index.records(of: entry.key)
        let older = records.firstIndex { $0.entry.variant == entry.variant }.map { records.remove(at: $0) }
        var evicted = 0
        if records.count >= Self.maximumVariants {
            guard let oldest = records.lastIndex(where: { !$0.entry.isPinned }) else {
                throw StoreError(.noSpace, "Every variant of this key is pinned; release one to store another.")
            }
            records.remove(at: oldest)
            evicted = 1
        }
        let isPinned = older?.entry.isPinned ?? false
        records.insert(Record(entry: entry.changed(isPinned: isPinned), body: place), at: 0)
        return (withLawfulPins(entry.key, records), evicted)
    }

    /// The group with another description for one version; nil when that is gone.
    func describing(
        _ entry: StoredEntry,
        _ description: EntryDescription,
        version: StoredEntry.Version
    ) throws(StoreError) -> [Record]? {
        try checkSize(Self.size(entry.key, entry.variant, description, body: entry.bodyLength))
        guard var record = index.record(of: entry) else { return nil }
        record.entry = record.entry.changed(description: description, version: version)
        let others = index.records(of: entry.key).filter { $0.entry.version != entry.version }
        return withLawfulPins(entry.key, [record] + others)
    }

    /// The group with one version pinned or released; nil when that is gone or pins have no room left.
    func pinning(_ entry: StoredEntry, _ isPinned: Bool) -> [Record]? {
        var records = index.records(of: entry.key)
        guard let place = records.firstIndex(where: { $0.entry.version == entry.version }) else { return nil }
        records[place].entry = records[place].entry.changed(isPinned: isPinned)
        if isPinned, !canPin(entry.key, cost: cost(entry.key, records)) { return nil }
        return records
    }

    /// Pins lapse where the group has grown past the room for pins.
    private func withLawfulPins(_ key: StoreKey, _ records: [Record]) -> [Record] {
        guard records.contains(where: { $0.entry.isPinned }), !canPin(key, cost: cost(key, records)) else {
            return records
        }
        return records.map { Record(entry: $0.entry.changed(isPinned: false), body: $0.body) }
    }

    private func cost(_ key: StoreKey, _ records: [Record]) -> Int {
        Self.cost(records, keyFileSize: KeyFile.encode(key, records, file: 0).count)
    }
}

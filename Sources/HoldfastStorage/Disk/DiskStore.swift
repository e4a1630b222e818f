// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// Bounds of a ``DiskStore`` on what takes room on the disk without being an entry that can be found.
///
/// Such bytes count against the capacity. A put that they leave no room fails with `.noSpace`, and nothing is evicted for it.
public struct StoreOptions: Sendable, Hashable {
    /// Bytes of bodies that are being written, all together; nil, the default: a quarter of the capacity, somewhat less below 64 MiB.
    ///
    /// It is never less than what one entry may take, so a body that is alone is never refused.
    public var maximumUncommittedBytes: Int?

    /// Bytes of bodies that are read though their entries are gone, all together; nil, the default: an eighth of the capacity,
    /// somewhat less below 64 MiB.
    ///
    /// An entry whose body is being read is not evicted where that would exceed it. Removals always go, and bodies that are open can
    /// be read to their end: what they hold beyond the bound is missing for new entries until they are closed.
    public var maximumHeldBytes: Int?

    /// Options with the default of each.
    public init() {}
}

/// A store on the disk: log-structured, bounded in every byte, whole after a crash at any instant.
///
/// Records go to segments, one positional write each, and are found by an index of 24 bytes an entry in memory; a look-up is one
/// probe of it and one positional read, made in place where the page cache has the bytes. Bodies too long for a record lie in
/// files of their own and stream through constant memory. The oldest segment is reclaimed when space is needed: what is
/// asked for most often for its bytes moves on, the rest is evicted. `docs/disk-format.md` describes the files.
///
/// - **Crash.** What was acknowledged and not evicted is there after the process dies at any instant, and nothing that was removed,
///   invalidated, purged or superseded comes back. After a power loss the newest changes may be missing, so every entry that
///   survived says ``StoredEntry/needsValidation``.
/// - **Damage.** Everything read is checked; what fails is a miss, counted, and removed.
/// - **Space.** All files together never exceed the capacity, unlinked ones that are still read included.
/// - **Purges** by tag and by prefix take constant time and count nothing; ``CacheStore/purge(_:now:)`` answers nil there.
/// - **Faults.** After several failures of the device in a row the store rests: look-ups, reads and writes throw `.resting` for five
///   seconds of the caller's clock or 64 operations, whichever ends first. Removals are tried at any time.
/// - **Threads.** Four of its own for what may block, and up to three more while that many reads wait for the device. Writes of up to 64 KiB, copies into the page cache, are made on the
///   caller's thread while the system takes them without delay.
public final class DiskStore: CacheStore {
    /// Kept in the directory beside the entries.
    public let secret: [UInt8]
    let engine: DiskEngine
    // What every call goes by, within reach.
    private let health: StoreHealth
    private let lookup: Lookup
    private let writer: Writer

    /// The least capacity a store on the disk may have, in bytes.
    public static let minimumCapacity = Geometry.minimumCapacity

    init(secret: [UInt8], engine: DiskEngine) {
        self.secret = secret
        self.engine = engine
        (health, lookup, writer) = (engine.health, engine.lookup, engine.writer)
    }

    /// Opens the store in a directory, making it when it is missing, and goes on with what is there.
    ///
    /// Costs a read of the tables of all segments, about 0.2 s for a million entries, and a scan of what was being written when
    /// a process died. Entries that fail their checks are dropped and counted; what an unknown format left is set aside and
    /// removed.
    ///
    /// - Parameters:
    ///   - directory: an absolute path, whose parent is there. Others must not be able to write it.
    ///   - capacity: bytes on the disk at most, everything counted; at least ``minimumCapacity``. A smaller one than before
    ///     evicts at once.
    ///   - maximumEntrySize: bytes of one entry (body, keys and description); by default a quarter of the capacity,
    ///     somewhat less below 64 MiB.
    ///   - options: bounds on what takes room without being an entry.
    ///   - fileSystem: the files to work on.
    ///   - seal: seals keys, metadata and bodies before they are written; nil writes them as they are. Entries sealed with a
    ///     key that it does not know are not found.
    ///   - now: the present.
    /// - Throws: `.locked` when another store holds the directory, with the number of its process; `.unsafeDirectory` when
    ///   the directory is a link, belongs to another user or can be written by others; `.badConfiguration`, `.io`, `.noSpace`.
    public static func open(
        directory: String,
        capacity: Int,
        maximumEntrySize: Int? = nil,
        options: StoreOptions = StoreOptions(),
        fileSystem: any FileSystem = POSIXFileSystem(),
        seal: (any StoreSeal)? = nil,
        now: StoreInstant
    ) async throws(StoreError) -> DiskStore {
        guard capacity >= minimumCapacity else {
            let message = "A capacity of \(capacity) bytes is too small; give at least \(minimumCapacity)."
            throw StoreError(.badConfiguration, message)
        }
        let limits = SpaceLimits(
            entry: maximumEntrySize,
            uncommitted: options.maximumUncommittedBytes,
            held: options.maximumHeldBytes
        )
        let threads = try IOThreads()
        return try await threads.run(.changes) { () throws(StoreError) in
            let opening = StoreOpening(
                layout: StoreLayout(root: directory),
                files: fileSystem,
                capacity: capacity,
                limits: limits,
                seal: seal,
                threads: threads
            )
            // What was opened is handed over whole: a segment that someone still holds gives no room when it goes.
            let engine = DiskEngine(try opening.open())
            engine.start(now: now)
            return DiskStore(secret: engine.log.manifest.content.format.secret, engine: engine)
        }
    }

    public func peek(_ key: StoreKey, now: StoreInstant) -> [StoredEntry]? {
        guard health.answers(now: now) else { return nil }
        guard let entries = try? lookup.look(key, waits: false, for: .caller) else { return nil }
        lookup.counted(entries)
        return entries
    }

    public func entries(for key: StoreKey, now: StoreInstant) async throws(StoreError) -> [StoredEntry] {
        try health.admit(now: now)
        var entries = try lookup.look(key, waits: false, for: .caller)
        if entries == nil { entries = try await lookup.lookOnThread(key, for: .callerAgain) }
        lookup.counted(entries ?? [])
        return entries ?? []
    }

    public func body(of entry: StoredEntry) async throws(StoreError) -> any StoredBody {
        try health.admit(now: nil)
        if let body = try lookup.bodyAtHand(of: entry) { return body }
        if let source = entry.source { return try await lookup.body(of: source) }
        guard let source = try await lookup.source(of: entry) else { throw StoreError.gone }
        return try await lookup.body(of: source)
    }

    public func write(
        _ key: StoreKey,
        variant: StoreKey,
        description: EntryDescription,
        expectedLength: Int?,
        now: StoreInstant
    ) async throws(StoreError) -> any EntryWriter {
        try health.admit(now: now)
        let description = description.kept
        let overhead = writer.size(key, variant, description)
        let (size, overflow) = overhead.addingReportingOverflow(max(0, expectedLength ?? 0))
        guard !overflow, size <= writer.maximumEntrySize, overhead <= engine.log.geometry.recordLimit else {
            throw writer.tooLarge
        }
        let identity = engine.identity(key, variant)
        let since = engine.orders.last
        let id = engine.index.shard(of: identity.primary).state.withLock { shard in
            shard.writers.begin(.init(key: key, variant: variant, description: description, reserved: 0))
        }
        return DiskWriter(
            engine: engine,
            id: id,
            identity: identity,
            key: key,
            variant: variant,
            description: description,
            since: since,
            overhead: overhead
        )
    }

    @discardableResult
    public func put(
        _ key: StoreKey,
        variant: StoreKey,
        description: EntryDescription,
        body: ByteChunk,
        now: StoreInstant
    ) async throws(StoreError) -> StoredEntry {
        try health.admit(now: now)
        let description = description.kept
        let overhead = writer.size(key, variant, description)
        guard overhead <= engine.log.geometry.recordLimit, body.count <= writer.maximumEntrySize - overhead
        else {
            throw writer.tooLarge
        }
        let draft = EntryDraft(
            key: key,
            variant: variant,
            identity: engine.identity(key, variant),
            description: description,
            body: .inline(body),
            storedAt: now,
            version: nil
        )
        // Before a blob is written: a mark from then on takes the entry.
        let since = engine.orders.last
        if body.count > engine.log.geometry.inlineLimit { return try await putLong(draft, body, since: since) }
        guard let stored = try await writer.store(draft, isPinned: nil, .put(since: since)) else {
            throw StoreError.superseded
        }
        return stored
    }

    /// Writes a new entry whose whole body is in memory and needs a blob.
    private func putLong(_ draft: EntryDraft, _ whole: ByteChunk, since: UInt64) async throws(StoreError) -> StoredEntry
    {
        // It takes a while: an invalidation meanwhile must know of it.
        let shard = engine.index.shard(of: draft.identity.primary)
        let id = shard.state.withLock { $0.writers.begin(draft) }
        let body = GrowingDiskBody(whole, engine: engine)
        do throws(StoreError) {
            try await body.settle(isEnd: true)
            guard let place = body.place else { throw StoreError.ended }
            var draft = draft
            draft.body = place
            let purpose = Writer.Purpose.commit(writer: id, since: since)
            guard let stored = try await writer.store(draft, isPinned: nil, body: body, purpose) else {
                throw StoreError.superseded
            }
            body.letGo()
            return stored
        } catch {
            shard.state.withLock { _ = $0.writers.end(id) }
            body.abandon()
            throw error
        }
    }

    @discardableResult
    public func replaceDescription(
        of entry: StoredEntry,
        with description: EntryDescription,
        now: StoreInstant
    ) async throws(StoreError) -> StoredEntry? {
        try health.admit(now: now)
        return try await writer.rewrite(entry, description.kept, isPinned: nil)
    }

    public func remove(_ entry: StoredEntry) async throws(StoreError) {
        try health.checkOpen()
        if health.isDisplaced { return }
        guard let source = try await lookup.source(of: entry) else { return }
        if try await writer.remove(source.row, primary: source.header.primary) {
            health.counters.entriesRemoved.add(1, ordering: .relaxed)
        }
    }

    public func invalidate(_ key: StoreKey) async throws(StoreError) {
        try health.checkOpen()
        if health.isDisplaced { return }
        try await writer.invalidate(key)
    }

    @discardableResult
    public func purge(_ selection: PurgeSelection, now: StoreInstant) async throws(StoreError) -> Int? {
        try health.checkOpen()
        if health.isDisplaced { return 0 }
        switch selection.form {
        case .all:
            return try await engine.threads.run(.changes, isUrgent: true) { [engine] () throws(StoreError) in
                try engine.health.checkOpen()
                return try engine.purger.purgeAll()
            }
        case .tag(let tag):
            try await purgeMarked(.tag(engine.hashing.tag(tag)))
            return nil
        case .keyPrefix(let prefix) where prefix.count > PurgeMarks.longestPrefix:
            // No mark is as long; keys that begin so are few.
            _ = try await purgeMatching({ $0.key.hasPrefix(prefix) }, now: now)
            return nil
        case .keyPrefix(let prefix):
            try await purgeMarked(.prefix(prefix))
            return nil
        case .matching(let predicate):
            return try await purgeMatching(predicate, now: now)
        }
    }

    @discardableResult
    public func setPinned(_ pinned: Bool, _ entry: StoredEntry) async throws(StoreError) -> Bool {
        try health.admit(now: nil)
        guard let source = try await lookup.source(of: entry) else { return false }
        if source.row.isPinned == pinned { return true }
        let identity = EntryIdentity(primary: source.header.primary, variant: source.header.variant)
        if pinned, !engine.pins.pin(identity, weight: writer.pinWeight(source.header)) { return false }
        do throws(StoreError) {
            if try await writer.rewrite(entry, nil, isPinned: pinned) != nil {
                if !pinned { engine.pins.release(identity) }
                return true
            }
        } catch {
            if pinned { engine.pins.release(identity) }
            throw error
        }
        if pinned { engine.pins.release(identity) }
        return false
    }

    public var statistics: StoreStatistics { engine.statistics }

    /// Waits for what is under way, gives the segments their tables, makes all but long bodies durable and releases the
    /// directory.
    ///
    /// A loss of power soon after may cost the newest bodies that have files of their own; that is found when they are read.
    ///
    /// Bodies that are open can be read on.
    public func close() async {
        await engine.close()
    }
}

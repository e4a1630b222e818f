// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// Limits of a ``DiskStore`` on disk space that no findable entry uses.
///
/// Such bytes count against the capacity. A put for which they leave no room fails with `.noSpace`, and nothing is evicted for it.
public struct StoreOptions: Sendable, Hashable {
    /// The most bytes of bodies that are being written, in total; nil, the default: a quarter of the capacity, somewhat less below
    /// 64 MiB.
    ///
    /// Never less than what one entry may take, so a single body is never refused.
    public var maximumUncommittedBytes: Int?

    /// The most bytes of bodies that are still being read after their entries have gone, in total; nil, the default: an eighth of
    /// the capacity, somewhat less below 64 MiB.
    ///
    /// An entry whose body is being read is not evicted if that would exceed the limit. Removals are always allowed, and open
    /// bodies can be read to their end: what they hold beyond the limit is not available for new entries until they are closed.
    /// Removals that need more room than the store keeps for them throw `.noSpace`; they hold even so, and survive a crash once
    /// there is room again, at the latest when the store is closed.
    public var maximumHeldBytes: Int?

    /// The default options.
    public init() {}
}

/// A store on disk: log-structured, bounded in every byte, and intact after a crash at any time.
///
/// Records are appended to segments, with one positional write each, and found by an index that takes 24 bytes of memory for each
/// entry. A lookup is one probe of the index and one positional read, made on the caller's thread if the page cache has the bytes.
/// Bodies too long for a record have files of their own and are streamed in constant memory. When space is needed, the oldest
/// segment is reclaimed: the entries requested most often for their bytes are copied, the rest is evicted. `docs/disk-format.md`
/// describes the files.
///
/// - **Crash.** If the process dies at any time, everything acknowledged and not evicted is still there, and nothing that was
///   removed, invalidated, purged or superseded returns. After a power loss the latest changes may be missing, so every surviving
///   entry has ``StoredEntry/needsValidation`` set.
/// - **Damage.** Everything read is checked; an entry that fails its check is a miss, and is counted and removed.
/// - **Space.** All files together never exceed the capacity, including unlinked ones that are still being read.
/// - **Open files.** One for each segment, which are as many as the capacity has MiB: at least 16, at most 256, and a few more while
///   they change; and one for each body with a file of its own that is being read or written, or was among the last 48 read.
/// - **Purges** by tag and by prefix take constant time, and a read for each pinned entry; they count nothing, so
///   ``CacheStore/purge(_:now:)`` returns nil.
/// - **Faults.** After several device failures in a row the store pauses: lookups, reads and writes throw
/// `.temporarilyUnavailable` for five
///   seconds of the caller's clock or 64 operations, whichever ends first. Removals are always tried.
/// - **Threads.** Four of its own for what may block, and up to three more while that many reads wait for the device. Writes of up
///   to 64 KiB, which are copies into the page cache, are made on the caller's thread while the system accepts them without delay.
public final class DiskStore: CacheStore {
    /// Kept in the directory beside the entries.
    public let secret: [UInt8]
    let engine: DiskEngine
    // What every call uses, within direct reach.
    private let health: StoreHealth
    private let lookup: Lookup
    private let writer: Writer

    /// The smallest capacity of a store on disk, in bytes.
    public static let minimumCapacity = Geometry.minimumCapacity

    /// How many files a store of this capacity holds open, not counting bodies that are being read or written.
    package static func openFiles(capacity: Int) -> Int {
        Geometry(capacity: capacity).usualSegments + 8 + BlobFiles.keptOpen
    }

    init(secret: [UInt8], engine: DiskEngine) {
        self.secret = secret
        self.engine = engine
        (health, lookup, writer) = (engine.health, engine.lookup, engine.writer)
    }

    /// Opens the store in a directory, or creates it, and continues with its contents.
    ///
    /// This reads the tables of all segments, which takes about 0.2 s for a million entries, and scans what was being written when
    /// a process died. Entries that fail their checks are dropped and counted; files of an unknown format are moved aside and
    /// removed.
    ///
    /// - Parameters:
    ///   - directory: an absolute path, whose parent exists. Other users must not be able to write to it.
    ///   - capacity: the most bytes on disk, everything included; at least ``minimumCapacity``, and no more than 64 TiB are used.
    ///     A smaller one than before evicts at once.
    ///   - maximumEntrySize: the most bytes of one entry (body, keys and description); by default a quarter of the capacity,
    ///     somewhat less below 64 MiB; never more than an empty store has room for.
    ///   - options: limits on space that no entry uses.
    ///   - fileSystem: the file system to use.
    ///   - seal: encrypts keys, metadata and bodies before they are written; nil writes them as they are. Entries sealed with a key
    ///     that it does not know are not found.
    ///   - now: the current time.
    /// - Throws: `.locked` if another store has the directory open, with its process ID; `.unsafeDirectory` if the directory is a
    ///   link, belongs to another user or can be written by others; `.corrupt` if its numbers cannot be those of a store;
    ///   `.badConfiguration`, `.io`, `.noSpace`.
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
        let threads = try IOThreads()
        return try await threads.run(.changes) { () throws(StoreError) in
            let opening = StoreOpener(
                layout: StoreLayout(root: directory),
                files: fileSystem,
                capacity: capacity,
                maximumEntrySize: maximumEntrySize,
                options: options,
                seal: seal,
                threads: threads
            )
            // Passed on without copies: a segment that somebody still holds frees no space when it goes.
            let engine = DiskEngine(try opening.open())
            engine.start(now: now)
            return DiskStore(secret: engine.log.manifest.content.format.secret, engine: engine)
        }
    }

    public func peek(_ key: StoreKey, now: StoreInstant) -> [StoredEntry]? {
        guard health.answers(now: now) else { return nil }
        guard let entries = try? lookup.look(key, waits: false, as: .use) else { return nil }
        lookup.counted(entries)
        return entries
    }

    public func entries(for key: StoreKey, now: StoreInstant) async throws(StoreError) -> [StoredEntry] {
        try health.admit(now: now)
        var entries = try lookup.look(key, waits: false, as: .use)
        if entries == nil { entries = try await lookup.lookUpOnThread(key, as: .repeatedUse) }
        lookup.counted(entries ?? [])
        return entries ?? []
    }

    public func body(of entry: StoredEntry) async throws(StoreError) -> any StoredBody {
        try health.admit(now: nil)
        if let body = try lookup.checkedBodyInMemory(of: entry) { return body }
        if let source = entry.source { return try await lookup.body(of: source) }
        guard let source = try await lookup.source(of: entry) else { throw StoreError.gone }
        return try await lookup.body(of: source)
    }

    /// The body of an entry that was read together with its record, if the store still has it; nil for encrypted ones.
    public func peekBody(of entry: StoredEntry) -> ByteChunk? {
        guard (try? health.admit(now: nil)) != nil else { return nil }
        return lookup.peekBody(of: entry)
    }

    public func write(
        _ key: StoreKey,
        variant: StoreKey,
        description: EntryDescription,
        expectedLength: Int?,
        now: StoreInstant
    ) async throws(StoreError) -> any EntryWriter {
        try health.admit(now: now)
        let length = max(0, expectedLength ?? 0)
        let draft = try draft(
            key,
            variant: variant,
            description: description,
            body: ByteChunk(),
            length: length,
            now: now
        )
        return writer(of: draft, body: GrowingDiskBody(engine: engine), since: engine.orders.last)
    }

    /// Begins to write an entry; from now on, invalidations and purges find it.
    private func writer(of draft: EntryDraft, body: GrowingDiskBody, since: UInt64) -> DiskWriter {
        let id = engine.index.shard(of: draft.identity.primary).state.withLock { $0.writers.begin(draft) }
        return DiskWriter(engine: engine, id: id, draft: draft, since: since, body: body)
    }

    /// A new entry, unless it would be too large with a body of this length.
    @inline(__always)
    private func draft(
        _ key: StoreKey,
        variant: StoreKey,
        description: EntryDescription,
        body: ByteChunk,
        length: Int,
        now: StoreInstant
    ) throws(StoreError) -> EntryDraft {
        let identity = engine.identity(key, variant: variant)
        let draft = EntryDraft(
            key: key,
            variant: variant,
            identity: identity,
            description: description.kept,
            body: .inline(body),
            storedAt: now
        )
        let overhead = draft.overhead
        let (size, overflow) = overhead.addingReportingOverflow(length)
        guard overhead <= engine.log.geometry.recordLimit else { throw writer.descriptionTooLong }
        guard !overflow, size <= writer.maximumEntrySize else {
            throw writer.tooLarge
        }
        return draft
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
        let length = body.count
        let draft = try draft(key, variant: variant, description: description, body: body, length: length, now: now)
        // Taken before a blob is written: a later mark purges the entry.
        let since = engine.orders.last
        if body.count > engine.log.geometry.inlineLimit {
            // It takes a while: an invalidation meanwhile must find the writer.
            return try await writer(of: draft, body: GrowingDiskBody(body, engine: engine), since: since)
                .commit(nil, now: now)
        }
        guard let stored = try await writer.store(draft, purpose: .put(since: since)) else {
            throw writer.overtaken
        }
        return stored
    }

    @discardableResult
    public func replaceDescription(
        of entry: StoredEntry,
        with description: EntryDescription,
        now: StoreInstant
    ) async throws(StoreError) -> StoredEntry? {
        try health.admit(now: now)
        return try await writer.rewrite(entry, description: description.kept, isPinned: nil)
    }

    public func remove(_ entry: StoredEntry) async throws(StoreError) {
        try health.checkOpen()
        if health.isDisplaced { return }
        // A change of its pin gives a version another record: it is looked up again until it is removed or gone.
        while let source = try await lookup.source(of: entry, isUrgent: true) {
            guard try await writer.remove(source.row, primary: source.header.primary) else { continue }
            health.counters.entriesRemoved.add(1, ordering: .relaxed)
            return
        }
        // It is gone, perhaps by a removal that is not recorded yet.
        try await engine.recordPending()
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
            // Marks have a limited length; few keys begin with so long a prefix.
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
        guard let source = try await lookup.source(of: entry, isUrgent: true) else { return false }
        if source.row.isPinned == pinned, source.header.isPinned == pinned { return true }
        // Asked only to write nothing in vain: the pin is registered with its row, if there still is room.
        let weight = writer.pinWeight(source.header)
        if pinned, !engine.pins.hasRoom(for: EntryIdentity(source.header), weight: weight) { return false }
        guard let written = try await writer.rewrite(entry, description: nil, isPinned: pinned) else { return false }
        if written.isPinned == pinned { return true }
        // Another pin took the room meanwhile; the record must not say what does not hold, since the next opening believes it.
        _ = try await writer.rewrite(written, description: nil, isPinned: false)
        return false
    }

    public var statistics: StoreStatistics { engine.statistics }

    /// Waits for operations in progress, writes the segments' tables, makes everything except long bodies durable, and releases the
    /// directory.
    ///
    /// A power loss soon afterward may cost the newest bodies that have files of their own; this is detected when they are read.
    ///
    /// Open bodies can still be read. If this process opens the directory again, those whose entries are gone do not count against
    /// the new store's capacity, and a read of another throws `.superseded` once that store has removed the entry. A follower of a
    /// writer that is neither committed nor abandoned goes on waiting.
    public func close() async {
        await engine.close()
    }
}

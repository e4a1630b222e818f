// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// Reads the contents of a ``DiskStore``'s directory, while another process has it open, or afterward.
///
/// It writes nothing, takes no lock, and keeps no file open except those of bodies that are being read, so it does not disturb the
/// store in use. Every operation that would change something throws `.readOnly`.
///
/// - **Contents.** It shows the store at one instant: when it was opened, when ``refresh()`` was last called, or when it last found
///   that something had moved. Newer entries show only after that. Removed entries may show until then, but never after their bytes
///   were reused: each time a record is read, it is checked against the key, order and segment that it was listed with. A record
///   that the store has replaced is `.superseded` or absent, not damaged; the same applies to a long body whose entry is removed
///   while it is read.
/// - **Crashes.** After a process was killed, it shows what ``DiskStore`` would find. After a power loss, entries have
///   ``StoredEntry/needsValidation`` set.
/// - **Damage** is counted and left as it is.
/// - **Encryption.** Entries sealed with a key that is not available are in ``StoreStatistics/entryCount`` and
///   ``VerificationReport/entriesSealed``; lists skip them (``sealedEntriesPassedOver``).
/// - **Cost.** As much memory as the store's index. Opening and refreshing read the tables of all segments, and scan those that are
///   being written twice. Four threads, and up to three more while that many reads wait.
public final class DiskStoreReader: CacheStore {
    /// Kept in the directory beside the entries.
    public let secret: [UInt8]
    let engine: ReaderEngine

    private init(_ engine: ReaderEngine) {
        self.engine = engine
        secret = engine.secret
    }

    /// Opens a directory that contains a store.
    ///
    /// - Parameters:
    ///   - directory: an absolute path.
    ///   - fileSystem: the file system to read.
    ///   - seal: decrypts what was sealed; nil if nothing was, or if the key is not available.
    /// - Throws: `.badConfiguration` if the directory contains no store of this version; `.unsafeDirectory` if it is a link,
    ///   belongs to another user or can be written by others; `.io`; `.temporarilyUnavailable` if it changes faster than it can
    ///   be read.
    public static func open(
        directory: String,
        fileSystem: any FileSystem = POSIXFileSystem(),
        seal: (any StoreSeal)? = nil
    ) async throws(StoreError) -> DiskStoreReader {
        let threads = try IOThreads()
        return try await threads.run(.reads) { () throws(StoreError) in
            let layout = StoreLayout(root: directory)
            let files = try StoreDirectory(layout: layout, files: fileSystem).held()
            let taking = SnapshotReader(layout: layout, files: files, seal: seal)
            return DiskStoreReader(ReaderEngine(taking, snapshot: try taking.take(), threads: threads))
        }
    }

    /// Reads the directory again; lookups and lists in progress continue with the new contents.
    ///
    /// - Throws: as ``open(directory:fileSystem:seal:)``; the previous contents are then still shown. `.closed` if another store
    ///   was made in the directory.
    public func refresh() async throws(StoreError) {
        try engine.checkOpen()
        try await engine.threads.run(.reads) { [engine] () throws(StoreError) in try engine.refresh(engine.snapshot) }
    }

    /// The process that has the directory open for writing; nil: none.
    ///
    /// It depends on what the directory said when it was last read, and on whether that process is alive. It is wrong if the holder
    /// crashed and another process now has its number.
    public var holder: Int32? { engine.snapshot.holder }

    /// How many entries the lists so far skipped because the key that they are sealed with is not available.
    public var sealedEntriesPassedOver: Int { engine.sealedListed.load(ordering: .relaxed) }

    /// With this capacity, ``DiskStore/open(directory:capacity:maximumEntrySize:options:fileSystem:seal:now:)`` opens the directory
    /// without evicting anything or changing the size of its files. The directory does not record the capacity that it was made
    /// with.
    public var fittingCapacity: Int {
        let snapshot = engine.snapshot
        let size = snapshot.format.segmentSize
        let (usual, isHuge) = size.multipliedReportingOverflow(by: size < 1 << 20 ? 16 : size > 64 << 20 ? 256 : 64)
        let (needed, isFull) = snapshot.bytesUsed.addingReportingOverflow(8 * min(size, 1 << 30))
        return isHuge || isFull ? .max : max(usual, needed, DiskStore.minimumCapacity)
    }

    public func peek(_ key: StoreKey, now: StoreInstant) -> [StoredEntry]? {
        guard (try? engine.checkOpen()) != nil else { return nil }
        let snapshot = engine.snapshot
        guard snapshot.index.rows(of: snapshot.hashing.primary(key)).all.isEmpty else { return nil }
        engine.counters.lookups.add(1, ordering: .relaxed)
        return []
    }

    public func entries(for key: StoreKey, now: StoreInstant) async throws(StoreError) -> [StoredEntry] {
        try engine.checkOpen()
        let entries = try await engine.threads.run(.reads) { [engine] () throws(StoreError) in try engine.look(key) }
        engine.counters.lookups.add(1, ordering: .relaxed)
        if !entries.isEmpty { engine.counters.lookupsFound.add(1, ordering: .relaxed) }
        return entries
    }

    public func body(of entry: StoredEntry) async throws(StoreError) -> any StoredBody {
        try engine.checkOpen()
        return try await engine.threads.run(.reads) { [engine] () throws(StoreError) -> any StoredBody in
            var source = entry.source
            if source == nil { source = try engine.look(entry.key).first { $0.isVersion(of: entry) }?.source }
            guard let source else { throw StoreError.gone }
            if source.header.hasBlob {
                return BlobBody(host: engine, source: source, file: try engine.blob(of: source))
            }
            try engine.checkInline(source)
            let bytes = try source.openedBody(seal: engine.seal)
            engine.counters.bytesRead.add(bytes.count, ordering: .relaxed)
            return MemoryBody(bytes)
        }
    }

    /// Counts since it was opened. ``StoreStatistics/entryCount`` and ``StoreStatistics/bytesUsed`` are those of its contents, and
    /// ``StoreStatistics/capacity``, which the directory does not record, is 0.
    public var statistics: StoreStatistics {
        let snapshot = engine.snapshot
        var all = engine.counters.all
        all.entryCount = snapshot.index.count
        all.bytesUsed = snapshot.bytesUsed
        return all
    }

    /// Ends its threads; open bodies can still be read. Idempotent.
    public func close() async {
        engine.close()
    }
}

/// What a reader does not do: each of these throws `.readOnly`, and names the process that could.
extension DiskStoreReader {
    public func write(
        _ key: StoreKey,
        variant: StoreKey,
        description: EntryDescription,
        expectedLength: Int?,
        now: StoreInstant
    ) async throws(StoreError) -> any EntryWriter {
        throw refusal()
    }

    @discardableResult
    public func replaceDescription(
        of entry: StoredEntry,
        with description: EntryDescription,
        now: StoreInstant
    ) async throws(StoreError) -> StoredEntry? {
        throw refusal()
    }

    public func remove(_ entry: StoredEntry) async throws(StoreError) {
        throw refusal()
    }

    public func invalidate(_ key: StoreKey) async throws(StoreError) {
        throw refusal()
    }

    @discardableResult
    public func purge(_ selection: PurgeSelection, now: StoreInstant) async throws(StoreError) -> Int? {
        throw refusal()
    }

    @discardableResult
    public func setPinned(_ pinned: Bool, _ entry: StoredEntry) async throws(StoreError) -> Bool {
        throw refusal()
    }

    @discardableResult
    public func compact() async throws(StoreError) -> CompactionReport {
        throw refusal()
    }

    private func refusal() -> StoreError {
        let root = engine.layout.root
        // Reads the holder again: the one found at the last reading may be gone.
        let next = (holder == nil ? nil : LockHolder.read(engine.layout, files: engine.files))
            .map { "process \($0) has it open and can change it." }
        return StoreError(
            .readOnly,
            "\(root) was opened for reading only; " + (next ?? "open it for writing with DiskStore.")
        )
    }
}

extension DiskStoreReader: InspectableStore {
    public func list(after cursor: StoreCursor?, limit: Int, now: StoreInstant) async throws(StoreError) -> StorePage {
        try engine.checkOpen()
        return try await StorePage.gathered(after: cursor, limit: limit) { [engine] place, wanted throws(StoreError) in
            try await engine.threads.run(.reads) { () throws(StoreError) in
                try engine.page(from: place, limit: wanted, engine.listed)
            }
        }
    }

    /// Reads every entry and its whole body, and checks both; failures are counted and left.
    ///
    /// The findings include those of reading the directory: segments with a damaged table, and entries that lost their body.
    public func verify(
        _ progress: @escaping @Sendable (VerificationProgress) -> Void
    ) async throws(StoreError) -> VerificationReport {
        try engine.checkOpen()
        var report = VerificationReport()
        report.note(engine.snapshot.damage)
        try await report.verify(bytes: engine.snapshot.bytesUsed, progress: progress) {
            [engine] place throws(StoreError) in
            try await engine.threads.run(.reads) { () throws(StoreError) in
                try engine.page(from: place, limit: 32, engine.check)
            }
        }
        return report
    }
}

extension VerificationReport {
    fileprivate mutating func note(_ damage: RecoveredStore.Damage) {
        if damage.segments > 0 {
            let message =
                "\(damage.segments) segment file(s) are damaged outside of their records; changes may be lost."
            note(Damage(key: nil, message: message))
        }
        let lost = damage.entries + damage.bodies
        guard lost > 0 else { return }
        entriesChecked += lost
        entriesDamaged += lost
        note(Damage(key: nil, message: "\(lost) entries have lost their bodies."))
    }
}

extension ReaderEngine {
    /// What a list shows for a row: nil if it has moved; a nil entry if it is purged, sealed, or damaged.
    fileprivate func listed(
        _ row: IndexRow,
        snapshot: StoreSnapshot,
        handles: SegmentHandles
    ) throws(StoreError) -> ListedEntry?? {
        switch try read(row, in: snapshot, handles: handles) {
        case .moved: return nil
        case .damaged: return .some(nil)
        case .record(let source):
            do throws(StoreError) {
                guard let entry = try snapshot.entry(source, key: nil, seal: seal) else {
                    if source.header.keyID != 0, try source.detail(key: nil, seal: seal) == nil {
                        sealedListed.add(1, ordering: .relaxed)
                    }
                    return .some(nil)
                }
                // Only the open store knows how often an entry was found.
                return ListedEntry(entry: entry, hits: nil, bytes: source.header.bytesTaken)
            } catch {
                if error.code == .corrupt { return .some(nil) }
                throw error
            }
        }
    }

    /// Reads one entry completely and checks it; nil if it has moved.
    fileprivate func check(
        _ row: IndexRow,
        snapshot: StoreSnapshot,
        handles: SegmentHandles
    ) throws(StoreError) -> EntryCheck? {
        var check = EntryCheck(outcome: .gone, bytesRead: row.place.byteCount)
        var key: StoreKey?
        do throws(StoreError) {
            switch try read(row, in: snapshot, handles: handles) {
            case .moved: return nil
            case .damaged: throw damaged()
            case .record(let source):
                let entry = try snapshot.entry(source, key: nil, seal: seal)
                key = entry?.key
                // Without its key, a record's checksums can still be checked.
                let detail = entry == nil ? try source.detail(key: nil, seal: seal) : nil
                let isSealed = source.header.keyID != 0 && entry == nil && detail == nil
                if entry == nil, !isSealed { return check }
                if source.header.hasBlob {
                    try BlobReader(host: self, opens: !isSealed).check(source, of: try blob(of: source))
                    check.bytesRead += source.header.bodyLength
                } else {
                    try checkInline(source)
                    if !isSealed { _ = try source.openedBody(seal: seal) }
                }
                check.outcome = isSealed ? .sealed : .whole(body: source.header.bodyLength)
            }
        } catch {
            switch error.code {
            case .corrupt:
                let file = FileNumber.name(snapshot.segment(of: row) ?? 0) + StoreLayout.segmentSuffix
                check.outcome = .damaged(key, "The entry in \(file) failed its checks; it is left as it is.")
            case .sealed: check.outcome = .sealed
            case .superseded: return nil
            case .io where error.isOfDamagedPlace:
                check.outcome = .damaged(key, "The device cannot read the entry; it is left as it is.")
            default: throw error
            }
        }
        return check
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// A store on the disk: entries survive a restart, and a crash leaves each one whole or absent.
///
/// One file holds a primary key and the records of its variants, one file each body, in whole blocks of 4 KiB against the
/// capacity; files that readers still hold open count until they are closed. Look-ups are answered from memory, where all
/// keys and descriptions are held; bodies are read and checked piece by piece as they are asked for. Calls that block run on
/// two threads of the store's own: one for changes, in order, and one for reads.
///
/// All variants of a key leave together when space is needed: keys past the `uselessAfter` of all their variants first, then
/// those used longest ago. A key with a pinned variant stays and counts as pinned as a whole. A freed body comes off
/// ``StoreStatistics/bytesUsed`` a moment after the call that freed it.
///
/// The directories themselves are not counted: some kilobytes for a thousand entries, by the file system's own rule.
///
/// After several failures of the device in a row the store rests: look-ups, reads and writes throw `.resting` for five seconds
/// of the caller's clock or 64 operations, whichever ends first. Removals are tried at any time. Nothing is synced: after
/// a power loss the newest changes may be missing, among them removals.
public final class DiskStore: CacheStore {
    /// Kept in the directory beside the entries.
    public let secret: [UInt8]
    private let engine: DiskEngine

    /// The least capacity a store on the disk may have, in bytes.
    public static let minimumCapacity = 65_536

    private init(secret: [UInt8], engine: DiskEngine) {
        self.secret = secret
        self.engine = engine
    }

    /// Opens the store in a directory, making it when it is missing, and reads what is there.
    ///
    /// Costs a read of every key's file. Entries that fail their checks are removed and counted; what an unknown format left is
    /// removed as a whole.
    ///
    /// - Parameters:
    ///   - directory: an absolute path, whose parent is there. Others must not be able to write it.
    ///   - capacity: bytes on the disk at most, whole blocks counted; at least ``minimumCapacity``.
    ///   - maximumEntrySize: bytes of one entry (body, keys and description); by default a quarter of the capacity.
    ///   - fileSystem: the files to work on.
    ///   - now: the present.
    /// - Throws: `.locked` when another store holds the directory, with the number of its process; `.unsafeDirectory` when
    ///   the directory is a link, belongs to another user or can be written by others; `.badConfiguration`, `.io`, `.noSpace`.
    public static func open(
        directory: String,
        capacity: Int,
        maximumEntrySize: Int? = nil,
        fileSystem: any FileSystem = POSIXFileSystem(),
        now: StoreInstant
    ) async throws(StoreError) -> DiskStore {
        guard capacity >= minimumCapacity else {
            let message = "A capacity of \(capacity) bytes is too small; give at least \(minimumCapacity)."
            throw StoreError(.badConfiguration, message)
        }
        let threads = try IOThreads()
        return try await threads.run(.changes) { () throws(StoreError) in
            let layout = DiskLayout(root: directory)
            let prepared = try DiskDirectory(layout: layout, files: fileSystem).prepare()
            var state = DiskState(
                layout: layout,
                capacity: capacity,
                maximumEntrySize: maximumEntrySize,
                otherCost: prepared.otherCost,
                now: now
            )
            do throws(StoreError) {
                try DiskRecovery(layout: layout, files: fileSystem).fill(&state)
            } catch {
                fileSystem.close(prepared.lockFile)
                throw error
            }
            let engine = DiskEngine(files: fileSystem, threads: threads, state: state, lockFile: prepared.lockFile)
            // What an earlier, larger capacity let in leaves now; pins that have no more room lapse with it.
            engine.shrink()
            return DiskStore(secret: prepared.secret, engine: engine)
        }
    }

    public func peek(_ key: StoreKey, now: StoreInstant) -> [StoredEntry]? {
        engine.state.withLock { state in
            if state.isClosed || state.rest.rests(now: now) { return nil }
            state.note(now)
            return state.lookUp(key)
        }
    }

    public func entries(for key: StoreKey, now: StoreInstant) async throws(StoreError) -> [StoredEntry] {
        try engine.state.withLock { state throws(StoreError) in
            try state.admit(now: now)
            return state.lookUp(key)
        }
    }

    public func body(of entry: StoredEntry) async throws(StoreError) -> any StoredBody {
        try await engine.open(entry)
    }

    public func write(
        _ key: StoreKey,
        variant: StoreKey,
        description: EntryDescription,
        expectedLength: Int?,
        now: StoreInstant
    ) async throws(StoreError) -> any EntryWriter {
        let description = description.kept
        let overhead = DiskState.size(key, variant, description, body: 0)
        let id = try engine.state.withLock { state throws(StoreError) in
            try state.admit(now: now)
            let (size, overflow) = overhead.addingReportingOverflow(max(0, expectedLength ?? 0))
            try state.checkSize(overflow ? .max : size)
            return state.writers.begin(.init(key: key, variant: variant, description: description, reserved: 0))
        }
        return DiskWriter(engine: engine, id: id, overhead: overhead)
    }

    @discardableResult
    public func replaceDescription(
        of entry: StoredEntry,
        with description: EntryDescription,
        now: StoreInstant
    ) async throws(StoreError) -> StoredEntry? {
        let description = description.kept
        return try await engine.threads.run(.changes) { [engine] () throws(StoreError) in
            let version = try engine.state.withLock { state throws(StoreError) in
                try state.admit(now: now)
                // In the order of use it now comes last to leave, so that room is not made at its own cost.
                if state.index.record(of: entry) != nil { state.index.touch(entry.key) }
                return state.nextVersion()
            }
            var changed: StoredEntry?
            let isChanged = try engine.update(entry.key) { state throws(StoreError) in
                try state.checkOpen()
                let records = try state.describing(entry, description, version: version)
                changed = records?.first?.entry
                return records
            }
            return isChanged ? changed : nil
        }
    }

    public func remove(_ entry: StoredEntry) async throws(StoreError) {
        try await take(entry.key) { state in state.take(entry.key) { $0.version == entry.version } }
    }

    public func invalidate(_ key: StoreKey) async throws(StoreError) {
        try await take(key) { state in
            state.writers.supersede(key)
            return state.take(key) { _ in true }
        }
    }

    @discardableResult
    public func purge(_ selection: PurgeSelection, now: StoreInstant) async throws(StoreError) -> Int? {
        var judge = PurgeJudge(selection)
        while true {
            let judged = judge
            let step = try await engine.threads.run(.changes, isUrgent: true) { [engine] () throws(StoreError) in
                try engine.purge(judged, now: now)
            }
            switch step {
            case .removed(let count): return count
            // The caller's predicate runs here, on no thread of the store and under no lock.
            case .ask(let unknown): judge.decide(unknown)
            }
        }
    }

    @discardableResult
    public func setPinned(_ pinned: Bool, _ entry: StoredEntry) async throws(StoreError) -> Bool {
        try await engine.threads.run(.changes) { [engine] () throws(StoreError) in
            try engine.state.withLock { state throws(StoreError) in try state.admit(now: nil) }
            return try engine.update(entry.key) { state throws(StoreError) in
                try state.checkOpen()
                return state.pinning(entry, pinned)
            }
        }
    }

    public var statistics: StoreStatistics {
        engine.state.withLock { $0.statistics }
    }

    /// Waits for what is under way, removes unfinished bodies and releases the directory.
    ///
    /// Bodies that are open can be read on.
    public func close() async {
        await engine.close()
    }

    private func take(
        _ key: StoreKey,
        _ step: @escaping @Sendable (inout DiskState) -> DiskState.Taken
    ) async throws(StoreError) {
        try await engine.threads.run(.changes, isUrgent: true) { [engine] () throws(StoreError) in
            let taken = try engine.state.withLock { state throws(StoreError) in
                try state.checkOpen()
                let taken = step(&state)
                state.counts.entriesRemoved &+= taken.entries
                return taken
            }
            try engine.finish(taken, of: key)
        }
    }
}

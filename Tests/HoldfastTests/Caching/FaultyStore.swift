// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastStorage
import HoldfastTesting
import Synchronization

/// A memory store that fails where it is told to, and whose look-ups can be held up.
final class FaultyStore: CacheStore {
    enum Fault: String, CaseIterable, Sendable {
        case lookUp, body, read, write, append, commit, replace, purge, pin
        /// After everything else was purged: a record cannot be read.
        case purged

        /// Those of steps that requests take.
        static let ofRequests: [Fault] = [.lookUp, .body, .write, .append, .commit, .replace]
    }

    let fault = Mutex<Fault?>(nil)
    /// What a step that fails throws.
    let code = Mutex(StoreError.Code.io)
    /// Runs once, before the next description is replaced.
    let beforeReplacing = Mutex<(@Sendable () async -> Void)?>(nil)
    let stallsLookUps = Atomic(false)
    /// Holds up what a look-up found.
    let stallsAnswers = Atomic(false)
    /// Holds up invalidations.
    let stallsInvalidations = Atomic(false)
    let invalidations = CountWatch()
    /// Holds up purges.
    let stallsPurges = Atomic(false)
    let purges = CountWatch()
    /// Look-ups, commits and updates of cancelled tasks fail, as on a disk or over a network.
    let obeysCancellation = Atomic(false)
    /// Entries up to this version are shown as after a power loss.
    let suspectUpTo = Mutex<StoredEntry.Version?>(nil)
    let lookUps = CountWatch()
    let gate = CountWatch()
    private let inner: MemoryStore

    init(capacity: Int = 1 << 20) { inner = MemoryStore(capacity: capacity) }

    var secret: [UInt8] { inner.secret }
    var statistics: StoreStatistics { inner.statistics }

    private func check(_ step: Fault) throws(StoreError) {
        if fault.withLock({ $0 == step }) { throw StoreError(code.withLock { $0 }, "injected: \(step)") }
    }

    func peek(_ key: StoreKey, now: StoreInstant) -> [StoredEntry]? { nil }

    func entries(for key: StoreKey, now: StoreInstant) async throws(StoreError) -> [StoredEntry] {
        try check(.lookUp)
        if obeysCancellation.load(ordering: .relaxed), Task.isCancelled { throw StoreError(.cancelled, "injected") }
        if stallsLookUps.load(ordering: .relaxed) {
            lookUps.increment()
            try? await gate.wait(for: 1)
        }
        let found = try await inner.entries(for: key, now: now)
        if stallsAnswers.load(ordering: .relaxed) {
            lookUps.increment()
            try? await gate.wait(for: 1)
        }
        return found.map(shown)
    }

    /// Makes the store doubt every entry it holds now.
    func losePower() async throws {
        for listed in try await list(after: nil, limit: .max, now: StoreInstant(milliseconds: 0)).listed {
            suspectUpTo.withLock { $0 = max($0 ?? listed.entry.version, listed.entry.version) }
        }
    }

    private func shown(_ entry: StoredEntry) -> StoredEntry {
        guard let last = suspectUpTo.withLock({ $0 }), entry.version <= last else { return entry }
        return StoredEntry(
            key: entry.key,
            variant: entry.variant,
            version: entry.version,
            description: entry.description,
            bodyLength: entry.bodyLength,
            storedAt: entry.storedAt,
            isPinned: entry.isPinned,
            needsValidation: true
        )
    }

    func body(of entry: StoredEntry) async throws(StoreError) -> any StoredBody {
        try check(.body)
        return Body(inner: try await inner.body(of: entry), store: self)
    }

    /// Is read by position, as on a disk; a read after the beginning may fail.
    private struct Body: StoredBody {
        let inner: any StoredBody
        let store: FaultyStore

        var length: Int? { inner.length }
        var bytesInMemory: ByteChunk? { nil }

        func read(from offset: Int, upTo count: Int) async throws(StoreError) -> ByteChunk {
            if offset > 0 { try store.check(.read) }
            return try await inner.read(from: offset, upTo: count)
        }
    }

    func write(
        _ key: StoreKey,
        variant: StoreKey,
        description: EntryDescription,
        expectedLength: Int?,
        now: StoreInstant
    ) async throws(StoreError) -> any EntryWriter {
        try check(.write)
        let writer = try await inner.write(
            key,
            variant: variant,
            description: description,
            expectedLength: expectedLength,
            now: now
        )
        return Writer(inner: writer, store: self)
    }

    func replaceDescription(
        of entry: StoredEntry,
        with description: EntryDescription,
        now: StoreInstant
    ) async throws(StoreError) -> StoredEntry? {
        try check(.replace)
        let before = beforeReplacing.withLock { step in
            defer { step = nil }
            return step
        }
        await before?()
        if obeysCancellation.load(ordering: .relaxed), Task.isCancelled { throw StoreError(.cancelled, "injected") }
        return try await inner.replaceDescription(of: entry, with: description, now: now)
    }

    func remove(_ entry: StoredEntry) async throws(StoreError) { try await inner.remove(entry) }

    func invalidate(_ key: StoreKey) async throws(StoreError) {
        if stallsInvalidations.load(ordering: .relaxed) {
            invalidations.increment()
            try? await gate.wait(for: 1)
        }
        try await inner.invalidate(key)
    }

    func purge(_ selection: PurgeSelection, now: StoreInstant) async throws(StoreError) -> Int? {
        try check(.purge)
        if stallsPurges.load(ordering: .relaxed) {
            purges.increment()
            try? await gate.wait(for: 1)
        }
        guard case .matching(let predicate) = selection.form else {
            return try await inner.purge(selection, now: now)
        }
        let count = try await inner.purge(.matching { [self] in predicate(shown($0)) }, now: now)
        try check(.purged)
        return count
    }

    func setPinned(_ pinned: Bool, _ entry: StoredEntry) async throws(StoreError) -> Bool {
        try check(.pin)
        return try await inner.setPinned(pinned, entry)
    }

    func close() async { await inner.close() }

    private final class Writer: EntryWriter {
        let inner: any EntryWriter
        let store: FaultyStore

        init(inner: any EntryWriter, store: FaultyStore) {
            self.inner = inner
            self.store = store
        }

        func append(_ bytes: ByteChunk) async throws(StoreError) {
            try store.check(.append)
            try await inner.append(bytes)
        }

        func commit(_ description: EntryDescription?, now: StoreInstant) async throws(StoreError) -> StoredEntry {
            try store.check(.commit)
            if store.obeysCancellation.load(ordering: .relaxed), Task.isCancelled {
                throw StoreError(.cancelled, "injected")
            }
            return try await inner.commit(description, now: now)
        }

        func abandon() { inner.abandon() }
        func follow() -> any StoredBody { inner.follow() }
    }
}

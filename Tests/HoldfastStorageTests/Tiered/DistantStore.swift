// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastStorage
import HoldfastTesting
import Synchronization

/// A store that needs a suspension for everything and lists by no means of its own; steps of it can be held up, or fail.
final class DistantStore: CacheStore {
    enum Step: String, CaseIterable, Sendable {
        case lookUp, body, write, commit, replace, remove, invalidate, purge, pin
    }

    /// What a step that is held waits for.
    struct Hold: Sendable {
        let reached = CountWatch()
        let released = CountWatch()
    }

    let inner: any CacheStore
    let failing = Mutex<Set<Step>>([])
    /// Shows every entry as after a power loss.
    let needsValidation: Bool
    /// Whether look-ups are answered without suspending after all.
    let answersPeeks = Atomic(false)
    private let holds = Mutex<[Step: Hold]>([:])

    init(_ inner: any CacheStore = MemoryStore(capacity: 64 << 20), needsValidation: Bool = false) {
        self.inner = inner
        self.needsValidation = needsValidation
    }

    /// Holds up the next time the step is reached.
    func hold(_ step: Step) -> Hold {
        let hold = Hold()
        holds.withLock { $0[step] = hold }
        return hold
    }

    private func pass(_ step: Step) async throws(StoreError) {
        if let hold = holds.withLock({ $0.removeValue(forKey: step) }) {
            hold.reached.increment()
            try? await hold.released.wait(for: 1)
        }
        if failing.withLock({ $0.contains(step) }) { throw StoreError(.io, "injected: \(step)") }
    }

    private func shown(_ entry: StoredEntry) -> StoredEntry {
        guard needsValidation else { return entry }
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

    var secret: [UInt8] { inner.secret }
    var statistics: StoreStatistics { inner.statistics }

    func peek(_ key: StoreKey, now: StoreInstant) -> [StoredEntry]? {
        answersPeeks.load(ordering: .relaxed) ? inner.peek(key, now: now)?.map(shown) : nil
    }

    func entries(for key: StoreKey, now: StoreInstant) async throws(StoreError) -> [StoredEntry] {
        try await pass(.lookUp)
        return try await inner.entries(for: key, now: now).map(shown)
    }

    func body(of entry: StoredEntry) async throws(StoreError) -> any StoredBody {
        try await pass(.body)
        return DistantBody(inner: try await inner.body(of: entry))
    }

    func write(
        _ key: StoreKey,
        variant: StoreKey,
        description: EntryDescription,
        expectedLength: Int?,
        now: StoreInstant
    ) async throws(StoreError) -> any EntryWriter {
        try await pass(.write)
        let writer = try await inner.write(
            key,
            variant: variant,
            description: description,
            expectedLength: expectedLength,
            now: now
        )
        return Writer(writer) { [self] () async throws(StoreError) in try await pass(.commit) }
    }

    func replaceDescription(
        of entry: StoredEntry,
        with description: EntryDescription,
        now: StoreInstant
    ) async throws(StoreError) -> StoredEntry? {
        try await pass(.replace)
        return try await inner.replaceDescription(of: entry, with: description, now: now)
    }

    func remove(_ entry: StoredEntry) async throws(StoreError) {
        try await pass(.remove)
        try await inner.remove(entry)
    }

    func invalidate(_ key: StoreKey) async throws(StoreError) {
        try await pass(.invalidate)
        try await inner.invalidate(key)
    }

    func purge(_ selection: PurgeSelection, now: StoreInstant) async throws(StoreError) -> Int? {
        try await pass(.purge)
        return try await inner.purge(selection, now: now)
    }

    func setPinned(_ pinned: Bool, _ entry: StoredEntry) async throws(StoreError) -> Bool {
        try await pass(.pin)
        return try await inner.setPinned(pinned, entry)
    }

    func close() async { await inner.close() }

    private final class Writer: EntryWriter {
        private let inner: any EntryWriter
        private let beforeCommit: @Sendable () async throws(StoreError) -> Void

        init(_ inner: any EntryWriter, beforeCommit: @escaping @Sendable () async throws(StoreError) -> Void) {
            self.inner = inner
            self.beforeCommit = beforeCommit
        }

        func append(_ bytes: ByteChunk) async throws(StoreError) { try await inner.append(bytes) }

        func commit(_ description: EntryDescription?, now: StoreInstant) async throws(StoreError) -> StoredEntry {
            try await beforeCommit()
            return try await inner.commit(description, now: now)
        }

        func abandon() { inner.abandon() }
        func follow() -> any StoredBody { inner.follow() }
    }
}

/// A body that does not show that it lies in memory.
private struct DistantBody: StoredBody {
    let inner: any StoredBody
    var length: Int? { inner.length }
    var bytesInMemory: ByteChunk? { nil }

    func read(from offset: Int, upTo count: Int) async throws(StoreError) -> ByteChunk {
        try await inner.read(from: offset, upTo: count)
    }
}

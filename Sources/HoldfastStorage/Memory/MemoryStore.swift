// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// A store in memory: the fastest one, gone with the process.
///
/// Every look-up is answered without suspending and every committed body lies in one piece. Bytes are counted exactly, as
/// body + metadata + tags + key + variant + 256 for each entry; entries being written count as they grow, so that the sum
/// stays within ``StoreStatistics/capacity`` at every instant. Bytes that a reader still holds after their entry left count
/// no more.
///
/// Entries past their `uselessAfter` leave first, then those used longest ago. All operations take a short lock and cost
/// O(log n) at most; a purge looks at every entry. `statistics.bytesRead` counts a committed body when it is opened,
/// a followed one as it is read.
public final class MemoryStore: CacheStore {
    public let secret: [UInt8]
    private let state: Mutex<MemoryState>

    /// An empty store.
    ///
    /// - Parameters:
    ///   - capacity: bytes held at most; a negative number means 0, and then every write is refused.
    ///   - maximumEntrySize: bytes of one entry, counted as above; by default a quarter of the capacity, never more than it.
    ///   - maximumVariants: variants of one primary key; one more replaces the oldest that is not pinned. At least 1.
    public init(capacity: Int, maximumEntrySize: Int? = nil, maximumVariants: Int = 16) {
        var generator = SystemRandomNumberGenerator()
        secret = (0..<32).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
        state = Mutex(
            MemoryState(capacity: capacity, maximumEntrySize: maximumEntrySize, maximumVariants: maximumVariants)
        )
    }

    /// What is there, never nil: memory always knows. A closed store answers that nothing is.
    public func peek(_ key: StoreKey, now: StoreInstant) -> [StoredEntry]? {
        state.withLock { $0.lookUp(key, now: now) }
    }

    public func entries(for key: StoreKey, now: StoreInstant) async throws(StoreError) -> [StoredEntry] {
        try state.withLock { state throws(StoreError) in
            try state.checkOpen()
            return state.lookUp(key, now: now)
        }
    }

    public func body(of entry: StoredEntry) async throws(StoreError) -> any StoredBody {
        let bytes = try state.withLock { state throws(StoreError) in
            try state.checkOpen()
            guard let record = state.index.record(of: entry) else {
                throw StoreError(.superseded, "This version of the entry is gone; look the key up again.")
            }
            state.countRead(record.body.count)
            return record.body
        }
        return MemoryBody(bytes)
    }

    public func write(
        _ key: StoreKey,
        variant: StoreKey,
        description: EntryDescription,
        expectedLength: Int?,
        now: StoreInstant
    ) async throws(StoreError) -> any EntryWriter {
        let id = try state.withLock { state throws(StoreError) in
            try state.begin(key, variant, description.kept, expectedLength: expectedLength, now: now)
        }
        return MemoryWriter(store: self, id: id)
    }

    @discardableResult
    public func replaceDescription(
        of entry: StoredEntry,
        with description: EntryDescription,
        now: StoreInstant
    ) async throws(StoreError) -> StoredEntry? {
        try state.withLock { state throws(StoreError) in
            try state.replaceDescription(of: entry, with: description.kept, now: now)
        }
    }

    public func remove(_ entry: StoredEntry) async throws(StoreError) {
        try state.withLock { state throws(StoreError) in
            try state.checkOpen()
            state.remove(entry.key) { $0.version == entry.version }
        }
    }

    public func invalidate(_ key: StoreKey) async throws(StoreError) {
        try state.withLock { state throws(StoreError) in
            try state.checkOpen()
            state.writers.supersede(key)
            state.remove(key) { _ in true }
        }
    }

    @discardableResult
    public func purge(_ selection: PurgeSelection, now: StoreInstant) async throws(StoreError) -> Int? {
        var judge = PurgeJudge(selection)
        while true {
            let judged = judge
            let (removed, unknown) = try state.withLock { state throws(StoreError) in
                try state.checkOpen()
                let unknown = judged.unknown(in: state.index, state.writers, now: now)
                if !unknown.isEmpty { return (0, unknown) }
                state.writers.supersede(ids: judged.superseded(in: state.writers))
                var removed = 0
                for key in state.index.keys { removed += state.remove(key) { judged.takes($0) } }
                return (removed, unknown)
            }
            if unknown.isEmpty { return removed }
            // The caller's predicate runs here, outside the lock.
            judge.decide(unknown)
        }
    }

    public func list(
        after cursor: StoreCursor?,
        limit: Int,
        now: StoreInstant
    ) async throws(StoreError) -> StorePage {
        try state.withLock { state throws(StoreError) in
            try state.checkOpen()
            return state.index.page(after: cursor, limit: limit) { MemoryState.cost($0.entry) }
        }
    }

    @discardableResult
    public func setPinned(_ pinned: Bool, _ entry: StoredEntry) async throws(StoreError) -> Bool {
        try state.withLock { state throws(StoreError) in try state.setPinned(pinned, entry) }
    }

    public var statistics: StoreStatistics {
        state.withLock { $0.statistics }
    }

    /// Drops every entry; nothing is kept for later.
    public func close() async {
        state.withLock { $0.close() }
    }

    /// Evicts until at most `bytes` are held, as far as entries that are neither pinned nor being written allow.
    ///
    /// For a warning that memory runs short; the capacity stays as it is.
    public func trim(to bytes: Int) {
        state.withLock { $0.trim(to: max(0, bytes)) }
    }

    /// What is held, as a verification that found no fault, and its bytes in all.
    func held() throws(StoreError) -> (VerificationReport, bytes: Int) {
        try state.withLock { state throws(StoreError) in
            try state.checkOpen()
            var report = VerificationReport()
            for key in state.index.keys {
                for record in state.index.records(of: key) {
                    report.entriesChecked += 1
                    report.bodyBytesChecked += record.body.count
                }
            }
            return (report, state.used)
        }
    }

    // MARK: What the writers call

    func reserve(_ count: Int, for id: UInt64) throws(StoreError) {
        try state.withLock { state throws(StoreError) in try state.reserve(count, for: id) }
    }

    func commit(
        _ id: UInt64,
        _ description: EntryDescription?,
        body: ByteChunk,
        now: StoreInstant
    ) throws(StoreError) -> StoredEntry {
        try state.withLock { state throws(StoreError) in
            try state.commit(id, description?.kept, body: body, now: now)
        }
    }

    func abandon(_ id: UInt64) {
        _ = state.withLock { $0.writers.end(id) }
    }

    func countRead(_ count: Int) {
        state.withLock { $0.countRead(count) }
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastStorage
import Synchronization

/// A store in memory that, when told to, shows its entries as after a power loss: the same versions, in need of validation.
final class DoubtingStore: CacheStore {
    let doubts = SharedValue(false)
    /// If there is one, the next look finds nothing, as if what is there had been stored just after it; then this happens.
    let afterLook = Mutex<(@Sendable () -> Void)?>(nil)
    private let inner = MemoryStore(capacity: 1 << 20)

    var secret: [UInt8] { inner.secret }
    var statistics: StoreStatistics { inner.statistics }

    func peek(_ key: StoreKey, now: StoreInstant) -> [StoredEntry]? {
        if let happens = afterLook.withLock({ $0.take() }) {
            happens()
            return []
        }
        return inner.peek(key, now: now).map(shown)
    }

    func entries(for key: StoreKey, now: StoreInstant) async throws(StoreError) -> [StoredEntry] {
        shown(try await inner.entries(for: key, now: now))
    }

    private func shown(_ entries: [StoredEntry]) -> [StoredEntry] {
        guard doubts.value else { return entries }
        return entries.map { entry in
            StoredEntry(
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
    }

    func body(of entry: StoredEntry) async throws(StoreError) -> any StoredBody { try await inner.body(of: entry) }
    func peekBody(of entry: StoredEntry) -> ByteChunk? { inner.peekBody(of: entry) }

    func write(
        _ key: StoreKey,
        variant: StoreKey,
        description: EntryDescription,
        expectedLength: Int?,
        now: StoreInstant
    ) async throws(StoreError) -> any EntryWriter {
        try await inner.write(
            key,
            variant: variant,
            description: description,
            expectedLength: expectedLength,
            now: now
        )
    }

    func replaceDescription(
        of entry: StoredEntry,
        with description: EntryDescription,
        now: StoreInstant
    ) async throws(StoreError) -> StoredEntry? {
        try await inner.replaceDescription(of: entry, with: description, now: now)
    }

    func remove(_ entry: StoredEntry) async throws(StoreError) { try await inner.remove(entry) }
    func invalidate(_ key: StoreKey) async throws(StoreError) { try await inner.invalidate(key) }

    func purge(_ selection: PurgeSelection, now: StoreInstant) async throws(StoreError) -> Int? {
        try await inner.purge(selection, now: now)
    }

    func setPinned(_ pinned: Bool, _ entry: StoredEntry) async throws(StoreError) -> Bool {
        try await inner.setPinned(pinned, entry)
    }

    func close() async { await inner.close() }
}

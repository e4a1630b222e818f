// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastStorage
import HoldfastTesting
import Synchronization

/// A store that several caches share as if they were processes of a fleet: it shows nothing without suspending, and leases.
final class FleetStore: CacheStore {
    let fillLeasing: (any FillLeasing)?
    /// Look-ups that were answered, and how many of them may go on where they are held up.
    let lookUps = CountWatch()
    let gate = CountWatch()
    let stallsAnswers = Atomic(false)
    let refusesWrites = Atomic(false)
    private let inner: any CacheStore

    init(_ inner: any CacheStore, _ leasing: (any FillLeasing)?) {
        self.inner = inner
        fillLeasing = leasing
    }

    var secret: [UInt8] { inner.secret }
    var statistics: StoreStatistics { inner.statistics }

    func peek(_ key: StoreKey, now: StoreInstant) -> [StoredEntry]? { nil }

    func entries(for key: StoreKey, now: StoreInstant) async throws(StoreError) -> [StoredEntry] {
        let found = try await inner.entries(for: key, now: now)
        lookUps.increment()
        if stallsAnswers.load(ordering: .relaxed) { try? await gate.wait(for: 1) }
        return found
    }

    func body(of entry: StoredEntry) async throws(StoreError) -> any StoredBody {
        try await inner.body(of: entry)
    }

    func write(
        _ key: StoreKey,
        variant: StoreKey,
        description: EntryDescription,
        expectedLength: Int?,
        now: StoreInstant
    ) async throws(StoreError) -> any EntryWriter {
        if refusesWrites.load(ordering: .relaxed) { throw StoreError(.tooLarge, "injected") }
        return try await inner.write(
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

    func close() async {}
}

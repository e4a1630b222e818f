// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

package import HoldfastStorage
package import HoldfastTesting
private import Synchronization

/// One process's view of a store that several processes share: it answers nothing without suspending, and has leases.
///
/// Make one for each cache that represents a process, all on one store and one `FillLeasing`. Closing it leaves the shared store
/// open.
package final class FleetStore: CacheStore {
    package let fillLeasing: (any FillLeasing)?
    /// Counts the lookups that have their answer. While ``stallsAnswers`` is true, they wait for ``gate`` to count once.
    package let lookUps = CountWatch()
    package let gate = CountWatch()
    private let inner: any CacheStore
    private let stalls = Atomic(false)
    private let refuses = Atomic(false)

    /// A view of `inner`.
    package init(_ inner: any CacheStore, leasing: (any FillLeasing)?) {
        self.inner = inner
        fillLeasing = leasing
    }

    /// Whether lookups are held before they return their answer.
    package var stallsAnswers: Bool {
        get { stalls.load(ordering: .acquiring) }
        set { stalls.store(newValue, ordering: .releasing) }
    }

    /// Whether all writes fail, as if the entry were too large.
    package var refusesWrites: Bool {
        get { refuses.load(ordering: .acquiring) }
        set { refuses.store(newValue, ordering: .releasing) }
    }

    package var secret: [UInt8] { inner.secret }
    package var statistics: StoreStatistics { inner.statistics }

    package func peek(_ key: StoreKey, now: StoreInstant) -> [StoredEntry]? { nil }

    package func entries(for key: StoreKey, now: StoreInstant) async throws(StoreError) -> [StoredEntry] {
        let found = try await inner.entries(for: key, now: now)
        lookUps.increment()
        if stallsAnswers { try? await gate.wait(for: 1) }
        return found
    }

    package func body(of entry: StoredEntry) async throws(StoreError) -> any StoredBody {
        try await inner.body(of: entry)
    }

    package func write(
        _ key: StoreKey,
        variant: StoreKey,
        description: EntryDescription,
        expectedLength: Int?,
        now: StoreInstant
    ) async throws(StoreError) -> any EntryWriter {
        if refusesWrites { throw StoreError(.tooLarge, "injected") }
        return try await inner.write(
            key,
            variant: variant,
            description: description,
            expectedLength: expectedLength,
            now: now
        )
    }

    package func replaceDescription(
        of entry: StoredEntry,
        with description: EntryDescription,
        now: StoreInstant
    ) async throws(StoreError) -> StoredEntry? {
        try await inner.replaceDescription(of: entry, with: description, now: now)
    }

    package func remove(_ entry: StoredEntry) async throws(StoreError) { try await inner.remove(entry) }
    package func invalidate(_ key: StoreKey) async throws(StoreError) { try await inner.invalidate(key) }

    package func purge(_ selection: PurgeSelection, now: StoreInstant) async throws(StoreError) -> Int? {
        try await inner.purge(selection, now: now)
    }

    package func setPinned(_ pinned: Bool, _ entry: StoredEntry) async throws(StoreError) -> Bool {
        try await inner.setPinned(pinned, entry)
    }

    package func close() async {}
}

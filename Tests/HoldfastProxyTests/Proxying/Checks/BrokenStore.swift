// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import HoldfastStorage
    import HoldfastTesting

    /// A store whose device refuses everything.
    struct BrokenStore: CacheStore {
        private static let failure = StoreError(.noSpace, "The device is full.")

        let secret = [UInt8](repeating: 7, count: 16)
        let statistics = StoreStatistics()
        let purges = CountWatch()

        func peek(_ key: StoreKey, now: StoreInstant) -> [StoredEntry]? { nil }

        func entries(for key: StoreKey, now: StoreInstant) async throws(StoreError) -> [StoredEntry] {
            throw BrokenStore.failure
        }

        func body(of entry: StoredEntry) async throws(StoreError) -> any StoredBody { throw BrokenStore.failure }

        func write(
            _ key: StoreKey,
            variant: StoreKey,
            description: EntryDescription,
            expectedLength: Int?,
            now: StoreInstant
        ) async throws(StoreError) -> any EntryWriter {
            throw BrokenStore.failure
        }

        func replaceDescription(
            of entry: StoredEntry,
            with description: EntryDescription,
            now: StoreInstant
        ) async throws(StoreError) -> StoredEntry? {
            throw BrokenStore.failure
        }

        func remove(_ entry: StoredEntry) async throws(StoreError) { throw BrokenStore.failure }

        func invalidate(_ key: StoreKey) async throws(StoreError) { throw BrokenStore.failure }

        func purge(_ selection: PurgeSelection, now: StoreInstant) async throws(StoreError) -> Int? {
            purges.increment()
            throw BrokenStore.failure
        }

        func setPinned(_ pinned: Bool, _ entry: StoredEntry) async throws(StoreError) -> Bool { false }

        func close() async {}
    }
#endif

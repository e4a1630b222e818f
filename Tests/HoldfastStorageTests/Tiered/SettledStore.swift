// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastTesting

@testable import HoldfastStorage

/// A tiered store whose promotions are over before the next look-up, so that what can be answered above is.
final class SettledStore: CacheStore {
    let tiered: TieredStore

    init(_ tiered: TieredStore) {
        self.tiered = tiered
    }

    var secret: [UInt8] { tiered.secret }
    var statistics: StoreStatistics { tiered.statistics }

    func peek(_ key: StoreKey, now: StoreInstant) -> [StoredEntry]? { tiered.peek(key, now: now) }

    func entries(for key: StoreKey, now: StoreInstant) async throws(StoreError) -> [StoredEntry] {
        await tiered.awaitPromotions()
        return try await tiered.entries(for: key, now: now)
    }

    func body(of entry: StoredEntry) async throws(StoreError) -> any StoredBody {
        await tiered.awaitPromotions()
        return try await tiered.body(of: entry)
    }

    func peekBody(of entry: StoredEntry) -> ByteChunk? { tiered.peekBody(of: entry) }

    func write(
        _ key: StoreKey,
        variant: StoreKey,
        description: EntryDescription,
        expectedLength: Int?,
        now: StoreInstant
    ) async throws(StoreError) -> any EntryWriter {
        try await tiered.write(
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
        try await tiered.replaceDescription(of: entry, with: description, now: now)
    }

    func remove(_ entry: StoredEntry) async throws(StoreError) { try await tiered.remove(entry) }
    func invalidate(_ key: StoreKey) async throws(StoreError) { try await tiered.invalidate(key) }

    func purge(_ selection: PurgeSelection, now: StoreInstant) async throws(StoreError) -> Int? {
        try await tiered.purge(selection, now: now)
    }

    func setPinned(_ pinned: Bool, _ entry: StoredEntry) async throws(StoreError) -> Bool {
        try await tiered.setPinned(pinned, entry)
    }

    func list(after cursor: StoreCursor?, limit: Int, now: StoreInstant) async throws(StoreError)
        -> StorePage
    {
        try await tiered.list(after: cursor, limit: limit, now: now)
    }

    func close() async { await tiered.close() }
}

extension StoreFactory {
    /// A small upper tier over `lower`, with whatever order promotions and other steps happen to take.
    static func tiered(over lower: StoreFactory) -> StoreFactory {
        wrapping(lower, "TieredStore over \(lower)") { TieredStore(memory: 4 << 20, over: $0, rule: .firstHit) }
    }

    /// The same with every promotion over before the next look-up.
    static func settled(over lower: StoreFactory) -> StoreFactory {
        wrapping(lower, "TieredStore over \(lower), settled") { lower in
            SettledStore(
                TieredStore(memory: 16 << 20, over: lower, rule: PromotionRule(hits: 1, share: 1))
            )
        }
    }

    static func wrapping(
        _ lower: StoreFactory,
        _ description: String,
        _ wrap: @escaping @Sendable (any CacheStore) -> any CacheStore
    ) -> StoreFactory {
        StoreFactory(description) { capacity in
            let inner = try await lower.make(capacity)
            var reopen: (@Sendable () async throws -> any CacheStore)?
            if let open = inner.reopen { reopen = { wrap(try await open()) } }
            return StoreSubject(
                wrap(inner.store),
                reopen: reopen,
                heldBytes: inner.heldBytes,
                cleanUp: inner.cleanUp
            )
        }
    }
}

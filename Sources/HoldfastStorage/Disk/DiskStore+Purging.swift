// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

extension DiskStore {
    /// Purges by the forms that take constant time: nothing is counted there.
    func purgeMarked(_ what: OrderBook.Mark) async throws(StoreError) {
        let engine = engine
        let isMarked = try await engine.threads.run(.changes, isUrgent: true) { () throws(StoreError) in
            try engine.mark(what)
        }
        if engine.orders.isCrowded { engine.sweepMarksSoon() }
        if isMarked { return }
        // More marks than the background could deal with: what they take is taken out one by one, and then none is needed.
        let before = engine.orders.last
        _ = try await sweep { entry in entry == nil }
        engine.orders.withMarks { $0.forget(upTo: before) }
        _ = try await engine.threads.run(.changes, isUrgent: true) { () throws(StoreError) in try engine.mark(what) }
    }

    /// Purges what a predicate names, writers under way included; it is asked on the caller's task and under no lock.
    func purgeMatching(
        _ predicate: @Sendable (StoredEntry) -> Bool,
        now: StoreInstant
    ) async throws(StoreError) -> Int {
        let before = engine.orders.last
        for shard in engine.index.shards {
            // What is put in one step is in no row yet; it will be in a moment.
            try await settling(shard) { $0.isPut && $0.order <= before }
            let writers = shard.state.withLock { $0.writers.all }
            let doomed = writers.filter { _, writer in
                predicate(
                    StoredEntry(
                        key: writer.key,
                        variant: writer.variant,
                        version: .beingWritten,
                        description: writer.description,
                        bodyLength: 0,
                        storedAt: now
                    )
                )
            }
            if !doomed.isEmpty {
                shard.state.withLock { $0.writers.supersede(ids: Array(doomed.keys)) }
                // No tombstone would kill their records after a crash: they are waited for until they are off the disk again.
                let ids = Set(doomed.keys)
                try await settling(shard) { $0.writer.map(ids.contains) ?? false }
            }
        }
        return try await sweep { entry in entry.map(predicate) ?? false }
    }

    /// Waits until certain records are no longer being written.
    private func settling(
        _ shard: IndexShard,
        _ isMeant: @Sendable (PendingWrite) -> Bool
    ) async throws(StoreError) {
        while shard.state.withLock({ $0.pending.contains(where: isMeant) }) {
            await Task.yield()
            try await engine.threads.run(.writes, isUrgent: true) {}
        }
    }

    /// Goes through all entries and takes out those that `takes` names; it is shown nil for what a mark has taken.
    private func sweep(_ takes: (StoredEntry?) -> Bool) async throws(StoreError) -> Int {
        let engine = engine
        var count = 0
        for number in 0..<ShardedIndex.count {
            var fragment: UInt64 = 0
            var variant: UInt32 = 0
            while true {
                let (from, beneath) = (fragment, variant)
                let page = try await engine.threads.run(.reads) { () throws(StoreError) -> [(IndexRow, Found?)] in
                    var page: [(IndexRow, Found?)] = []
                    for row in engine.rows(shard: number, from: from, variant: beneath, limit: Self.page) {
                        page.append((row, try engine.current(row, shard: number)))
                    }
                    return page
                }
                for (row, found) in page {
                    let primary = ShardedIndex.primary(shard: number, row.fragment)
                    count += try await remove(found, row, primary: primary, shard: number, takes) ? 1 : 0
                }
                guard let last = page.last?.0, page.count == Self.page else { break }
                guard let next = last.next else { break }
                (fragment, variant) = next
            }
        }
        engine.counters.entriesRemoved.add(count, ordering: .relaxed)
        return count
    }

    /// A row and its entry, nil where a mark has taken it.
    private typealias Found = (row: IndexRow, entry: StoredEntry?)

    /// Takes an entry out, also where it is freshened or pinned between the look and the removal.
    private func remove(
        _ found: Found?,
        _ row: IndexRow,
        primary: UInt64,
        shard number: Int,
        _ takes: (StoredEntry?) -> Bool
    ) async throws(StoreError) -> Bool {
        let engine = engine
        var found = found
        // Each turn after the first is another's change; what is put again and again need not go.
        for _ in 0..<256 {
            guard let seen = found, takes(seen.entry) else { return false }
            if try await engine.remove(seen.row, primary: primary) { return true }
            found = try await engine.threads.run(.reads) { () throws(StoreError) in
                try engine.current(row, shard: number)
            }
        }
        return false
    }

    /// Entries that are read at a time.
    static var page: Int { 256 }
}

extension IndexRow {
    /// The place just behind this row in the order of a table; nil at the very end.
    var next: (fragment: UInt64, variant: UInt32)? {
        if variant < .max { return (fragment, variant + 1) }
        return fragment + 1 < 1 << UInt64(Self.fragmentBits) ? (fragment + 1, 0) : nil
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Purges, and what else looks at every entry.
extension MemoryStore {
    /// What a purge leaves of one key.
    private struct Cut: Sendable {
        let key: StoreKey
        let hash: UInt64
        let left: [MemoryRecord]
        let taken: [MemoryRecord]
    }

    @discardableResult
    public func purge(_ selection: PurgeSelection, now: StoreInstant) async throws(StoreError) -> Int? {
        var judge = PurgeJudge(selection)
        while true {
            let judged = judge
            let (removed, unknown) = try change { book throws(StoreError) in
                // While the book is held entries stay as they are, so that they can be judged shard after shard.
                let unknown = judged.unknown(in: judged.asks ? entries : [], book.ledger.writers, now: now)
                if !unknown.isEmpty { return (0, unknown) }
                book.ledger.writers.supersede(ids: judged.superseded(in: book.ledger.writers))
                return (take(cuts { judged.takes($0) }, &book), unknown)
            }
            if unknown.isEmpty { return removed }
            // The caller's predicate runs here, outside the lock.
            judge.decide(unknown)
        }
    }

    /// What is held, as a verification that found no fault, and its bytes in all.
    func held() throws(StoreError) -> (VerificationReport, bytes: Int) {
        try change { book throws(StoreError) in
            var report = VerificationReport()
            for entry in entries {
                report.entriesChecked += 1
                report.bodyBytesChecked += entry.bodyLength
            }
            return (report, book.ledger.used)
        }
    }

    /// Every entry, in no order; of one instant where the book is held.
    private var entries: [StoredEntry] {
        (0..<MemoryShards.count).flatMap { shard in
            shards.withLock(shard) { state in state.table.groups.flatMap(\.entries) }
        }
    }

    private func cuts(_ takes: (StoredEntry) -> Bool) -> ArraySlice<(Int, [Cut])> {
        var cuts: [(Int, [Cut])] = []
        for shard in 0..<MemoryShards.count {
            let groups = shards.withLock(shard) { $0.table.groups }
            let found = groups.compactMap { group -> Cut? in
                guard group.entries.contains(where: takes) else { return nil }
                let left = group.records.filter { !takes($0.entry) }
                let taken = group.records.filter { takes($0.entry) }
                return Cut(key: group.key, hash: group.hash, left: left, taken: taken)
            }
            if !found.isEmpty { cuts.append((shard, found)) }
        }
        return cuts[...]
    }

    private func take(_ cuts: ArraySlice<(Int, [Cut])>, _ book: inout MemoryBook) -> Int {
        removeTogether(cuts)
        var count = 0
        for (_, cuts) in cuts {
            for record in cuts.flatMap(\.taken) {
                book.ledger.remove(record.ticket)
                book.gone.append(record)
                count += 1
            }
        }
        book.counts.entriesRemoved &+= count
        return count
    }

    /// Removes what is cut with the locks of all shards concerned held, so that nobody sees a part of it gone.
    private func removeTogether(_ cuts: ArraySlice<(Int, [Cut])>) {
        guard let (shard, first) = cuts.first else { return }
        // Each counts as changed before any is, so that no copy shows what a look-up before it found gone.
        shards.changing(shard) { state in
            removeTogether(cuts.dropFirst())
            for cut in first { state.table.replace(cut.key, cut.hash, with: cut.left) }
        }
    }
}

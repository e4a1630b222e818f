// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// The first steps of an engine. For the thread of changes.
extension DiskEngine {
    /// Books the pins, pays what recovery left owing, and evicts what an earlier, larger capacity let in.
    func start(now: StoreInstant) {
        latestNow.store(now.milliseconds, ordering: .relaxed)
        bookPins()
        payDebtsAtStart()
        // One that cannot go, since what is pinned in it has no other place yet, is tried again after all others.
        var turns = 2 * slots.all.count + 2
        while ledger.used > ledger.capacity, turns > 0 {
            turns -= 1
            _ = try? reclaimOldest(recyclingFor: nil)
        }
    }

    /// Pins that have no more room lapse.
    private func bookPins() {
        for number in 0..<ShardedIndex.count {
            var pinned: [IndexRow] = []
            index.shards[number].state.withLock { shard in
                shard.table.forEach { if $0.isPinned { pinned.append($0) } }
            }
            for row in pinned {
                let primary = ShardedIndex.primary(shard: number, row.fragment)
                guard case .record(let source)? = try? read(row, primary: primary, waits: true) else { continue }
                let identity = EntryIdentity(primary: primary, variant: row.variant)
                if !pins.pin(identity, weight: pinWeight(source.header)) { unpin(identity) }
            }
        }
    }

    private func payDebtsAtStart() {
        guard !owed.withLock({ $0.isEmpty }) else { return }
        try? makeRoom(.main, length: RecordHeader.size)
        payDebts()
    }
}

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
        fitCapacity()
        ledger.setCeiling(ledger.capacity)
        if ledger.used > ledger.capacity / 2 { trials.begin() }
    }

    /// What an earlier, larger capacity let in goes, oldest first; until then as much is free for carrying as it had.
    private func fitCapacity() {
        do throws(StoreError) {
            try reclaimExcess()
            // Segments larger than those of this capacity: the reserve is not made for them.
            var turns = slots.all.count
            while turns > 0, let sealed = log.withLock({ $0.oldest(above: geometry.segmentSize) }) {
                turns -= 1
                let isRoomy = ledger.free >= sealed.segment.size + geometry.segmentSize
                _ = try reclaim(sealed, mode: isRoomy ? .carryAll : .judge, recyclingFor: nil)
            }
            try reclaimExcess()
        } catch {
            // What cannot go now goes when the next put wants room.
        }
    }

    private func reclaimExcess() throws(StoreError) {
        var search = RoomSearch(segments: slots.all.count)
        while ledger.excess > 0 { _ = try search.next(self, recyclingFor: nil) }
    }

    /// Pins that have no more room lapse, the oldest first.
    private func bookPins() {
        var found: [(identity: EntryIdentity, order: UInt64, weight: Int)] = []
        for number in 0..<ShardedIndex.count {
            var pinned: [IndexRow] = []
            index.shards[number].state.withLock { shard in
                shard.table.forEach { if $0.isPinned { pinned.append($0) } }
            }
            for row in pinned {
                let primary = ShardedIndex.primary(shard: number, row.fragment)
                guard case .record(let source)? = try? read(row, primary: primary, waits: true) else { continue }
                let identity = EntryIdentity(primary: primary, variant: row.variant)
                found.append((identity, row.order, pinWeight(source.header)))
            }
        }
        for pin in found.sorted(by: { $0.order > $1.order }) where !pins.pin(pin.identity, weight: pin.weight) {
            unpin(pin.identity)
            counters.pinsReleased.add(1, ordering: .relaxed)
        }
    }

    private func payDebtsAtStart() {
        guard !owed.withLock({ $0.isEmpty }) else { return }
        payDebts()
    }
}

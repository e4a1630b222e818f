// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// Purges: marks that take constant time, and a new epoch for everything. If there are many marks, they are swept in the
/// background: the entries they kill are removed one by one, and then the marks are dropped.
final class Purger: Sendable {
    private let index: ShardedIndex
    private let orders: SequenceAllocator
    private let log: Log
    private let lookup: Lookup
    private let remover: Remover
    private let room: SpaceAllocator
    private let writer: Writer
    private let pins: PinRegistry
    private let blobs: BlobFiles
    private let threads: IOThreads
    private let health: StoreHealth
    /// Whether entries killed by marks are being removed one by one.
    private let isSweepingMarks = Atomic<Bool>(false)

    init(_ opened: OpenedStore, log: Log, lookup: Lookup, remover: Remover, room: SpaceAllocator, writer: Writer) {
        (index, orders, pins, blobs) = (opened.index, opened.orders, opened.pins, opened.blobs)
        (threads, health) = (opened.threads, opened.health)
        (self.log, self.lookup, self.remover, self.room, self.writer) = (log, lookup, remover, room, writer)
    }

    /// Changes: marks everything older that has a tag, or whose key begins with a prefix, as gone.
    ///
    /// - Returns: false if there are too many marks to take another.
    /// - Throws: `.noSpace`, the device's error. The mark applies even so, and is pending.
    func mark(_ what: PurgeMarks.Mark) throws(StoreError) -> Bool {
        let marked = orders.mark(what) { log.ask { $0.highestNumber } }
        guard let (order, horizon) = marked else { return false }
        // From now on, it applies to every lookup; the rest makes it survive a crash.
        let mark =
            switch what {
            case .tag(let hash): Tombstone(kind: .tagMark, order: order, primary: hash, variant: 0)
            case .prefix(let bytes):
                Tombstone(kind: .prefixMark, order: order, primary: 0, variant: 0, detail: ByteChunk(bytes))
            }
        var reserved = remover.reserve(mark, horizon: horizon, in: .main)
        var failure = StoreError.noSpace
        if reserved == nil {
            let request = LogState.Request(destination: .main, length: remover.length(of: mark), hasBlob: false)
            do throws(StoreError) {
                reserved = try room.withRoomForRemoval(request) {
                    remover.reserve(mark, horizon: horizon, in: $0, hasClaim: true)
                }
            } catch {
                failure = error
            }
        }
        guard let reserved else {
            if failure.code == .closed { throw failure }
            remover.postpone(mark)
            throw failure.unrecorded
        }
        try remover.write(reserved, mayPostpone: true)
        try removePinned()
        return true
    }

    /// Changes: removes the pinned entries that marks have killed, so that their pins take no room and do not pass on.
    private func removePinned() throws(StoreError) {
        for identity in pins.identities {
            let (number, fragment) = (
                ShardedIndex.number(of: identity.primary), ShardedIndex.fragment(of: identity.primary)
            )
            let row = index.shards[number].state.withLock { $0.table.row(fragment, variant: identity.variant) }
            // The mark applies to one that cannot be read as soon as it can.
            if let row { try removeIfKilled(row, shard: number, takesUnreadable: false) }
        }
    }

    /// Changes: removes a row whose entry marks have killed.
    ///
    /// - Parameter takesUnreadable: whether a row goes too of which the device cannot say what it holds.
    private func removeIfKilled(_ row: IndexRow, shard: Int, takesUnreadable: Bool) throws(StoreError) {
        var killed: IndexRow?
        do throws(StoreError) {
            if let found = try lookup.current(row, shard: shard), found.entry == nil { killed = found.row }
        } catch {
            guard error.isOfDamagedPlace else { throw error }
            if takesUnreadable { killed = row }
        }
        if let killed { try removeHere(killed, primary: ShardedIndex.primary(shard: shard, row.fragment)) }
    }

    /// Changes: begins a new epoch and removes all files of the old one.
    ///
    /// - Returns: how many entries were removed.
    func purgeAll() throws(StoreError) -> Int {
        let next = log.epoch.load(ordering: .acquiring) + 1
        try room.writeFormat { $0.epoch = next }
        // Lookups compare a segment's epoch, so with this one store everything is gone.
        log.epoch.store(next, ordering: .releasing)
        // Writers that began a blob up to here cannot commit any more; those that begin later must keep it.
        let lastBlob = orders.last
        writer.blobsPurgedUpTo.store(lastBlob, ordering: .releasing)
        var count = 0
        for (number, shard) in index.shards.enumerated() {
            count += shard.state.withLock { shard in
                shard.writers.supersede { _ in true }
                let rows = shard.table.count
                shard.table.removeAll()
                shard.uncertain.removeAll()
                pins.releaseAll(ofShard: number)
                return rows
            }
        }
        orders.withMarks { $0.forget(upTo: .max) }
        remover.discardPendingTombstones()
        health.counters.entriesRemoved.add(count, ordering: .relaxed)
        if !log.removeAll() { health.counters.failures.add(1, ordering: .relaxed) }
        remover.forgetBlobRemovals(but: next)
        removeBlobs(upTo: lastBlob)
        return count
    }

    /// Removes blobs; the bytes of one that is still read or written are released when it is closed.
    private func removeBlobs(upTo last: UInt64) {
        guard let names = try? log.files.list(log.layout.blobs) else { return }
        for name in names {
            guard let number = FileNumber.number(in: name, suffix: StoreLayout.blobSuffix), number <= last else {
                continue
            }
            let size = (try? log.files.attributesIfThere(log.layout.blob(number)))?.size ?? 0
            blobs.remove(number, bytes: SpaceQuota.blocks(size))
        }
    }

    /// Begins to sweep, unless that is in progress.
    func sweepMarksSoon() {
        guard beginSweep() else { return }
        sweepMarksLater(from: IndexPosition(), upTo: orders.last)
    }

    /// Has a few rows swept at a time, so that nobody waits for long.
    private func sweepMarksLater(from place: IndexPosition, upTo last: UInt64) {
        let isQueued = threads.later(.changes) { [self] in
            // If it fails, the marks stay, and a later purge tries again.
            guard let next = try? sweepMarks(from: place, upTo: last), !next.isEnd else {
                return endSweep()
            }
            sweepMarksLater(from: next, upTo: last)
        }
        if !isQueued { endSweep() }
    }

    /// Whether the caller may sweep the marks: nobody else does, until it ends the sweep.
    func beginSweep() -> Bool { !isSweepingMarks.exchange(true, ordering: .acquiringAndReleasing) }

    func endSweep() { isSweepingMarks.store(false, ordering: .releasing) }

    /// Changes: goes through a few rows and removes the entries that marks have killed; after the last rows, the marks up to an
    /// order are dropped.
    ///
    /// - Returns: where to continue.
    func sweepMarks(from start: IndexPosition, upTo last: UInt64) throws(StoreError) -> IndexPosition {
        try health.checkOpen()
        var place = start
        // Entries that are being written under an older order are in no row yet.
        let isBusy = index.shards[start.shard].state.withLock { shard in shard.pending.contains { $0.order <= last } }
        if isBusy {
            IOThreads.pause()
            return place
        }
        let rows = index.rows(from: place, limit: 64)
        for row in rows where row.order < orders.newestMarkOrder {
            // Whether a mark has killed what the device cannot read is unknown, and the marks are about to go.
            try removeIfKilled(row, shard: start.shard, takesUnreadable: true)
        }
        place.pass(rows, limit: 64)
        if place.isEnd { orders.withMarks { $0.forget(upTo: last) } }
        return place
    }

    /// Changes: removes one row, with a tombstone.
    private func removeHere(_ row: IndexRow, primary: UInt64) throws(StoreError) {
        var reserved = remover.reserveRemoval(of: row, primary: primary, isEviction: false)
        if case .needsRoom(let request) = reserved {
            reserved = try room.withRoomForRemoval(request) {
                remover.reserveRemoval(of: row, primary: primary, isEviction: false, claimed: $0)
            }
        }
        // A busy one is being changed, which checks the marks itself.
        if case .done(let removal?) = reserved { try remover.finish(removal) }
    }
}

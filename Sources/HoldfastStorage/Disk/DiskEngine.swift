// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// An open store: its parts, how it starts and how it ends.
///
/// Each part knows those above it in the list and none below.
final class DiskEngine: Sendable {
    let threads: IOThreads
    let health: StoreHealth
    let index: ShardedIndex
    let orders: SequenceAllocator
    let pins: PinRegistry
    let blobs: BlobFiles
    let hashing: KeyHashing
    /// Segments, and places in them.
    let log: Log
    /// Rows that leave the index, with their tombstones and blobs.
    let remover: Remover
    /// From a key to its entries and bodies.
    let lookup: Lookup
    /// Eviction.
    let reclaimer: Reclaimer
    let room: SpaceAllocator
    let writer: Writer
    let purger: Purger
    private let lockFile: OpenFile

    init(_ opened: OpenedStore) {
        (threads, health, index, orders) = (opened.threads, opened.health, opened.index, opened.orders)
        (pins, blobs, hashing, lockFile) = (opened.pins, opened.blobs, opened.hashing, opened.lockFile)
        log = Log(opened)
        remover = Remover(opened, log: log)
        lookup = Lookup(opened, log: log, remover: remover)
        reclaimer = Reclaimer(opened, log: log, remover: remover, lookup: lookup)
        room = SpaceAllocator(opened, log: log, reclaimer: reclaimer, remover: remover, tuner: lookup.tuner)
        writer = Writer(opened, log: log, lookup: lookup, remover: remover, room: room)
        purger = Purger(opened, log: log, lookup: lookup, remover: remover, room: room, writer: writer)
    }

    deinit {
        // They hold each other.
        blobs.closeCached()
    }

    var quota: SpaceQuota { log.quota }

    /// What identifies an entry in the index.
    func identity(_ key: StoreKey, variant: StoreKey) -> EntryIdentity {
        EntryIdentity(primary: hashing.primary(key), variant: hashing.variant(variant, of: key))
    }

    var statistics: StoreStatistics {
        var all = health.counters.all
        all.entryCount = health.isDisplaced ? 0 : index.count
        all.bytesUsed = quota.used
        all.capacity = quota.capacity
        return all
    }

    // MARK: Start

    /// Accounts for pins, completes what recovery left to do, and evicts what exceeds a smaller capacity. For the thread of
    /// changes.
    func start(now: StoreInstant) {
        health.latestNow.store(now.milliseconds, ordering: .relaxed)
        registerPins()
        remover.writePendingTombstones()
        reclaimer.fitCapacity()
        quota.setCeiling(quota.capacity)
        if quota.used > quota.capacity / 2 { lookup.tuner.begin() }
    }

    /// Unpins entries for which there is no more room, the oldest first.
    private func registerPins() {
        var found: [(identity: EntryIdentity, order: UInt64, weight: Int)] = []
        for number in 0..<ShardedIndex.count {
            var pinned: [IndexRow] = []
            index.shards[number].state.withLock { shard in
                shard.table.forEach { if $0.isPinned { pinned.append($0) } }
            }
            for row in pinned {
                let primary = ShardedIndex.primary(shard: number, row.fragment)
                guard case .record(let source)? = try? lookup.read(row, primary: primary, waits: true) else { continue }
                let identity = EntryIdentity(primary: primary, variant: row.variant)
                found.append((identity, row.order, writer.pinWeight(source.header)))
            }
        }
        for pin in found.sorted(by: { $0.order > $1.order }) where !pins.pin(pin.identity, weight: pin.weight) {
            let (primary, variant) = (pin.identity.primary, pin.identity.variant)
            index.shard(of: primary).state.withLock { shard in
                _ = shard.table.change(ShardedIndex.fragment(of: primary), variant: variant) { $0.isPinned = false }
            }
            health.counters.pinsReleased.add(1, ordering: .relaxed)
        }
    }

    // MARK: End

    /// Seals open segments, makes everything durable and records that in FORMAT; idempotent.
    func close() async {
        guard health.close() else { return }
        // Writers in progress can no longer commit, and must leave nothing behind.
        for shard in index.shards { shard.state.withLock { $0.writers.supersede { _ in true } } }
        // A caller's change that came after the last step below would write through closed descriptors.
        threads.refuseCallers(.changes)
        for lane in [IOThreads.Lane.writes, .changes, .reads, .syncs] { await threads.drain(lane) }
        await threads.drain(.changes) { [self] in
            remover.writePendingTombstones()
            log.change { $0.isClosed = true }
        }
        // Releases the directory's lock only when nobody writes there any more, including callers on their own threads.
        while log.ask({ $0.writesInFlight > 0 }) {
            await Task.yield()
            await threads.drain(.writes)
        }
        await threads.drain(.changes, isLast: true) { [self] in finishFiles() }
        threads.stop()
    }

    /// The last changes of the files.
    private func finishFiles() {
        remover.removePendingBlobs()
        blobs.closeCached()
        blobs.retryLeftovers()
        let isComplete = log.sealAndSync()
        if remover.hasPendingTombstones {
            // Removals that could not be written must not be undone when the store is opened again.
            try? log.writeFormat { $0.suspectBefore = max($0.suspectBefore, orders.last + 1) }
        } else if isComplete {
            try? log.writeFormat { $0.isClean = true }
        }
        log.manifest.close()
        log.files.close(lockFile)
    }
}

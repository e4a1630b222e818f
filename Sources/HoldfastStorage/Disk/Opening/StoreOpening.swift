// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// What an engine starts with.
struct OpenedStore {
    let layout: StoreLayout
    let geometry: Geometry
    let format: StoreFormat
    let index: ShardedIndex
    let slots: SegmentSlots
    let ledger: SpaceLedger
    let log: LogState
    let orders: OrderBook
    let blobs: BlobFiles
    let lockFile: OpenFile
    let owed: [OwedNotes.Note]
    let damaged: Int
}

/// Opens a directory: makes it ready, reads what it holds, and goes on where the last process left it. Blocks.
struct StoreOpening: Sendable {
    let layout: StoreLayout
    let files: any FileSystem
    let capacity: Int
    let limits: SpaceLimits
    let seal: (any StoreSeal)?

    /// Orders beyond this are no store's: what bears one is damaged or forged.
    private static let highestOrder: UInt64 = 1 << 47

    /// Opens the store; the lock is released again when this throws.
    func open() throws(StoreError) -> OpenedStore {
        let fresh = Geometry(capacity: capacity)
        let directory = StoreDirectory(layout: layout, files: files)
        var generator = SystemRandomNumberGenerator()
        let opened = try directory.open(segmentSize: fresh.segmentSize, using: &generator)
        do throws(StoreError) {
            return try read(opened, directory, fresh)
        } catch {
            files.close(opened.lock)
            throw error
        }
    }

    private func read(
        _ opened: StoreDirectory.Opened,
        _ directory: StoreDirectory,
        _ fresh: Geometry
    ) throws(StoreError) -> OpenedStore {
        let index = ShardedIndex()
        let recovery = StoreRecovery(layout: layout, files: files, format: opened.format, seal: seal)
        let found = try recovery.run { number, rows throws(StoreError) in
            try index.shards[number].state.withLock { shard throws(StoreError) in _ = try shard.table.fill(rows) }
        }
        guard found.nextOrder < Self.highestOrder, found.nextSegment < Self.highestOrder else {
            throw StoreError(.corrupt, "The numbers in \(layout.root) are no store's; remove the directory.")
        }
        let left = found.void.reduce(opened.leftover) { $0 + SpaceLedger.blocks($1.size) }
        let used = found.segments.reduce(SpaceBudget.overhead + left + found.blobBlocks) {
            $0 + SpaceLedger.blocks($1.fileSize)
        }
        // Segments keep their size while it suits the capacity, so that their files can be used again.
        let keepsSize =
            opened.format.segmentSize <= 2 * fresh.segmentSize
            && 2 * opened.format.segmentSize >= fresh.segmentSize
        let geometry = keepsSize ? Geometry(capacity: capacity, segmentSize: opened.format.segmentSize) : fresh
        let ledger = SpaceLedger(budget: SpaceBudget(geometry: geometry, limits: limits), used: used)
        // The last store kept as much free for carrying, so this is no more than it could take.
        ledger.setCeiling(used + 2 * opened.format.segmentSize)
        var format = opened.format
        format.isClean = false
        format.segmentSize = geometry.segmentSize
        format.suspectBefore = found.suspectBefore
        format.nextOrder = found.nextOrder
        format.bootIdentity = Array(files.bootIdentity.prefix(StoreFormat.bootIdentityLimit))
        var log = LogState(segmentSize: geometry.segmentSize)
        log.highestNumber = found.nextSegment - 1
        let slots = SegmentSlots()
        let segments = SegmentOpening(
            layout: layout,
            files: files,
            ledger: ledger,
            seed: format.hashSeed,
            epoch: format.epoch,
            geometry: geometry
        )
        // What must not be forgotten is durable before anything is changed that proves it.
        do {
            try directory.write(format)
        } catch {
            throw StoreError(disk: error)
        }
        let all = try segments.open(found.segments, slots)
        try segments.sealUnsealed(found.segments, all, &log)
        let kept = recovery.sweep(found.void)
        ledger.release(
            found.void.reduce(0) { $0 + SpaceLedger.blocks($1.size) }
                - kept.reduce(0) { $0 + SpaceLedger.blocks($1.size) }
        )
        segments.reopenNewest(&log)
        // Blobs take their numbers from the orders, so those go on above both.
        let last = max(found.nextOrder, min(found.nextBlob, Self.highestOrder)) - 1
        return OpenedStore(
            layout: layout,
            geometry: geometry,
            format: format,
            index: index,
            slots: slots,
            ledger: ledger,
            log: log,
            orders: OrderBook(last: last, marks: found.marks, hashing: KeyHashing(seed: format.hashSeed)),
            blobs: BlobFiles(files: files, layout: layout, ledger: ledger),
            lockFile: opened.lock,
            owed: found.owed.map {
                OwedNotes.Note(kind: .variantTombstone, order: $0.order, primary: $0.primary, variant: $0.variant)
            },
            damaged: found.damage.entries + found.damage.bodies
        )
    }
}

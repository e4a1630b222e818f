// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// The state that an engine starts with.
struct OpenedStore {
    let layout: StoreLayout
    /// The file system, with the directories held.
    let files: any FileSystem
    let geometry: Geometry
    let manifest: Manifest
    /// Entries of a lower order must be revalidated.
    let suspectBefore: UInt64
    let index: ShardedIndex
    let slots: SegmentSlots
    let quota: SpaceQuota
    let log: LogState
    let orders: SequenceAllocator
    let blobs: BlobFiles
    let lockFile: OpenFile
    let pendingTombstones: [Tombstone]
    let pins: PinRegistry
    let hashing: KeyHashing
    let seal: (any StoreSeal)?
    let threads: IOThreads
    let health: StoreHealth
}

/// Opens a directory: prepares it, reads its contents, and continues where the last process left off. Blocks.
struct StoreOpener: Sendable {
    let layout: StoreLayout
    let files: any FileSystem
    let capacity: Int
    let maximumEntrySize: Int?
    let options: StoreOptions
    let seal: (any StoreSeal)?
    let threads: IOThreads

    /// Orders beyond this are not from a store: a record with one is damaged or forged.
    private static let highestOrder: UInt64 = 1 << 47

    /// Opens the store; if this throws, the lock is released again.
    func open() throws(StoreError) -> OpenedStore {
        let fresh = Geometry(capacity: capacity)
        let directory = StoreDirectory(layout: layout, files: files)
        var generator = SystemRandomNumberGenerator()
        let opened = try directory.open(segmentSize: fresh.segmentSize, using: &generator)
        do throws(StoreError) {
            return try read(opened, fresh: fresh)
        } catch {
            files.close(opened.lock)
            throw error
        }
    }

    private func read(
        _ opened: StoreDirectory.Opened,
        fresh: Geometry
    ) throws(StoreError) -> OpenedStore {
        let index = ShardedIndex()
        let files = opened.files
        let content = opened.manifest.content
        var recovery = Recovery(layout: layout, files: files, manifest: content, seal: seal)
        let found = try recovery.run { number, rows throws(StoreError) in
            try index.shards[number].state.withLock { shard throws(StoreError) in _ = try shard.table.fill(rows) }
        }
        guard found.nextOrder < Self.highestOrder, found.nextSegment < Self.highestOrder else {
            throw StoreError(.corrupt, "The numbers in \(layout.root) are not those of a store; remove the directory.")
        }
        let left = found.void.reduce(opened.leftover) { $0.addingSaturated(SpaceQuota.blocks($1.size)) }
        let rows = max(
            SpaceBudget.rows(geometry: fresh),
            found.segments.count,
            (content.rows.keys.max() ?? 0) + 1
        )
        let begun = left.addingSaturated(found.blobBlocks).addingSaturated(SpaceBudget.overhead(rows: rows))
        let used = found.segments.reduce(begun) { $0.addingSaturated(SpaceQuota.blocks($1.content.fileSize)) }
        // Segments keep their size as long as it suits the capacity, so that their files can be reused.
        let keepsSize =
            content.format.segmentSize <= 2 * fresh.segmentSize
            && 2 * content.format.segmentSize >= fresh.segmentSize
        let geometry = keepsSize ? Geometry(capacity: capacity, segmentSize: content.format.segmentSize) : fresh
        let budget = SpaceBudget(geometry: geometry, entrySize: maximumEntrySize, options: options)
        let quota = SpaceQuota(budget: budget, used: used)
        // The last store kept that much free for carrying, so this is no more than it could use.
        quota.setCeiling(used.addingSaturated(2 * content.format.segmentSize))
        var log = LogState(segmentSize: geometry.segmentSize, capacity: geometry.capacity)
        log.highestNumber = found.nextSegment - 1
        let slots = SegmentSlots()
        let segments = SegmentOpener(
            layout: layout,
            files: files,
            quota: quota,
            geometry: geometry,
            manifest: opened.manifest
        )
        let bootIdentity = Array(files.bootIdentity.prefix(StoreFormat.bootIdentityLimit))
        // What must not be forgotten is made durable before anything is changed that proves it.
        let failure = try disk(
            try opened.manifest.write { format in
                format.isClean = false
                format.suspectBefore = found.suspectBefore
                format.nextOrder = found.nextOrder
                format.bootIdentity = bootIdentity
            }
        )
        if let failure { throw StoreError(disk: failure) }
        try disk(try opened.manifest.replaceList(found.segments.map { segments.row($0) }))
        try segments.add(found.segments, slots: slots, to: &log)
        // Only now: a segment without a table whose size is not FORMAT's would be taken for one that lost its table.
        if geometry.segmentSize != content.format.segmentSize {
            let failure = try disk(try opened.manifest.write { $0.segmentSize = geometry.segmentSize })
            if let failure { throw StoreError(disk: failure) }
        }
        let kept = recovery.sweep(found.void)
        quota.release(left - kept.reduce(opened.leftover) { $0.addingSaturated(SpaceQuota.blocks($1.size)) })
        segments.reopenNewest(&log)
        // Blobs take their numbers from the orders, so orders continue above both.
        let last = max(found.nextOrder, found.nextBlob) - 1
        let hashing = KeyHashing(seed: content.format.hashSeed)
        let health = StoreHealth(files: files, lockFile: opened.lock)
        health.counters.entriesCorrupt.store(found.damage.entries + found.damage.bodies, ordering: .relaxed)
        return OpenedStore(
            layout: layout,
            files: files,
            geometry: geometry,
            manifest: opened.manifest,
            suspectBefore: found.suspectBefore,
            index: index,
            slots: slots,
            quota: quota,
            log: log,
            orders: SequenceAllocator(last: last, marks: found.marks, hashing: hashing),
            blobs: BlobFiles(files: files, layout: layout, quota: quota),
            lockFile: opened.lock,
            pendingTombstones: found.missingTombstones,
            pins: PinRegistry(capacity: quota.budget.pinned),
            hashing: hashing,
            seal: content.format.binding(seal),
            threads: threads,
            health: health
        )
    }
}

/// Adds the segments that recovery found to the log. Blocks.
struct SegmentOpener {
    let layout: StoreLayout
    let files: any FileSystem
    let quota: SpaceQuota
    let geometry: Geometry
    let manifest: Manifest

    private var seed: UInt64 { manifest.content.format.hashSeed }

    /// The row of a segment in the list.
    func row(_ segment: RecoveredStore.Segment) -> SegmentRow {
        SegmentRow(header(segment), state: segment.content.isSealed ? .sealed : .open)
    }

    private func header(_ segment: RecoveredStore.Segment) -> SegmentHeader {
        SegmentHeader(
            kind: segment.content.kind,
            number: segment.number,
            epoch: manifest.content.format.epoch,
            createdOrder: 0,
            identity: segment.identity
        )
    }

    /// Adds all segments to the log, each in the slot of its position, and writes the missing tables of those that a crash left
    /// without one.
    func add(
        _ all: [RecoveredStore.Segment],
        slots: SegmentSlots,
        to log: inout LogState
    ) throws(StoreError) {
        for found in all {
            let content = found.content
            guard let slot = slots.take() else { throw StoreError.noSpace }
            let file = SegmentFile(
                try disk(try files.open(layout.segment(found.number), .readWrite)),
                bytes: SpaceQuota.blocks(content.fileSize),
                files: files,
                quota: quota
            )
            let segment = Segment(header(found), slot: slot, file: file)
            slots.put(segment)
            var entry = LogState.Sealed(
                segment: segment,
                blobBytes: found.blobBytes,
                blobCount: found.blobCount,
                isSynced: content.isSealed
            )
            if !content.isSealed {
                var open = LogState.Open(segment: segment, tail: content.tail)
                (open.rows, open.blobs, open.blobBytes) = (content.rows, content.blobs, found.blobBytes)
                let table = open.table(at: content.tail, seed: seed)
                let size = content.tail + table.count
                let growth = SpaceQuota.blocks(size) - segment.size
                if growth <= 0 || quota.grant(growth, for: .reclaimer) {
                    try disk(try files.write(ByteChunk(table), to: segment.file.open, at: content.tail))
                    try disk(try files.truncate(segment.file.open, to: size))
                    segment.file.resized(to: SpaceQuota.blocks(size))
                    if growth < 0 { quota.release(-growth) }
                    try disk(try manifest.note(segment.number, is: .sealed))
                } else {
                    entry.unwritten = open
                }
            }
            log.enter(entry)
        }
    }

    /// Continues in the newest segment of each log if it is far from full, so that many short runs leave few files.
    func reopenNewest(_ log: inout LogState) {
        for kind in LogKind.allCases {
            guard let newest = log.newest(kind), newest.unwritten == nil,
                newest.segment.size < geometry.segmentSize / 2,
                let table = try? newest.segment.table(from: files, seed: seed)
            else { continue }
            let growth = geometry.segmentSize - newest.segment.size
            guard quota.grant(growth, for: .caller) else { continue }
            do {
                // From now on, its table may be overwritten.
                try manifest.note(newest.segment.number, is: .open)
                try files.allocate(newest.segment.file.open, size: geometry.segmentSize)
            } catch {
                quota.release(growth)
                continue
            }
            newest.segment.file.resized(to: geometry.segmentSize)
            log.remove(newest.segment)
            var open = LogState.Open(segment: newest.segment, tail: table.footer.tableOffset)
            open.rows = table.rows
            open.blobs = table.blobs
            open.blobBytes = newest.blobBytes
            open.promisedRows = table.rows.count
            open.promisedBlobs = table.blobs.count
            log.begin(open, destination: LogState.Destination(kind))
        }
    }
}

extension Segment {
    /// The contents of its table.
    ///
    /// - Throws: `.corrupt` if it is damaged.
    func table(from files: any FileSystem, seed: UInt64) throws(StoreError) -> SegmentTable.Contents {
        let size = try disk(try files.size(of: file.open))
        let table = try disk(try SegmentTable.read(file.open, size: size, segment: number, files: files, seed: seed))
        guard let table else {
            let message = "The table of a segment is damaged; its entries stay until the store is opened again."
            throw StoreError(.corrupt, message)
        }
        return table
    }
}

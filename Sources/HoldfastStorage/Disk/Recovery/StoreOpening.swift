// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// What an engine starts with.
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
    let ledger: SpaceLedger
    let log: LogState
    let orders: SequenceAllocator
    let blobs: BlobFiles
    let lockFile: OpenFile
    let owed: [PendingTombstones.Note]
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
            return try read(opened, fresh)
        } catch {
            files.close(opened.lock)
            throw error
        }
    }

    private func read(
        _ opened: StoreDirectory.Opened,
        _ fresh: Geometry
    ) throws(StoreError) -> OpenedStore {
        let index = ShardedIndex()
        let files = opened.files
        let content = opened.manifest.content
        var recovery = Recovery(layout: layout, files: files, manifest: content, seal: seal)
        let found = try recovery.run { number, rows throws(StoreError) in
            try index.shards[number].state.withLock { shard throws(StoreError) in _ = try shard.table.fill(rows) }
        }
        guard found.nextOrder < Self.highestOrder, found.nextSegment < Self.highestOrder else {
            throw StoreError(.corrupt, "The numbers in \(layout.root) are no store's; remove the directory.")
        }
        let left = found.void.reduce(opened.leftover) { $0.addingSaturated(SpaceLedger.blocks($1.size)) }
        let rows = max(
            SpaceBudget.rows(geometry: fresh),
            found.segments.count,
            (content.rows.keys.max() ?? 0) + 1
        )
        let begun = left.addingSaturated(found.blobBlocks).addingSaturated(SpaceBudget.overhead(rows: rows))
        let used = found.segments.reduce(begun) {
            $0.addingSaturated(SpaceLedger.blocks($1.fileSize))
        }
        // Segments keep their size while it suits the capacity, so that their files can be used again.
        let keepsSize =
            content.format.segmentSize <= 2 * fresh.segmentSize
            && 2 * content.format.segmentSize >= fresh.segmentSize
        let geometry = keepsSize ? Geometry(capacity: capacity, segmentSize: content.format.segmentSize) : fresh
        let ledger = SpaceLedger(budget: SpaceBudget(geometry: geometry, limits: limits), used: used)
        // The last store kept as much free for carrying, so this is no more than it could take.
        ledger.setCeiling(used.addingSaturated(2 * content.format.segmentSize))
        var log = LogState(segmentSize: geometry.segmentSize, capacity: geometry.capacity)
        log.highestNumber = found.nextSegment - 1
        let slots = SegmentSlots()
        let segments = SegmentOpening(
            layout: layout,
            files: files,
            ledger: ledger,
            seed: content.format.hashSeed,
            epoch: content.format.epoch,
            geometry: geometry,
            manifest: opened.manifest
        )
        let bootIdentity = Array(files.bootIdentity.prefix(StoreFormat.bootIdentityLimit))
        // What must not be forgotten is durable before anything is changed that proves it.
        do throws(FileSystemError) {
            let failure = try opened.manifest.write { format in
                format.isClean = false
                format.segmentSize = geometry.segmentSize
                format.suspectBefore = found.suspectBefore
                format.nextOrder = found.nextOrder
                format.bootIdentity = bootIdentity
            }
            if let failure { throw failure }
            try opened.manifest.replaceList(found.segments.map { segments.row($0) })
        } catch {
            throw StoreError(disk: error)
        }
        let all = try segments.open(found.segments, slots)
        try segments.sealUnsealed(found.segments, all, &log)
        let kept = recovery.sweep(found.void)
        ledger.release(
            found.void.reduce(0) { $0.addingSaturated(SpaceLedger.blocks($1.size)) }
                - kept.reduce(0) { $0.addingSaturated(SpaceLedger.blocks($1.size)) }
        )
        segments.reopenNewest(&log)
        // Blobs take their numbers from the orders, so those go on above both.
        let last = max(found.nextOrder, found.nextBlob) - 1
        return OpenedStore(
            layout: layout,
            files: files,
            geometry: geometry,
            manifest: opened.manifest,
            suspectBefore: found.suspectBefore,
            index: index,
            slots: slots,
            ledger: ledger,
            log: log,
            orders: SequenceAllocator(
                last: last,
                marks: found.marks,
                hashing: KeyHashing(seed: content.format.hashSeed)
            ),
            blobs: BlobFiles(files: files, layout: layout, ledger: ledger),
            lockFile: opened.lock,
            owed: found.owed.map {
                PendingTombstones.Note(
                    kind: .variantTombstone,
                    order: $0.order,
                    primary: $0.primary,
                    variant: $0.variant
                )
            },
            damaged: found.damage.entries + found.damage.bodies
        )
    }
}

/// Takes the segments that recovery found into the log. Blocks.
struct SegmentOpening {
    let layout: StoreLayout
    let files: any FileSystem
    let ledger: SpaceLedger
    let seed: UInt64
    let epoch: UInt64
    let geometry: Geometry
    let manifest: Manifest

    /// What the list says of a segment.
    func row(_ segment: RecoveredStore.Segment) -> SegmentRow {
        SegmentRow(header(segment), segment.isSealed ? .sealed : .open)
    }

    private func header(_ segment: RecoveredStore.Segment) -> SegmentHeader {
        SegmentHeader(
            kind: segment.kind,
            number: segment.number,
            epoch: epoch,
            createdOrder: 0,
            identity: segment.identity
        )
    }

    /// Opens the files, each in the slot that its position is.
    func open(
        _ found: [RecoveredStore.Segment],
        _ slots: SegmentSlots
    ) throws(StoreError) -> [Segment] {
        var all: [Segment] = []
        for segment in found {
            do {
                guard let slot = slots.take() else { throw DiskEngine.noSpace }
                let file = SegmentFile(
                    try files.open(layout.segment(segment.number), .readWrite),
                    bytes: SpaceLedger.blocks(segment.fileSize),
                    files: files,
                    ledger: ledger
                )
                let opened = Segment(header(segment), slot: slot, file: file)
                slots.put(opened)
                all.append(opened)
            } catch let error as FileSystemError {
                throw StoreError(disk: error)
            } catch let error as StoreError {
                throw error
            } catch {
                throw StoreError(.io, "A segment of \(layout.root) cannot be opened.", cause: error)
            }
        }
        return all
    }

    /// Enters all segments in the log, and gives those that a crash left without a table theirs.
    func sealUnsealed(
        _ found: [RecoveredStore.Segment],
        _ all: [Segment],
        _ log: inout LogState
    ) throws(StoreError) {
        for (segment, found) in zip(all, found) {
            var entry = LogState.Sealed(
                segment: segment,
                blobBytes: found.blobBytes,
                blobCount: found.blobCount,
                isSynced: true
            )
            if !found.isSealed {
                entry.isSynced = false
                let table = SegmentTable.encode(
                    rows: found.rows,
                    blobs: found.blobRows,
                    segment: found.number,
                    tableOffset: found.tail,
                    seed: seed
                )
                let size = found.tail + table.count
                let growth = SpaceLedger.blocks(size) - segment.size
                do throws(FileSystemError) {
                    if growth <= 0 || ledger.grant(growth, for: .reclaimer) {
                        try files.write(ByteChunk(table), to: segment.file.open, at: found.tail)
                        try files.truncate(segment.file.open, to: size)
                        segment.file.resized(to: SpaceLedger.blocks(size))
                        if growth < 0 { ledger.release(-growth) }
                        try manifest.note(segment.number, is: .sealed)
                    } else {
                        (entry.rows, entry.blobs) = (found.rows, found.blobRows)
                    }
                } catch {
                    throw StoreError(disk: error)
                }
            }
            log.enter(entry)
        }
    }

    /// Goes on in the newest segment of each log where it is far from full, so that many short lives leave few files.
    func reopenNewest(_ log: inout LogState) {
        for kind in LogKind.allCases {
            guard let newest = log.newest(kind), newest.rows == nil, newest.segment.size < geometry.segmentSize / 2,
                let table = try? SegmentFileReader(files: files, seed: seed).table(of: newest.segment)
            else { continue }
            let growth = geometry.segmentSize - newest.segment.size
            guard ledger.grant(growth, for: .caller) else { continue }
            do {
                // From here on its table may be written over.
                try manifest.note(newest.segment.number, is: .open)
                try files.allocate(newest.segment.file.open, size: geometry.segmentSize)
            } catch {
                ledger.release(growth)
                continue
            }
            newest.segment.file.resized(to: geometry.segmentSize)
            log.remove(newest.segment)
            var open = LogState.Open(segment: newest.segment, tail: table.offset)
            open.rows = table.rows
            open.blobs = table.blobs
            open.blobBytes = newest.blobBytes
            open.promisedRows = table.rows.count
            open.promisedBlobs = table.blobs.count
            log.begin(open, LogState.Destination(kind))
        }
    }
}

/// Reads the table of a segment whose file is open.
struct SegmentFileReader: Sendable {
    let files: any FileSystem
    let seed: UInt64

    /// What the table says, and where it begins.
    ///
    /// - Throws: `.corrupt` when it does not hold its checks.
    func table(of segment: Segment) throws(StoreError) -> (rows: [TableRow], blobs: [BlobRow], offset: Int) {
        let size: Int
        let last: [UInt8]
        do {
            size = try files.size(of: segment.file.open)
            let start = max(0, size - SegmentTable.footerSize)
            last = try files.read(segment.file.open, from: start, count: SegmentTable.footerSize)
        } catch {
            throw StoreError(disk: error)
        }
        guard let footer = SegmentTable.footer(last, segment: segment.number, seed: seed), footer.fileSize == size
        else {
            throw Self.damaged
        }
        let bytes: [UInt8]
        do {
            bytes = try files.read(segment.file.open, from: footer.tableOffset, count: footer.tableLength)
        } catch {
            throw StoreError(disk: error)
        }
        guard let table = SegmentTable.decode(bytes, footer: footer, seed: seed) else { throw Self.damaged }
        return (table.rows, table.blobs, footer.tableOffset)
    }

    private static let damaged = StoreError(
        .corrupt,
        "The table of a segment is damaged; what it holds stays until the store is opened again."
    )
}

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

/// The end of a store.
extension DiskEngine {
    /// Seals what is open, makes all durable and notes in FORMAT that it is; idempotent.
    func close() async {
        let isFirst = life.withLock { life in
            isCalm.store(false, ordering: .releasing)
            return life.close()
        }
        guard isFirst else { return }
        // Writers under way can commit no more, and nothing of theirs is to be left.
        for shard in index.shards { shard.state.withLock { $0.writers.supersedeAll() } }
        // Each thread finishes what it was given before; no new work comes that changes anything.
        for lane in [IOThreads.Lane.writes, .changes, .reads, .syncs] {
            await threads.drain(lane)
        }
        try? await threads.run(.changes, isUrgent: true) { [self] in
            payDebts()
            log.withLock { $0.isClosed = true }
        }
        // The lock of the directory goes only when nobody writes there any more, callers on their own threads included.
        while log.withLock({ $0.writesUnderWay > 0 }) {
            await Task.yield()
            try? await threads.run(.writes, isUrgent: true) {}
        }
        try? await threads.run(.changes, isUrgent: true) { [self] in finishFiles() }
        threads.stop()
    }

    /// Changes: the last steps on the files.
    private func finishFiles() {
        settleReleases()
        blobs.letGo()
        blobs.retryLeftovers()
        log.withLock { log in
            for destination in LogState.Destination.allCases { log.close(destination) }
        }
        sealFull(isCut: true)
        var isSpareGone = true
        for spare in log.withLock({ [$0.spare.take(), $0.carriedSpare.take()].compactMap { $0 } }) {
            slots.free(spare.slot)
            if (try? files.removeIfThere(layout.segment(spare.number))) != nil {
                try? manifest.remove(spare.number)
            } else {
                isSpareGone = false
            }
            spare.file.unlinked()
        }
        let isDurable = (try? makeDurable()) != nil
        // A segment without a table that a clean close left would be taken for a damaged one.
        let hasTables = isSpareGone && log.withLock { $0.full.isEmpty && !$0.hasUntabled }
        let isSettled = isDurable && hasTables && owed.withLock { $0.isEmpty }
        if isSettled {
            try? writeFormat { $0.isClean = true }
        } else if !owed.withLock({ $0.isEmpty }) {
            // What could not be written as gone must not be taken for good when the store is opened again.
            try? writeFormat { $0.suspectBefore = max($0.suspectBefore, orders.last + 1) }
        }
        manifest.close()
        files.close(lockFile)
    }

    private func makeDurable() throws(FileSystemError) {
        for segment in log.withLock({ $0.unsynced }) { try files.sync(segment.file.open) }
        try files.syncDirectory(layout.segments)
        try files.syncDirectory(layout.blobs)
        // The list before the word that all is well: one that is older than that word names segments that are not there.
        try manifest.sync()
    }
}

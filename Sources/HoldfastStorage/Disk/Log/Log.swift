// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// The log: which segments there are, where the next record goes, and what happens to a segment that is full or reclaimed.
///
/// Locks are taken in this order and never during a file call: shard of the index, orders, log; under that of the pins, no other is
/// taken. Any thread may reserve places and give them up; only the thread of changes creates and removes segments.
final class Log: Sendable {
    let files: any FileSystem
    let layout: StoreLayout
    let geometry: Geometry
    let seed: UInt64
    let slots: SegmentSlots
    let quota: SpaceQuota
    /// Segments of a lower epoch are void.
    let epoch: Atomic<UInt64>
    let manifest: Manifest
    private let state: Mutex<LogState>
    private let orders: SequenceAllocator
    private let threads: IOThreads
    private let health: StoreHealth
    /// The table that was read last, by its segment's number: it is needed several times before its segment is reclaimed.
    private let lastTable = Mutex<(number: UInt64, table: SegmentTable.Contents)?>(nil)
    /// Whether the sync thread has an order that it has not started.
    private let isSyncOrdered = Atomic<Bool>(false)

    init(_ opened: OpenedStore) {
        (files, layout, geometry, manifest) = (opened.files, opened.layout, opened.geometry, opened.manifest)
        (slots, quota, orders) = (opened.slots, opened.quota, opened.orders)
        (threads, health) = (opened.threads, opened.health)
        seed = opened.manifest.content.format.hashSeed
        epoch = Atomic(opened.manifest.content.format.epoch)
        state = Mutex(opened.log)
    }

    // MARK: Places, on any thread

    /// Answers a question about the log.
    func ask<Value>(_ question: (LogState) -> Value) -> Value {
        state.withLock { question($0) }
    }

    /// Changes what the log knows, and nothing on the disk.
    func change<Value: Sendable>(_ body: (inout LogState) -> Value) -> Value {
        state.withLock { body(&$0) }
    }

    /// See ``LogState/reserve(_:length:hasBlob:hasClaim:)``.
    func reserve(_ request: LogState.Request, hasClaim: Bool = false) -> LogState.Reservation? {
        state.withLock {
            $0.reserve(request.destination, length: request.length, hasBlob: request.hasBlob, hasClaim: hasClaim)
        }
    }

    /// Records that a reserved record is written (`row`), or will not be (nil); a segment that is then full gets its table soon.
    func finish(_ place: LogState.Reservation, row: TableRow?, blob: BlobRow?) {
        let isFull = state.withLock { $0.finish(place, row: row, blob: blob) }
        if isFull { threads.later(.changes) { [self] in sealFull() } }
    }

    /// Reserves the room of a destination for the caller whose turn it is; false if there is not enough.
    func claim(_ request: LogState.Request) -> Bool {
        state.withLock { log in
            let destination = request.destination
            guard log.hasRoom(destination, length: request.length, hasBlob: request.hasBlob) else { return false }
            log.isReserved[destination.rawValue] = true
            return true
        }
    }

    // MARK: Segments, on the thread of changes

    /// Closes open segments and writes their tables, which may free most of a segment: it may have many blobs and be nearly empty
    /// itself.
    func close(_ destinations: [LogState.Destination], isCut: Bool = false) {
        state.withLock { log in
            for destination in destinations { log.close(destination) }
        }
        // Before what is cut off is released, or its bytes would count twice, and callers could take the reclaimer's.
        noteRoomAhead()
        sealFull(isCut: isCut)
    }

    /// See ``LogState/closeOlderThanVictim(atOnce:)``.
    func closeOlderThanVictim(atOnce: Bool) {
        guard state.withLock({ $0.closeOlderThanVictim(atOnce: atOnce) }) else { return }
        close([], isCut: isShort)
    }

    /// Whether little space is left, so that the unused part of the reclaimer's segment must be released when that is closed.
    private var isShort: Bool { quota.free < 2 * geometry.segmentSize }

    /// Takes the empty segment that was made in advance for callers.
    func takeSpare() -> Segment? { state.withLock { $0.spare.take() } }

    /// Keeps an empty segment for callers.
    func keepSpare(_ segment: Segment) { state.withLock { $0.keepSpare(segment) } }

    /// Removes the empty segment that is kept for callers; false if there is none, or the device refuses.
    func discardSpare() -> Bool {
        guard let spare = takeSpare() else { return false }
        if discard(spare) { return true }
        // An unknown empty segment would look like one that lost its table.
        keepSpare(spare)
        return false
    }

    /// Removes the empty segment that is kept for the reclaimer.
    func discardCarriedSpare() {
        if let spare = state.withLock({ $0.carriedSpare.take() }) {
            if !discard(spare) { state.withLock { $0.carriedSpare = spare } }
            noteRoomAhead()
        }
    }

    /// Makes a segment the open one of a destination.
    func begin(
        _ segment: Segment,
        destination: LogState.Destination,
        isReserved: Bool = false
    ) throws(StoreError) {
        var segment = segment
        do throws(FileSystemError) {
            if segment.kind != destination.kind {
                let header = header(destination.kind, number: segment.number, identity: segment.identity)
                try files.write(ByteChunk(header.encode(seed: seed)), to: segment.file.open, at: 0)
                segment = Segment(header, slot: segment.slot, file: segment.file)
                slots.put(segment)
            }
            // From now on, it may contain data that is nowhere else.
            try manifest.note(segment.number, is: .open)
        } catch {
            keepSpare(segment)
            throw health.failed(error)
        }
        let open = LogState.Open(segment: segment, tail: SegmentHeader.size)
        state.withLock { $0.begin(open, destination: destination, isReserved: isReserved) }
    }

    /// Opens a segment for records that are carried forward, for which the reclaimer has its reserve.
    func openCarried() throws(StoreError) {
        close([.carried], isCut: isShort)
        if let spare = state.withLock({ $0.carriedSpare.take() }) {
            do throws(StoreError) {
                try begin(spare, destination: .carried)
            } catch {
                noteRoomAhead()
                throw error
            }
        } else {
            guard quota.grant(geometry.segmentSize, for: .reclaimer) else { throw StoreError.noSpace }
            try begin(try create(.main), destination: .carried)
        }
        noteRoomAhead()
    }

    /// Whether the reclaimer's segment has room for a tombstone or mark for which callers have none; opens one if needed.
    func lendsRoom(for length: Int) -> Bool {
        noteRoomAhead()
        let count = length + Geometry.unit + TableRow.size
        guard quota.lends(count) else { return false }
        if ask({ $0.hasRoom(.carried, length: length, hasBlob: false) }) { return true }
        return (try? openCarried()) != nil && quota.lends(count)
    }

    /// Whether the reclaimer can have another segment without removing anything.
    var hasSegmentForReclaimer: Bool {
        state.withLock { $0.carriedSpare != nil } || quota.hasRoom(geometry.segmentSize, for: .reclaimer)
    }

    /// Tells the quota how much room the reclaimer's open segment has left.
    func noteRoomAhead() {
        quota.setRoomAhead(state.withLock { $0.roomAhead })
    }

    /// Makes a segment from a new file, whose bytes are granted; they are released if this fails.
    func create(_ kind: LogKind) throws(StoreError) -> Segment {
        guard let slot = slots.take() else {
            quota.release(geometry.segmentSize)
            throw StoreError.noSpace
        }
        let header = nextHeader(kind)
        let path = layout.segmentInTheMaking(header.number)
        do throws(FileSystemError) {
            let file = try files.open(path, .create)
            do throws(FileSystemError) {
                try files.allocate(file, size: geometry.segmentSize)
                try files.write(ByteChunk(header.encode(seed: seed)), to: file, at: 0)
                // It gets its name when it is complete: a shorter file with that name has lost something.
                try files.rename(path, to: layout.segment(header.number))
                try manifest.enter(header)
            } catch {
                files.close(file)
                // Files that cannot be removed stay counted until the store is opened again.
                for path in [path, layout.segment(header.number)] where (try? files.removeIfThere(path)) == nil {
                    quota.count(geometry.segmentSize)
                }
                throw error
            }
            health.succeeded()
            let owned = SegmentFile(file, bytes: geometry.segmentSize, files: files, quota: quota)
            let segment = Segment(header, slot: slot, file: owned)
            slots.put(segment)
            return segment
        } catch {
            slots.free(slot)
            quota.release(geometry.segmentSize)
            throw health.failed(error)
        }
    }

    /// The header of the next segment, with its own number.
    func nextHeader(_ kind: LogKind) -> SegmentHeader {
        let number = state.withLock { log in
            log.highestNumber += 1
            return log.highestNumber
        }
        return header(kind, number: number, identity: FileNumber.random())
    }

    private func header(_ kind: LogKind, number: UInt64, identity: UInt64) -> SegmentHeader {
        SegmentHeader(
            kind: kind,
            number: number,
            epoch: epoch.load(ordering: .acquiring),
            createdOrder: orders.last,
            identity: identity
        )
    }

    /// Writes the table of every full segment whose writes have ended, and has it synced in the background; earlier tables that
    /// could not be written are tried again.
    func sealFull(isCut: Bool = false) {
        let full = state.withLock { log in log.takeUnwrittenTables() + log.takeFull() }
        for full in full { seal(full, isCut: isCut) }
    }

    /// Writes the table of a segment after its records, or at the very end of the file if nothing is cut off.
    func seal(_ full: LogState.Open, isCut: Bool) {
        let segment = full.segment
        let tableSize = SegmentTable.size(rows: full.rows.count, blobs: full.blobs.count)
        // A segment that is nearly full keeps its length, so that it can be recycled as it is.
        let spared = segment.size - full.tail - tableSize
        let cuts = isCut || spared > geometry.segmentSize / 16
        let offset = cuts ? full.tail : (segment.size - tableSize) & ~15
        let size = offset + tableSize
        let table = full.table(at: offset, seed: seed)
        var isWritten = false
        do {
            try files.write(ByteChunk(table), to: segment.file.open, at: offset)
            if size != segment.size {
                try files.truncate(segment.file.open, to: size)
                quota.release(segment.size - SpaceQuota.blocks(size))
                segment.file.resized(to: SpaceQuota.blocks(size))
            }
            isWritten = true
            // If this is not recorded, its table still shows it.
            try manifest.note(segment.number, is: .sealed)
        } catch {
            // Without its table, it is scanned when the store is opened; its rows are kept for reclaiming.
            _ = health.failed(error)
        }
        state.withLock { log in
            log.enter(
                LogState.Sealed(
                    segment: segment,
                    blobBytes: full.blobBytes,
                    blobCount: full.blobs.count,
                    unwritten: isWritten ? nil : full,
                    isSyncDue: true
                )
            )
        }
        syncSoon()
    }

    /// Has the waiting segments synced, on a thread that may fall far behind.
    ///
    /// One order covers all of them: segments that are reclaimed before their turn must be released, since their bytes count until
    /// then. None is tried twice, since a sync after a failed one may report success when data was lost.
    private func syncSoon() {
        guard !isSyncOrdered.exchange(true, ordering: .acquiringAndReleasing) else { return }
        threads.later(.syncs) { [self] in
            isSyncOrdered.store(false, ordering: .sequentiallyConsistent)
            while let segment = state.withLock({ $0.takeSyncDue() }) { sync(segment) }
        }
    }

    /// Makes a segment's bytes durable; a failure is counted and leaves it unsynced.
    private func sync(_ segment: Segment) {
        do {
            try files.sync(segment.file.open)
            state.withLock { $0.synced(segment, isDurable: true) }
        } catch {
            state.withLock { $0.synced(segment, isDurable: false) }
            health.counters.failures.add(1, ordering: .relaxed)
        }
    }

    /// Removes a segment whose rows are done: its file becomes a new segment, or is removed.
    ///
    /// There may still be readers of the old segment: what they read from a file that is being rewritten fails its check, and the
    /// index, which no longer points to it, leads them on.
    func retire(_ victim: LogState.Sealed, recyclingFor kind: LogKind?) throws(StoreError) -> Segment? {
        if let kind {
            if let recycled = try recycle(victim.segment, for: kind) { return recycled }
        } else if try keepForReclaimer(victim.segment) {
            return nil
        }
        try health.checked(try remove(victim.segment))
        health.succeeded()
        return nil
    }

    /// Removes a segment that holds nothing of use, and its file.
    private func remove(_ segment: Segment) throws(FileSystemError) {
        try manifest.note(segment.number, is: .idle)
        try files.removeIfThere(layout.segment(segment.number))
        // A remaining row only says that the file may be gone.
        try? manifest.remove(segment.number)
        forget(segment)
        segment.file.unlinked()
    }

    /// Keeps the file of a segment for records that will be carried, if none is kept yet: a new file costs more than a reused one.
    ///
    /// Its bytes stay granted, and the reclaimer's reserve is smaller by the same amount.
    private func keepForReclaimer(_ old: Segment) throws(StoreError) -> Bool {
        guard quota.capacity / geometry.segmentSize >= 32, old.size == geometry.segmentSize,
            state.withLock({ $0.carriedSpare == nil }), let segment = try recycle(old, for: .main)
        else { return false }
        state.withLock { $0.carriedSpare = segment }
        noteRoomAhead()
        return true
    }

    /// Nil: it cannot be reused and must be removed.
    private func recycle(_ old: Segment, for kind: LogKind) throws(StoreError) -> Segment? {
        let growth = geometry.segmentSize - old.size
        // One that is larger, from before the capacity was lowered, is removed: what it has too many would stay counted.
        guard growth >= 0, quota.grant(growth, for: .caller) else { return nil }
        guard let slot = slots.take() else {
            quota.release(growth)
            return nil
        }
        let header = nextHeader(kind)
        let path = layout.segment(header.number)
        do throws(FileSystemError) {
            try manifest.note(old.number, is: .idle)
            try files.rename(layout.segment(old.number), to: path)
        } catch {
            slots.free(slot)
            quota.release(growth)
            throw health.failed(error)
        }
        old.file.resized(to: geometry.segmentSize)
        // From now on, the file's name and its old header differ, so its contents are void.
        forget(old)
        do throws(FileSystemError) {
            // Full length before the header: its length shows whether a segment is unfinished or had its table.
            if growth > 0 {
                try files.allocate(old.file.open, size: geometry.segmentSize)
            } else {
                // Its table may have ended a few bytes before the end.
                try files.truncate(old.file.open, to: geometry.segmentSize)
            }
            try files.write(ByteChunk(header.encode(seed: seed)), to: old.file.open, at: 0)
            try manifest.enter(header, inPlaceOf: old.number)
        } catch {
            slots.free(slot)
            try? manifest.remove(old.number)
            // A file that cannot be removed either stays counted until the store is opened again.
            if (try? files.removeIfThere(path)) != nil { old.file.unlinked() }
            throw health.failed(error)
        }
        health.succeeded()
        let segment = Segment(header, slot: slot, file: old.file)
        slots.put(segment)
        return segment
    }

    private func forget(_ segment: Segment) {
        state.withLock { $0.remove(segment) }
        slots.free(segment.slot)
    }

    /// Removes an empty segment; false if the device refuses.
    func discard(_ segment: Segment) -> Bool { (try? remove(segment)) != nil }

    /// The table of a segment, or the rows in memory if it has none.
    func table(of sealed: LogState.Sealed) throws(StoreError) -> (rows: [TableRow], blobs: [BlobRow]) {
        if let unwritten = sealed.unwritten { return (unwritten.rows, unwritten.blobs) }
        if let kept = lastTable.withLock({ $0 }), kept.number == sealed.segment.number {
            return (kept.table.rows, kept.table.blobs)
        }
        let table = try sealed.segment.table(from: files, seed: seed)
        lastTable.withLock { $0 = (sealed.segment.number, table) }
        return (table.rows, table.blobs)
    }

    /// Changes FORMAT; throws only if the old one stays in force.
    ///
    /// If it is in force but not durable, the failure is counted: a power failure may bring the old one back, and then nothing is
    /// trusted.
    func writeFormat(_ change: (inout StoreFormat) -> Void) throws(StoreError) {
        let nextOrder = orders.last + 1
        let failure = try health.checked(
            try manifest.write { format in
                change(&format)
                format.nextOrder = nextOrder
            }
        )
        if failure != nil { health.counters.failures.add(1, ordering: .relaxed) }
    }

    /// Wipes the header of a record whose write failed and which may have reached the disk in part or completely.
    ///
    /// - Returns: whether nothing of it can be found any more.
    func wipe(_ place: LogState.Reservation) -> Bool {
        let zeros = ByteChunk([UInt8](repeating: 0, count: 16))
        return (try? files.write(zeros, to: place.segment.file.open, at: place.offset)) != nil
    }

    // MARK: The end of all segments

    /// Removes every segment and its file, for a purge of everything.
    ///
    /// - Returns: false if one could not be removed; its epoch makes it void, and it is removed when the store is opened the next
    ///   time.
    func removeAll() -> Bool {
        var isGone = true
        for segment in state.withLock({ $0.removeAll() }) {
            slots.free(segment.slot)
            if (try? files.removeIfThere(layout.segment(segment.number))) != nil {
                segment.file.unlinked()
            } else {
                isGone = false
            }
        }
        noteRoomAhead()
        return isGone
    }

    /// Writes the table of every segment and makes everything durable; no more places are reserved.
    ///
    /// - Returns: whether all of it succeeded.
    func sealAndSync() -> Bool {
        close(LogState.Destination.allCases, isCut: true)
        var isComplete = true
        for spare in state.withLock({ [$0.spare.take(), $0.carriedSpare.take()].compactMap { $0 } }) {
            isComplete = discard(spare) && isComplete
        }
        let isDurable = (try? sync()) != nil
        // After a clean close, a segment without a table would be taken for a damaged one.
        return isDurable && isComplete && state.withLock { $0.full.isEmpty && !$0.hasUnwrittenTables }
    }

    private func sync() throws(FileSystemError) {
        for segment in state.withLock({ $0.unsynced }) { try files.sync(segment.file.open) }
        try files.syncDirectory(layout.segments)
        try files.syncDirectory(layout.blobs)
        // The list before the clean mark: a list that is older than the mark contains segments that are not there.
        try manifest.sync()
    }
}

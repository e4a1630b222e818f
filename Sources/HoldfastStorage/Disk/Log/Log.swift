// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// The log: which segments there are, where the next record goes, and what becomes of a segment when it is full or reclaimed.
///
/// Locks are taken in this order and never across a file call: shard of the index, orders, log. Places are reserved and given up on any
/// thread; segments come and go on the thread of changes alone.
final class Log: Sendable {
    let files: any FileSystem
    let layout: StoreLayout
    let geometry: Geometry
    let seed: UInt64
    let slots: SegmentSlots
    let ledger: SpaceLedger
    /// Segments of a lower epoch are void.
    let epoch: Atomic<UInt64>
    let manifest: Manifest
    private let state: Mutex<LogState>
    private let orders: SequenceAllocator
    private let threads: IOThreads
    private let health: StoreHealth
    private let lastTable = Mutex<KeptTable?>(nil)
    /// Whether the thread of syncs has an order that it has not begun.
    private let isSyncOrdered = Atomic<Bool>(false)

    init(_ opened: OpenedStore) {
        (files, layout, geometry, manifest) = (opened.files, opened.layout, opened.geometry, opened.manifest)
        (slots, ledger, orders) = (opened.slots, opened.ledger, opened.orders)
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

    /// See ``LogState/reserve(_:length:hasBlob:isTurn:)``.
    func reserve(_ destination: LogState.Destination, length: Int, hasBlob: Bool, isTurn: Bool = false) -> LogState
        .Place?
    {
        state.withLock { $0.reserve(destination, length: length, hasBlob: hasBlob, isTurn: isTurn) }
    }

    /// Notes that a promised record is written (`row`), or is not going to be (nil); a segment that is full then gets its table soon.
    func finish(_ place: LogState.Place, row: TableRow?, blob: BlobRow?) {
        if finishOne(place, row: row, blob: blob) { threads.later(.changes) { [self] in sealFull() } }
    }

    /// The same; whether a segment is full then is left to the caller.
    func finishOne(_ place: LogState.Place, row: TableRow?, blob: BlobRow?) -> Bool {
        state.withLock { $0.finish(place, row: row, blob: blob) }
    }

    /// Sets the room of a destination aside for the caller whose turn it is, where there is enough; false where there is not.
    func setAside(_ destination: LogState.Destination, length: Int, hasBlob: Bool) -> Bool {
        state.withLock { log in
            guard log.hasRoom(destination, length: length, hasBlob: hasBlob) else { return false }
            log.isReserved[destination.rawValue] = true
            return true
        }
    }

    /// Lets everyone reserve again.
    func endTurn(_ destination: LogState.Destination) {
        state.withLock { $0.isReserved[destination.rawValue] = false }
    }

    /// Gives out no place any more.
    func endPlaces() {
        state.withLock { $0.isClosed = true }
    }

    // MARK: Segments, on the thread of changes

    /// Closes open segments and gives them their tables, which may give back most of a segment: it may be full of blobs and all
    /// but empty itself.
    func close(_ destinations: [LogState.Destination], isCut: Bool = false) {
        state.withLock { log in
            for destination in destinations { log.close(destination) }
        }
        sealFull(isCut: isCut)
    }

    /// Closes open segments that were begun before the one that is to be reclaimed next.
    func closeOlderThanVictim() {
        guard state.withLock({ $0.closeOlderThanVictim() }) else { return }
        sealFull()
        noteRoomAhead()
    }

    /// Takes out the empty segment that was made in advance for callers.
    func takeSpare() -> Segment? { state.withLock { $0.spare.take() } }

    /// Keeps an empty segment for callers.
    func keepSpare(_ segment: Segment) { state.withLock { if $0.spare == nil { $0.spare = segment } } }

    /// Removes the empty segment that is kept for callers; false where there is none, or the device refuses.
    func discardSpare() -> Bool {
        if let spare = takeSpare() {
            if discard(spare) { return true }
            // An empty segment that nobody knows of would look like one that lost its table.
            keepSpare(spare)
        }
        return false
    }

    /// Removes the empty segment that is kept for the reclaimer.
    func discardCarriedSpare() {
        if let spare = state.withLock({ $0.carriedSpare.take() }) {
            if !discard(spare) { state.withLock { $0.carriedSpare = spare } }
            noteRoomAhead()
        }
    }

    /// By what the next victim is chosen.
    func setPreference(window: Double, isMainDead: Bool) {
        state.withLock { ($0.window, $0.isMainDead) = (window, isMainDead) }
    }

    /// Notes that a segment could not be reclaimed, so that another is tried the next time.
    func stuck(_ segment: Segment) {
        state.withLock { $0.stuck(segment) }
    }

    /// Makes a segment the open one of a destination.
    func begin(
        _ segment: Segment,
        _ destination: LogState.Destination,
        isReserved: Bool = false
    ) throws(StoreError) {
        var segment = segment
        if segment.kind != destination.kind {
            let header = header(destination.kind, number: segment.number, identity: segment.identity)
            do {
                try files.write(ByteChunk(header.encode(seed: seed)), to: segment.file.open, at: 0)
            } catch {
                state.withLock { if $0.spare == nil { $0.spare = segment } }
                throw health.failed(error)
            }
            segment = Segment(header, slot: segment.slot, file: segment.file)
            slots.put(segment)
        }
        do throws(FileSystemError) {
            // From here on it may hold what is nowhere else.
            try manifest.note(segment.number, is: .open)
        } catch {
            let spare = segment
            state.withLock { if $0.spare == nil { $0.spare = spare } }
            throw health.failed(error)
        }
        let open = LogState.Open(segment: segment, tail: SegmentHeader.size)
        state.withLock { $0.begin(open, destination, isReserved: isReserved) }
    }

    /// Makes a segment for callers: of a new file while the reclaimer's reserve stays whole, else of the file of one that is
    /// reclaimed for it.
    ///
    /// - Parameters:
    /// Opens a segment for what reclaiming carries forward, for which its reserve is.
    func openCarried() throws(StoreError) {
        // Where little is left, what the last one did not fill is given back to the page.
        state.withLock { $0.close(.carried) }
        sealFull(isCut: ledger.free < 2 * geometry.segmentSize)
        ledger.setRoomAhead(0)
        if let spare = state.withLock({ $0.carriedSpare.take() }) {
            do throws(StoreError) {
                try begin(spare, .carried)
            } catch {
                noteRoomAhead()
                throw error
            }
        } else {
            guard ledger.grant(geometry.segmentSize, for: .reclaimer) else { throw StoreError.noSpace }
            try begin(try create(.main), .carried)
        }
        noteRoomAhead()
    }

    /// Whether the reclaimer can have another segment without anything going for it.
    var hasSegmentForReclaimer: Bool {
        state.withLock { $0.carriedSpare != nil } || ledger.hasRoom(geometry.segmentSize, for: .reclaimer)
    }

    /// Tells the ledger what the reclaimer's open segment can still take.
    func noteRoomAhead() {
        ledger.setRoomAhead(state.withLock { $0.roomAhead })
    }

    /// Makes a segment of a new file, for which the bytes are granted; they are given back when that fails.
    func create(_ kind: LogKind) throws(StoreError) -> Segment {
        guard let slot = slots.take() else {
            ledger.release(geometry.segmentSize)
            throw StoreError.noSpace
        }
        do throws(StoreError) {
            return try create(kind, slot: slot)
        } catch {
            slots.free(slot)
            ledger.release(geometry.segmentSize)
            throw error
        }
    }

    private func create(_ kind: LogKind, slot: UInt16) throws(StoreError) -> Segment {
        let header = nextHeader(kind)
        let path = layout.segmentInTheMaking(header.number)
        do throws(FileSystemError) {
            let file = try files.open(path, .create)
            do throws(FileSystemError) {
                try files.allocate(file, size: geometry.segmentSize)
                try files.write(ByteChunk(header.encode(seed: seed)), to: file, at: 0)
                // It gets its name when it is whole: a shorter file of that name has lost something.
                try files.rename(path, to: layout.segment(header.number))
                try manifest.enter(header)
            } catch {
                files.close(file)
                // What cannot be removed stays counted until the store is opened again.
                for path in [path, layout.segment(header.number)] where (try? files.removeIfThere(path)) == nil {
                    ledger.count(geometry.segmentSize)
                }
                throw error
            }
            health.succeeded()
            let owned = SegmentFile(file, bytes: geometry.segmentSize, files: files, ledger: ledger)
            let segment = Segment(header, slot: slot, file: owned)
            slots.put(segment)
            return segment
        } catch {
            throw health.failed(error)
        }
    }

    /// The header of the next segment, under a number of its own.
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

    /// Gives every full segment whose writes have ended its table, and has it synced in the background; those whose table
    /// could not be written get another try.
    func sealFull(isCut: Bool = false) {
        let full = state.withLock { log in log.takeUntabled() + log.takeFull() }
        for full in full { seal(full, isCut: isCut) }
    }

    /// Writes the table of a segment behind its records, or at the very end of the file where nothing is cut off.
    func seal(_ full: LogState.Open, isCut: Bool) {
        let segment = full.segment
        let tableSize = SegmentTable.size(rows: full.rows.count, blobs: full.blobs.count)
        // A segment that is nearly full keeps its length, so that it can be recycled as it is.
        let spared = segment.size - full.tail - tableSize
        let cuts = isCut || spared > geometry.segmentSize / 16
        let offset = cuts ? full.tail : (segment.size - tableSize) & ~15
        let size = offset + tableSize
        let table = SegmentTable.encode(
            rows: full.rows,
            blobs: full.blobs,
            segment: segment.number,
            tableOffset: offset,
            seed: seed
        )
        var isWritten = false
        do {
            try files.write(ByteChunk(table), to: segment.file.open, at: offset)
            if size != segment.size {
                try files.truncate(segment.file.open, to: size)
                ledger.release(segment.size - SpaceLedger.blocks(size))
                segment.file.resized(to: SpaceLedger.blocks(size))
            }
            isWritten = true
            // One that is not noted is found by its table all the same.
            try manifest.note(segment.number, is: .sealed)
        } catch {
            // Without its table it is scanned when the store is opened; its rows are kept for reclaiming.
            _ = health.failed(error)
        }
        state.withLock { log in
            log.enter(
                LogState.Sealed(
                    segment: segment,
                    blobBytes: full.blobBytes,
                    blobCount: full.blobs.count,
                    rows: isWritten ? nil : full.rows,
                    blobs: isWritten ? nil : full.blobs,
                    isSyncDue: true
                )
            )
        }
        syncSoon()
    }

    /// Has the segments that wait for it synced, on a thread that may fall far behind.
    ///
    /// One order stands for all of them: those that are reclaimed before their turn must be let go of, since their bytes count
    /// until then. None is tried twice, as a sync after one that failed may say that all is well when it is not.
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

    /// Takes a segment out whose rows are dealt with: its file becomes a new segment, or goes.
    ///
    /// Readers of the old segment may be under way: what they read from a file that is being written again fails its check,
    /// and the index, which no longer names it, sends them on.
    func retire(_ victim: LogState.Sealed, recyclingFor kind: LogKind?) throws(StoreError) -> Segment? {
        if let kind, let recycled = try recycle(victim.segment, for: kind) { return recycled }
        if kind == nil, try keepForReclaimer(victim.segment) { return nil }
        do throws(FileSystemError) {
            try manifest.note(victim.segment.number, is: .idle)
            try files.removeIfThere(layout.segment(victim.segment.number))
        } catch {
            throw health.failed(error)
        }
        health.succeeded()
        // A row that stays says only that the file may be gone.
        try? manifest.remove(victim.segment.number)
        forget(victim.segment)
        victim.segment.file.unlinked()
        return nil
    }

    /// Keeps the file of a segment for what will be carried, where none is kept yet: a new file costs more than one used again.
    ///
    /// Its bytes stay granted, and what is kept back for the reclaimer is less by as much.
    private func keepForReclaimer(_ old: Segment) throws(StoreError) -> Bool {
        guard ledger.capacity / geometry.segmentSize >= 32, old.size == geometry.segmentSize,
            state.withLock({ $0.carriedSpare == nil }), let segment = try recycle(old, for: .main)
        else { return false }
        state.withLock { $0.carriedSpare = segment }
        noteRoomAhead()
        return true
    }

    /// Nil: it cannot be used again and is to be removed.
    private func recycle(_ old: Segment, for kind: LogKind) throws(StoreError) -> Segment? {
        let growth = geometry.segmentSize - old.size
        guard ledger.grant(growth, for: .caller) else { return nil }
        guard let slot = slots.take() else {
            ledger.release(growth)
            return nil
        }
        let header = nextHeader(kind)
        let path = layout.segment(header.number)
        do throws(FileSystemError) {
            try manifest.note(old.number, is: .idle)
            try files.rename(layout.segment(old.number), to: path)
        } catch {
            slots.free(slot)
            ledger.release(growth)
            throw health.failed(error)
        }
        old.file.resized(to: geometry.segmentSize)
        // From here on the file's name and its old header differ, so what it holds is void.
        forget(old)
        do throws(FileSystemError) {
            // Full length before the header: by its length an unfinished segment is told from one that had its table.
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
            // What cannot be removed either stays counted until the store is opened again.
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

    /// Removes a segment that holds nothing; false when the device refuses.
    func discard(_ segment: Segment) -> Bool {
        guard (try? manifest.note(segment.number, is: .idle)) != nil,
            (try? files.removeIfThere(layout.segment(segment.number))) != nil
        else { return false }
        // A row that stays says only that the file may be gone.
        try? manifest.remove(segment.number)
        slots.free(segment.slot)
        segment.file.unlinked()
        return true
    }

    /// What the table of a segment says, or what is kept in memory for want of one.
    func table(of sealed: LogState.Sealed) throws(StoreError) -> (rows: [TableRow], blobs: [BlobRow]) {
        if let rows = sealed.rows { return (rows, sealed.blobs ?? []) }
        if let kept = lastTable.withLock({ $0 }), kept.number == sealed.segment.number {
            return (kept.rows, kept.blobs)
        }
        let table = try SegmentFileReader(files: files, seed: seed).table(of: sealed.segment)
        lastTable.withLock { $0 = KeptTable(number: sealed.segment.number, rows: table.rows, blobs: table.blobs) }
        return (table.rows, table.blobs)
    }

    /// Changes FORMAT, and throws only where the old one stays in force.
    ///
    /// One that is in force and not durable is a failure that is counted: a loss of power may bring the old one back, and
    /// after that nothing is trusted.
    func writeFormat(_ change: (inout StoreFormat) -> Void) throws(StoreError) {
        let nextOrder = orders.last + 1
        do {
            let failure = try manifest.write { format in
                change(&format)
                format.nextOrder = nextOrder
            }
            if failure != nil { health.counters.failures.add(1, ordering: .relaxed) }
        } catch {
            throw health.failed(error)
        }
    }

    /// Wipes the head of a record whose write failed, of which some or all may have reached the disk.
    ///
    /// - Returns: whether nothing of it can be found any more.
    func wipe(_ place: LogState.Place) -> Bool {
        let zeros = ByteChunk([UInt8](repeating: 0, count: 16))
        return (try? files.write(zeros, to: place.segment.file.open, at: place.offset)) != nil
    }

    // MARK: The end of all segments

    /// Takes out every segment and removes its file, for a purge of all.
    ///
    /// - Returns: false where one could not be removed; its epoch makes it void, and it goes when the store is opened the next time.
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

    /// Gives every segment its table and makes all durable; no places are given out any more.
    ///
    /// - Returns: whether all of it was done.
    func settle() -> Bool {
        close(LogState.Destination.allCases, isCut: true)
        var isSettled = true
        for spare in state.withLock({ [$0.spare.take(), $0.carriedSpare.take()].compactMap { $0 } }) {
            slots.free(spare.slot)
            if (try? files.removeIfThere(layout.segment(spare.number))) != nil {
                try? manifest.remove(spare.number)
            } else {
                isSettled = false
            }
            spare.file.unlinked()
        }
        let isDurable = (try? sync()) != nil
        // A segment without a table that a clean close left would be taken for a damaged one.
        return isDurable && isSettled && state.withLock { $0.full.isEmpty && !$0.hasUntabled }
    }

    private func sync() throws(FileSystemError) {
        for segment in state.withLock({ $0.unsynced }) { try files.sync(segment.file.open) }
        try files.syncDirectory(layout.segments)
        try files.syncDirectory(layout.blobs)
        // The list before the word that all is well: one that is older than that word names segments that are not there.
        try manifest.sync()
    }
}

/// The table that was read last: which segment is to go is asked several times before it goes.
struct KeptTable: Sendable {
    let number: UInt64
    let rows: [TableRow]
    let blobs: [BlobRow]
}

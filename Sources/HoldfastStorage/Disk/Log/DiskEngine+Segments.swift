// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// Segments come and go; every method here is for the thread of changes.
extension DiskEngine {
    /// Sees to it that an open segment has room, and reserves in it before anyone else can.
    ///
    /// - Parameters:
    ///   - reserve: takes the room; it runs at once and must do no more than that.
    /// - Throws: `.noSpace` when what is pinned, being written or read leaves none; what the file system said.
    func withRoom<Value>(
        _ destination: LogState.Destination,
        length: Int,
        hasBlob: Bool,
        _ reserve: () throws(StoreError) -> Value
    ) throws(StoreError) -> Value {
        try checkOpen()
        sealFull()
        // Another caller may have seen to it meanwhile.
        let isThere = log.withLock { log in
            guard log.hasRoom(destination, length: length, hasBlob: hasBlob) else { return false }
            log.isReserved[destination.rawValue] = true
            return true
        }
        defer { log.withLock { $0.isReserved[destination.rawValue] = false } }
        if !isThere { try makeRoom(destination) }
        defer {
            if !isThere {
                sealFull()
                payDebts()
                threads.later(.changes) { [self] in makeSpare() }
            }
        }
        return try reserve()
    }

    /// Opens a fresh segment for callers, set aside for the one whose turn it is.
    private func makeRoom(_ destination: LogState.Destination) throws(StoreError) {
        closeOpen(destination)
        if let spare = log.withLock({ $0.spare.take() }) {
            try begin(spare, destination, isReserved: true)
        } else {
            try begin(try createForCallers(destination.kind), destination, isReserved: true)
        }
    }

    /// Closes an open segment and gives it its table, which may give back most of a segment: it may be full of blobs and all
    /// but empty itself.
    private func closeOpen(_ destination: LogState.Destination) {
        log.withLock { $0.close(destination) }
        sealFull()
    }

    /// Makes a segment in advance for the small log, where the space for it can be had.
    func makeSpare() {
        // In a store of few segments one that is empty costs more hits than it saves time.
        guard ledger.capacity / geometry.segmentSize >= 32, !life.withLock({ $0.isClosed }),
            log.withLock({ $0.spare == nil })
        else { return }
        guard let segment = try? createForCallers(.small, isAhead: true) else { return }
        log.withLock { $0.spare = segment }
    }

    /// Makes a segment the open one of a destination.
    private func begin(
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
                log.withLock { if $0.spare == nil { $0.spare = segment } }
                throw failed(error)
            }
            segment = Segment(header, slot: segment.slot, file: segment.file)
            slots.put(segment)
        }
        do throws(FileSystemError) {
            // From here on it may hold what is nowhere else.
            try manifest.note(segment.number, is: .open)
        } catch {
            let spare = segment
            log.withLock { if $0.spare == nil { $0.spare = spare } }
            throw failed(error)
        }
        let open = LogState.Open(segment: segment, tail: SegmentHeader.size)
        log.withLock { $0.begin(open, destination, isReserved: isReserved) }
    }

    /// Makes a segment for callers: of a new file while the reclaimer's reserve stays whole, else of the file of one that is
    /// reclaimed for it.
    ///
    /// - Parameters:
    ///   - isAhead: whether nobody waits for it: then a full device is no reason to evict.
    private func createForCallers(_ kind: LogKind, isAhead: Bool = false) throws(StoreError) -> Segment {
        let size = geometry.segmentSize
        var search = RoomSearch(segments: log.withLock { $0.numbers.count })
        if ledger.used > ledger.capacity / 2 { trials.begin() }
        while true {
            var isDeviceFull = false
            if ledger.grant(size, for: .caller) {
                do throws(StoreError) {
                    return try create(kind)
                } catch {
                    // A device that is full for others still holds segments of this store.
                    isDeviceFull = error.code == .noSpace && error.cause != nil
                    guard isDeviceFull, !isAhead, log.withLock({ $0.victim != nil }) else { throw error }
                }
            } else if let refusal = ledger.refusal(wanted: 0, pinned: pins.sum, read: blobs.readBytes) {
                throw refusal
            }
            if let recycled = try search.next(self, recyclingFor: kind, isDeviceFull: isDeviceFull) { return recycled }
        }
    }

    /// Opens a segment for what reclaiming carries forward, for which its reserve is.
    func openCarried() throws(StoreError) {
        // Where little is left, what the last one did not fill is given back to the page.
        log.withLock { $0.close(.carried) }
        sealFull(isCut: ledger.free < 2 * geometry.segmentSize)
        ledger.setRoomAhead(0)
        if let spare = log.withLock({ $0.carriedSpare.take() }) {
            do throws(StoreError) {
                try begin(spare, .carried)
            } catch {
                noteRoomAhead()
                throw error
            }
        } else {
            guard ledger.grant(geometry.segmentSize, for: .reclaimer) else { throw Self.noSpace }
            try begin(try create(.main), .carried)
        }
        noteRoomAhead()
    }

    /// Whether the reclaimer can have another segment without anything going for it.
    var hasSegmentForReclaimer: Bool {
        log.withLock { $0.carriedSpare != nil } || ledger.hasRoom(geometry.segmentSize, for: .reclaimer)
    }

    /// Tells the ledger what the reclaimer's open segment can still take.
    func noteRoomAhead() {
        ledger.setRoomAhead(log.withLock { $0.roomAhead })
    }

    /// Makes a segment of a new file, for which the bytes are granted; they are given back when that fails.
    private func create(_ kind: LogKind) throws(StoreError) -> Segment {
        guard let slot = slots.take() else {
            ledger.release(geometry.segmentSize)
            throw Self.noSpace
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
            succeeded()
            let owned = SegmentFile(file, bytes: geometry.segmentSize, files: files, ledger: ledger)
            let segment = Segment(header, slot: slot, file: owned)
            slots.put(segment)
            return segment
        } catch {
            throw failed(error)
        }
    }

    /// The header of the next segment, under a number of its own.
    func nextHeader(_ kind: LogKind) -> SegmentHeader {
        let number = log.withLock { log in
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
        let full = log.withLock { log in log.takeUntabled() + log.takeFull() }
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
            _ = failed(error)
        }
        log.withLock { log in
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
            while let segment = log.withLock({ $0.takeSyncDue() }) { sync(segment) }
        }
    }

    /// Makes a segment's bytes durable; a failure is counted and leaves it unsynced.
    private func sync(_ segment: Segment) {
        do {
            try files.sync(segment.file.open)
            log.withLock { $0.synced(segment, isDurable: true) }
        } catch {
            log.withLock { $0.synced(segment, isDurable: false) }
            counters.failures.add(1, ordering: .relaxed)
        }
    }

    static let noSpace = StoreError(
        .noSpace,
        "What is pinned, written or read leaves no room; try again later or raise the capacity."
    )
}

/// How a segment's file ends: under another number or not at all. For the thread of changes.
extension DiskEngine {
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
            throw failed(error)
        }
        succeeded()
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
            log.withLock({ $0.carriedSpare == nil }), let segment = try recycle(old, for: .main)
        else { return false }
        log.withLock { $0.carriedSpare = segment }
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
            throw failed(error)
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
            throw failed(error)
        }
        succeeded()
        let segment = Segment(header, slot: slot, file: old.file)
        slots.put(segment)
        return segment
    }

    private func forget(_ segment: Segment) {
        log.withLock { $0.remove(segment) }
        slots.free(segment.slot)
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// Purges: marks that take constant time, a new epoch for all, and a sweep where only a predicate can tell.
extension DiskEngine {
    /// Changes: marks everything older that bears a tag, or whose key begins with a prefix, as gone.
    ///
    /// - Returns: false when there are too many marks to take another.
    func mark(_ what: SequenceAllocator.Mark) throws(StoreError) -> Bool {
        let marked = orders.mark(what) { log.withLock { $0.highestNumber } }
        guard let marked else { return false }
        // From here on it holds for every look-up; what follows makes it outlive a crash.
        let kind: RecordKind
        var primary: UInt64 = 0
        var detail = ByteChunk()
        switch what {
        case .tag(let hash): (kind, primary) = (.tagMark, hash)
        case .prefix(let bytes): (kind, detail) = (.prefixMark, ByteChunk(bytes))
        }
        func reserve(isTurn: Bool) -> ReservedNote? {
            reserveNote(
                kind,
                order: marked.order,
                primary: primary,
                variant: 0,
                detail: detail,
                horizon: marked.horizon,
                in: .main,
                isTurn: isTurn
            )
        }
        var note = reserve(isTurn: false)
        if note == nil {
            let length = RecordHeader.size + detail.count + sealOverhead
            note = try withRoom(.main, length: length, hasBlob: false) { reserve(isTurn: true) }
        }
        guard let note else { throw Self.noSpace }
        try write(note)
        return true
    }

    /// Changes: begins a new epoch and removes all files of the old one.
    ///
    /// - Returns: how many entries went.
    func purgeAll() throws(StoreError) -> Int {
        let next = epoch.load(ordering: .acquiring) + 1
        try writeFormatMakingRoom { $0.epoch = next }
        // Look-ups compare a segment's epoch, so this one store is the instant at which all is gone.
        epoch.store(next, ordering: .releasing)
        // Who began to write a blob up to here cannot commit any more; who begins from here on must keep it.
        let lastBlob = orders.last
        blobsPurgedUpTo.store(lastBlob, ordering: .releasing)
        var count = 0
        for shard in index.shards {
            count += shard.state.withLock { shard in
                shard.writers.supersedeAll()
                let rows = shard.table.count
                shard.table.removeAll()
                shard.lingering.removeAll()
                return rows
            }
        }
        pins.releaseAll()
        orders.withMarks { $0.removeAll() }
        owed.withLock { $0 = PendingTombstones() }
        counters.entriesRemoved.add(count, ordering: .relaxed)
        var failure: FileSystemError?
        for segment in log.withLock({ $0.removeAll() }) {
            slots.free(segment.slot)
            do {
                try files.removeIfThere(layout.segment(segment.number))
                segment.file.unlinked()
            } catch {
                failure = failure ?? error
            }
        }
        noteRoomAhead()
        removeBlobs(upTo: lastBlob)
        // Its epoch makes it void; it is removed when the store is opened the next time.
        if failure != nil { counters.failures.add(1, ordering: .relaxed) }
        return count
    }

    /// Removes blobs; the bytes of one that is still read or written are given back when it is closed.
    private func removeBlobs(upTo last: UInt64) {
        releases.withLock { releases in releases.removeAll { $0.segment?.epoch != epoch.load(ordering: .acquiring) } }
        guard let names = try? files.list(layout.blobs) else { return }
        for name in names {
            guard let number = FileNumber.number(in: name, suffix: StoreLayout.blobSuffix), number <= last else {
                continue
            }
            let size = (try? files.attributesIfThere(layout.blob(number)))?.size ?? 0
            blobs.remove(number, bytes: SpaceLedger.blocks(size))
        }
    }

    /// Changes FORMAT on a device that may be full: segments that are to go with what is purged go before that.
    private func writeFormatMakingRoom(_ change: (inout StoreFormat) -> Void) throws(StoreError) {
        for _ in 0..<4 {
            do throws(StoreError) {
                return try writeFormat(change)
            } catch {
                guard error.code == .noSpace else { throw error }
                if let spare = log.withLock({ $0.spare.take() }) {
                    if discard(spare) { continue }
                    log.withLock { $0.spare = spare }
                }
                if let spare = log.withLock({ $0.carriedSpare.take() }) {
                    if !discard(spare) { log.withLock { $0.carriedSpare = spare } }
                    noteRoomAhead()
                }
                // What open segments have not filled is given back, and then the oldest one goes.
                for destination in [LogState.Destination.small, .main]
                where log.withLock({ $0.hasRecords(destination) }) {
                    log.withLock { $0.close(destination) }
                }
                sealFull(isCut: true)
                do throws(StoreError) {
                    _ = try reclaimOldest(recyclingFor: nil, dropsUnpinned: true, isDeviceFull: true)
                } catch {
                    counters.failures.add(1, ordering: .relaxed)
                }
            }
        }
        try writeFormat(change)
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
            if failure != nil { counters.failures.add(1, ordering: .relaxed) }
        } catch {
            throw failed(error)
        }
    }

    /// A page of the rows of one shard, with the shard's number.
    func rows(shard number: Int, from fragment: UInt64, variant: UInt32, limit: Int) -> [IndexRow] {
        index.shards[number].state.withLock { $0.table.rows(from: fragment, variant: variant, limit: limit) }
    }

    /// The entry that stands where a row stood, read without counting a hit; nil when it has gone or is damaged, which is then
    /// removed.
    func entry(of row: IndexRow, shard number: Int) throws(StoreError) -> StoredEntry? {
        try current(row, shard: number)?.entry
    }

    /// The row that stands where a row stood, freshened or pinned meanwhile or not, and its entry, nil where a mark has taken it.
    ///
    /// - Returns: nil when there is none any more, or it is damaged, which is then removed.
    func current(_ row: IndexRow, shard number: Int) throws(StoreError) -> (row: IndexRow, entry: StoredEntry?)? {
        let primary = ShardedIndex.primary(shard: number, row.fragment)
        // It moves when its segment is reclaimed or it is changed meanwhile, and not so often.
        for _ in 0..<1_024 {
            let current = index.shards[number].state.withLock { $0.table.row(row.fragment, variant: row.variant) }
            guard let current else { return nil }
            switch try read(current, primary: primary, waits: true) {
            case .record(let source): return (current, try entry(source, nil))
            case .moved, .notCached: continue
            case .damaged:
                drop(current, primary: primary)
                return nil
            }
        }
        return nil
    }
}

/// Marks that have become many: in the background what they take is removed one by one, and then they are forgotten.
extension DiskEngine {
    /// Where the next step of a sweep begins.
    struct SweepPlace: Sendable {
        var shard = 0
        var fragment: UInt64 = 0
        var variant: UInt32 = 0
        /// The marks up to this order are forgotten at the end.
        let last: UInt64
    }

    /// Begins to sweep, unless that is under way.
    func sweepMarksSoon() {
        guard !isSweepingMarks.exchange(true, ordering: .acquiringAndReleasing) else { return }
        let place = SweepPlace(last: orders.last)
        if !threads.later(.changes, { [self] in sweepMarks(from: place) }) {
            isSweepingMarks.store(false, ordering: .releasing)
        }
    }

    /// Changes: goes through a few rows and has the rest done later, so that nobody waits for long.
    private func sweepMarks(from start: SweepPlace) {
        var place = start
        do throws(StoreError) {
            try checkOpen()
            try sweepRows(&place)
        } catch {
            // The marks stay; a later purge tries again.
            return isSweepingMarks.store(false, ordering: .releasing)
        }
        if place.shard == ShardedIndex.count {
            orders.withMarks { $0.forget(upTo: place.last) }
            return isSweepingMarks.store(false, ordering: .releasing)
        }
        let next = place
        threads.later(.changes) { [self] in sweepMarks(from: next) }
    }

    private func sweepRows(_ place: inout SweepPlace) throws(StoreError) {
        let (number, last) = (place.shard, place.last)
        // What is being written under an older order is in no row yet.
        let isBusy = index.shards[number].state.withLock { shard in shard.pending.contains { $0.order <= last } }
        if isBusy { return IOThreads.pause() }
        let rows = rows(shard: number, from: place.fragment, variant: place.variant, limit: 64)
        for row in rows where row.order < orders.newestMarkOrder {
            guard let found = try current(row, shard: number), found.entry == nil else { continue }
            try removeHere(found.row, primary: ShardedIndex.primary(shard: number, row.fragment))
        }
        if rows.count == 64, let next = rows.last?.next {
            (place.fragment, place.variant) = next
        } else {
            place = SweepPlace(shard: number + 1, last: last)
        }
    }

    /// Changes: takes one row out, with a tombstone.
    private func removeHere(_ row: IndexRow, primary: UInt64) throws(StoreError) {
        var reserved = reserveRemoval(of: row, primary: primary, isEviction: false)
        if case .needsRoom(let destination, let length, let hasBlob) = reserved {
            reserved = try withRoom(destination, length: length, hasBlob: hasBlob) {
                reserveRemoval(of: row, primary: primary, isEviction: false, isTurn: true)
            }
        }
        // One that is busy is being changed, which asks the marks itself.
        if case .done(let removal?) = reserved { try finish(removal) }
    }
}

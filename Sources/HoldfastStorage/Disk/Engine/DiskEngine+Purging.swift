// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// Purges: marks that take constant time, a new epoch for all, and a sweep where only a predicate can tell.
extension DiskEngine {
    /// Changes: marks everything older that bears a tag, or whose key begins with a prefix, as gone.
    ///
    /// - Returns: false when there are too many marks to take another.
    func mark(_ what: OrderBook.Mark) throws(StoreError) -> Bool {
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
        for _ in 0..<8 {
            let note = reserveNote(
                kind,
                order: marked.order,
                primary: primary,
                variant: 0,
                detail: detail,
                horizon: marked.horizon
            )
            if let note {
                try write(note)
                return true
            }
            try makeRoom(.main, length: RecordHeader.size + detail.count + (seal?.overhead ?? 0))
        }
        throw Self.noSpace
    }

    /// Changes: begins a new epoch and removes all files of the old one.
    ///
    /// - Returns: how many entries went.
    func purgeAll() throws(StoreError) -> Int {
        let next = epoch.load(ordering: .acquiring) + 1
        try writeFormat { $0.epoch = next }
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
                shard.ghosts.removeAll()
                return rows
            }
        }
        pins.releaseAll()
        orders.withMarks { $0.removeAll() }
        owed.withLock { $0 = OwedNotes() }
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

    /// The entry of a row, read without counting a hit; nil when it has gone or is damaged, which is then removed.
    func entry(of row: IndexRow, shard number: Int) throws(StoreError) -> StoredEntry? {
        let primary = ShardedIndex.primary(shard: number, row.fragment)
        for _ in 0..<8 {
            let current = index.shards[number].state.withLock { $0.table.row(row.fragment, variant: row.variant) }
            guard let current, current.order == row.order else { return nil }
            switch try read(current, primary: primary, waits: true) {
            case .record(let source): return try entry(source, nil)
            case .moved, .notCached: continue
            case .damaged:
                drop(current, primary: primary)
                return nil
            }
        }
        return nil
    }
}

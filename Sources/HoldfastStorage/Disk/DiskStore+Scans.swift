// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

extension DiskStore {
    public func list(after cursor: StoreCursor?, limit: Int, now: StoreInstant) async throws(StoreError) -> StorePage {
        try engine.health.checkInPlace()
        let engine = engine
        return try await StorePage.gathered(after: cursor, limit: limit) { place, wanted throws(StoreError) in
            try await engine.page(from: place, limit: wanted) { row throws(StoreError) in
                try engine.lookup.listed(row, shard: place.shard)
            }
        }
    }
}

extension DiskEngine {
    /// Records the removals that are in force, but not on the disk yet.
    ///
    /// - Throws: `.noSpace` if there is still no room.
    func recordPending() async throws(StoreError) {
        guard remover.hasPendingTombstones else { return }
        try await threads.run(.changes, isUrgent: true) { [remover] () throws(StoreError) in try remover.recordPending()
        }
    }

    /// Applies `work` to the next rows, on a read thread.
    ///
    /// - Returns: the results, and where the next page begins.
    fileprivate func page<Value: Sendable>(
        from place: IndexPosition,
        limit: Int,
        isUrgent: Bool = false,
        _ work: @escaping @Sendable (IndexRow) throws(StoreError) -> Value
    ) async throws(StoreError) -> (values: [Value], next: IndexPosition) {
        try await threads.run(.reads, isUrgent: isUrgent) { [index] () throws(StoreError) in
            let rows = index.rows(from: place, limit: limit)
            var values: [Value] = []
            for row in rows { values.append(try work(row)) }
            var next = place
            next.pass(rows, limit: limit)
            return (values, next)
        }
    }
}

extension StorePage {
    /// Collects entries page by page; `page` gets the place and the most rows to look at, and returns nil for rows without an entry.
    static func gathered(
        after cursor: StoreCursor?,
        limit: Int,
        _ page: (IndexPosition, Int) async throws(StoreError) -> (values: [ListedEntry?], next: IndexPosition)
    ) async throws(StoreError) -> StorePage {
        let limit = max(1, limit)
        var place = IndexPosition(cursor)
        var listed: [ListedEntry] = []
        while !place.isEnd, listed.count < limit {
            let found = try await page(place, min(limit - listed.count, DiskStore.page))
            listed += found.values.compactMap { $0 }
            place = found.next
        }
        return StorePage(listed: listed, next: place.isEnd ? nil : place.cursor)
    }
}

extension Lookup {
    /// What a list shows for a row; nil if its entry is gone.
    fileprivate func listed(_ row: IndexRow, shard: Int) throws(StoreError) -> ListedEntry? {
        guard let entry = try current(row, shard: shard)?.entry, let source = entry.source else { return nil }
        // The mark counts the put as one use.
        let weight = index.shards[shard].state.withLock { $0.frequencies.weight(row.mark) }
        let hits = max(0, DensityWeight.count(of: weight) - 1)
        return ListedEntry(entry: entry, hits: hits, bytes: source.header.bytesTaken)
    }
}

extension DiskStore {
    /// Purges by the forms that take constant time; nothing is counted.
    func purgeMarked(_ what: PurgeMarks.Mark) async throws(StoreError) {
        let engine = engine
        while true {
            let isMarked = try await engine.threads.run(.changes, isUrgent: true) { () throws(StoreError) in
                try engine.purger.mark(what)
            }
            if isMarked { break }
            // More marks than the background can process: this purge waits until they have been swept, once for all that wait.
            guard engine.purger.beginSweep() else {
                try await engine.threads.run(.changes, isUrgent: true) { IOThreads.pause() }
                continue
            }
            defer { engine.purger.endSweep() }
            let last = engine.orders.last
            var place = IndexPosition()
            while !place.isEnd {
                place = try await engine.threads.run(.changes, isUrgent: true) { [place] () throws(StoreError) in
                    try engine.purger.sweepMarks(from: place, upTo: last)
                }
            }
        }
        if engine.orders.isCrowded { engine.purger.sweepMarksSoon() }
    }

    /// Purges what a predicate matches, including writers in progress. The predicate is called on the caller's task and under no
    /// lock.
    func purgeMatching(
        _ predicate: @Sendable (StoredEntry) -> Bool,
        now: StoreInstant
    ) async throws(StoreError) -> Int {
        let before = engine.orders.last
        for shard in engine.index.shards {
            // An entry stored in one step has no row yet; it will have one in a moment.
            try await awaitPending(shard) { $0.isPut && $0.order <= before }
            let writers = shard.state.withLock { $0.writers.all }
            let ids = Set(writers.filter { predicate($0.entry(now: now)) }.map(\.id))
            if ids.isEmpty { continue }
            shard.state.withLock { $0.writers.supersede { ids.contains($0.id) } }
            // No tombstone would remove their records after a crash, so this waits until they are off the disk again.
            try await awaitPending(shard) { $0.writer.map(ids.contains) ?? false }
        }
        return try await sweep(predicate)
    }

    /// Waits until certain records are no longer being written.
    private func awaitPending(
        _ shard: IndexShard,
        isMeant: @Sendable (PendingWrite) -> Bool
    ) async throws(StoreError) {
        while shard.state.withLock({ $0.pending.contains(where: isMeant) }) {
            await Task.yield()
            try await engine.threads.run(.writes, isUrgent: true) {}
        }
    }

    /// Goes through all entries and removes those for which `takes` returns true; a failure does not keep it from the others.
    private func sweep(_ takes: (StoredEntry) -> Bool) async throws(StoreError) -> Int {
        let engine = engine
        var count = 0
        var failure: StoreError?
        var place = IndexPosition()
        while !place.isEnd {
            let shard = place.shard
            let page = try await engine.page(from: place, limit: Self.page, isUrgent: true) { row throws(StoreError) in
                // A record that cannot be read does not keep the purge from the others.
                (row: row, found: Result { () throws(StoreError) in try engine.lookup.current(row, shard: shard) })
            }
            for (row, found) in page.values {
                do throws(StoreError) {
                    count += try await remove(try found.get(), row: row, shard: shard, takes: takes) ? 1 : 0
                } catch {
                    if error.code == .closed { throw error }
                    failure = failure ?? error
                }
            }
            place = page.next
        }
        engine.health.counters.entriesRemoved.add(count, ordering: .relaxed)
        if let failure { throw failure }
        // What is gone already may be so by a removal that is not recorded yet.
        try await engine.recordPending()
        return count
    }

    /// A row and its entry, nil if a mark has purged it.
    private typealias Found = (row: IndexRow, entry: StoredEntry?)

    /// Removes an entry, even if it is freshened or pinned between the check and the removal.
    private func remove(
        _ found: Found?,
        row: IndexRow,
        shard number: Int,
        takes: (StoredEntry) -> Bool
    ) async throws(StoreError) -> Bool {
        let engine = engine
        let primary = ShardedIndex.primary(shard: number, row.fragment)
        var found = found
        // Each round after the first is due to another change; an entry that is stored again and again need not be removed.
        for _ in 0..<256 {
            guard let seen = found, let entry = seen.entry, takes(entry) else { return false }
            if try await engine.writer.remove(seen.row, primary: primary) { return true }
            found = try await engine.threads.run(.reads, isUrgent: true) { () throws(StoreError) in
                try engine.lookup.current(row, shard: number)
            }
        }
        return false
    }

    /// Entries that are read at once.
    static var page: Int { 256 }
}

extension DiskStore: InspectableStore {
    public func verify(
        _ progress: @escaping @Sendable (VerificationProgress) -> Void
    ) async throws(StoreError) -> VerificationReport {
        try engine.health.checkInPlace()
        let engine = engine
        var report = VerificationReport()
        try await report.verify(bytes: engine.quota.used, progress: progress) { place throws(StoreError) in
            try await engine.page(from: place, limit: 32) { row throws(StoreError) in
                try engine.lookup.check(row, shard: place.shard)
            }
        }
        return report
    }

    @discardableResult
    public func compact() async throws(StoreError) -> CompactionReport {
        try engine.health.checkOpen()
        let before = engine.quota.used
        var moved = 0
        // By number: a held segment keeps its bytes from being freed.
        for number in engine.log.ask({ $0.sealedSegments.map(\.number) }) {
            if Task.isCancelled {
                throw StoreError(
                    .cancelled,
                    "The task that compacted the store was cancelled; its work so far is kept."
                )
            }
            moved += try await engine.threads.run(.changes, isUrgent: true) { [engine] () throws(StoreError) in
                try engine.reclaimer.compact(number)
            }
        }
        return CompactionReport(bytesBefore: before, bytesAfter: engine.quota.used, entriesMoved: moved)
    }
}

/// The result of checking one entry.
struct EntryCheck: Sendable {
    enum Outcome: Sendable {
        case whole(body: Int)
        case damaged(StoreKey?, String)
        case sealed
        case gone
    }

    var outcome: Outcome
    var bytesRead: Int
}

extension VerificationReport {
    /// Checks entries page by page until the end.
    mutating func verify(
        bytes: Int,
        progress: @Sendable (VerificationProgress) -> Void,
        _ page: (IndexPosition) async throws(StoreError) -> (values: [EntryCheck], next: IndexPosition)
    ) async throws(StoreError) {
        var done = VerificationProgress(entries: 0, bytesRead: 0, bytesTotal: bytes)
        var place = IndexPosition()
        while !place.isEnd {
            if Task.isCancelled {
                throw StoreError(.cancelled, "The task that verified the store was cancelled.")
            }
            let found = try await page(place)
            for check in found.values { add(check, done: &done) }
            progress(done)
            place = found.next
        }
        done.bytesTotal = done.bytesRead
        progress(done)
    }

    /// Counts the result of checking an entry.
    private mutating func add(_ check: EntryCheck, done: inout VerificationProgress) {
        done.entries += 1
        done.bytesRead += check.bytesRead
        switch check.outcome {
        case .whole(let body):
            entriesChecked += 1
            bodyBytesChecked += body
        case .damaged(let key, let message):
            entriesChecked += 1
            entriesDamaged += 1
            note(Damage(key: key, message: message))
        case .sealed:
            entriesSealed += 1
        case .gone:
            break
        }
    }
}

extension Lookup {
    /// Reads one entry completely and checks it; removes a damaged one. Blocks.
    fileprivate func check(_ row: IndexRow, shard number: Int) throws(StoreError) -> EntryCheck {
        var check = EntryCheck(outcome: .gone, bytesRead: row.place.byteCount)
        let message = "The entry failed its checks and was removed; it will be fetched again when it is requested."
        let damagedBefore = counters.entriesCorrupt.load(ordering: .relaxed)
        var key: StoreKey?
        do throws(StoreError) {
            guard let entry = try current(row, shard: number)?.entry, let source = entry.source else {
                if counters.entriesCorrupt.load(ordering: .relaxed) > damagedBefore {
                    check.outcome = .damaged(nil, message)
                } else if isSealed(row, shard: number) {
                    check.outcome = .sealed
                }
                return check
            }
            key = entry.key
            if source.header.hasBlob {
                try checkBlob(source)
                check.bytesRead += entry.bodyLength
            } else {
                _ = try inlineBody(of: source)
            }
            check.outcome = .whole(body: entry.bodyLength)
        } catch {
            switch error.code {
            case .corrupt: check.outcome = .damaged(key, message)
            case .sealed: check.outcome = .sealed
            case .superseded: break
            case .io where error.isOfDamagedPlace:
                check.outcome = .damaged(key, "The device cannot read the entry; it is left as it is.")
            default: throw error
            }
        }
        return check
    }

    private func isSealed(_ row: IndexRow, shard number: Int) -> Bool {
        let primary = ShardedIndex.primary(shard: number, row.fragment)
        guard case .record(let source)? = try? read(row, primary: primary, waits: true) else { return false }
        return source.header.keyID != 0 && (try? self.entry(source, nil)) == nil
    }

    private func checkBlob(_ source: RecordSource) throws(StoreError) {
        let file = try blob(of: source)
        do throws(StoreError) {
            try BlobReader(host: self).check(source, of: file)
        } catch {
            // An entry that was removed meanwhile is not damage.
            throw error.code == .corrupt && !dropDamaged(source) ? StoreError.gone : error
        }
    }
}

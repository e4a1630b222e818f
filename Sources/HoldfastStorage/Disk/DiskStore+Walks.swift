// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

extension DiskStore {
    public func list(after cursor: StoreCursor?, limit: Int, now: StoreInstant) async throws(StoreError) -> StorePage {
        try engine.checkOpen()
        let engine = engine
        let limit = max(1, limit)
        var place = ListPlace(cursor)
        var listed: [ListedEntry] = []
        while place.shard < ShardedIndex.count {
            let (from, wanted) = (place, limit - listed.count)
            let page = try await engine.threads.run(.reads) { () throws(StoreError) -> [(IndexRow, ListedEntry?)] in
                var page: [(IndexRow, ListedEntry?)] = []
                for row in engine.rows(
                    shard: from.shard,
                    from: from.fragment,
                    variant: from.variant,
                    limit: min(wanted, Self.page)
                ) {
                    page.append((row, try engine.listed(row, shard: from.shard)))
                }
                return page
            }
            listed += page.compactMap(\.1)
            if let next = page.last?.0.next {
                (place.fragment, place.variant) = next
            } else {
                place = ListPlace(shard: place.shard + 1)
            }
            if listed.count >= limit { return StorePage(listed: listed, next: place.cursor) }
        }
        return StorePage(listed: listed, next: nil)
    }
}

extension DiskEngine {
    /// What a list shows of a row; nil when its entry has gone.
    fileprivate func listed(_ row: IndexRow, shard: Int) throws(StoreError) -> ListedEntry? {
        guard let entry = try entry(of: row, shard: shard), let source = entry.source else { return nil }
        let blob = source.header.hasBlob ? SpaceLedger.blocks(source.header.storedBlobBytes) : 0
        // Of what the mark tells, the put was one.
        let weight = index.shards[shard].state.withLock { $0.frequencies.weight(row.mark) }
        let hits = max(0, DensityWeight.count(of: weight) - 1)
        return ListedEntry(entry: entry, hits: hits, bytes: Int(row.place.units) * 16 + blob)
    }
}

/// Where a list of a disk store goes on: shard, fragment, variant.
private struct ListPlace: Sendable {
    var shard: Int
    var fragment: UInt64 = 0
    var variant: UInt32 = 0

    init(shard: Int) {
        self.shard = shard
    }

    init(_ cursor: StoreCursor?) {
        self.init(shard: 0)
        guard let (number, bytes) = cursor?.parts, number < UInt64(ShardedIndex.count), bytes.count == 12 else {
            return
        }
        var decoder = ByteDecoder(bytes[...])
        guard let fragment = decoder.number(UInt64.self), let variant = decoder.number(UInt32.self) else { return }
        (shard, self.fragment, self.variant) = (Int(number), fragment, variant)
    }

    var cursor: StoreCursor {
        var encoder = ByteEncoder()
        encoder.put(fragment)
        encoder.put(variant)
        return StoreCursor(number: UInt64(clamping: shard), bytes: encoder.bytes)
    }
}

extension DiskStore {
    /// Purges by the forms that take constant time: nothing is counted there.
    func purgeMarked(_ what: SequenceAllocator.Mark) async throws(StoreError) {
        let engine = engine
        let isMarked = try await engine.threads.run(.changes, isUrgent: true) { () throws(StoreError) in
            try engine.mark(what)
        }
        if engine.orders.isCrowded { engine.sweepMarksSoon() }
        if isMarked { return }
        // More marks than the background could deal with: what they take is taken out one by one, and then none is needed.
        let before = engine.orders.last
        _ = try await sweep { entry in entry == nil }
        engine.orders.withMarks { $0.forget(upTo: before) }
        _ = try await engine.threads.run(.changes, isUrgent: true) { () throws(StoreError) in try engine.mark(what) }
    }

    /// Purges what a predicate names, writers under way included; it is asked on the caller's task and under no lock.
    func purgeMatching(
        _ predicate: @Sendable (StoredEntry) -> Bool,
        now: StoreInstant
    ) async throws(StoreError) -> Int {
        let before = engine.orders.last
        for shard in engine.index.shards {
            // What is put in one step is in no row yet; it will be in a moment.
            try await settling(shard) { $0.isPut && $0.order <= before }
            let writers = shard.state.withLock { $0.writers.all }
            let doomed = writers.filter { _, writer in
                predicate(
                    StoredEntry(
                        key: writer.key,
                        variant: writer.variant,
                        version: .beingWritten,
                        description: writer.description,
                        bodyLength: 0,
                        storedAt: now
                    )
                )
            }
            if !doomed.isEmpty {
                shard.state.withLock { $0.writers.supersede(ids: Array(doomed.keys)) }
                // No tombstone would kill their records after a crash: they are waited for until they are off the disk again.
                let ids = Set(doomed.keys)
                try await settling(shard) { $0.writer.map(ids.contains) ?? false }
            }
        }
        return try await sweep { entry in entry.map(predicate) ?? false }
    }

    /// Waits until certain records are no longer being written.
    private func settling(
        _ shard: IndexShard,
        _ isMeant: @Sendable (PendingWrite) -> Bool
    ) async throws(StoreError) {
        while shard.state.withLock({ $0.pending.contains(where: isMeant) }) {
            await Task.yield()
            try await engine.threads.run(.writes, isUrgent: true) {}
        }
    }

    /// Goes through all entries and takes out those that `takes` names; it is shown nil for what a mark has taken.
    private func sweep(_ takes: (StoredEntry?) -> Bool) async throws(StoreError) -> Int {
        let engine = engine
        var count = 0
        for number in 0..<ShardedIndex.count {
            var fragment: UInt64 = 0
            var variant: UInt32 = 0
            while true {
                let (from, beneath) = (fragment, variant)
                let page = try await engine.threads.run(.reads) { () throws(StoreError) -> [(IndexRow, Found?)] in
                    var page: [(IndexRow, Found?)] = []
                    for row in engine.rows(shard: number, from: from, variant: beneath, limit: Self.page) {
                        page.append((row, try engine.current(row, shard: number)))
                    }
                    return page
                }
                for (row, found) in page {
                    let primary = ShardedIndex.primary(shard: number, row.fragment)
                    count += try await remove(found, row, primary: primary, shard: number, takes) ? 1 : 0
                }
                guard let last = page.last?.0, page.count == Self.page else { break }
                guard let next = last.next else { break }
                (fragment, variant) = next
            }
        }
        engine.counters.entriesRemoved.add(count, ordering: .relaxed)
        return count
    }

    /// A row and its entry, nil where a mark has taken it.
    private typealias Found = (row: IndexRow, entry: StoredEntry?)

    /// Takes an entry out, also where it is freshened or pinned between the look and the removal.
    private func remove(
        _ found: Found?,
        _ row: IndexRow,
        primary: UInt64,
        shard number: Int,
        _ takes: (StoredEntry?) -> Bool
    ) async throws(StoreError) -> Bool {
        let engine = engine
        var found = found
        // Each turn after the first is another's change; what is put again and again need not go.
        for _ in 0..<256 {
            guard let seen = found, takes(seen.entry) else { return false }
            if try await engine.remove(seen.row, primary: primary) { return true }
            found = try await engine.threads.run(.reads) { () throws(StoreError) in
                try engine.current(row, shard: number)
            }
        }
        return false
    }

    /// Entries that are read at a time.
    static var page: Int { 256 }
}

extension IndexRow {
    /// The place just behind this row in the order of a table; nil at the very end.
    var next: (fragment: UInt64, variant: UInt32)? {
        if variant < .max { return (fragment, variant + 1) }
        return fragment + 1 < 1 << UInt64(Self.fragmentBits) ? (fragment + 1, 0) : nil
    }
}

extension DiskStore: InspectableStore {
    public func verify(
        _ progress: @escaping @Sendable (VerificationProgress) -> Void
    ) async throws(StoreError) -> VerificationReport {
        try engine.checkOpen()
        var report = VerificationReport()
        var done = VerificationProgress(entries: 0, bytesRead: 0, bytesTotal: engine.ledger.used)
        for number in 0..<ShardedIndex.count {
            var place: (fragment: UInt64, variant: UInt32)? = (0, 0)
            while let from = place {
                if Task.isCancelled { throw Self.verificationCancelled }
                let engine = engine
                let page = try await engine.threads.run(.reads) { () throws(StoreError) -> [(IndexRow, Checked)] in
                    var page: [(IndexRow, Checked)] = []
                    for row in engine.rows(shard: number, from: from.fragment, variant: from.variant, limit: 32) {
                        page.append((row, try engine.check(row, shard: number)))
                    }
                    return page
                }
                for (row, checked) in page { report.add(checked, row, &done) }
                place = page.last?.0.next
                progress(done)
            }
        }
        done.bytesTotal = done.bytesRead
        progress(done)
        return report
    }

    @discardableResult
    public func compact() async throws(StoreError) -> CompactionReport {
        try engine.checkOpen()
        let before = engine.ledger.used
        var moved = 0
        // By their numbers: who holds a segment keeps its bytes from being free.
        for number in engine.log.withLock({ $0.sealedSegments.map(\.number) }) {
            if Task.isCancelled { throw Self.compactionCancelled }
            moved += try await engine.threads.run(.changes, isUrgent: true) { [engine] () throws(StoreError) in
                try engine.compact(number)
            }
        }
        return CompactionReport(bytesBefore: before, bytesAfter: engine.ledger.used, entriesMoved: moved)
    }

    private static let verificationCancelled = StoreError(.cancelled, "The task that verified the store was cancelled.")
    private static let compactionCancelled = StoreError(
        .cancelled,
        "The task that compacted the store was cancelled; what it moved so far stays moved."
    )
}

/// What checking one entry gave.
enum Checked: Sendable {
    case whole(key: StoreKey, body: Int)
    case damaged(StoreKey?)
    case sealed
    case gone
}

extension VerificationReport {
    fileprivate mutating func add(_ checked: Checked, _ row: IndexRow, _ done: inout VerificationProgress) {
        done.entries += 1
        done.bytesRead += Int(row.place.units) * 16
        switch checked {
        case .whole(_, let body):
            entriesChecked += 1
            bodyBytesChecked += body
            if row.hasBlob { done.bytesRead += body }
        case .damaged(let key):
            entriesChecked += 1
            entriesDamaged += 1
            note(
                Damage(
                    key: key,
                    message: "The entry failed its checks and was removed; it is fetched again when asked for."
                )
            )
        case .sealed:
            entriesSealed += 1
        case .gone:
            break
        }
    }
}

extension DiskEngine {
    /// Reads one entry whole and checks it; one that is damaged is removed. Blocks.
    fileprivate func check(_ row: IndexRow, shard number: Int) throws(StoreError) -> Checked {
        let damagedBefore = counters.entriesCorrupt.load(ordering: .relaxed)
        let entry: StoredEntry?
        do throws(StoreError) {
            entry = try self.entry(of: row, shard: number)
        } catch {
            if error.code == .corrupt { return .damaged(nil) }
            throw error
        }
        guard let entry, let source = entry.source else {
            if counters.entriesCorrupt.load(ordering: .relaxed) > damagedBefore { return .damaged(nil) }
            return isSealed(row, shard: number) ? .sealed : .gone
        }
        do throws(StoreError) {
            guard source.header.hasBlob else {
                return .whole(key: entry.key, body: try inlineBody(of: source).count)
            }
            return try checkBlob(source) ? .whole(key: entry.key, body: entry.bodyLength) : .gone
        } catch {
            switch error.code {
            case .corrupt: return .damaged(entry.key)
            case .sealed: return .sealed
            case .superseded: return .gone
            default: throw error
            }
        }
    }

    private func isSealed(_ row: IndexRow, shard number: Int) -> Bool {
        let primary = ShardedIndex.primary(shard: number, row.fragment)
        guard case .record(let source)? = try? read(row, primary: primary, waits: true) else { return false }
        return source.header.keyID != 0 && (try? self.entry(source, nil)) == nil
    }

    private func checkBlob(_ source: RecordSource) throws(StoreError) -> Bool {
        let file: BlobFile
        do throws(FileSystemError) {
            file = try blobs.read(source.header.bodyWord, bytes: source.header.storedBlobBytes)
        } catch {
            if error.errno != SystemNumber.notFound { throw failed(error) }
            if dropDamaged(source) { throw Self.damaged }
            return false
        }
        let shape = BlobShape(source.header)
        let reader = BlobReader(engine: self)
        var index = 0
        while index < shape.chunks {
            let end = min(shape.chunks, index + BlobReader.window)
            do throws(StoreError) {
                _ = try reader.read(shape, file, chunks: index..<end, waits: true)
            } catch {
                if error.code == .corrupt, !dropDamaged(source) { return false }
                throw error
            }
            index = end
        }
        return true
    }

    /// Changes: moves what lives in a sealed segment to the main log and removes it, where that frees something.
    ///
    /// - Returns: how many entries were moved.
    fileprivate func compact(_ number: UInt64) throws(StoreError) -> Int {
        guard let sealed = log.withLock({ $0.sealed(number) }) else { return 0 }
        let segment = sealed.segment
        let table = try self.table(of: sealed)
        var live = 0
        var entries = 0
        for row in table.rows where row.kind == .entry {
            let fragment = ShardedIndex.fragment(of: row.primary)
            let isLive = index.shard(of: row.primary).state.withLock { shard in
                guard let current = shard.table.row(fragment, variant: row.variant) else { return false }
                return current.place.slot == segment.slot && current.place.unit == row.place
            }
            if isLive {
                live += Int(row.units) * 16
                entries += 1
            }
        }
        // A segment that is mostly alive is left as it is: copying it frees next to nothing.
        guard live < segment.size / 4 * 3 else { return 0 }
        _ = try reclaim(sealed, mode: .carryAll, recyclingFor: nil)
        return entries
    }
}

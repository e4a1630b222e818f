// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

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

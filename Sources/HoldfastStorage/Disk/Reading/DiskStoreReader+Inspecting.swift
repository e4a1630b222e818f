// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

extension DiskStoreReader: InspectableStore {
    public func list(after cursor: StoreCursor?, limit: Int, now: StoreInstant) async throws(StoreError) -> StorePage {
        try engine.checkOpen()
        let limit = max(1, limit)
        var (shard, place) = Self.place(cursor)
        var listed: [ListedEntry] = []
        while shard < ShardedIndex.count {
            let (number, from, wanted) = (shard, place, min(limit - listed.count, DiskStore.page))
            let page = try await engine.threads.run(.reads) { [engine] () throws(StoreError) in
                try engine.page(shard: number, from: from, limit: wanted) {
                    row,
                    snapshot,
                    handles throws(StoreError) -> ListedEntry?? in
                    try engine.listed(row, snapshot, handles)
                }
            }
            listed += page.values.compactMap(\.self)
            if let next = page.next { place = next } else { (shard, place) = (shard + 1, ReaderEngine.Place()) }
            if listed.count >= limit { return StorePage(listed: listed, next: Self.cursor(shard, place)) }
        }
        return StorePage(listed: listed, next: nil)
    }

    /// Reads every entry and its whole body, and checks both; what fails is counted and left.
    ///
    /// What reading the directory found is among the findings: segments whose table does not hold, entries that lost their body.
    public func verify(
        _ progress: @escaping @Sendable (VerificationProgress) -> Void
    ) async throws(StoreError) -> VerificationReport {
        try engine.checkOpen()
        var report = VerificationReport()
        report.note(engine.snapshot.damage)
        var done = VerificationProgress(entries: 0, bytesRead: 0, bytesTotal: engine.snapshot.bytesUsed)
        for shard in 0..<ShardedIndex.count {
            var next: ReaderEngine.Place? = ReaderEngine.Place()
            while let from = next {
                if Task.isCancelled { throw Self.verificationCancelled }
                let page = try await engine.threads.run(.reads) { [engine] () throws(StoreError) in
                    try engine.page(shard: shard, from: from, limit: 32) {
                        row,
                        snapshot,
                        handles throws(StoreError) -> ReadCheck? in
                        try engine.check(row, snapshot, handles)
                    }
                }
                for check in page.values { report.add(check, &done) }
                progress(done)
                next = page.next
            }
        }
        done.bytesTotal = done.bytesRead
        progress(done)
        return report
    }

    private static let verificationCancelled = StoreError(.cancelled, "The task that verified the store was cancelled.")

    private static func place(_ cursor: StoreCursor?) -> (shard: Int, ReaderEngine.Place) {
        guard let (number, bytes) = cursor?.parts, number < UInt64(ShardedIndex.count), bytes.count == 12 else {
            return (0, ReaderEngine.Place())
        }
        var decoder = ByteDecoder(bytes[...])
        guard let fragment = decoder.number(UInt64.self), let variant = decoder.number(UInt32.self) else {
            return (0, ReaderEngine.Place())
        }
        return (Int(number), ReaderEngine.Place(fragment: fragment, variant: variant))
    }

    private static func cursor(_ shard: Int, _ place: ReaderEngine.Place) -> StoreCursor {
        var encoder = ByteEncoder()
        encoder.put(place.fragment)
        encoder.put(place.variant)
        return StoreCursor(number: UInt64(clamping: shard), bytes: encoder.bytes)
    }
}

/// What checking one entry gave.
private struct ReadCheck: Sendable {
    enum Outcome: Sendable {
        case whole(body: Int)
        case damaged(StoreKey?)
        case sealed
        case gone
    }

    var outcome: Outcome
    var bytesRead: Int
    /// The file that holds the record.
    var segment: UInt64
}

extension VerificationReport {
    fileprivate mutating func note(_ damage: RecoveredStore.Damage) {
        if damage.segments > 0 {
            let message =
                "\(damage.segments) segment file(s) are damaged beyond their records; changes may be lost with it."
            note(Damage(key: nil, message: message))
        }
        let lost = damage.entries + damage.bodies
        guard lost > 0 else { return }
        entriesChecked += lost
        entriesDamaged += lost
        note(Damage(key: nil, message: "\(lost) entries have lost their bodies."))
    }

    fileprivate mutating func add(_ check: ReadCheck, _ done: inout VerificationProgress) {
        done.entries += 1
        done.bytesRead += check.bytesRead
        switch check.outcome {
        case .whole(let body):
            entriesChecked += 1
            bodyBytesChecked += body
        case .damaged(let key):
            entriesChecked += 1
            entriesDamaged += 1
            let file = FileNumber.name(check.segment) + StoreLayout.segmentSuffix
            note(Damage(key: key, message: "The entry in \(file) failed its checks; it is left as it is."))
        case .sealed:
            entriesSealed += 1
        case .gone:
            break
        }
    }
}

extension ReaderEngine {
    /// What a list shows of a row: nil when it has moved, a nil entry when a purge has taken it, it is sealed, or damaged.
    fileprivate func listed(
        _ row: IndexRow,
        _ snapshot: StoreSnapshot,
        _ handles: SegmentHandles
    ) throws(StoreError) -> ListedEntry?? {
        switch try read(row, in: snapshot, handles) {
        case .moved: return nil
        case .damaged: return .some(nil)
        case .record(let source):
            do throws(StoreError) {
                guard let entry = try snapshot.entry(source, nil, seal: seal) else {
                    if source.header.keyID != 0, try source.detail(key: nil, seal: seal) == nil {
                        sealedListed.add(1, ordering: .relaxed)
                    }
                    return .some(nil)
                }
                let blob = source.header.hasBlob ? SpaceLedger.blocks(source.header.storedBlobBytes) : 0
                // How often an entry was found is known to the store that is asked alone.
                return ListedEntry(entry: entry, hits: nil, bytes: Int(row.place.units) * Geometry.unit + blob)
            } catch {
                if error.code == .corrupt { return .some(nil) }
                throw error
            }
        }
    }

    /// Reads one entry whole and checks it; nil when it has moved.
    fileprivate func check(
        _ row: IndexRow,
        _ snapshot: StoreSnapshot,
        _ handles: SegmentHandles
    ) throws(StoreError) -> ReadCheck? {
        var check = ReadCheck(
            outcome: .gone,
            bytesRead: Int(row.place.units) * Geometry.unit,
            segment: snapshot.segment(of: row) ?? 0
        )
        var key: StoreKey?
        do throws(StoreError) {
            switch try read(row, in: snapshot, handles) {
            case .moved: return nil
            case .damaged: throw damaged()
            case .record(let source):
                let entry = try snapshot.entry(source, nil, seal: seal)
                key = entry?.key
                // What a key is missing for has sums that can be checked all the same.
                let detail = entry == nil ? try source.detail(key: nil, seal: seal) : nil
                let isSealed = source.header.keyID != 0 && entry == nil && detail == nil
                if entry == nil, !isSealed { return check }
                if source.header.hasBlob {
                    try checkBlob(source, opens: !isSealed)
                    check.bytesRead += source.header.bodyLength
                } else {
                    try checkInline(source)
                    if !isSealed { _ = try source.openedBody(seal: seal) }
                }
                check.outcome = isSealed ? .sealed : .whole(body: source.header.bodyLength)
            }
        } catch {
            switch error.code {
            case .corrupt: check.outcome = .damaged(key)
            case .sealed: check.outcome = .sealed
            case .superseded: return nil
            default: throw error
            }
        }
        return check
    }

    private func checkBlob(_ source: RecordSource, opens: Bool) throws(StoreError) {
        let file = try blob(of: source)
        let shape = BlobShape(source.header)
        let reader = BlobReader(engine: self, opens: opens)
        var index = 0
        while index < shape.chunks {
            let end = min(shape.chunks, index + BlobReader.window)
            _ = try reader.read(shape, file, chunks: index..<end, waits: true)
            index = end
        }
    }
}

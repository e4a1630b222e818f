// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// Lookups: one probe of the index, and one positional read of each record found.
final class Lookup: Sendable {
    let files: any FileSystem
    let seal: (any StoreSeal)?
    let tuner: SharedWindowTuner
    private let isSealed: Bool
    private let seed: UInt64
    private let hashing: KeyHashing
    /// Entries of a lower version must be revalidated.
    private let suspectBefore: UInt64
    let index: ShardedIndex
    private let orders: SequenceAllocator
    private let log: Log
    private let slots: SegmentSlots
    private let remover: Remover
    let blobs: BlobFiles
    let threads: IOThreads
    private let health: StoreHealth
    let counters: DiskCounters

    init(_ opened: OpenedStore, log: Log, remover: Remover) {
        (files, seal, index, orders, blobs) = (opened.files, opened.seal, opened.index, opened.orders, opened.blobs)
        (threads, health, suspectBefore) = (opened.threads, opened.health, opened.suspectBefore)
        (self.log, self.remover, slots, counters) = (log, remover, log.slots, opened.health.counters)
        (isSealed, seed, hashing) = (opened.seal != nil, log.seed, opened.hashing)
        tuner = SharedWindowTuner(seed: log.seed)
    }

    /// Counts a lookup and what it found.
    func counted(_ entries: [StoredEntry]) {
        counters.lookups.add(1, ordering: .relaxed)
        if !entries.isEmpty { counters.lookupsFound.add(1, ordering: .relaxed) }
    }

    /// How a lookup counts.
    enum Access: Sendable {
        /// A caller: this counts as a use.
        case use
        /// A caller whose use was already counted by a lookup that could not wait.
        case repeatedUse
        /// The store, on behalf of a change.
        case none
    }

    /// The result of reading a record.
    enum RecordRead {
        case record(RecordSource)
        /// The row is out of date: look in the index again.
        case moved
        /// The bytes are not in the page cache, and waiting was not allowed.
        case notCached
        /// The row is right and the bytes are not.
        case damaged
    }

    /// The variants of a key, newest first; nil if `waits` is false and the device would have to be waited for.
    ///
    /// - Throws: `.corrupt` if only a damaged record was found, which is removed first; `.io`.
    func look(_ key: StoreKey, waits: Bool, as access: Access) throws(StoreError) -> [StoredEntry]? {
        let primary = hashing.primary(key)
        let shard = index.shard(of: primary)
        let fragment = ShardedIndex.fragment(of: primary)
        var access = access
        // A row moves if its segment is reclaimed meanwhile; it is next to impossible that this happens every time.
        for _ in 0..<64 {
            let before = purgeState
            let (found, segment) = shard.state.withLock { shard -> (RowMatches, Segment?) in
                let found =
                    access == .use
                    ? shard.table.useRows(fragment, frequencies: &shard.frequencies) : shard.table.rows(fragment)
                guard case .one(let row) = found else { return (found, nil) }
                return (found, slots.underLock(row.place.slot))
            }
            switch found {
            case .none:
                return []
            case .one(let row):
                switch try hit(row, segment: segment, key: key, primary: primary, waits: waits, as: access) {
                case .entry(let entry): return [entry]
                case .nothing: return []
                case .moved:
                    if access == .use { access = .repeatedUse }
                    continue
                case .notCached: return nil
                case .damaged:
                    if !waits { return nil }
                    remover.drop(row, primary: primary)
                    throw StoreError.damaged
                }
            case .many(let rows):
                let entries = try look(rows, key: key, primary: primary, waits: waits, as: access)
                if access == .use { access = .repeatedUse }
                if let entries {
                    // A purge between two reads would leave only some of the variants.
                    if purgeState != before { continue }
                    return entries.isEmpty ? nil : entries.compactMap { $0 }.sorted { $0.version > $1.version }
                }
            }
        }
        return []
    }

    /// The result of looking at one row.
    private enum Hit {
        case entry(StoredEntry)
        /// An entry of another key, or a purged one.
        case nothing
        case moved
        case notCached
        case damaged
    }

    /// The path of nearly every lookup: one unencrypted record, whose entry is made directly from the bytes read.
    @inline(__always)
    private func hit(
        _ row: IndexRow,
        segment: Segment?,
        key: StoreKey,
        primary: UInt64,
        waits: Bool,
        as access: Access
    ) throws(StoreError) -> Hit {
        guard let segment, !isSealed else { return try hit(row, key: key, primary: primary, waits: waits, as: access) }
        guard let bytes = try bytes(of: row, in: segment, waits: waits) else { return .notCached }
        let found = bytes.withUnsafeBytes { bytes -> (RecordHeader, RecordDetail.Layout?)? in
            guard let header = RecordHeader.decode(bytes, of: row, in: segment.number, seed: seed) else { return nil }
            let detail = bytes.part(RecordHeader.size..<(RecordHeader.size + header.detailLength))
            return (header, header.keyID == 0 ? RecordDetail.Layout(detail, of: key) : nil)
        }
        guard let (header, layout) = found else {
            if case .damaged = stillThere(row, primary: primary, segment: segment) { return .damaged }
            return .moved
        }
        if access != .none, tuner.samples(row.keyHash) { recordInTuner(row, primary: primary, size: header.bytesTaken) }
        guard let layout, segment.epoch >= log.epoch.load(ordering: .acquiring) else { return .nothing }
        let source = RecordSource(row: row, epoch: segment.epoch, header: header, bytes: ByteChunk(bytes))
        let detail = RecordDetail(layout, of: key, in: source.bytes, from: RecordHeader.size)
        if orders.takes(order: header.order, key: key, tags: detail.tags) { return .nothing }
        return .entry(source.entry(detail, suspectBefore: suspectBefore))
    }

    /// The same for what is sealed, or may be.
    @inline(never)
    private func hit(
        _ row: IndexRow,
        key: StoreKey,
        primary: UInt64,
        waits: Bool,
        as access: Access
    ) throws(StoreError) -> Hit {
        switch try read(row, primary: primary, waits: waits) {
        case .record(let source):
            if access != .none { recordInTuner(row, primary: primary, size: source.header.bytesTaken) }
            return try entry(source, key).map { .entry($0) } ?? .nothing
        case .moved: return .moved
        case .notCached: return .notCached
        case .damaged: return .damaged
        }
    }

    /// Changes with every purge that takes effect at once.
    private var purgeState: (epoch: UInt64, mark: UInt64) {
        (log.epoch.load(ordering: .acquiring), orders.newestMarkOrder)
    }

    /// Several rows: nil if one has moved, so that all must be looked up again; an empty list if one is not cached.
    private func look(
        _ rows: [IndexRow],
        key: StoreKey,
        primary: UInt64,
        waits: Bool,
        as access: Access
    ) throws(StoreError) -> [StoredEntry?]? {
        var entries: [StoredEntry?] = []
        var isDamaged = false
        for row in rows {
            switch try read(row, primary: primary, waits: waits) {
            case .record(let source):
                if access != .none { recordInTuner(row, primary: primary, size: source.header.bytesTaken) }
                entries.append(try entry(source, key))
            case .moved: return nil
            case .notCached: return []
            case .damaged:
                if !waits { return [] }
                remover.drop(row, primary: primary)
                isDamaged = true
            }
        }
        if isDamaged, !entries.contains(where: { $0 != nil }) { throw StoreError.damaged }
        return entries.isEmpty ? [nil] : entries
    }

    /// Tells the tuner of a request for an entry in the index, if it samples its key.
    func recordInTuner(_ row: IndexRow, primary: UInt64, size: Int) {
        guard tuner.samples(row.keyHash) else { return }
        let weight = index.shard(of: primary).state.withLock { shard in
            shard.table.row(row.fragment, variant: row.variant).map { shard.frequencies.weight($0.mark) }
        }
        guard let weight else { return }
        if tuner.wantsExpectation {
            tuner.expect(
                WindowTuner.expected(held: index.count, used: log.quota.used, capacity: log.quota.capacity)
            )
        }
        tuner.note(row.keyHash, size: size, weight: weight, capacity: log.quota.capacity)
    }

    /// Reads the record of a row and checks its head.
    func read(_ row: IndexRow, primary: UInt64, waits: Bool) throws(StoreError) -> RecordRead {
        guard let segment = slots[row.place.slot] else { return stillThere(row, primary: primary, segment: nil) }
        guard let bytes = try bytes(of: row, in: segment, waits: waits) else { return .notCached }
        let header = bytes.withUnsafeBytes { RecordHeader.decode($0, of: row, in: segment.number, seed: seed) }
        guard let header else {
            return stillThere(row, primary: primary, segment: segment)
        }
        return .record(RecordSource(row: row, epoch: segment.epoch, header: header, bytes: ByteChunk(bytes)))
    }

    /// The bytes of a row's record, unchecked; nil if they are not in memory and `waits` is false.
    @inline(__always)
    private func bytes(of row: IndexRow, in segment: Segment, waits: Bool) throws(StoreError) -> [UInt8]? {
        let (offset, count) = (row.place.offset, row.place.byteCount)
        let bytes: [UInt8]?
        do throws(FileSystemError) {
            bytes =
                waits
                ? try files.read(segment.file.open, from: offset, count: count)
                : try files.readIfCached(segment.file.open, from: offset, count: count)
        } catch {
            if !waits { return nil }
            throw health.failed(error)
        }
        if bytes != nil { health.succeeded() }
        return bytes
    }

    /// A record that does not match its row is damaged, unless the row has moved or its segment is gone.
    private func stillThere(_ row: IndexRow, primary: UInt64, segment: Segment?) -> RecordRead {
        let isThere = index.shard(of: primary).state.withLock { shard in
            shard.table.row(row.fragment, variant: row.variant)?.place == row.place
        }
        guard isThere else { return .moved }
        return slots[row.place.slot] === segment ? .damaged : .moved
    }

    /// The entry in a record, if it belongs to this key and is not purged; otherwise nil.
    func entry(_ source: RecordSource, _ key: StoreKey?) throws(StoreError) -> StoredEntry? {
        let header = source.header
        guard source.epoch >= log.epoch.load(ordering: .acquiring) else { return nil }
        guard let detail = try detail(of: source, key: key) else { return nil }
        if orders.takes(order: header.order, key: detail.key, tags: detail.tags) { return nil }
        return source.entry(detail, suspectBefore: suspectBefore)
    }

    /// Whether the entry of a record is purged.
    func isPurged(_ source: RecordSource) -> Bool {
        if source.epoch < log.epoch.load(ordering: .acquiring) { return true }
        // One that cannot be read here may be: beyond a mark's horizon, it would come back with its key.
        guard let detail = try? detail(of: source, key: nil) else {
            return source.header.order < orders.newestMarkOrder
        }
        return orders.takes(order: source.header.order, key: detail.key, tags: detail.tags)
    }

    /// The decrypted detail of a record; nil if it belongs to another key.
    private func detail(of source: RecordSource, key: StoreKey?) throws(StoreError) -> RecordDetail? {
        do throws(StoreError) {
            return try source.detail(key: key, seal: seal)
        } catch {
            if error.code == .corrupt { dropDamaged(source) }
            throw error
        }
    }

    /// The current record of a version; nil if that version is gone.
    ///
    /// - Parameter isUrgent: whether a change depends on it; see ``IOThreads/run(_:isUrgent:_:)``.
    func source(of entry: StoredEntry, isUrgent: Bool = false) async throws(StoreError) -> RecordSource? {
        func find(_ entries: [StoredEntry]) -> RecordSource? {
            entries.first { $0.isVersion(of: entry) }?.source
        }
        if let cached = try look(entry.key, waits: false, as: .none) { return find(cached) }
        return find(try await lookUpOnThread(entry.key, as: .none, isUrgent: isUrgent))
    }

    /// The variants of a key, read on a read thread.
    func lookUpOnThread(
        _ key: StoreKey,
        as access: Access,
        isUrgent: Bool = false
    ) async throws(StoreError) -> [StoredEntry] {
        try await threads.run(.reads, isUrgent: isUrgent) { [self] () throws(StoreError) in
            try look(key, waits: true, as: access) ?? []
        }
    }

    /// The checked body of an entry whose record contains it unencrypted; otherwise nil.
    func checkedBodyInMemory(of entry: StoredEntry) throws(StoreError) -> (any StoredBody)? {
        let isWhole: Bool? = entry.content.holdsBody
        guard let isWhole else { return nil }
        guard isWhole else { throw entry.source.map { dropDamaged($0) } == true ? StoreError.damaged : StoreError.gone }
        counters.bytesRead.add(entry.bodyLength, ordering: .relaxed)
        return entry.source.map { MemoryBody($0.inlineBytes) }
    }

    /// The checked body of an entry that is still the current one, if its record contains it unencrypted; otherwise nil.
    func peekBody(of entry: StoredEntry) -> ByteChunk? {
        guard let source = entry.source, isThere(source),
            source.epoch >= log.epoch.load(ordering: .acquiring),
            !orders.takes(order: source.header.order, key: entry.key, tags: entry.description.tags),
            entry.content.holdsBody == true
        else { return nil }
        counters.bytesRead.add(entry.bodyLength, ordering: .relaxed)
        return source.inlineBytes
    }

    /// Whether the row of a record is still as it was read.
    private func isThere(_ source: RecordSource) -> Bool {
        index.shard(of: source.header.primary).state.withLock { shard in
            shard.table.row(source.row.fragment, variant: source.row.variant).map {
                $0.order == source.row.order && $0.place == source.row.place
            } ?? false
        }
    }

    /// The decrypted and checked inline body of a record.
    func inlineBody(of source: RecordSource) throws(StoreError) -> ByteChunk {
        let stored = source.inlineBytes
        guard source.header.sum(of: stored) == source.header.bodyWord else {
            // A record that was overwritten while it was read is not damage.
            throw dropDamaged(source) ? StoreError.damaged : StoreError.gone
        }
        do throws(StoreError) {
            return try source.openedBody(seal: seal)
        } catch {
            guard error.code == .corrupt else { throw error }
            throw dropDamaged(source) ? StoreError.damaged : StoreError.gone
        }
    }

    /// Removes an entry whose body is damaged, unless it has moved or gone meanwhile.
    ///
    /// - Returns: whether it was still there as it was read.
    @discardableResult
    func dropDamaged(_ source: RecordSource) -> Bool {
        let isThere = isThere(source)
        if isThere { remover.drop(source.row, primary: source.header.primary) }
        return isThere
    }

    /// The current row for a row, even if freshened or pinned meanwhile, and its entry, nil if a mark has purged it.
    ///
    /// Counts no hit.
    ///
    /// - Returns: nil if it is gone, or is damaged, in which case it is removed.
    func current(_ row: IndexRow, shard number: Int) throws(StoreError) -> (row: IndexRow, entry: StoredEntry?)? {
        let primary = ShardedIndex.primary(shard: number, row.fragment)
        // It moves if its segment is reclaimed or it is changed meanwhile, but not this often.
        for _ in 0..<1_024 {
            let current = index.shards[number].state.withLock { $0.table.row(row.fragment, variant: row.variant) }
            guard let current else { return nil }
            switch try read(current, primary: primary, waits: true) {
            case .record(let source):
                do throws(StoreError) {
                    return (current, try entry(source, nil))
                } catch {
                    // What its seal refuses was removed when it was read.
                    if error.code == .corrupt { return nil }
                    throw error
                }
            case .moved, .notCached: continue
            case .damaged:
                remover.drop(current, primary: primary)
                return nil
            }
        }
        return nil
    }

    /// Opens the body of an entry that a lookup showed.
    func body(of source: RecordSource) async throws(StoreError) -> any StoredBody {
        guard source.header.hasBlob else {
            let bytes = try inlineBody(of: source)
            counters.bytesRead.add(bytes.count, ordering: .relaxed)
            return MemoryBody(bytes)
        }
        if let held = blobs.cached(source.header.bodyWord) { return BlobBody(host: self, source: source, file: held) }
        let file = try await threads.run(.reads) { [self] () throws(StoreError) in try blob(of: source) }
        return BlobBody(host: self, source: source, file: file)
    }

    /// Opens the file of a body that has one.
    func blob(of source: RecordSource) throws(StoreError) -> BlobFile {
        do throws(FileSystemError) {
            return try blobs.read(source.header.bodyWord, bytes: source.header.storedBlobBytes)
        } catch {
            if error.errno != SystemNumber.notFound { throw health.failed(error) }
            throw dropDamaged(source) ? StoreError.damaged : StoreError.gone
        }
    }
}

extension Lookup: BlobHost {
    func failed(_ error: FileSystemError) -> StoreError { health.failed(error) }

    func succeeded() { health.succeeded() }
}

/// The bytes of a record as a lookup read them: the content of a stored entry, including its inline body.
///
/// Everything is in memory, so an inline body is available whatever the store does with the entry meanwhile.
struct RecordSource: Sendable {
    /// The row that led here, to tell damage from a record that was overwritten while it was read.
    let row: IndexRow
    let epoch: UInt64
    let header: RecordHeader
    /// The whole record.
    let bytes: ByteChunk

    /// The stored form of an inline body.
    var inlineBytes: ByteChunk {
        let start = RecordHeader.size + header.detailLength
        return bytes[start..<(start + header.inlineLength)]
    }

    /// The stored form of the detail.
    var detailBytes: ByteChunk {
        bytes[RecordHeader.size..<(RecordHeader.size + header.detailLength)]
    }
}

/// The content of a record after decryption.
extension RecordSource {
    /// The decrypted detail; nil if it belongs to another key, or if this seal cannot open it.
    ///
    /// - Throws: `.corrupt` if the seal finds that the bytes are not what it sealed.
    func detail(key: StoreKey?, seal: (any StoreSeal)?) throws(StoreError) -> RecordDetail? {
        var bytes = detailBytes
        if header.keyID != 0 {
            guard let seal else { return nil }
            do throws(StoreError) {
                let context = SealedPart.detail(of: header)
                bytes = ByteChunk(try seal.open(bytes, keyID: header.keyID, context: context))
            } catch {
                // With an unknown key, the entry is unreadable, not wrong.
                if error.code == .sealed { return nil }
                throw error
            }
        } else if seal != nil {
            // Unencrypted content where everything should be sealed may come from anybody.
            return nil
        }
        guard let key else { return RecordDetail.decode(bytes) }
        return RecordDetail.decode(bytes, knownKey: key)
    }

    /// The entry made from the record and its detail.
    func entry(_ detail: RecordDetail, suspectBefore: UInt64) -> StoredEntry {
        // Pinning or unpinning makes a new record of an old version.
        StoredEntry(StoredEntry.Content(self, detail: detail, needsValidation: header.version < suspectBefore))
    }

    /// The decrypted inline body; the caller has checked its checksum.
    ///
    /// - Throws: `.sealed` without its key; `.corrupt`.
    func openedBody(seal: (any StoreSeal)?) throws(StoreError) -> ByteChunk {
        let stored = inlineBytes
        guard header.keyID != 0, !stored.isEmpty else { return stored }
        guard let seal else {
            throw StoreError(.sealed, "The body is sealed; open the store with the key it was sealed with.")
        }
        let context = SealedPart.body(order: header.order)
        return ByteChunk(try seal.open(stored, keyID: header.keyID, context: context))
    }
}

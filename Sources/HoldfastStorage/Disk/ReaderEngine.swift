// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// What all parts of a ``DiskStoreReader`` share: the snapshot, and how a row of it becomes an entry. All calls block unless noted.
final class ReaderEngine: Sendable {
    let layout: StoreLayout
    let files: any FileSystem
    let seal: (any StoreSeal)?
    private let taking: SnapshotReader
    let threads: IOThreads
    let blobs: BlobFiles
    let counters = DiskCounters()
    let secret: [UInt8]
    /// Entries that lists skipped because their key is missing.
    let sealedListed = Atomic<Int>(0)

    private struct State {
        var snapshot: StoreSnapshot
        var isClosed = false
        var isReplaced = false
        /// Readings begun, and the one that the snapshot is from.
        var begun = 0
        var current = 0
    }

    private let state: Mutex<State>

    init(_ taking: SnapshotReader, snapshot: StoreSnapshot, threads: IOThreads) {
        layout = taking.layout
        files = taking.files
        seal = snapshot.format.binding(taking.seal)
        self.taking = taking
        self.threads = threads
        secret = snapshot.format.secret
        blobs = BlobFiles(files: files, layout: layout, quota: SpaceQuota(budget: .none, used: 0))
        state = Mutex(State(snapshot: snapshot))
    }

    deinit {
        // They hold each other.
        blobs.closeCached()
    }

    /// The latest snapshot. Does not block.
    var snapshot: StoreSnapshot { state.withLock { $0.snapshot } }

    /// Throws if the reader is closed or its directory belongs to another store. Does not block.
    func checkOpen() throws(StoreError) {
        let (isClosed, isReplaced) = state.withLock { ($0.isClosed, $0.isReplaced) }
        if isReplaced { throw StoreError(.closed, "\(layout.root) contains another store now; open it again.") }
        if isClosed { throw StoreError.closed }
    }

    /// Later calls throw; threads end after their current work. Does not block.
    func close() {
        state.withLock { $0.isClosed = true }
        blobs.closeCached()
        threads.stop()
    }

    /// Takes a new snapshot, unless one was taken since `old` was the newest.
    func refresh(_ old: StoreSnapshot) throws(StoreError) {
        let turn = state.withLock { state -> Int? in
            guard state.snapshot === old else { return nil }
            state.begun += 1
            return state.begun
        }
        guard let turn else { return }
        let next: StoreSnapshot?
        do throws(StoreError) {
            next = try taking.take()
        } catch {
            // A held directory without a format file was removed.
            guard error.code == .badConfiguration else { throw error }
            next = nil
        }
        guard let next, next.format.secret == secret else {
            state.withLock { $0.isReplaced = true }
            return try checkOpen()
        }
        // A snapshot that another thread began later may be there already.
        state.withLock { if turn > $0.current { ($0.snapshot, $0.current) = (next, turn) } }
    }

    /// What a row led to.
    enum Found {
        case record(RecordSource)
        /// The segment is gone: take another snapshot.
        case moved
        case damaged
    }

    /// Reads the record of a row and checks its head.
    func read(
        _ row: IndexRow,
        in snapshot: StoreSnapshot,
        handles: SegmentHandles
    ) throws(StoreError) -> Found {
        guard let number = snapshot.segment(of: row) else { return .moved }
        let (offset, count) = (row.place.offset, row.place.byteCount)
        guard let bytes = try checked(try handles.read(number, from: offset, count: count)) else { return .moved }
        let seed = snapshot.format.hashSeed
        let header = bytes.withUnsafeBytes { RecordHeader.decode($0, of: row, in: number, seed: seed) }
        guard let header else {
            return try isThere(number) ? .damaged : .moved
        }
        return .record(RecordSource(row: row, epoch: snapshot.format.epoch, header: header, bytes: ByteChunk(bytes)))
    }

    /// Whether a segment still has its name. A file that is reused loses its name before its first byte changes, so what was read
    /// from it until now is what was written under that number.
    func isThere(_ segment: UInt64) throws(StoreError) -> Bool {
        try checked(try files.attributesIfThere(layout.segment(segment))) != nil
    }

    /// Checks the stored inline body of a record; throws `.superseded` if it was overwritten while it was read, `.corrupt`.
    func checkInline(_ source: RecordSource) throws(StoreError) {
        if source.header.sum(of: source.inlineBytes) == source.header.bodyWord { return }
        guard try isThere(source.header.segment) else { throw StoreError.gone }
        throw damaged()
    }

    /// Opens the file of a body that has one; throws `.superseded` if it went with its entry.
    func blob(of source: RecordSource) throws(StoreError) -> BlobFile {
        do throws(FileSystemError) {
            let file = try blobs.read(source.header.bodyWord, bytes: source.header.storedBlobBytes)
            // Not cached: the store that unlinks it gets its space back when this body is released.
            blobs.closeCached(file.number)
            return file
        } catch {
            if error.errno == SystemNumber.notFound { throw StoreError.gone }
            throw failed(error)
        }
    }

    /// Counts a finding and returns its error.
    func damaged() -> StoreError {
        counters.entriesCorrupt.add(1, ordering: .relaxed)
        return StoreError(.corrupt, "The entry on the disk is damaged; it stays until its store finds it.")
    }
}

extension ReaderEngine: BlobHost {
    func failed(_ error: FileSystemError) -> StoreError {
        counters.failures.add(1, ordering: .relaxed)
        return StoreError(disk: error)
    }

    func succeeded() {}

    @discardableResult
    func dropDamaged(_ source: RecordSource) -> Bool {
        _ = damaged()
        return true
    }
}

/// Lookups and pages of a list; both take a new snapshot if a record has moved.
extension ReaderEngine {
    /// How often one step takes a new snapshot before it treats what has moved as gone.
    private static let tries = 16

    /// The variants of a key, newest first.
    ///
    /// - Throws: `.corrupt` if only damage was found; `.io`, `.closed`.
    func look(_ key: StoreKey) throws(StoreError) -> [StoredEntry] {
        for attempt in 1...Self.tries {
            let snapshot = snapshot
            let handles = SegmentHandles(layout, files: files)
            var entries: [StoredEntry] = []
            var (isDamaged, hasMoved) = (false, false)
            for row in snapshot.index.rows(of: snapshot.hashing.primary(key)).all {
                switch try read(row, in: snapshot, handles: handles) {
                case .record(let source):
                    if let entry = try snapshot.entry(source, key: key, seal: seal) { entries.append(entry) }
                case .damaged: isDamaged = true
                case .moved: hasMoved = true
                }
            }
            if hasMoved, attempt < Self.tries {
                try refresh(snapshot)
                continue
            }
            if isDamaged, entries.isEmpty { throw damaged() }
            return entries.sorted { $0.version > $1.version }
        }
        return []
    }

    /// Passes the next rows to `work`; a row for which it returns nil has moved, and is looked up again in a new snapshot.
    ///
    /// - Parameter start: where to begin; only rows of its shard are visited.
    /// - Returns: the results of `work`, and where the next page begins; none for a row that moves again and again.
    func page<Value: Sendable>(
        from start: IndexPosition,
        limit: Int,
        _ work: (IndexRow, StoreSnapshot, SegmentHandles) throws(StoreError) -> Value?
    ) throws(StoreError) -> (values: [Value], next: IndexPosition) {
        var values: [Value] = []
        var place = start
        var tries = Self.tries
        again: while true {
            let snapshot = snapshot
            let handles = SegmentHandles(layout, files: files)
            let wanted = limit - values.count
            let rows = snapshot.index.rows(from: place, limit: wanted)
            for row in rows {
                let value = try work(row, snapshot, handles)
                if value == nil, tries > 0 {
                    tries -= 1
                    try refresh(snapshot)
                    continue again
                }
                tries = Self.tries
                if let value { values.append(value) }
                place.pass(row)
                if place.shard != start.shard { return (values, place) }
            }
            if rows.count < wanted { place.pass(nil) }
            return (values, place)
        }
    }
}

/// The segment files that one step of a reader has opened; all are closed at its end.
///
/// None is held longer: a file that the store unlinks or reuses while somebody has it open keeps its space.
final class SegmentHandles {
    private static let most = 64

    private let layout: StoreLayout
    private let files: any FileSystem
    private var open: [UInt64: OpenFile] = [:]

    init(_ layout: StoreLayout, files: any FileSystem) {
        self.layout = layout
        self.files = files
    }

    deinit {
        for file in open.values { files.close(file) }
    }

    /// Bytes of a segment's file; nil if the file is gone.
    func read(_ number: UInt64, from offset: Int, count: Int) throws(FileSystemError) -> [UInt8]? {
        guard let file = try file(number) else { return nil }
        return try files.read(file, from: offset, count: count)
    }

    private func file(_ number: UInt64) throws(FileSystemError) -> OpenFile? {
        if let file = open[number] { return file }
        guard let file = try files.openIfThere(layout.segment(number)) else { return nil }
        if open.count >= Self.most {
            for file in open.values { files.close(file) }
            open = [:]
        }
        open[number] = file
        return file
    }
}

/// The contents of a directory at one instant, as a store that opened it then would have found them. Never changes.
final class StoreSnapshot: Sendable {
    let format: StoreFormat
    let index: ShardedIndex
    /// The numbers of the segments by slot.
    let segments: [UInt64]
    let marks: PurgeMarks
    let hashing: KeyHashing
    /// Entries of a lower version must be revalidated before they are used.
    let suspectBefore: UInt64
    /// Bytes of all files, in whole blocks.
    let bytesUsed: Int
    /// What failed its check.
    let damage: RecoveredStore.Damage
    /// The process that has the directory open, if that can be determined.
    let holder: Int32?

    init(_ found: RecoveredStore, format: StoreFormat, index: ShardedIndex, holder: Int32?) {
        self.format = format
        self.index = index
        self.holder = holder
        segments = found.segments.map(\.number)
        marks = found.marks
        hashing = KeyHashing(seed: format.hashSeed)
        suspectBefore = found.suspectBefore
        damage = found.damage
        let begun = found.blobBlocks.addingSaturated(SpaceBudget.overhead(rows: found.segments.count))
        bytesUsed = found.segments.reduce(begun) { $0.addingSaturated(SpaceQuota.blocks($1.content.fileSize)) }
    }

    /// The number of the segment of a row's record; nil for a row of another snapshot.
    func segment(of row: IndexRow) -> UInt64? {
        let slot = Int(row.place.slot)
        return segments.indices.contains(slot) ? segments[slot] : nil
    }

    /// The entry in a record, if it belongs to this key and is not purged.
    func entry(_ source: RecordSource, key: StoreKey?, seal: (any StoreSeal)?) throws(StoreError) -> StoredEntry? {
        guard let detail = try source.detail(key: key, seal: seal) else { return nil }
        let isTaken = marks.takes(order: source.header.order, tags: detail.tags, key: detail.key, hashing: hashing)
        return isTaken ? nil : source.entry(detail, suspectBefore: suspectBefore)
    }
}

/// Reads a directory while another process may change it, and changes nothing itself. Blocks.
///
/// The snapshot is what a crash at one instant would have left. If somebody writes, this takes at least two passes:
///
/// - The first finds the highest order on disk, the *cut*. Everything with this order or a lower one was written before the second
///   pass begins, except for what nobody was told of yet. So the second pass finds every removal that is older than an entry it
///   shows. If an entry was written again since then, the new record counts, since the previous one may be reclaimed already.
/// - A pass counts if each segment listed before it still exists after it. Numbers are never reused, and a file that is reused
///   loses its old name first, so all of them were read intact. What was copied out of a segment, in particular a tombstone, was
///   read there or at its new place.
/// - Blobs are listed last: those of entries up to the cut are all there, unless their entries went meanwhile.
struct SnapshotReader: Sendable {
    let layout: StoreLayout
    /// The file system, with the directories held: what replaces them is not read.
    let files: any FileSystem
    let seal: (any StoreSeal)?

    /// How many passes are made before the store is reported to change too fast.
    private static let maximumPasses = 100

    /// Takes a snapshot.
    ///
    /// - Throws: `.badConfiguration` if the directory contains no store of this version; `.io`; `.temporarilyUnavailable` if it
    /// changes faster
    ///   than it can be read.
    func take() throws(StoreError) -> StoreSnapshot {
        var manifest = try readFormat()
        var format: StoreFormat { manifest.format }
        var known: [UInt64: Recovery.FoundFile] = [:]
        // A store that was closed cleanly does not change unless its format file does.
        var cut: UInt64? = format.isClean ? .max : nil
        for _ in 0..<Self.maximumPasses {
            let pass = try disk(try makePass(format, known: &known))
            let next = try readFormat()
            let isSame =
                format.isClean
                ? next == manifest
                : next.format.secret == format.secret && next.format.epoch == format.epoch && !next.format.isClean
            // If nobody writes, the list is the same before and after.
            let isStill = next == manifest
            manifest = next
            guard isSame else {
                (known, cut) = ([:], next.format.isClean ? .max : nil)
                continue
            }
            guard let bound = cut else {
                cut = pass.highestOrder
                continue
            }
            if pass.isWhole { return try makeSnapshot(pass, manifest: manifest, isStill: isStill, upTo: bound) }
            cut = max(bound, pass.highestOrder)
        }
        throw StoreError(
            .temporarilyUnavailable,
            "\(layout.root) changes faster than it can be read; try again when it is less busy."
        )
    }

    private struct Pass {
        var found: [Recovery.FoundFile] = []
        var highestOrder: UInt64 = 0
        /// Whether every segment listed before still existed afterward.
        var isWhole = true
    }

    private func makePass(_ format: StoreFormat, known: inout [UInt64: Recovery.FoundFile]) throws(FileSystemError)
        -> Pass
    {
        let reader = SegmentReader(files: files, format: format, seal: seal, skipsSealed: true)
        var pass = Pass()
        let listed = try Recovery.sizes(in: layout.segments, suffix: StoreLayout.segmentSuffix, files)
        for (number, size) in listed.sorted(by: { $0.key < $1.key }) {
            // A reopened one grows.
            if let known = known[number], known.size == size {
                pass.found.append(known)
                continue
            }
            do throws(FileSystemError) {
                let content = try reader.read(layout.segment(number), number: number)
                pass.found.append(Recovery.FoundFile(number: number, size: size, content: content))
            } catch {
                guard error.errno == SystemNumber.notFound else { throw error }
                pass.isWhole = false
            }
        }
        pass.highestOrder = pass.found.reduce(0) { max($0, $1.content?.highestOrder ?? 0) }
        let sealed = pass.found.filter { $0.content?.isSealed == true && $0.content?.fileSize == $0.size }
        known = Dictionary(uniqueKeysWithValues: sealed.map { ($0.number, $0) })
        let after = Set(try files.list(layout.segments))
        for number in listed.keys where !after.contains(FileNumber.name(number) + StoreLayout.segmentSuffix) {
            pass.isWhole = false
        }
        return pass
    }

    private func makeSnapshot(
        _ pass: Pass,
        manifest: FormatFile,
        isStill: Bool,
        upTo cut: UInt64
    ) throws(StoreError) -> StoreSnapshot {
        let holder = manifest.format.isClean ? nil : LockHolder.read(layout, files: files)
        var found = pass.found
        let renewed = SnapshotReader.renewed(found, since: cut)
        for index in found.indices {
            guard var content = found[index].content, content.highestOrder > cut else { continue }
            // Removals count as soon as they are seen; newer entries belong to a later instant.
            content.rows.removeAll { $0.kind == .entry && $0.order > cut && !renewed.contains(EntryIdentity($0)) }
            found[index].content = content
        }
        let isHeld = holder != nil || !isStill
        var recovery = Recovery(layout: layout, files: files, manifest: manifest, seal: seal, isHeld: isHeld)
        let blobs = try disk(try Recovery.sizes(in: layout.blobs, suffix: StoreLayout.blobSuffix, files))
        let index = ShardedIndex()
        var store = try recovery.resolve(found, blobs: blobs) { number, rows throws(StoreError) in
            try index.shards[number].state.withLock { shard throws(StoreError) in _ = try shard.table.fill(rows) }
        }
        // A blob that is missing while the store is in use went with its entry.
        if isHeld { store.damage.entries = 0 }
        return StoreSnapshot(store, format: manifest.format, index: index, holder: holder)
    }

    /// The entries that have both a record up to the cut and one beyond it.
    ///
    /// The record that was valid at the cut may have been between the two, and may have been reclaimed since, because the entry was
    /// written again. The older record was obsolete already, and the newer one hides it.
    private static func renewed(_ found: [Recovery.FoundFile], since cut: UInt64) -> Set<EntryIdentity> {
        func rows(_ isMeant: (TableRow) -> Bool) -> Set<EntryIdentity> {
            var identities: Set<EntryIdentity> = []
            for file in found {
                guard let content = file.content else { continue }
                for row in content.rows where row.kind == .entry && isMeant(row) {
                    identities.insert(EntryIdentity(row))
                }
            }
            return identities
        }
        let later = rows { $0.order > cut }
        return later.isEmpty ? later : rows { $0.order <= cut && later.contains(EntryIdentity($0)) }
    }

    // MARK: The directory

    private func readFormat() throws(StoreError) -> FormatFile {
        // A copy may be read half written, but hardly ever both, and not again and again.
        for _ in 0..<8 {
            let file = try disk(try StoreDirectory.content(layout, files: files))
            if let file { return file }
        }
        guard try disk(try files.attributesIfThere(layout.format)) != nil else {
            throw StoreError(.badConfiguration, "\(layout.root) contains no cache: there is no file FORMAT.")
        }
        throw StoreError(.badConfiguration, "\(layout.format) is damaged, or has another version of the disk format.")
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// What all parts of a ``DiskStoreReader`` share: the snapshot, and how a row of it becomes an entry. All calls block but where
/// it is said.
final class ReaderEngine: Sendable {
    let layout: StoreLayout
    let files: any FileSystem
    let seal: (any StoreSeal)?
    let threads: IOThreads
    let blobs: BlobFiles
    let counters = DiskCounters()
    let secret: [UInt8]
    /// Entries that lists passed over for want of their key.
    let sealedListed = Atomic<Int>(0)

    private struct State {
        var snapshot: StoreSnapshot
        var isClosed = false
        var isReplaced = false
        /// Readings begun, and which of them the snapshot is from.
        var begun = 0
        var current = 0
    }

    private let state: Mutex<State>

    init(_ taking: SnapshotTaking, _ snapshot: StoreSnapshot, threads: IOThreads) {
        layout = taking.layout
        files = taking.files
        seal = taking.seal
        self.threads = threads
        secret = snapshot.format.secret
        blobs = BlobFiles(files: files, layout: layout, ledger: SpaceLedger(budget: .none, used: 0))
        state = Mutex(State(snapshot: snapshot))
    }

    deinit {
        // They hold each other.
        blobs.letGo()
    }

    /// What was read last. Does not block.
    var snapshot: StoreSnapshot { state.withLock { $0.snapshot } }

    /// Throws once the reader is closed or its directory is another store's. Does not block.
    func checkOpen() throws(StoreError) {
        let (isClosed, isReplaced) = state.withLock { ($0.isClosed, $0.isReplaced) }
        if isReplaced { throw StoreError(.closed, "\(layout.root) holds another store now; open it again.") }
        if isClosed { throw StoreError(.closed, "The store is closed; open a new one.") }
    }

    /// Later calls throw; threads end when they have done what they were given. Does not block.
    func close() {
        state.withLock { $0.isClosed = true }
        blobs.letGo()
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
            next = try SnapshotTaking(layout: layout, files: files, seal: seal).take()
        } catch {
            // A directory that is held and has no format any more was removed.
            guard error.code == .badConfiguration else { throw error }
            next = nil
        }
        guard let next, next.format.secret == secret else {
            state.withLock { $0.isReplaced = true }
            return try checkOpen()
        }
        // Another thread's that was begun later may be there already.
        state.withLock { if turn > $0.current { ($0.snapshot, $0.current) = (next, turn) } }
    }

    /// What a row led to.
    enum Found {
        case record(RecordSource)
        /// The segment is not there any more: another snapshot is due.
        case moved
        case damaged
    }

    /// Reads the record of a row and checks its head.
    func read(
        _ row: IndexRow,
        in snapshot: StoreSnapshot,
        _ handles: SegmentHandles
    ) throws(StoreError) -> Found {
        guard let number = snapshot.segment(of: row) else { return .moved }
        let (offset, count) = (Int(row.place.unit) * Geometry.unit, Int(row.place.units) * Geometry.unit)
        let bytes: [UInt8]
        do throws(FileSystemError) {
            guard let found = try handles.read(number, from: offset, count: count) else { return .moved }
            bytes = found
        } catch {
            throw failed(error)
        }
        let header = bytes.withUnsafeBytes { RecordHeader.decode($0, seed: snapshot.format.hashSeed) }
        guard let header, header.kind == .entry, header.segment == number, header.order == row.order else {
            return try isThere(number) ? .damaged : .moved
        }
        return .record(RecordSource(row: row, epoch: snapshot.format.epoch, header: header, bytes: ByteChunk(bytes)))
    }

    /// Whether a segment has its name still. A file that is used again loses it before the first byte changes, so what was
    /// read from it until now is what was written under that number.
    func isThere(_ segment: UInt64) throws(StoreError) -> Bool {
        do throws(FileSystemError) {
            return try files.attributesIfThere(layout.segment(segment)) != nil
        } catch {
            throw failed(error)
        }
    }

    /// The stored inline body of a record; throws `.superseded` where it was overtaken while it was read, `.corrupt`.
    func checkInline(_ source: RecordSource) throws(StoreError) {
        if source.header.sum(of: source.inlineBytes) == source.header.bodyWord { return }
        guard try isThere(source.header.segment) else { throw DiskEngine.gone }
        throw damaged()
    }

    /// Opens the file of a body that has one; throws `.superseded` where it went with its entry.
    func blob(of source: RecordSource) throws(StoreError) -> BlobFile {
        do throws(FileSystemError) {
            let file = try blobs.read(source.header.bodyWord, bytes: source.header.storedBlobBytes)
            // Kept open for nobody: the store that unlinks it gets its space back when this body is done with.
            blobs.letGo(file.number)
            return file
        } catch {
            if error.errno == SystemNumber.notFound { throw DiskEngine.gone }
            throw failed(error)
        }
    }

    /// Counts a finding, and says what it is.
    func damaged() -> StoreError {
        counters.entriesCorrupt.add(1, ordering: .relaxed)
        return StoreError(.corrupt, "The entry on the disk is damaged; it stays until its store comes across it.")
    }
}

extension ReaderEngine: BlobHost {
    func failed(_ error: FileSystemError) -> StoreError {
        counters.failures.add(1, ordering: .relaxed)
        return StoreError(disk: error)
    }

    func succeeded() {}

    func readBody<Value: Sendable>(
        _ work: @escaping @Sendable () throws(StoreError) -> Value
    ) async throws(StoreError) -> Value {
        do throws(StoreError) {
            return try await threads.run(.reads, work)
        } catch {
            guard error.code == .closed else { throw error }
            return try work()
        }
    }

    @discardableResult
    func dropDamaged(_ source: RecordSource) -> Bool {
        _ = damaged()
        return true
    }
}

/// Look-ups and pages of a list; both take a new snapshot where a record has moved on.
extension ReaderEngine {
    /// How often one step takes a new snapshot before it takes what has moved for gone.
    private static let tries = 16

    /// The variants of a key, newest first.
    ///
    /// - Throws: `.corrupt` when nothing but damage was found; `.io`, `.closed`.
    func look(_ key: StoreKey) throws(StoreError) -> [StoredEntry] {
        for attempt in 1...Self.tries {
            let snapshot = snapshot
            let handles = SegmentHandles(layout, files)
            var entries: [StoredEntry] = []
            var (isDamaged, hasMoved) = (false, false)
            for row in snapshot.index.rows(of: snapshot.hashing.primary(key)).all {
                switch try read(row, in: snapshot, handles) {
                case .record(let source):
                    if let entry = try snapshot.entry(source, key, seal: seal) { entries.append(entry) }
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

    /// Where a list stands within a shard.
    struct Place: Sendable {
        var fragment: UInt64 = 0
        var variant: UInt32 = 0
    }

    /// A few of the rows of a shard, each with what `work` made of it, and where the next ones begin.
    struct Page<Value: Sendable>: Sendable {
        var values: [Value] = []
        var next: Place?
    }

    /// Hands the next rows of a shard to `work`; one for which it returns nil has moved, and is looked at again in a new snapshot.
    ///
    /// - Parameters:
    ///   - giveUp: what becomes of a row that moves on again and again.
    func page<Value: Sendable>(
        shard number: Int,
        from start: Place,
        limit: Int,
        giveUp: Value? = nil,
        _ work: (IndexRow, StoreSnapshot, SegmentHandles) throws(StoreError) -> Value?
    ) throws(StoreError) -> Page<Value> {
        var page = Page<Value>()
        var place = start
        var tries = Self.tries
        again: while true {
            let snapshot = snapshot
            let handles = SegmentHandles(layout, files)
            let wanted = limit - page.values.count
            let rows = snapshot.rows(shard: number, from: place.fragment, variant: place.variant, limit: wanted)
            for row in rows {
                let value = try work(row, snapshot, handles)
                if value == nil, tries > 0 {
                    tries -= 1
                    try refresh(snapshot)
                    continue again
                }
                tries = Self.tries
                if let value = value ?? giveUp { page.values.append(value) }
                guard let next = row.next else { return page }
                place = Place(fragment: next.fragment, variant: next.variant)
            }
            page.next = rows.count < wanted ? nil : place
            return page
        }
    }
}

/// The segment files that one step of a reader opened; all are closed when it ends.
///
/// None is held for longer: what a store unlinks or uses again while somebody has it open keeps its space.
final class SegmentHandles {
    private static let most = 64

    private let layout: StoreLayout
    private let files: any FileSystem
    private var open: [UInt64: OpenFile] = [:]

    init(_ layout: StoreLayout, _ files: any FileSystem) {
        self.layout = layout
        self.files = files
    }

    deinit {
        for file in open.values { files.close(file) }
    }

    /// Bytes of a segment's file; nil when there is no such file any more.
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

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
        guard snapshot === old else { return }
        let next = try SnapshotTaking(layout: layout, files: files, seal: seal).take()
        guard next.format.secret == secret else {
            state.withLock { $0.isReplaced = true }
            return try checkOpen()
        }
        state.withLock { $0.snapshot = next }
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

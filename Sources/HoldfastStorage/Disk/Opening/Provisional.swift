// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

struct StoreLayout: Sendable {
    static let blobSuffix = ".blob"
    let root: String
    init(root: String) { self.root = root }
    var format: String { root + "/FORMAT" }
    var lock: String { root + "/lock" }
    var segments: String { root + "/segments" }
    var blobs: String { root + "/blobs" }
    func segment(_ number: UInt64) -> String { "\(segments)/\(FileNumber.name(number)).seg" }
    func blob(_ number: UInt64) -> String { "\(blobs)/\(FileNumber.name(number)).blob" }
}
struct StoreDirectory: Sendable {
    let layout: StoreLayout
    let files: any FileSystem
    func write(_ format: StoreFormat) throws(FileSystemError) {
        let temporary = layout.format + ".tmp"
        try files.removeIfThere(temporary)
        let file = try files.open(temporary, .create)
        defer { files.close(file) }
        try files.write(ByteChunk(format.encode()), to: file, at: 0)
        try files.sync(file)
        try files.rename(temporary, to: layout.format)
        try files.syncDirectory(layout.root)
    }
}
struct SegmentReader: Sendable {
    let files: any FileSystem
    let seed: UInt64
    func table(of segment: Segment) throws(FileSystemError) -> (rows: [TableRow], blobs: [BlobRow]) {
        let size = try files.size(of: segment.file.open)
        let last = try files.read(segment.file.open, from: size - 64, count: 64)
        guard let footer = SegmentTable.footer(last, segment: segment.number, seed: seed) else { return ([], []) }
        let bytes = try files.read(segment.file.open, from: footer.tableOffset, count: footer.tableLength)
        return SegmentTable.decode(bytes, footer: footer, seed: seed) ?? ([], [])
    }
}
struct OpenedStore {
    let layout: StoreLayout
    let geometry: Geometry
    let format: StoreFormat
    let index: ShardedIndex
    let slots: SegmentSlots
    let ledger: SpaceLedger
    let log: LogState
    let orders: OrderBook
    let pinned: [EntryIdentity: Int]
    let blobs: BlobFiles
    let lockFile: OpenFile
    let owed: [OwedNotes.Note]
}
extension DiskStore {
    public static func open(
        directory: String,
        capacity: Int,
        maximumEntrySize: Int? = nil,
        fileSystem files: any FileSystem = POSIXFileSystem(),
        seal: (any StoreSeal)? = nil,
        now: StoreInstant
    ) async throws(StoreError) -> DiskStore {
        let threads = try IOThreads()
        do {
            let layout = StoreLayout(root: directory)
            try files.createDirectoryIfMissing(directory)
            try files.createDirectoryIfMissing(layout.segments)
            try files.createDirectoryIfMissing(layout.blobs)
            let geometry = Geometry(capacity: capacity)
            var generator = SystemRandomNumberGenerator()
            let format = StoreFormat.new(segmentSize: geometry.segmentSize, using: &generator)
            let ledger = SpaceLedger(capacity: capacity, used: 32_768)
            let lockFile = try files.open(layout.lock, .readWrite)
            try StoreDirectory(layout: layout, files: files).write(format)
            let opened = OpenedStore(
                layout: layout,
                geometry: geometry,
                format: format,
                index: ShardedIndex(),
                slots: SegmentSlots(),
                ledger: ledger,
                log: LogState(segmentSize: geometry.segmentSize),
                orders: OrderBook(last: 0, marks: PurgeMarks(), hashing: KeyHashing(seed: format.hashSeed)),
                pinned: [:],
                blobs: BlobFiles(files: files, layout: layout, ledger: ledger),
                lockFile: lockFile,
                owed: []
            )
            let engine = DiskEngine(opened, files: files, threads: threads, maximumEntrySize: maximumEntrySize, seal: seal)
            return DiskStore(secret: format.secret, engine: engine)
        } catch {
            throw StoreError(disk: error)
        }
    }
}

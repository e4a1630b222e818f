// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// A file that leaves, and the bytes that come back with it.
struct LeavingFile: Sendable {
    let path: String
    let cost: Int
    /// The number of the body in it; readers may hold one open, and then the bytes come back later.
    var body: UInt64?
}

/// An open body that nobody uses any more.
struct DroppedFile: Sendable {
    let file: OpenFile
    let body: UInt64
}

/// What a ``DiskStore`` knows: entries, writers, files and the bytes they take; it touches no file itself.
///
/// Bytes leave the sum only after their file is gone: every step that drops something returns the files to remove, and counts
/// them on until ``removed(_:)`` is told.
struct DiskState: Sendable {
    typealias Record = KeyFile.Record
    typealias Index = EntryIndex<BodyPlace>

    /// What a group of entries leaves behind.
    struct Taken: Sendable {
        var entries = 0
        var files: [LeavingFile] = []
        /// Whether other variants of the key stay, so that its file has to be written anew.
        var isPartial = false
    }

    /// The step that makes room.
    enum RoomStep: Sendable {
        case reserved
        case remove(Taken)
        case full
    }

    private struct KeyFilePlace: Sendable {
        var number: UInt64
        var cost: Int
    }

    static let maximumVariants = 16
    static let maximumOpenBodies = 512

    let layout: DiskLayout
    let maximumEntrySize: Int
    var index = Index()
    var writers = WritersInFlight()
    var counts = StoreStatistics()
    var rest = RestJudge()
    var isClosed = false
    var leftovers: [LeavingFile] = []
    var dropped: [DroppedFile] = []
    private var latestNow: StoreInstant
    var now: StoreInstant { latestNow }
    private var lastVersion: UInt64 = 0
    private var keyFiles: [StoreKey: KeyFilePlace] = [:]
    private var otherCost: Int
    private var openBodies: [UInt64: Int] = [:]
    private var unlinkedCosts: [UInt64: Int] = [:]

    /// A state without entries; `otherCost` is what lies in the directory beside them.
    init(layout: DiskLayout, capacity: Int, maximumEntrySize: Int?, otherCost: Int, now: StoreInstant) {
        self.layout = layout
        self.otherCost = otherCost
        self.maximumEntrySize = min(max(0, maximumEntrySize ?? capacity / 4), capacity)
        latestNow = now
        counts.capacity = capacity
    }

    /// Bytes a file of this size takes: whole blocks.
    ///
    /// No file counts for more than 64 TiB, so that sums over sparse files of absurd sizes do not overflow.
    static func blocks(_ size: Int) -> Int {
        (min(size, 1 << 46) + 4_095) / 4_096 * 4_096
    }

    var used: Int { index.cost + writers.reserved + otherCost }

    var statistics: StoreStatistics {
        var statistics = counts
        statistics.entryCount = index.count
        statistics.bytesUsed = used
        return statistics
    }

    mutating func note(_ now: StoreInstant) { latestNow = now }

    mutating func failed() {
        counts.failures &+= 1
        rest.failed(now: latestNow)
    }

    mutating func nextVersion() -> StoredEntry.Version {
        lastVersion &+= 1
        return StoredEntry.Version(number: lastVersion)
    }

    func checkOpen() throws(StoreError) {
        if isClosed { throw StoreError(.closed, "The store is closed; open a new one.") }
    }

    /// Refuses when the store is closed or rests; an operation without a clock passes nil.
    mutating func admit(now: StoreInstant?) throws(StoreError) {
        try checkOpen()
        guard rest.admits(now: now) else {
            throw StoreError(.resting, "The disk failed several times in a row; the store tries it again soon.")
        }
        if let now { latestNow = now }
    }

    mutating func lookUp(_ key: StoreKey) -> [StoredEntry] {
        let entries = index.records(of: key).map(\.entry)
        counts.lookups &+= 1
        if !entries.isEmpty {
            counts.lookupsFound &+= 1
            index.touch(key)
        }
        return entries
    }

    static func size(_ key: StoreKey, _ variant: StoreKey, _ description: EntryDescription, body: Int) -> Int {
        key.bytes.count + variant.bytes.count + description.byteCount + body
    }

    func checkSize(_ size: Int) throws(StoreError) {
        guard size <= maximumEntrySize else {
            throw StoreError(.tooLarge, "The entry is larger than the \(maximumEntrySize) bytes that one may take.")
        }
    }
}

// MARK: Groups

extension DiskState {
    /// The number of the file of `key`, if there is one.
    func keyFile(of key: StoreKey) -> UInt64? { keyFiles[key]?.number }

    /// Takes in a group that lies in a key file of `size` bytes, in place of the one before.
    ///
    /// - Returns: the bodies that no record names any more.
    mutating func install(_ key: StoreKey, _ records: [Record], file: UInt64, size: Int) -> [LeavingFile] {
        let bodies = Set(records.map(\.body.file))
        let leaving = index.records(of: key).filter { $0.body.file != 0 && !bodies.contains($0.body.file) }
        let files = leaving.map(bodyFile)
        otherCost += files.reduce(0) { $0 + $1.cost }
        keyFiles[key] = KeyFilePlace(number: file, cost: Self.blocks(size))
        lastVersion = max(lastVersion, records.first?.entry.version.number ?? 0)
        replace(key, records)
        return files
    }

    /// Drops the records of `key` for which `condition` holds; other callers see it at once.
    mutating func take(_ key: StoreKey, where condition: (StoredEntry) -> Bool) -> Taken {
        let records = index.records(of: key)
        let left = records.filter { !condition($0.entry) }
        var taken = Taken(entries: records.count - left.count)
        if taken.entries == 0 { return taken }
        if left.isEmpty, let place = keyFiles.removeValue(forKey: key) {
            // The key's file goes before the bodies it names, so that a crash between leaves orphans and no torn entries.
            taken.files.append(LeavingFile(path: layout.keyFile(place.number), cost: place.cost))
        }
        for record in records where condition(record.entry) && record.body.file != 0 {
            taken.files.append(bodyFile(record))
        }
        taken.isPartial = !left.isEmpty
        otherCost += taken.files.reduce(0) { $0 + $1.cost }
        replace(key, left)
        return taken
    }

    /// Whether a group of this weight may be pinned in place of the one there is.
    func canPin(_ key: StoreKey, cost: Int) -> Bool {
        index.pinnedCost - (index.weight(of: key)?.pinnedCost ?? 0) + cost <= counts.capacity / 2
    }

    /// The cost of `records` in a key file of this size.
    static func cost(_ records: [Record], keyFileSize: Int) -> Int {
        records.reduce(blocks(keyFileSize)) { $0 + blocks($1.entry.bodyLength) }
    }

    private func bodyFile(_ record: Record) -> LeavingFile {
        let cost = Self.blocks(record.entry.bodyLength)
        return LeavingFile(path: layout.bodyFile(record.body.file), cost: cost, body: record.body.file)
    }

    private mutating func replace(_ key: StoreKey, _ records: [Record]) {
        let cost = Self.cost(records, keyFileSize: keyFiles[key]?.cost ?? 0)
        let isPinned = records.contains { $0.entry.isPinned }
        let weight = Index.Weight(
            cost: cost,
            pinnedCost: isPinned ? cost : 0,
            // Look-ups touch all variants of a key alike, so the group leaves as one.
            isEvictable: !isPinned,
            uselessAfter: records.map(\.entry.description.uselessAfter).max() ?? .distantFuture
        )
        index.replace(key, with: records, weight: weight)
    }
}

// MARK: Room

extension DiskState {
    /// Reserves `count` bytes, or says what has to leave first.
    mutating func reserve(_ count: Int) -> RoomStep {
        if count <= counts.capacity - used {
            otherCost += count
            return .reserved
        }
        // Nothing leaves in vain: without hope of enough room all entries stay.
        let fixed = otherCost + writers.reserved + index.pinnedCost
        guard count <= counts.capacity - fixed, let key = index.victim(now: latestNow) else { return .full }
        let taken = take(key) { _ in true }
        counts.entriesEvicted &+= taken.entries
        return .remove(taken)
    }

    /// Counts a file that should have left and could not be removed.
    mutating func keep(_ file: LeavingFile) {
        otherCost += file.cost
        leftovers.append(file)
    }

    /// Gives reserved bytes back.
    mutating func release(_ count: Int) { otherCost -= count }

    /// Turns reserved bytes into a writer's; false when the writer has ended.
    mutating func grant(_ count: Int, to writer: UInt64) -> Bool {
        otherCost -= count
        guard writers[writer] != nil else { return false }
        writers.reserve(count, for: writer)
        return true
    }

    /// Ends a writer whose body stays on the disk for now.
    mutating func endWriter(_ id: UInt64, body: UInt64) -> LeavingFile? {
        guard let writer = writers.end(id), writer.reserved > 0 else { return nil }
        otherCost += writer.reserved
        return LeavingFile(path: layout.bodyFile(body), cost: writer.reserved, body: body)
    }

    /// Notes that a file is gone; the bytes of a body that is held open stay counted.
    mutating func removed(_ file: LeavingFile) {
        if let body = file.body, openBodies[body] != nil {
            unlinkedCosts[body, default: 0] += file.cost
        } else {
            otherCost -= file.cost
        }
    }

    mutating func openedBody(_ number: UInt64) throws(StoreError) {
        guard openBodies.count < Self.maximumOpenBodies || openBodies[number] != nil else {
            throw StoreError(.io, "\(Self.maximumOpenBodies) bodies are open; finish reading some of them.")
        }
        openBodies[number, default: 0] += 1
    }

    mutating func closedBody(_ number: UInt64) {
        let count = (openBodies[number] ?? 0) - 1
        openBodies[number] = count > 0 ? count : nil
        if count <= 0, let cost = unlinkedCosts.removeValue(forKey: number) { otherCost -= cost }
    }
}

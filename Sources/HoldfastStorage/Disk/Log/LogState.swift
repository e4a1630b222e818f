// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Where records go: the open segments, those that are full and wait for their table, and those that have it.
///
/// A value that chooses places and counts; it accesses no file.
struct LogState: Sendable {
    /// A segment that takes records, or took them and still has writes in progress.
    struct Open: Sendable {
        let segment: Segment
        /// Where the next record goes.
        var tail: Int
        var rows: [TableRow] = []
        var blobs: [BlobRow] = []
        /// The bytes of its records' blobs.
        var blobBytes = 0
        var writesInFlight = 0
        /// Rows and blob rows that the table must have room for.
        var promisedRows = 0
        var promisedBlobs = 0

        /// Its table, to be written at an offset.
        func table(at offset: Int, seed: UInt64) -> [UInt8] {
            SegmentTable.encode(rows: rows, blobs: blobs, segment: segment.number, tableOffset: offset, seed: seed)
        }
    }

    /// A segment that has its table.
    struct Sealed: Sendable {
        let segment: Segment
        var blobBytes: Int
        /// How many blobs ``blobBytes`` belong to.
        var blobCount: Int
        /// What the table should contain, if it could not be written.
        var unwritten: Open?
        var isSynced = false
        /// Whether it waits for the sync thread.
        var isSyncDue = false
        /// Whether reclaiming it failed: others are tried first.
        var isStuck = false
        /// Whether its table could not be read either.
        var isUnreadable = false
        /// Whether the sync thread is working on it.
        var isSyncing = false

        /// How much reclaiming it may free.
        var weight: Int { segment.size.addingSaturated(blobBytes) }
    }

    /// The space that a record needs in an open segment.
    struct Request: Sendable {
        let destination: Destination
        let length: Int
        let hasBlob: Bool
    }

    /// Bytes reserved for one record.
    struct Reservation: Sendable {
        let segment: Segment
        let offset: Int
        let length: Int
        /// The highest segment number at that time.
        let horizon: UInt64

        /// Where they begin, as tables and the index state it.
        var unit: UInt32 { UInt32(truncatingIfNeeded: offset / Geometry.unit) }
    }

    /// Who writes to an open segment.
    enum Destination: Int, Sendable, CaseIterable {
        /// Callers: new entries.
        case small
        /// Callers: tombstones, marks, freshened entries of the main log.
        case main
        /// The reclaimer. Callers get nothing of what it needs to finish, see ``SpaceBudget/lent``.
        case carried

        /// The log that its segments belong to.
        var kind: LogKind { self == .small ? .small : .main }

        init(_ kind: LogKind) { self = kind == .small ? .small : .main }
    }

    let segmentSize: Int
    /// The window share with the most hits, see ``WindowTuner/share``.
    var window = WindowTuner.shares[1]
    /// Whether the main log's oldest segment is mostly dead, see ``RetentionPolicy``.
    var isMainDead = false
    /// Whether most of it has to be carried in any case, so that reclaiming it frees little.
    var isMainRequired = false
    /// The highest number that a segment has or will have next.
    var highestNumber: UInt64 = 0
    /// A segment made in advance, so that a put need not wait for one.
    var spare: Segment?
    /// A segment kept for when the reclaimer's open one is full; its bytes are granted, and part of ``roomAhead``.
    var carriedSpare: Segment?
    /// Whether the store is being closed: no more places are reserved.
    var isClosed = false
    /// The open segment of each destination, if any: an array, so that counts change in place.
    private var open: [[Open]] = [[], [], []]
    /// Where only the thread of changes may reserve for now, for the caller whose turn it is.
    var isReserved: [Bool] = [false, false, false]
    private(set) var full: [Open] = []
    private(set) var sealed: [[Sealed]] = [[], []]

    /// The bytes of blobs that make a caller's segment full.
    private let blobLimit: Int
    /// How many segments younger than an open one may be reclaimed before that is closed: as many as a quarter of the store has.
    private let maximumAge: UInt64

    /// - Parameter capacity: the store's capacity; a segment may stand for a 32nd of it, and for at most four segments.
    init(segmentSize: Int, capacity: Int = 0) {
        self.segmentSize = segmentSize
        blobLimit = max(segmentSize, min(4 * segmentSize, capacity / 32))
        maximumAge = UInt64(max(4, capacity / segmentSize / 4))
    }

    /// Reserves bytes in an open segment; nil if there is none or it has no room, or if its room is reserved for another caller.
    mutating func reserve(_ destination: Destination, length: Int, hasBlob: Bool, hasClaim: Bool = false)
        -> Reservation?
    {
        guard hasClaim || !isReserved[destination.rawValue],
            hasRoom(destination, length: length, hasBlob: hasBlob, isReserved: hasClaim)
        else { return nil }
        let index = destination.rawValue
        let tail = open[index][0].tail
        open[index][0].tail = tail + ((length + 15) & ~15)
        open[index][0].promisedRows += 1
        open[index][0].promisedBlobs += hasBlob ? 1 : 0
        open[index][0].writesInFlight += 1
        return Reservation(
            segment: open[index][0].segment,
            offset: tail,
            length: length,
            horizon: highestNumber
        )
    }

    /// Whether the open segment of a log has room for a record, including its row in the table.
    ///
    /// A segment whose blobs weigh as much as several segments also counts as full, so that no segment stands for too much. Room
    /// that was set aside for a record stays available, even if the blobs of earlier reservations turn out to weigh that much
    /// meanwhile.
    func hasRoom(_ destination: Destination, length: Int, hasBlob: Bool, isReserved: Bool = false) -> Bool {
        let index = destination.rawValue
        guard !isClosed, !open[index].isEmpty else { return false }
        let limit = isReserved ? .max : destination == .carried ? 4 * segmentSize : blobLimit
        guard open[index][0].blobBytes < limit else { return false }
        let (rows, blobs) = (open[index][0].promisedRows, open[index][0].promisedBlobs)
        let table = SegmentTable.size(rows: rows + 1, blobs: blobs + (hasBlob ? 1 : 0))
        return open[index][0].tail + ((length + 15) & ~15) + table <= segmentSize
    }

    /// The room left in the reclaimer's open segment and the one kept for it, including the rows of their tables.
    var roomAhead: Int {
        let spare = carriedSpare == nil ? 0 : segmentSize - SegmentHeader.size - SegmentTable.size(rows: 0, blobs: 0)
        guard let mine = open[Destination.carried.rawValue].first else { return spare }
        let table = SegmentTable.size(rows: mine.promisedRows, blobs: mine.promisedBlobs)
        return max(0, segmentSize - mine.tail - table) + spare
    }

    /// The sealed segment that should be reclaimed next.
    var victim: Sealed? {
        let (small, main) = (oldest(.small), oldest(.main))
        // Its tombstones and marks are needed for as long as there is something older: so that has to go first.
        let yields = !isMainRequired || (small?.segment.number ?? .max) > (main?.segment.number ?? 0)
        // Otherwise, what could not be reclaimed waits for everything else.
        if let small, let main, yields || small.isUnreadable, small.isStuck != main.isStuck {
            return small.isStuck ? main : small
        }
        let weights = (small: weight(.small), main: weight(.main))
        let kind = RetentionPolicy.log(
            small: weights.small,
            total: weights.small.addingSaturated(weights.main),
            window: window,
            canTakeSmall: small != nil,
            canTakeMain: main != nil && yields,
            isMainDead: isMainDead
        )
        return kind.flatMap { $0 == .small ? small : main }
    }

    /// The sealed segment that a log gives up next.
    func oldest(_ kind: LogKind) -> Sealed? {
        // One that is being synced cannot be released before that has ended.
        let list = sealed[Int(kind.rawValue)]
        return list.first { !$0.isStuck && !$0.isSyncing } ?? list.first { !$0.isSyncing } ?? list.first
    }

    /// How many segments there are.
    var count: Int { numbers.count }

    /// The sealed segment with the smallest file, if it can be reclaimed now.
    var smallest: Sealed? {
        sealed.joined().filter { !$0.isStuck && !$0.isSyncing }.min { $0.segment.size < $1.segment.size }
    }

    /// Closes open segments that are older than the one to be reclaimed next, by a quarter of the store unless `atOnce`; returns
    /// whether there was one.
    ///
    /// An open segment keeps every tombstone since then alive, so it may not stay open for ever. If each was closed as soon as it is
    /// older, a store whose bytes are mostly in blobs would have many segments that hold next to nothing.
    mutating func closeOlderThanVictim(atOnce: Bool) -> Bool {
        guard let number = victim?.segment.number else { return false }
        let oldest = atOnce ? number : number - min(number, maximumAge)
        let older = Destination.allCases.filter { (open[$0.rawValue].first?.segment.number ?? .max) < oldest }
        for destination in older { close(destination) }
        return !older.isEmpty
    }

    /// Records that a reserved record is written (`row`), or will not be (nil).
    ///
    /// - Returns: whether its segment is full and this was the last write: then it needs its table.
    mutating func finish(_ place: Reservation, row: TableRow?, blob: BlobRow?) -> Bool {
        func note(_ segment: inout Open) {
            segment.writesInFlight -= 1
            if let row { segment.rows.append(row) }
            if let blob {
                segment.blobs.append(blob)
                segment.blobBytes = segment.blobBytes.addingSaturated(Int(clamping: blob.storedBytes))
            }
        }
        for index in open.indices where !open[index].isEmpty && open[index][0].segment === place.segment {
            note(&open[index][0])
            return false
        }
        guard let position = full.firstIndex(where: { $0.segment === place.segment }) else { return false }
        note(&full[position])
        return full[position].writesInFlight == 0
    }

    /// Whether an open segment has records.
    func hasRecords(_ destination: Destination) -> Bool {
        !open[destination.rawValue].isEmpty && open[destination.rawValue][0].promisedRows > 0
    }

    /// Keeps an empty segment for callers. If they have one, it gets a table like a full one: an unknown empty segment would look
    /// like one that lost its table.
    mutating func keepSpare(_ segment: Segment) {
        if spare == nil { spare = segment } else { full.append(Open(segment: segment, tail: SegmentHeader.size)) }
    }

    /// Makes a segment the open one of a destination; the one that was open before is closed.
    mutating func begin(_ segment: Open, destination: Destination, isReserved: Bool = false) {
        close(destination)
        open[destination.rawValue] = [segment]
        self.isReserved[destination.rawValue] = isReserved
    }

    /// Closes an open segment for further records.
    mutating func close(_ destination: Destination) {
        if let mine = open[destination.rawValue].popLast() { full.append(mine) }
    }

    /// Takes the full segments whose writes have ended, to write their tables.
    mutating func takeFull() -> [Open] {
        let ready = full.filter { $0.writesInFlight == 0 }
        full.removeAll { $0.writesInFlight == 0 }
        return ready
    }

    /// Whether a sealed segment has no table because it could not be written.
    var hasUnwrittenTables: Bool { sealed.joined().contains { $0.unwritten != nil } }

    /// Takes the segments whose table could not be written, for another try.
    mutating func takeUnwrittenTables() -> [Open] {
        guard hasUnwrittenTables else { return [] }
        defer { for kind in sealed.indices { sealed[kind].removeAll { $0.unwritten != nil } } }
        return sealed.joined().compactMap(\.unwritten)
    }

    /// Adds a segment that has its table; by number, since that is the order of reclaiming.
    mutating func enter(_ segment: Sealed) {
        let index = Int(segment.segment.kind.rawValue)
        let place = sealed[index].firstIndex { $0.segment.number > segment.segment.number } ?? sealed[index].endIndex
        sealed[index].insert(segment, at: place)
    }

    /// The newest sealed segment of a log.
    func newest(_ kind: LogKind) -> Sealed? {
        sealed[Int(kind.rawValue)].last
    }

    /// Every segment that has its table, oldest first.
    var sealedSegments: [Segment] {
        sealed.joined().map(\.segment).sorted { $0.number < $1.number }
    }

    /// The sealed segment with this number; nil if there is none.
    func sealed(_ number: UInt64) -> Sealed? {
        sealed.joined().first { $0.segment.number == number }
    }

    /// The oldest sealed segment whose file is larger than `size`.
    func oldest(above size: Int) -> Sealed? {
        sealed.joined().filter { $0.segment.size > size }.min { $0.segment.number < $1.segment.number }
    }

    /// Removes a sealed segment.
    mutating func remove(_ segment: Segment) {
        sealed[Int(segment.kind.rawValue)].removeAll { $0.segment === segment }
    }

    /// Records that a segment could not be reclaimed, so that another is tried next time.
    mutating func stuck(_ segment: Segment, isUnreadable: Bool = false) {
        update(segment) {
            $0.isStuck = true
            if isUnreadable { $0.isUnreadable = true }
        }
    }

    private mutating func update(_ segment: Segment, change: (inout Sealed) -> Void) {
        let index = Int(segment.kind.rawValue)
        if let place = sealed[index].firstIndex(where: { $0.segment === segment }) { change(&sealed[index][place]) }
    }

    /// Whether there is a segment that could not be reclaimed completely.
    var hasStuck: Bool { sealed.joined().contains(where: \.isStuck) }

    /// The number of reserved places whose writes have not ended.
    var writesInFlight: Int {
        (open.joined() + full).reduce(0) { $0 + $1.writesInFlight }
    }

    /// Records that the sync thread is done with a segment, and whether its contents would survive a power failure.
    mutating func synced(_ segment: Segment, isDurable: Bool) {
        update(segment) { ($0.isSyncing, $0.isSynced) = (false, isDurable) }
    }

    /// The next segment to sync, if one is waiting; it is then no longer waiting.
    mutating func takeSyncDue() -> Segment? {
        for kind in sealed.indices {
            guard let place = sealed[kind].firstIndex(where: \.isSyncDue) else { continue }
            sealed[kind][place].isSyncDue = false
            sealed[kind][place].isSyncing = true
            return sealed[kind][place].segment
        }
        return nil
    }

    /// The segments that a power failure could still destroy.
    var unsynced: [Segment] {
        sealed.joined().filter { !$0.isSynced }.map(\.segment)
    }

    /// Removes everything, for a purge of everything.
    mutating func removeAll() -> [Segment] {
        let all =
            open.joined().map(\.segment) + full.map(\.segment) + sealed.joined().map(\.segment)
            + [spare, carriedSpare].compactMap { $0 }
        open = [[], [], []]
        full = []
        sealed = [[], []]
        (spare, carriedSpare) = (nil, nil)
        return all
    }

    /// The numbers of all segments that may hold records.
    var numbers: [UInt64] {
        open.joined().map(\.segment.number) + full.map(\.segment.number) + sealed.joined().map(\.segment.number)
    }

    /// The mean size of the blobs of a segment's records, by its slot.
    var meanBlobs: [UInt16: Int] {
        var means: [UInt16: Int] = [:]
        for sealed in sealed.joined() { means[sealed.segment.slot] = sealed.blobBytes / max(1, sealed.blobCount) }
        for open in Array(open.joined()) + full {
            means[open.segment.slot] = open.blobBytes / max(1, open.blobs.count)
        }
        return means
    }

    /// The total weight of a log's sealed and open segments.
    func weight(_ kind: LogKind) -> Int {
        let index = Int(kind.rawValue)
        let sealedWeight = sealed[index].reduce(0) { $0.addingSaturated($1.weight) }
        return (Array(open.joined()) + full).reduce(sealedWeight) {
            $0.addingSaturated($1.segment.kind == kind ? $1.tail.addingSaturated($1.blobBytes) : 0)
        }
    }
}

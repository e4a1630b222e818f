// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// The state of a segment in the list in FORMAT.
enum SegmentState: UInt8, Sendable, Hashable {
    /// It takes records, or its table has not been written yet.
    case open = 1
    /// It has its table.
    case sealed = 2
    /// It contains nothing that is needed: it has no record yet, or all of them are elsewhere. Its file may be gone, or may already
    /// belong to another segment.
    case idle = 3
}

/// A segment in the list in FORMAT.
///
/// 32 bytes within one sector: when written in place, each is either old or new.
struct SegmentRow: Sendable, Hashable {
    static let size = 32

    let number: UInt64
    /// The random number in its header.
    let identity: UInt64
    let epoch: UInt64
    var state: SegmentState

    func encode(seed: UInt64) -> [UInt8] {
        [UInt8](zeroed: Self.size) { row in
            row.put(number, at: 0)
            row.put(identity, at: 8)
            row.put(epoch << 8 | UInt64(state.rawValue), at: 16)
            row.put(HeadHash.of(UnsafeRawBufferPointer(row).part(0..<24), seed: Self.seed(seed)), at: 24)
        }
    }

    fileprivate static func decode(_ row: UnsafeRawBufferPointer, seed: UInt64) -> SegmentRow? {
        guard row.number(at: 24) == HeadHash.of(row.part(0..<24), seed: Self.seed(seed)) else { return nil }
        let word = row.number(at: 16, as: UInt64.self)
        guard let state = SegmentState(rawValue: UInt8(truncatingIfNeeded: word)) else { return nil }
        return SegmentRow(number: row.number(at: 0), identity: row.number(at: 8), epoch: word >> 8, state: state)
    }

    private static func seed(_ seed: UInt64) -> UInt64 { seed ^ 0x5345_474D_454E_5453 }
}

extension SegmentRow {
    init(_ header: SegmentHeader, state: SegmentState) {
        self.init(number: header.number, identity: header.identity, epoch: header.epoch, state: state)
    }
}

/// The file `FORMAT`: two copies of the head, and the list of the segments that must be there.
///
///     0      a copy of the head
///     4096   the other copy
///     8192   the list, 32 bytes a row; zeros: no segment
///
/// Everything is written in place, so that a store whose directory was removed cannot reach the file of the one that replaced it. A
/// head is written to one copy, synced, and then to the other: one of the two is always intact.
struct FormatFile: Sendable, Hashable {
    static let copyOffsets = [0, 4_096]
    static let listOffset = 8_192
    /// No more rows than this are read from any file.
    static let maximumRows = 2 * Geometry.maximumSegments
    static let maximumSize = listOffset + maximumRows * SegmentRow.size

    var format: StoreFormat
    /// The segments by their row; those of an older epoch are no longer listed.
    var rows: [Int: SegmentRow] = [:]
    /// Rows whose checksum is wrong.
    var damagedRows: Set<Int> = []

    /// The file of a new directory.
    init(_ format: StoreFormat) { self.format = format }

    /// The contents of the file; nil if both copies of the head are damaged.
    init?(_ bytes: [UInt8]) {
        let copies = Self.copyOffsets.compactMap { offset in
            StoreFormat.decode(bytes.dropFirst(offset).prefix(StoreFormat.size))
        }
        guard let format = copies.max(by: { $0.generation < $1.generation }) else { return nil }
        self.format = format
        bytes.withUnsafeBytes { file in
            let count = min(Self.maximumRows, max(0, file.count - Self.listOffset) / SegmentRow.size)
            for index in 0..<count {
                let start = Self.listOffset + index * SegmentRow.size
                let row = file.part(start..<(start + SegmentRow.size))
                // A few bits in place of number and identity are damage that costs nothing: a real segment has many.
                if row.part(0..<16).reduce(0, { $0 + $1.nonzeroBitCount }) <= 8 { continue }
                if let segment = SegmentRow.decode(row, seed: format.hashSeed) {
                    if segment.epoch == format.epoch { rows[index] = segment }
                } else {
                    damagedRows.insert(index)
                }
            }
        }
    }

    /// The whole file.
    func encode() -> [UInt8] {
        let highest = (rows.keys.max() ?? -1) + 1
        var bytes = [UInt8](repeating: 0, count: Self.listOffset + highest * SegmentRow.size)
        let head = format.encode()
        for offset in Self.copyOffsets { bytes.replaceSubrange(offset..<(offset + head.count), with: head) }
        for (index, row) in rows {
            let start = Self.listOffset + index * SegmentRow.size
            bytes.replaceSubrange(start..<(start + SegmentRow.size), with: row.encode(seed: format.hashSeed))
        }
        return bytes
    }
}

extension FormatFile {
    /// Whether bytes are the beginning of a FORMAT of any version.
    static func isOurs(_ bytes: [UInt8]) -> Bool {
        bytes.withUnsafeBytes { file in
            copyOffsets.contains { file.count >= $0 + 8 && file.number(at: $0) == StoreFormat.magic }
        }
    }
}

/// FORMAT of an open store. Its file stays open; only one thread at a time makes changes, and none holds the lock while it writes.
final class Manifest: Sendable {
    private struct State {
        var content: FormatFile
        var rowOf: [UInt64: Int]
        var isClosed = false

        /// The lowest unused row.
        var freeRow: Int {
            var index = 0
            while content.rows[index] != nil || content.damagedRows.contains(index) { index += 1 }
            return index
        }
    }

    private let file: OpenFile
    private let files: any FileSystem
    private let state: Mutex<State>
    private let seed: UInt64

    /// Takes over the open file.
    init(_ file: OpenFile, content: FormatFile, files: any FileSystem) {
        self.file = file
        self.files = files
        seed = content.format.hashSeed
        let rowOf = Dictionary(content.rows.map { ($1.number, $0) }, uniquingKeysWith: { first, _ in first })
        state = Mutex(State(content: content, rowOf: rowOf))
    }

    deinit {
        if !state.withLock({ $0.isClosed }) { files.close(file) }
    }

    /// The contents of the file.
    var content: FormatFile { state.withLock { $0.content } }

    /// Closes the file; nothing may be written afterward.
    func close() {
        if !state.withLock({ state in
            defer { state.isClosed = true }
            return state.isClosed
        }) {
            files.close(file)
        }
    }

    // MARK: The head

    /// Writes the head, and makes it and the list durable.
    ///
    /// - Returns: nil if it is durable; otherwise, why a power failure may bring the old one back.
    /// - Throws: if the old one is still in force.
    func write(_ change: (inout StoreFormat) -> Void) throws(FileSystemError) -> FileSystemError? {
        var next = content.format
        change(&next)
        next.generation = next.generation == .max ? .max : next.generation + 1
        let bytes = ByteChunk(next.encode())
        try files.write(bytes, to: file, at: FormatFile.copyOffsets[0])
        let written = next
        // The rows of an older epoch are void.
        let void = state.withLock { state -> Int in
            let isNewEpoch = state.content.format.epoch != written.epoch
            state.content.format = written
            guard isNewEpoch else { return 0 }
            defer { (state.content.rows, state.rowOf) = ([:], [:]) }
            return (state.content.rows.keys.max() ?? -1) + 1
        }
        var failure: FileSystemError?
        do throws(FileSystemError) { try files.sync(file) } catch { failure = error }
        do throws(FileSystemError) {
            try files.write(bytes, to: file, at: FormatFile.copyOffsets[1])
            try clear(0..<void)
            try files.sync(file)
        } catch {
            failure = failure ?? error
        }
        return failure
    }

    // MARK: The list

    /// Makes the list durable.
    func sync() throws(FileSystemError) { try files.sync(file) }

    /// Adds a segment that has its header and its name, and no record yet: idle. One that takes over the file of another also
    /// takes over its row.
    func enter(_ header: SegmentHeader, inPlaceOf old: UInt64? = nil) throws(FileSystemError) {
        try put(SegmentRow(header, state: .idle), inPlaceOf: old)
    }

    /// Records the state of a segment.
    func note(_ number: UInt64, is next: SegmentState) throws(FileSystemError) {
        let found = state.withLock { state in state.rowOf[number].flatMap { state.content.rows[$0] } }
        guard var row = found, row.state != next else { return }
        row.state = next
        try put(row, inPlaceOf: number)
    }

    /// Removes a segment from the list whose file is gone.
    func remove(_ number: UInt64) throws(FileSystemError) {
        let index = state.withLock { state -> Int? in
            guard let index = state.rowOf.removeValue(forKey: number) else { return nil }
            state.content.rows[index] = nil
            return index
        }
        if let index { try clear(index..<(index + 1)) }
    }

    /// Replaces the list with these segments, which opening found.
    func replaceList(_ segments: [SegmentRow]) throws(FileSystemError) {
        let wanted = Dictionary(segments.map { ($0.number, $0) }, uniquingKeysWith: { first, _ in first })
        let (rows, damaged) = state.withLock { ($0.content.rows, $0.content.damagedRows) }
        for row in segments { try put(row, inPlaceOf: row.number) }
        for index in damaged { try clear(index..<(index + 1)) }
        state.withLock { $0.content.damagedRows = [] }
        for row in rows.values where wanted[row.number] == nil { try remove(row.number) }
    }

    private func put(_ row: SegmentRow, inPlaceOf old: UInt64?) throws(FileSystemError) {
        let (index, present) = state.withLock { state in
            let index = old.flatMap { state.rowOf[$0] } ?? state.freeRow
            return (index, state.content.rows[index])
        }
        if present == row { return }
        do throws(FileSystemError) {
            try files.write(ByteChunk(row.encode(seed: seed)), to: file, at: Self.offset(index))
        } catch {
            // A partly written row would be taken for that of a lost segment.
            let before = present?.encode(seed: seed) ?? [UInt8](repeating: 0, count: SegmentRow.size)
            try? files.write(ByteChunk(before), to: file, at: Self.offset(index))
            throw error
        }
        state.withLock { state in
            if let old = state.content.rows[index] { state.rowOf[old.number] = nil }
            state.content.rows[index] = row
            state.rowOf[row.number] = index
        }
    }

    /// If this is interrupted, the row has no number and is ignored.
    private func clear(_ rows: Range<Int>) throws(FileSystemError) {
        guard !rows.isEmpty else { return }
        let zeros = ByteChunk([UInt8](repeating: 0, count: rows.count * SegmentRow.size))
        try files.write(zeros, to: file, at: Self.offset(rows.lowerBound))
    }

    private static func offset(_ index: Int) -> Int { FormatFile.listOffset + index * SegmentRow.size }
}

/// The head of the file `FORMAT`: what must be known about a directory before any of its other files can be read.
///
/// 256 bytes, of which ``FormatFile`` has two copies. Every number in it is a lower bound that may lag behind the segments.
struct StoreFormat: Sendable, Hashable {
    /// The version of the disk format that this code reads and writes.
    static let version: UInt32 = 3
    /// The size of a copy.
    static let size = 256
    /// The longest boot identity that is stored.
    static let bootIdentityLimit = 64

    private static let secretLength = 32
    /// `HOLDFAST`, the first bytes of the file in every version.
    static let magic: UInt64 = 0x5453_4146_444C_4F48
    private static let hashSeedSeed: UInt64 = 0x484F_4C44

    /// 32 random bytes from which ``hashSeed`` is derived.
    var secret: [UInt8]
    /// The size of a segment's file in bytes.
    var segmentSize: Int
    /// Segments of a lower epoch are void: purging everything raises it.
    var epoch: UInt64 = 1
    /// Entries of an order below this must be revalidated before they are used.
    var suspectBefore: UInt64 = 0
    /// No order number at or above this had been used when the file was written; the segments may contain higher ones.
    var nextOrder: UInt64 = 1
    /// Whether the store was closed and nothing was written since.
    var isClean = false
    /// The system's boot identity when the file was written; empty if the system has none, at most 64 bytes.
    var bootIdentity: [UInt8] = []
    /// How often the head was written: of two copies, the one with the higher number is in force.
    var generation: UInt64 = 1

    /// The format of a new directory, in epoch 1, with a secret from `generator`.
    static func new(segmentSize: Int, using generator: inout some RandomNumberGenerator) -> StoreFormat {
        StoreFormat(
            secret: (0..<secretLength).map { _ in UInt8.random(in: .min ... .max, using: &generator) },
            segmentSize: segmentSize
        )
    }

    /// The seed of every hash and checksum in the directory's other files.
    var hashSeed: UInt64 {
        HeadHash.of(secret, seed: Self.hashSeedSeed)
    }

    /// One copy; a boot identity beyond 64 bytes is cut.
    func encode() -> [UInt8] {
        precondition(secret.count == Self.secretLength, "a secret of \(secret.count) bytes instead of 32")
        let identity = bootIdentity.prefix(Self.bootIdentityLimit)
        return [UInt8](zeroed: Self.size) { file in
            file.put(Self.magic, at: 0)
            file.put(Self.version, at: 8)
            file.put(UInt32(isClean ? 1 : 0), at: 12)
            secret.withUnsafeBytes { file.put($0, at: 16) }
            file.put(UInt64(clamping: segmentSize), at: 48)
            file.put(epoch, at: 56)
            file.put(suspectBefore, at: 64)
            file.put(nextOrder, at: 72)
            file.put(UInt8(truncatingIfNeeded: identity.count), at: 80)
            identity.withUnsafeBytes { file.put($0, at: 81) }
            file.put(generation, at: 152)
            file.put(HeadHash.of(UnsafeRawBufferPointer(file).part(0..<248), seed: 0), at: 248)
        }
    }

    /// The contents of a copy; nil if it is damaged, cut off, of another version, or has an impossible segment size.
    static func decode(_ bytes: some Collection<UInt8>) -> StoreFormat? {
        Array(bytes).withUnsafeBytes { file in
            guard file.count == size,
                file.number(at: 0) == magic,
                file.number(at: 8) == version,
                file.number(at: 248) == HeadHash.of(file.part(0..<248), seed: 0)
            else { return nil }
            let flags = file.number(at: 12, as: UInt32.self)
            let identityLength = Int(file[80])
            guard flags <= 1,
                let segmentSize = Int(exactly: file.number(at: 48, as: UInt64.self)),
                segmentSize >= Geometry.minimumSegmentSize,
                segmentSize % Geometry.page == 0,
                UInt64(segmentSize) / UInt64(Geometry.unit) <= UInt64(UInt32.max),
                identityLength <= bootIdentityLimit,
                file.isZero((81 + identityLength)..<152),
                file.isZero(160..<248)
            else { return nil }
            return StoreFormat(
                secret: Array(file[16..<48]),
                segmentSize: segmentSize,
                epoch: file.number(at: 56),
                suspectBefore: file.number(at: 64),
                nextOrder: file.number(at: 72),
                isClean: flags == 1,
                bootIdentity: Array(file[81..<(81 + identityLength)]),
                generation: file.number(at: 152)
            )
        }
    }
}

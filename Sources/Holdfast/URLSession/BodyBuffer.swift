// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Dispatch
internal import Foundation
internal import HoldfastStorage
private import Synchronization

/// The part of a response body that has arrived and has not been read yet: in memory up to a limit, beyond it in a spill file.
///
/// It keeps the counts and the bytes in memory; its owner writes and reads the file. Bytes in memory are always older than bytes in
/// the file: once something was spilled, everything that arrives is spilled until the reader has caught up.
struct BodyBuffer {
    /// Where arriving bytes go.
    enum Placement: Equatable {
        /// They were taken into memory.
        case memory
        /// They must be written to the file at this offset, and reported with ``spilled(_:)``.
        case spill(offset: Int)
        /// They exceed the limit of the file.
        case refused
    }

    /// What a reader gets next.
    enum Supply: Equatable {
        case chunk(ByteChunk)
        /// Bytes of the file, to be reported with ``readBack(_:)`` after they were read.
        case spilled(offset: Int, count: Int)
        case empty
    }

    private static let readSize = 256 << 10
    private let memoryLimit: Int
    private let diskLimit: Int
    private var chunks: [ByteChunk] = []
    private var firstChunk = 0
    private var bytesInMemory = 0
    private var reserved = 0
    private var written = 0
    private var consumed = 0

    init(memoryLimit: Int, diskLimit: Int) {
        self.memoryLimit = memoryLimit
        self.diskLimit = diskLimit
    }

    /// Finds the place of `chunk`; bytes are placed in the order in which they arrived.
    mutating func place(_ chunk: ByteChunk) -> Placement {
        if reserved == 0 && chunk.count <= memoryLimit - bytesInMemory {
            chunks.append(chunk)
            bytesInMemory += chunk.count
            return .memory
        }
        guard chunk.count <= diskLimit - (reserved - consumed) else { return .refused }
        defer { reserved += chunk.count }
        return .spill(offset: reserved)
    }

    /// That many of the bytes for which ``place(_:)`` returned an offset have been written.
    mutating func spilled(_ count: Int) {
        written += count
    }

    /// What to read now; bytes in memory are removed, bytes in the file stay until ``readBack(_:)``.
    mutating func next() -> Supply {
        if firstChunk < chunks.count {
            let chunk = chunks[firstChunk]
            chunks[firstChunk] = ByteChunk()
            firstChunk += 1
            bytesInMemory -= chunk.count
            if firstChunk == chunks.count {
                chunks.removeAll(keepingCapacity: true)
                firstChunk = 0
            }
            return .chunk(chunk)
        }
        guard consumed < written else { return .empty }
        return .spilled(offset: consumed, count: min(written - consumed, BodyBuffer.readSize))
    }

    /// That many bytes of the file were read.
    ///
    /// A file that has been read to its end, with no write in progress, is reused from its start.
    mutating func readBack(_ count: Int) {
        consumed += count
        guard consumed == reserved else { return }
        (reserved, written, consumed) = (0, 0, 0)
    }

    /// Drops all bytes and accepts all further ones: for a body that nobody will read.
    mutating func removeAll() {
        self = BodyBuffer(memoryLimit: memoryLimit, diskLimit: diskLimit)
    }
}

/// A file for bytes that do not fit into memory, removed from its directory as soon as it is open.
///
/// It consists of parts, so that the space of what was read is freed before the last byte has arrived: otherwise, a long download
/// would need its space twice. One thread writes and one reads. All space is freed with the last reference, also after a crash.
final class SpillFile: Sendable {
    private static let defaultPartSize = 64 << 20
    private static let files = POSIXFileSystem()
    private let partSize: Int
    private let parts = Mutex<[Int: Part]>([:])
    private let queue = DispatchQueue(label: "holdfast.spill-file")

    /// Makes a file in the temporary directory, readable by this user only. Blocks.
    init(partSize: Int = SpillFile.defaultPartSize) throws {
        self.partSize = partSize
        _ = try part(0)
    }

    /// How many parts there are now.
    var partCount: Int { parts.withLock { $0.count } }

    /// Writes all of `chunk`. Blocks; not for threads of the cooperative pool.
    func write(_ chunk: ByteChunk, at offset: Int) throws {
        var done = 0
        for (index, start, count) in pieces(of: chunk.count, at: offset) {
            try part(index).write(chunk[done..<(done + count)], at: start)
            done += count
        }
    }

    /// Reads `count` bytes on the file's own queue and passes them to `completion` there; bytes can be read once.
    func read(_ count: Int, at offset: Int, completion: @escaping @Sendable (Result<ByteChunk, any Error>) -> Void) {
        queue.async {
            let result = Result {
                var bytes: [UInt8] = []
                for (index, start, count) in self.pieces(of: count, at: offset) {
                    let piece = try self.part(index).read(count, at: start)
                    guard piece.count == count else { throw CocoaError(.fileReadCorruptFile) }
                    bytes = bytes.isEmpty ? piece : bytes + piece
                }
                return ByteChunk(bytes)
            }
            let first = (offset + count) / self.partSize
            self.parts.withLock { parts in parts = parts.filter { $0.key >= first } }
            completion(result)
        }
    }

    /// The parts that contain these bytes, and where in them.
    private func pieces(of count: Int, at offset: Int) -> [(index: Int, start: Int, count: Int)] {
        var pieces: [(Int, Int, Int)] = []
        var position = offset
        while position < offset + count {
            let start = position % partSize
            let length = min(partSize - start, offset + count - position)
            pieces.append((position / partSize, start, length))
            position += length
        }
        return pieces
    }

    private func part(_ index: Int) throws -> Part {
        try parts.withLock { parts in
            if let part = parts[index] { return part }
            let part = try Part()
            parts[index] = part
            return part
        }
    }

    /// A file without a name.
    private final class Part: Sendable {
        private let file: OpenFile

        init() throws {
            // A name that nobody can guess.
            let name = "holdfast-\(UUID().uuidString)"
            let path = FileManager.default.temporaryDirectory.appendingPathComponent(name).path
            file = try SpillFile.files.open(path, .create)
            try? SpillFile.files.remove(path)
        }

        deinit { SpillFile.files.close(file) }

        func write(_ chunk: ByteChunk, at offset: Int) throws {
            try SpillFile.files.write(chunk, to: file, at: offset)
        }

        func read(_ count: Int, at offset: Int) throws -> [UInt8] {
            try SpillFile.files.read(file, from: offset, count: count)
        }
    }
}

/// A named file that is removed explicitly, or with its last reference.
final class TemporaryFile: Sendable {
    private let file: DownloadFile

    private init(_ file: DownloadFile) { self.file = file }

    deinit { try? FileManager.default.removeItem(at: url) }

    /// Where it is.
    var url: URL { file.url }

    /// A new file with these first bytes in the temporary directory, readable by this user only.
    static func containing(_ chunks: [ByteChunk]) async throws -> TemporaryFile {
        let file = TemporaryFile(try await .make(in: FileManager.default.temporaryDirectory))
        for chunk in chunks { try await file.append(chunk) }
        return file
    }

    /// Adds bytes at the end, off the cooperative pool.
    func append(_ chunk: ByteChunk) async throws { try await file.append(chunk) }

    /// Removes the file from its directory, off the cooperative pool; open handles can still read it.
    func remove() async { await file.remove() }
}

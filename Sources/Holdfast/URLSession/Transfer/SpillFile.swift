// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Dispatch
internal import Foundation
internal import HoldfastStorage
private import Synchronization

/// A file for bytes that do not fit into memory, removed from its directory as soon as it is open.
///
/// It consists of parts, so that the space of what was read is free again before the last byte has come: a long download would take it
/// twice otherwise. One thread writes and one reads. All of the space is free again when the last reference is gone, also after a
/// crash.
final class SpillFile: Sendable {
    private static let defaultPartSize = 64 << 20
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
            let writer = try part(index).writer
            try writer.seek(toOffset: UInt64(start))
            try writer.write(contentsOf: Data(chunk[done..<(done + count)]))
            done += count
        }
    }

    /// Reads `count` bytes on a queue of the file's own and hands them to `completion` there; they are read once.
    func read(_ count: Int, at offset: Int, _ completion: @escaping @Sendable (Result<ByteChunk, any Error>) -> Void) {
        queue.async {
            let result = Result {
                var data = Data()
                for (index, start, count) in self.pieces(of: count, at: offset) {
                    let reader = try self.part(index).reader
                    try reader.seek(toOffset: UInt64(start))
                    let piece = try reader.read(upToCount: count) ?? Data()
                    guard piece.count == count else { throw CocoaError(.fileReadCorruptFile) }
                    data = data.isEmpty ? piece : data + piece
                }
                return ByteChunk(copying: data)
            }
            let first = (offset + count) / self.partSize
            self.parts.withLock { parts in parts = parts.filter { $0.key >= first } }
            completion(result)
        }
    }

    /// The parts that hold so many bytes, and where these stand in them.
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

    /// A file without a name, with a handle to write by and one to read by, because a handle has one position.
    private final class Part: Sendable {
        let writer: FileHandle
        let reader: FileHandle

        init() throws {
            let url = TemporaryFile.freshURL()
            let path = url.path
            guard FileManager.default.createFile(atPath: path, contents: nil, attributes: [.posixPermissions: 0o600])
            else {
                throw CocoaError(.fileWriteUnknown, userInfo: [NSFilePathErrorKey: path])
            }
            defer { try? FileManager.default.removeItem(at: url) }
            writer = try FileHandle(forWritingTo: url)
            reader = try FileHandle(forReadingFrom: url)
        }

        deinit {
            try? writer.close()
            try? reader.close()
        }
    }
}

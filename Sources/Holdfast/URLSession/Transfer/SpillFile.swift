// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Dispatch
internal import Foundation
internal import HoldfastStorage

/// A file for bytes that do not fit into memory, removed from its directory as soon as it is open.
///
/// One thread writes and one reads, each through a handle of its own, because a handle has one position. The file's space is
/// free again when the last reference is gone, also after a crash.
final class SpillFile: Sendable {
    private let writer: FileHandle
    private let reader: FileHandle
    private let queue = DispatchQueue(label: "holdfast.spill-file")

    /// Makes a file in the temporary directory, readable by this user only. Blocks.
    init() throws {
        let url = TemporaryFile.freshURL()
        let path = url.path
        guard FileManager.default.createFile(atPath: path, contents: nil, attributes: [.posixPermissions: 0o600]) else {
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

    /// Writes all of `chunk`. Blocks; not for threads of the cooperative pool.
    func write(_ chunk: ByteChunk, at offset: Int) throws {
        try writer.seek(toOffset: UInt64(offset))
        try writer.write(contentsOf: Data(chunk))
    }

    /// Reads `count` bytes on a queue of the file's own and hands them to `completion` there.
    func read(_ count: Int, at offset: Int, _ completion: @escaping @Sendable (Result<ByteChunk, any Error>) -> Void) {
        queue.async {
            completion(
                Result {
                    try self.reader.seek(toOffset: UInt64(offset))
                    let data = try self.reader.read(upToCount: count) ?? Data()
                    guard data.count == count else { throw CocoaError(.fileReadCorruptFile) }
                    return ByteChunk(copying: data)
                }
            )
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Dispatch
internal import Foundation
internal import HoldfastStorage
private import Synchronization

/// A named file that is removed when it is told to be, or with its last reference.
final class TemporaryFile: Sendable {
    /// Where it lies.
    let url: URL
    private let queue = DispatchQueue(label: "holdfast.temporary-file")
    /// Open from the first write on.
    private let writer = Mutex<FileHandle?>(nil)

    private init() {
        url = TemporaryFile.freshURL()
    }

    deinit {
        try? writer.withLock { $0 }?.close()
        try? FileManager.default.removeItem(at: url)
    }

    /// A new file with these first bytes in the temporary directory, readable by this user only.
    static func containing(_ chunks: [ByteChunk]) async throws -> TemporaryFile {
        let file = TemporaryFile()
        for chunk in chunks { try await file.append(chunk) }
        return file
    }

    /// Adds bytes at the end, off the cooperative pool.
    func append(_ chunk: ByteChunk) async throws {
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            queue.async {
                continuation.resume(with: Result { try self.write(chunk) })
            }
        }
    }

    /// Takes the file out of its directory, off the cooperative pool; what has it open keeps its bytes.
    func remove() async {
        await withCheckedContinuation { continuation in
            queue.async {
                try? FileManager.default.removeItem(at: self.url)
                continuation.resume()
            }
        }
    }

    /// Blocks; runs on the queue, so one write after another.
    private func write(_ chunk: ByteChunk) throws {
        let writer = try writer.withLock { $0 } ?? open()
        try writer.write(contentsOf: Data(chunk))
    }

    private func open() throws -> FileHandle {
        let path = url.path
        guard FileManager.default.createFile(atPath: path, contents: nil, attributes: [.posixPermissions: 0o600]) else {
            throw CocoaError(.fileWriteUnknown, userInfo: [NSFilePathErrorKey: path])
        }
        let opened = try FileHandle(forWritingTo: url)
        writer.withLock { $0 = opened }
        return opened
    }

    /// A name that nobody can guess.
    static func freshURL() -> URL {
        FileManager.default.temporaryDirectory.appendingPathComponent("holdfast-\(UUID().uuidString)")
    }
}

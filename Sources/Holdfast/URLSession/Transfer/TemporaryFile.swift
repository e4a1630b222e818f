// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Dispatch
internal import Foundation
internal import HoldfastStorage

/// A named file that is removed with its last reference.
final class TemporaryFile: Sendable {
    /// Where it lies.
    let url: URL
    private let queue = DispatchQueue(label: "holdfast.temporary-file")
    private let writer: FileHandle

    /// Makes a file in the temporary directory, readable by this user only. Blocks.
    init() throws {
        url = TemporaryFile.freshURL()
        let path = url.path
        guard FileManager.default.createFile(atPath: path, contents: nil, attributes: [.posixPermissions: 0o600]) else {
            throw CocoaError(.fileWriteUnknown, userInfo: [NSFilePathErrorKey: path])
        }
        writer = try FileHandle(forWritingTo: url)
    }

    deinit {
        try? writer.close()
        try? FileManager.default.removeItem(at: url)
    }

    /// A new file with these first bytes, made off the cooperative pool.
    static func containing(_ chunks: [ByteChunk]) async throws -> TemporaryFile {
        let file: TemporaryFile = try await withCheckedThrowingContinuation { continuation in
            DispatchQueue.global().async {
                continuation.resume(with: Result { try TemporaryFile() })
            }
        }
        for chunk in chunks { try await file.append(chunk) }
        return file
    }

    /// Adds bytes at the end, off the cooperative pool.
    func append(_ chunk: ByteChunk) async throws {
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            queue.async {
                continuation.resume(with: Result { try self.writer.write(contentsOf: Data(chunk)) })
            }
        }
    }

    /// A name that nobody can guess.
    static func freshURL() -> URL {
        FileManager.default.temporaryDirectory.appendingPathComponent("holdfast-\(UUID().uuidString)")
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastStorage
private import Synchronization

/// A file on its way into a request, opened and measured before anything is sent.
///
/// What was announced is sent or the exchange is broken off: a file that grows or shrinks meanwhile fails.
final class UploadFile: Sendable {
    /// Where it lies, symbolic links being followed.
    let url: URL
    /// Its length in bytes when it was opened.
    let count: Int
    private let files: any FileSystem
    private let file: OpenFile
    private let firstFailure = Mutex<(any Error)?>(nil)

    /// Opens a regular file. Blocks.
    private init(_ url: URL, on files: any FileSystem) throws {
        guard url.isFileURL else { throw URLError(.unsupportedURL) }
        // Links are followed here: the file system follows none, and Foundation on Linux takes the length of a link for that of
        // its file.
        self.url = url.resolvingSymlinksInPath()
        self.files = files
        let path = self.url.path
        // Opening what is no file may have effects of its own.
        guard try files.attributes(of: path).kind == .file else { throw URLError(.fileIsDirectory) }
        file = try files.open(path, .read)
        do {
            count = try files.size(of: file)
        } catch {
            // Nobody else will: an initializer that throws has no deinitializer.
            files.close(file)
            throw error
        }
    }

    deinit { files.close(file) }

    /// Opens a regular file, off the cooperative pool.
    static func open(_ url: URL, on files: any FileSystem = POSIXFileSystem()) async throws -> UploadFile {
        try await BlockingWork.run { try UploadFile(url, on: files) }
    }

    /// Why it could not be read to its end as it was when it was opened.
    var failure: (any Error)? { firstFailure.withLock { $0 } }

    /// Reads the bytes from `offset` on, as many as `buffer` takes. Blocks.
    ///
    /// - Returns: how many were read, 0 at the end; nil when the file is not what it was, or cannot be read, see ``failure``.
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) -> Int? {
        let wanted = min(buffer.count, count - offset)
        guard wanted > 0 else { return 0 }
        do {
            let bytes = try files.read(file, from: offset, count: wanted)
            // The last bytes leave only when no more have come, or a part of the file would pass for the whole.
            let isLast = offset + wanted == count
            guard bytes.count == wanted, try !isLast || files.size(of: file) == count else {
                throw ChangedFile(count: count)
            }
            buffer.copyBytes(from: bytes)
            return wanted
        } catch {
            firstFailure.withLock { $0 = $0 ?? error }
            return nil
        }
    }
}

/// A file that grew or shrank while it was sent.
private struct ChangedFile: Error, CustomStringConvertible {
    let count: Int

    var description: String { "a file of \(count) bytes changed its length while it was sent" }
}

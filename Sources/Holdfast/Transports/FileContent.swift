// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

package import Foundation
package import HoldfastStorage
private import Synchronization

/// A file read in pieces, off the cooperative pool and the event loops.
package final class FileContent: ByteSource {
    private static let pieceLength = 128 << 10

    /// Its length in bytes when it was opened.
    package let length: Int
    private let file: Mutex<FileHandle?>

    private init(_ file: FileHandle, length: Int) {
        self.file = Mutex(file)
        self.length = length
    }

    /// Opens a regular file, off the cooperative pool.
    package static func open(_ url: URL) async throws -> FileContent {
        try await BlockingWork.run {
            // What is no file may block, or have effects, when it is opened.
            let attributes = try FileManager.default.attributesOfItem(atPath: url.resolvingSymlinksInPath().path)
            guard attributes[.type] as? FileAttributeType == .typeRegular else {
                throw CocoaError(.fileReadUnknown)
            }
            let file = try FileHandle(forReadingFrom: url)
            let length = try file.seekToEnd()
            try file.seek(toOffset: 0)
            return FileContent(file, length: Int(clamping: length))
        }
    }

    package func next() async throws -> ByteChunk? {
        try Task.checkCancellation()
        guard let file = file.withLock({ $0 }) else { throw CancellationError() }
        let data = try await BlockingWork.run { try file.read(upToCount: FileContent.pieceLength) }
        guard let data, !data.isEmpty else { return nil }
        return ByteChunk(copying: data)
    }

    package func cancel() {
        // The last one who holds the handle closes it, so a read that is under way ends in good order.
        file.withLock { $0 = nil }
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

package import Foundation
internal import HoldfastSemantics
package import HoldfastStorage
private import Synchronization

/// A file that content is written to, chunk by chunk, such as that of a download; readable by this user only.
package final class DownloadFile: Sendable {
    /// Where it is.
    package let url: URL
    private let files: any FileSystem
    private let file: OpenFile
    private let written = Mutex(0)

    private init(in directory: URL, on files: any FileSystem) throws {
        url = directory.appendingPathComponent("holdfast-download-\(UUID().uuidString)")
        self.files = files
        file = try files.open(url.path, .create)
    }

    deinit { files.close(file) }

    /// Makes a new file in `directory`, off the cooperative pool; nobody can guess its name.
    ///
    /// - Throws: ``ServiceError`` `.other`, with the error of the file system as its cause.
    package static func make(
        in directory: URL,
        on files: any FileSystem = POSIXFileSystem()
    ) async throws -> DownloadFile {
        try await blocking { try DownloadFile(in: directory, on: files) }
    }

    /// How many bytes were written.
    package var count: Int { written.withLock { $0 } }

    /// Adds bytes at the end, off the cooperative pool.
    ///
    /// - Throws: ``ServiceError`` `.other`, with the error of the file system as its cause.
    package func append(_ chunk: ByteChunk) async throws {
        try await DownloadFile.blocking(at: .bytesReceived) { [self] in
            try files.write(chunk, to: file, at: count)
            written.withLock { $0 += chunk.count }
        }
    }

    /// Removes the file from its directory, off the cooperative pool, if it is still there.
    package func remove() async {
        _ = try? await DownloadFile.blocking { [self] in try files.remove(url.path) }
    }

    /// Rejects content that ended before its Content-Length (RFC 9112 §8), if a transport has not.
    package func checkLength(by response: Response, method: String? = nil) throws {
        // What the transport says counts first: a 204 has no content, whatever its fields say (RFC 9112 §6.3).
        let length = response.body.length ?? (response.contentDecoded ? nil : response.head.contentLength)
        try response.checkEnd(after: count, of: length, method: method)
    }

    private static func blocking<Success: Sendable>(
        at progress: TransportProgress = .headReceived,
        _ work: @escaping @Sendable () throws -> Success
    ) async throws -> Success {
        do {
            return try await BlockingWork.run(work)
        } catch let error as FileSystemError {
            throw ServiceError(
                .other,
                "The file could not be written to its directory. Check its free space and permissions.",
                cause: error,
                progress: progress
            )
        }
    }
}

extension Response {
    /// Rejects content that ended before its length, if a transport has not, or if there were earlier readers.
    package func checkEnd(after count: Int, of length: Int?, method: @autoclosure () -> String?) throws {
        guard let length, count < length, status != 304, method() != "HEAD" else { return }
        throw ServiceError(
            .connectionLost,
            "The content ended after \(count) of \(length) bytes: the server sent no more, or a hook has read it already. "
                + "Send the request again; a hook that reads a body must put another one in its place.",
            progress: .headReceived,
            response: self
        )
    }
}

/// Runs file calls, which may block, on at most four threads of their own, so that slow disks delay only each other.
package enum BlockingWork {
    private static let queue: OperationQueue = {
        let queue = OperationQueue()
        queue.name = "holdfast.files"
        queue.maxConcurrentOperationCount = 4
        // Calls wait for it; an Apple system would choose the background, which it may delay.
        queue.qualityOfService = .userInitiated
        return queue
    }()

    /// Runs `work` on one of the threads, without waiting for it.
    package static func enqueue(_ work: @escaping @Sendable () -> Void) {
        queue.addOperation(work)
    }

    /// Runs `work` on one of the threads and waits for it.
    package static func run<Success: Sendable>(
        _ work: @escaping @Sendable () throws -> Success
    ) async throws -> Success {
        try await withCheckedThrowingContinuation { continuation in
            enqueue { continuation.resume(with: Result { try work() }) }
        }
    }
}

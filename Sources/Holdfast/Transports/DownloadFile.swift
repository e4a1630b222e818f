// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

package import Foundation
internal import HoldfastSemantics
package import HoldfastStorage
private import Synchronization

/// A file that a download is written to, chunk by chunk, readable by this user only.
package final class DownloadFile: Sendable {
    /// Where it lies.
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

    /// Makes a new file in `directory`, off the cooperative pool; its name is one that nobody can guess.
    ///
    /// - Throws: ``ServiceError`` `.other`, the error of the file system being its cause.
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
    /// - Throws: ``ServiceError`` `.other`, the error of the file system being its cause.
    package func append(_ chunk: ByteChunk) async throws {
        try await DownloadFile.blocking(at: .bytesReceived) { [self] in
            try files.write(chunk, to: file, at: count)
            written.withLock { $0 += chunk.count }
        }
    }

    /// Takes the file out of its directory, off the cooperative pool; no matter whether it is still there.
    package func remove() async {
        _ = try? await DownloadFile.blocking { [self] in try files.remove(url.path) }
    }

    /// Refuses content that ended before its Content-Length (RFC 9112 §8), where a transport has not.
    package func checkLength(by response: Response, method: String? = nil) throws {
        guard method != "HEAD", response.status != 304, !response.contentDecoded,
            let length = response.head.contentLength,
            count < length
        else { return }
        throw ServiceError(
            .connectionLost,
            "The content ended after \(count) of \(length) bytes. Send the request again.",
            progress: .headReceived,
            response: response
        )
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
                "The download could not be written to its directory. Check its free space and permissions.",
                cause: error,
                progress: progress
            )
        }
    }
}

/// Runs file calls, which may block, on threads that may be blocked: four at most, so that slow disks hold up one another only.
package enum BlockingWork {
    private static let queue: OperationQueue = {
        let queue = OperationQueue()
        queue.name = "holdfast.files"
        queue.maxConcurrentOperationCount = 4
        // Calls wait for it; an Apple system's own choice would be the background, which it may hold back.
        queue.qualityOfService = .userInitiated
        return queue
    }()

    /// Runs `work` on one of the threads, some time.
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

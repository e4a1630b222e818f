// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

private import Dispatch
package import Foundation
package import HoldfastStorage
private import Synchronization

#if canImport(FoundationNetworking)
    package import FoundationNetworking
#endif

/// Bytes in memory, returned once.
package final class BytesContent: ByteSource {
    private let rest: Mutex<ByteChunk?>

    /// A source of one chunk, or of none if there are no bytes.
    package init(_ bytes: ByteChunk) { rest = Mutex(bytes.isEmpty ? nil : bytes) }

    package func next() async throws -> ByteChunk? {
        rest.withLock { rest in
            defer { rest = nil }
            return rest
        }
    }

    package func cancel() { rest.withLock { $0 = nil } }
}

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
            // Opening something that is not a file may block or have effects.
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
        // The last owner of the handle closes it, so a read in progress still ends properly.
        file.withLock { $0 = nil }
    }
}

/// The `httpBodyStream` of a request, read on demand by its own thread: reading an `InputStream` blocks, and a stream belongs to
/// one thread.
package final class StreamContent: ByteSource {
    private let handoff = ChunkHandoff()
    private let wanted = DispatchSemaphore(value: 0)

    /// - Parameter request: a request with a stream; nothing is read before the first call of ``next()``.
    package init(_ request: URLRequest) {
        let (handoff, wanted) = (handoff, wanted)
        Thread.detachNewThread {
            wanted.wait()
            StreamContent.feed(request, handoff: handoff, wanted: wanted)
        }
    }

    deinit { cancel() }

    package func next() async throws -> ByteChunk? {
        let wanted = wanted
        return try await handoff.pull { wanted.signal() }
    }

    package func cancel() {
        handoff.cancel()
        wanted.signal()
    }

    private static func feed(_ request: URLRequest, handoff: ChunkHandoff, wanted: DispatchSemaphore) {
        guard !handoff.isOver else { return }
        guard let stream = request.httpBodyStream else { return handoff.end(nil) }
        stream.open()
        defer { stream.close() }
        let capacity = 64 << 10
        while !handoff.isOver {
            var outcome = 0
            let bytes = [UInt8](unsafeUninitializedCapacity: capacity) { buffer, count in
                guard let base = buffer.baseAddress else { return }
                outcome = stream.read(base, maxLength: capacity)
                count = max(outcome, 0)
            }
            // Foundation on Linux traps if it is asked for a stream's error and there is none, which happens for some failures.
            guard outcome >= 0 else { return handoff.end(CocoaError(.fileReadUnknown)) }
            guard outcome > 0 else { return handoff.end(nil) }
            handoff.deliver(ByteChunk(bytes))
            wanted.wait()
        }
    }
}

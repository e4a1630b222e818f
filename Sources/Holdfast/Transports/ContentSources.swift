// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

private import Dispatch
package import HoldfastStorage
private import Synchronization

#if canImport(FoundationNetworking)
    internal import Foundation
    package import FoundationNetworking
#else
    package import Foundation
#endif

extension RequestBody {
    /// The content for sending it once: its length, if that is known, and what opens its source, which is called once.
    ///
    /// A file is opened; nothing is read.
    ///
    /// - Parameter request: has the stream, if that is the content.
    /// - Throws: ``ServiceError`` `.badRequest` with progress `notSent` if a file cannot be read.
    package func content(
        of request: URLRequest
    ) async throws -> (length: Int?, open: @Sendable () async throws -> any ByteSource) {
        switch form {
        case .none: return (0, { BytesContent(ByteChunk()) })
        case .bytes(let bytes): return (bytes.count, { BytesContent(bytes) })
        case .file(let url):
            let file = try await FileSource.open(url)
            return (file.length, { file })
        case .factory(let length, let make): return (length, make)
        case .oneShot(let length, let source): return (length, { source })
        case .requestStream: return (nil, { StreamContent(request) })
        }
    }

    /// All bytes; content that can be read only once is consumed.
    ///
    /// - Parameters:
    ///   - request: has the stream, if that is the content.
    ///   - limit: the most bytes to read; bytes in memory are returned whatever their count.
    package func collect(from request: URLRequest, upTo limit: Int = .max) async throws -> ByteChunk {
        if case .bytes(let bytes) = form { return bytes }
        let content = try await content(of: request)
        return try await ResponseBody(try await content.open(), length: content.length).collect(upTo: limit)
    }
}

/// Bytes in memory, returned once.
package final class BytesContent: ByteSource {
    private let rest: Mutex<ByteChunk>
    private let piece: Int

    /// - Parameter piece: the most bytes of a chunk; all of them come in one by default, and none if there are none.
    package init(_ bytes: ByteChunk, piece: Int = .max) {
        rest = Mutex(bytes)
        self.piece = piece
    }

    package func next() async throws -> ByteChunk? {
        rest.withLock { rest in
            let count = min(piece, rest.count)
            defer { rest = rest[count..<rest.count] }
            return count == 0 ? nil : rest[0..<count]
        }
    }

    package func cancel() { rest.withLock { $0 = ByteChunk() } }
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

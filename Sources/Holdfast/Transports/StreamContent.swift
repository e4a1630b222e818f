// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

private import Dispatch
package import HoldfastStorage

#if canImport(FoundationNetworking)
    private import Foundation
    package import FoundationNetworking
#else
    package import Foundation
#endif

/// The `httpBodyStream` of a request, read when it is asked for by a thread of its own: reading an `InputStream` blocks,
/// and a stream belongs to one thread.
package final class StreamContent: ByteSource {
    private let handoff = ChunkHandoff()
    private let wanted = DispatchSemaphore(value: 0)

    /// - Parameter request: a request with a stream; nothing is read before the first call of ``next()``.
    package init(_ request: URLRequest) {
        let (handoff, wanted) = (handoff, wanted)
        Thread.detachNewThread {
            wanted.wait()
            StreamContent.feed(request, handoff, wanted)
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

    private static func feed(_ request: URLRequest, _ handoff: ChunkHandoff, _ wanted: DispatchSemaphore) {
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
            // Foundation on Linux traps when a stream without an error is asked for it, and has none for some failures.
            guard outcome >= 0 else { return handoff.end(CocoaError(.fileReadUnknown)) }
            guard outcome > 0 else { return handoff.end(nil) }
            handoff.deliver(ByteChunk(bytes))
            wanted.wait()
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if AsyncHTTPClient
    private import Dispatch
    internal import Foundation
    internal import Holdfast
    internal import HoldfastStorage

    #if canImport(FoundationNetworking)
        internal import FoundationNetworking
    #endif

    /// The `httpBodyStream` of a request, read when it is asked for by a thread of its own: reading an `InputStream` blocks,
    /// and a stream belongs to one thread.
    final class StreamContent: ByteSource {
        private let handoff = ChunkHandoff()
        private let wanted = DispatchSemaphore(value: 0)

        /// - Parameter request: a request with a stream; nothing is read before the first call of ``next()``.
        init(_ request: URLRequest) {
            let (handoff, wanted) = (handoff, wanted)
            Thread.detachNewThread {
                wanted.wait()
                StreamContent.feed(request, handoff, wanted)
            }
        }

        deinit { cancel() }

        func next() async throws -> ByteChunk? {
            let wanted = wanted
            return try await handoff.pull { wanted.signal() }
        }

        func cancel() {
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
#endif

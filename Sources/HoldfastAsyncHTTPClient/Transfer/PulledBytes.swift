// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if AsyncHTTPClient
    internal import Holdfast
    internal import HoldfastStorage
    internal import NIOCore
    private import Synchronization

    /// A sequence of buffers as a byte source; it is asked for one buffer at a time, and only when a reader waits.
    ///
    /// The sequence is iterated in its own task, because its iterator cannot leave the task that made it, and because
    /// ``cancel()`` must reach a waiting `next()`. The task begins with the first read. Before that there is only the sequence,
    /// and releasing it also ends what feeds it.
    final class PulledBytes<Buffers: AsyncSequence & Sendable>: ByteSource where Buffers.Element == ByteBuffer {
        private let handoff = ChunkHandoff()
        private let waiting: Mutex<Buffers?>
        private let failure: @Sendable (_ error: any Error, _ delivered: Int) -> any Error
        private let onEnd: @Sendable (_ isWhole: Bool) -> Void

        /// - Parameters:
        ///   - failure: converts a failure of the sequence to the reader's error, which may tell how many bytes were read.
        ///   - onEnd: called once, when the sequence has ended or was abandoned.
        init(
            _ buffers: Buffers,
            failure: @escaping @Sendable (_ error: any Error, _ delivered: Int) -> any Error = { error, _ in error },
            onEnd: @escaping @Sendable (_ isWhole: Bool) -> Void = { _ in }
        ) {
            waiting = Mutex(buffers)
            self.failure = failure
            self.onEnd = onEnd
        }

        deinit { cancel() }

        func next() async throws -> ByteChunk? {
            let buffers: Buffers? = waiting.withLock { waiting in
                defer { waiting = nil }
                return waiting
            }
            if let buffers { begin(buffers) }
            return try await handoff.pull()
        }

        func cancel() {
            let unread: Buffers? = waiting.withLock { waiting in
                defer { waiting = nil }
                return waiting
            }
            handoff.cancel()
            if unread != nil { onEnd(false) }
        }

        private func begin(_ buffers: Buffers) {
            let (handoff, failure, onEnd) = (handoff, failure, onEnd)
            let task = Task {
                var delivered = 0
                do {
                    try await handoff.demand()
                    for try await buffer in buffers where buffer.readableBytes > 0 {
                        delivered += buffer.readableBytes
                        handoff.deliver(ByteChunk(Array(buffer.readableBytesView)))
                        try await handoff.demand()
                    }
                    // A cancelled sequence may simply end.
                    if Task.isCancelled { throw CancellationError() }
                    handoff.end(nil)
                    onEnd(true)
                } catch {
                    handoff.end(Task.isCancelled ? CancellationError() : failure(error, delivered))
                    onEnd(false)
                }
            }
            handoff.adopt(task)
        }
    }
#endif

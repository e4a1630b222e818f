// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Holdfast
    internal import HoldfastStorage
    internal import NIOCore
    private import Synchronization

    /// Sends the content of one request, as fast as the server reads it, in its own task: the response may arrive
    /// before its end.
    final class Upload: Sendable {
        /// Why content could not be sent.
        enum Failure: Error {
            /// Its source failed.
            case source(any Error)
            /// It is longer or shorter than announced.
            case length
            /// The server read nothing for too long.
            case stalled
        }

        private struct State {
            var task: Task<Void, Never>?
            var isDone = false
            var isStopped = false
            var failure: Failure?
        }

        /// How much is given to the connection at a time.
        private static let pieceLength = 128 << 10

        private let source: any ByteSource
        private let framing: OutgoingRequest.Framing
        private let channel: ByteChannel
        private let stall: TimeAmount
        private let state = Mutex(State())

        /// - Parameter stall: how long the server may read nothing.
        init(
            _ source: any ByteSource,
            framing: OutgoingRequest.Framing,
            over channel: ByteChannel,
            stall: TimeAmount
        ) {
            self.source = source
            self.framing = framing
            self.channel = channel
            self.stall = stall
        }

        /// Whether everything was sent.
        var isDone: Bool { state.withLock { $0.isDone } }

        /// The error that ended it, if it was not the connection's.
        var failure: Failure? { state.withLock { $0.failure } }

        /// Begins sending; called once.
        ///
        /// - Parameter executor: where the source is read; nil: on the cooperative pool.
        func start(on executor: EventLoopExecutor?) {
            let task = Task(executorPreference: executor) { await self.run() }
            let isStopped = state.withLock { state in
                state.task = task
                return state.isStopped
            }
            if isStopped { task.cancel() }
        }

        /// Stops sending.
        func stop() {
            let task = state.withLock { state in
                guard !state.isDone else { return nil as Task<Void, Never>? }
                state.isStopped = true
                defer { state.task = nil }
                return state.task
            }
            task?.cancel()
            source.cancel()
        }

        private func run() async {
            do {
                try await send()
                state.withLock { state in
                    state.isDone = true
                    state.task = nil
                }
            } catch {
                let failure: Failure? =
                    switch error {
                    case let error as Failure: error
                    case let fault as ChannelFault: fault.kind == .writeStalled ? .stalled : nil
                    default: .source(error)
                    }
                let breaksOff = state.withLock { state in
                    state.task = nil
                    guard !state.isStopped else { return false }
                    state.failure = failure
                    return failure != nil
                }
                source.cancel()
                // What was sent must not be taken for the whole. If the connection broke by itself, the server's last
                // bytes may still be there to be read.
                if breaksOff { channel.close() }
            }
        }

        private func send() async throws {
            if case .length(let length) = framing {
                try await send(exactly: length)
            } else {
                while let chunk = try await next() {
                    try await send(chunk) {
                        ChunkedEncoder.begin(chunk.count, in: &$0)
                    } end: {
                        ChunkedEncoder.end(in: &$0)
                    }
                }
                var last = channel.channel.allocator.buffer(capacity: 8)
                ChunkedEncoder.finish(in: &last)
                try await write(last)
            }
        }

        /// The last chunk is sent only when the source has ended, or an incomplete body would look complete.
        private func send(exactly length: Int) async throws {
            var left = length
            var last: ByteChunk?
            while let chunk = try await next() {
                guard chunk.count <= left else { throw Failure.length }
                left -= chunk.count
                if left > 0 { try await send(chunk) } else { last = chunk }
            }
            guard left == 0 else { throw Failure.length }
            if let last { try await send(last) }
        }

        private func next() async throws -> ByteChunk? {
            while let chunk = try await source.next() {
                if !chunk.isEmpty { return chunk }
            }
            return nil
        }

        private func send(
            _ chunk: ByteChunk,
            begin: (inout ByteBuffer) -> Void = { _ in },
            end: (inout ByteBuffer) -> Void = { _ in }
        ) async throws {
            var position = 0
            while position < chunk.count {
                let piece = chunk[position..<min(position + Upload.pieceLength, chunk.count)]
                var buffer = channel.channel.allocator.buffer(capacity: piece.count + ChunkedEncoder.overhead + 2)
                if position == 0 { begin(&buffer) }
                _ = piece.withUnsafeBytes { buffer.writeBytes($0) }
                position += piece.count
                if position == chunk.count { end(&buffer) }
                try await write(buffer)
            }
        }

        private func write(_ buffer: ByteBuffer) async throws {
            try Task.checkCancellation()
            try await channel.write(buffer, stallLimit: stall)
        }
    }
#endif

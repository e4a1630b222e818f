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
        private let framing: RequestFraming.Content
        private let channel: ByteChannel
        private let stall: TimeAmount
        private let state = Mutex(State())

        /// - Parameter stall: how long the server may read nothing.
        init(
            _ source: any ByteSource,
            framing: RequestFraming.Content,
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
            var writer = BodyWriter(channel, sliceSize: Upload.pieceLength, stallLimit: stall)
            guard case .length(var left) = framing else { return try await writer.writeChunks(source) }
            // The last chunk is sent only when the source has ended, or an incomplete body would look complete.
            var last = ByteChunk()
            while let chunk = try await source.next() {
                guard chunk.count <= left else { throw Failure.length }
                left -= chunk.count
                if left > 0 { try await writer.write(chunk) } else if !chunk.isEmpty { last = chunk }
            }
            guard left == 0 else { throw Failure.length }
            try await writer.write(last)
        }
    }
#endif

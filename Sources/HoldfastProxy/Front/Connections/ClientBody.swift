// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Holdfast
    internal import HoldfastStorage
    internal import NIOCore
    private import Synchronization

    /// The content of a request, pulled from its connection; read by whoever answers, on any thread.
    final class ClientBody: ByteSource {
        /// What became of the content when the answer was there.
        enum Rest: Sendable {
            /// It was read to its end, or there was none.
            case nothing
            /// It can be read and dropped; so many bytes where that is known.
            case some(Int?)
            /// The connection cannot be used again: somebody reads still, something failed, or the client waits for a 100.
            case unknown
        }

        private struct State {
            var decoder: ContentDecoder
            var isReading = false
            /// Whether the reader has gone: the answer is there, or the reader gave the content up.
            var isGivenUp = false
            var awaitsContinue: Bool
            var fault: MessageFault?
            var hasFailed = false
        }

        private let channel: ByteChannel
        private let stall: TimeAmount
        private let state: Mutex<State>
        private let sendContinue: @Sendable () -> Void

        init(
            _ decoder: ContentDecoder,
            channel: ByteChannel,
            stall: TimeAmount,
            awaitsContinue: Bool,
            sendContinue: @escaping @Sendable () -> Void
        ) {
            self.channel = channel
            self.stall = stall
            self.sendContinue = sendContinue
            state = Mutex(State(decoder: decoder, awaitsContinue: awaitsContinue))
        }

        /// What was wrong with the content, where something was: the client is to be answered that.
        var fault: MessageFault? { state.withLock { $0.fault } }

        /// What is left of it.
        var rest: Rest {
            state.withLock { state in
                if state.hasFailed || state.isReading { return .unknown }
                if state.decoder.isAtEnd { return .nothing }
                return state.awaitsContinue ? .unknown : .some(state.decoder.remaining)
            }
        }

        func next() async throws -> ByteChunk? {
            let asksForContent = try state.withLock { state in
                guard !state.isGivenUp, !state.isReading else { throw CancellationError() }
                state.isReading = true
                defer { state.awaitsContinue = false }
                return state.awaitsContinue && !state.decoder.isAtEnd
            }
            defer { state.withLock { $0.isReading = false } }
            if asksForContent { sendContinue() }
            return try await pull()
        }

        /// Reads and drops what is left, up to `limit` bytes; whether the end was reached.
        func drop(upTo limit: Int) async -> Bool {
            state.withLock { $0.isGivenUp = true }
            var dropped = 0
            while dropped <= limit {
                guard let chunk = try? await pull() else { return state.withLock { $0.decoder.isAtEnd } }
                dropped += chunk.count
            }
            return false
        }

        func cancel() {
            let wasReading = state.withLock { state in
                state.isGivenUp = true
                return state.isReading
            }
            if wasReading { channel.cancelRead() }
        }

        private func pull() async throws -> ByteChunk? {
            while true {
                if state.withLock({ $0.decoder.isAtEnd }) { return nil }
                guard var bytes = try await read() else {
                    state.withLock { $0.hasFailed = true }
                    throw ServiceError(
                        .connectionLost,
                        "The client closed the connection within the request's content."
                    )
                }
                let outcome = Result { () throws(MessageFault) in
                    try state.withLock { state throws(MessageFault) in try state.decoder.next(in: &bytes) }
                }
                channel.putBack(bytes)
                switch outcome {
                case .success(let chunk?): return chunk
                case .success(nil): continue
                case .failure(let fault): throw fail(fault)
                }
            }
        }

        private func read() async throws -> ByteBuffer? {
            do {
                return try await channel.read(by: channel.eventLoop.now + stall)
            } catch let fault as ChannelFault {
                guard fault.kind == .readTimedOut else {
                    state.withLock { $0.hasFailed = true }
                    throw ServiceError(.connectionLost, "The connection of the client broke.", cause: fault)
                }
                throw fail(Refusal.bodyStall)
            }
        }

        private func fail(_ fault: MessageFault) -> ServiceError {
            state.withLock { state in
                state.hasFailed = true
                state.fault = fault
            }
            return ServiceError(.badRequest, fault.message, cause: fault)
        }
    }
#endif

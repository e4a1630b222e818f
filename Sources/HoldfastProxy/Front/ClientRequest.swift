// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    package import Holdfast
    package import HoldfastSemantics
    internal import HoldfastStorage
    package import NIOCore
    private import Synchronization

    /// A request as a client sent it.
    package struct ClientRequest: Sendable {
        /// The method: any token.
        package var method: RequestMethod
        /// The target, as it arrived.
        package var target: RequestTarget
        /// The version of the message.
        package var version: HTTPVersion
        /// The field lines, including those of the connection.
        package var fields: HeaderFields
        /// The content: none, bytes if it is small and arrived together with the head, otherwise a stream that can be
        /// read once.
        ///
        /// The stream reads from the connection, so its reader sets the client's pace. It ends with an error if the
        /// client leaves, sends nothing for too long, or breaks the framing; and it ends at the latest with the
        /// response.
        package var body: RequestBody
        /// The address of the client; nil if unknown.
        package var remoteAddress: SocketAddress?

        private let interim: (@Sendable (ResponseHead) -> Void)?

        /// Creates a request.
        ///
        /// - Parameter interim: sends an interim response; nil to drop them.
        package init(
            method: RequestMethod,
            target: RequestTarget,
            version: HTTPVersion = .http11,
            fields: HeaderFields,
            body: RequestBody = .none,
            remoteAddress: SocketAddress? = nil,
            interim: (@Sendable (ResponseHead) -> Void)? = nil
        ) {
            self.method = method
            self.target = target
            self.version = version
            self.fields = fields
            self.body = body
            self.remoteAddress = remoteAddress
            self.interim = interim
        }

        /// Writes an interim response at once, in order, before the final one (RFC 9110 §15.2); from any thread.
        ///
        /// 100 and 101 are not written, because the server sends 100 itself. Nothing is sent to HTTP/1.0, after the
        /// final response began, beyond 32 responses, or while the client accepts no more bytes.
        package func sendInterim(_ head: ResponseHead) {
            interim?(head)
        }
    }

    /// Responds to a server's requests.
    package protocol ClientHandler: Sendable {
        /// Answers one request.
        ///
        /// Runs on the connection's event loop, so it must not block, and is called for one request of a connection at
        /// a time. The task is cancelled when the client closes the connection or its sending side, when the time of a
        /// draining server is up, and when the server is closed.
        func answer(_ request: ClientRequest) async -> Response

        /// Opens the tunnel (CONNECT) or other protocol (Upgrade) that a request asks for; called only for such
        /// requests.
        func tunnel(_ request: ClientRequest) async -> TunnelOffer
    }

    extension ClientHandler {
        /// Opens nothing.
        package func tunnel(_ request: ClientRequest) async -> TunnelOffer { .none }
    }

    /// The content of a request, read from its connection; the handler reads it, on any thread.
    final class ClientBody: ByteSource {
        /// What is left of the content when the response is ready.
        enum Rest: Sendable {
            /// It was read to its end, or there was none.
            case nothing
            /// It can be read and dropped; this many bytes if known.
            case some(Int?)
            /// The connection cannot be used again: someone is still reading, something failed, or the client waits for
            /// a 100.
            case unknown
        }

        private struct State {
            var decoder: ContentDecoder
            var isReading = false
            /// Whether the reader has gone: the response is ready, or the reader abandoned the content.
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

        /// What was wrong with the content, if anything; the client gets this as response.
        var fault: MessageFault? { state.withLock { $0.fault } }

        /// What is left of the content.
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

        /// Reads and drops the rest, up to `limit` bytes; returns whether the end was reached.
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
                    if state.withLock({ $0.decoder.end() }) { return nil }
                    state.withLock { $0.hasFailed = true }
                    throw ServiceError(
                        .connectionLost,
                        "The client closed the connection before the end of the request's content."
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

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
        /// What is asked for, as it arrived.
        package var target: RequestTarget
        /// The version of the message.
        package var version: HTTPVersion
        /// The field lines, those of the connection included.
        package var fields: HeaderFields
        /// The content: none, bytes where it is small and came along with the head, else a stream that can be read once.
        ///
        /// The stream pulls from the connection, so its reader sets the client's pace. It ends with an error when the client goes
        /// away, sends nothing for too long, or breaks the framing; and with the answer, which comes after it at the latest.
        package var body: RequestBody
        /// Where the client is; nil where nobody knows.
        package var remoteAddress: SocketAddress?

        private let interim: (@Sendable (ResponseHead) -> Void)?

        /// A request of these parts.
        ///
        /// - Parameter interim: what sends an interim response; nil to drop them.
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
        /// 100 and 101 are not written: the server sends 100 itself. Nothing goes to HTTP/1.0, nothing after the final response
        /// began, nothing past the 32nd, and nothing while the client takes no more bytes.
        package func sendInterim(_ head: ResponseHead) {
            interim?(head)
        }
    }

    /// What answers a server's requests.
    package protocol ClientHandler: Sendable {
        /// Answers one request.
        ///
        /// Runs on the connection's event loop, so it must not block, and is called for one request of a connection at a time. The
        /// task is cancelled when the client closes the connection or its sending side of it, when a draining server's time is up,
        /// and when the server is closed.
        func answer(_ request: ClientRequest) async -> Response

        /// Opens what a request for a tunnel (CONNECT) or another protocol (Upgrade) asks for; asked about those alone.
        func tunnel(_ request: ClientRequest) async -> TunnelOffer
    }

    extension ClientHandler {
        /// None is opened.
        package func tunnel(_ request: ClientRequest) async -> TunnelOffer { .none }
    }

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

    /// Takes the content of a message out of the bytes of a connection.
    enum ContentDecoder: Sendable {
        case length(remaining: Int)
        case chunked(ChunkedDecoder)

        /// Whether all was taken.
        var isAtEnd: Bool {
            switch self {
            case .length(let remaining): remaining == 0
            case .chunked(let decoder): decoder.isAtEnd
            }
        }

        /// How many bytes are to come, where that is known.
        var remaining: Int? { if case .length(let remaining) = self { remaining } else { nil } }

        /// Takes the next content off the front of `bytes`; nil when there is none in there or it has ended.
        mutating func next(in bytes: inout ByteBuffer) throws(MessageFault) -> ByteChunk? {
            switch self {
            case .length(let remaining):
                let count = min(remaining, bytes.readableBytes)
                self = .length(remaining: remaining - count)
                return count > 0 ? bytes.readBytes(length: count).map { ByteChunk($0) } : nil
            case .chunked(var decoder):
                defer { self = .chunked(decoder) }
                var outcome: Result<ChunkedDecoder.Step, MessageFault> = .success(.needsMore)
                bytes.withUnsafeReadableBytes { view in
                    outcome = Result { () throws(MessageFault) in try decoder.next(in: view) }
                }
                switch try outcome.get() {
                case .content(let skipped, let count):
                    bytes.moveReaderIndex(forwardBy: skipped)
                    return bytes.readBytes(length: count).map { ByteChunk($0) }
                case .needsMore:
                    bytes.moveReaderIndex(to: bytes.writerIndex)
                    return nil
                case .end(let skipped):
                    bytes.moveReaderIndex(forwardBy: skipped)
                    return nil
                }
            }
        }

        /// All of the content, where the bytes hold it and it is no longer than `limit`; the bytes are then what follows it.
        func whole(in bytes: inout ByteBuffer, limit: Int) throws(MessageFault) -> ByteChunk? {
            if let remaining, remaining > min(limit, bytes.readableBytes) { return nil }
            var decoder = self
            var rest = bytes
            var content: [UInt8] = []
            while !decoder.isAtEnd {
                let unread = rest.readableBytes
                if let chunk = try decoder.next(in: &rest) {
                    if decoder.isAtEnd, content.isEmpty {
                        bytes = rest
                        return chunk
                    }
                    chunk.append(to: &content)
                }
                guard content.count <= limit, decoder.isAtEnd || rest.readableBytes < unread else { return nil }
            }
            bytes = rest
            return ByteChunk(content)
        }
    }
#endif

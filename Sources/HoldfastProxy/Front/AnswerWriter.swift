// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Holdfast
    internal import HoldfastSemantics
    internal import HoldfastStorage
    internal import NIOCore

    /// Writes responses to a connection: a small one in one piece, a larger one as fast as the client reads it.
    struct AnswerWriter {
        private let channel: ByteChannel
        private let stallLimit: TimeAmount
        private var body: BodyWriter
        /// Reused for the next response once its bytes have been sent; kept only while it is small.
        private var spare = ByteBuffer()
        private static let spareLimit = 16 << 10

        init(_ channel: ByteChannel, configuration: ServerConfiguration) {
            self.channel = channel
            stallLimit = configuration.writeStall
            body = BodyWriter(channel, sliceSize: configuration.sliceSize, stallLimit: configuration.writeStall)
        }

        /// Writes a whole response; returns whether the connection can be kept.
        ///
        /// - Throws: the error that ended the connection, which is then closed.
        mutating func write(_ plan: AnswerPlan, response: Response) async throws -> Bool {
            var head = spare
            spare = ByteBuffer()
            head.clear()
            let room = if case .bytes(let bytes) = plan.content { min(bytes.count, body.sliceSize) } else { 0 }
            ResponseHeadWriter.write(plan.status, fields: response.fields, framing: plan.framing, room: room, to: &head)
            do {
                switch plan.content {
                case .none:
                    response.body.discard()
                    try await channel.write(head, stallLimit: stallLimit)
                case .bytes(let bytes):
                    try await write(bytes, behind: &head)
                case .exactly(let length, let source):
                    try await channel.write(head, stallLimit: stallLimit)
                    try await body.write(source, exactly: length)
                case .chunked(let source):
                    try await channel.write(head, stallLimit: stallLimit)
                    try await body.writeChunks(source)
                case .untilClose(let source):
                    // The client takes the end of the connection for the end of the content, so any other end must be a reset.
                    channel.resetOnClose(true)
                    try await channel.write(head, stallLimit: stallLimit)
                    try await body.write(source, exactly: nil)
                    try await channel.flush(stallLimit: stallLimit)
                    channel.resetOnClose(false)
                }
            } catch {
                response.body.discard()
                channel.close()
                throw error
            }
            if head.capacity <= AnswerWriter.spareLimit { spare = head }
            return plan.keepsAlive
        }

        private mutating func write(_ bytes: ByteChunk, behind head: inout ByteBuffer) async throws {
            guard bytes.count > body.sliceSize else {
                bytes.withUnsafeBytes { _ = head.writeBytes($0) }
                return try await channel.write(head, stallLimit: stallLimit)
            }
            bytes[0..<body.sliceSize].withUnsafeBytes { _ = head.writeBytes($0) }
            try await channel.write(head, stallLimit: stallLimit)
            try await body.write(bytes[body.sliceSize..<bytes.count])
        }
    }

    /// Writes the body of a message in slices, as fast as the peer reads it.
    struct BodyWriter {
        /// The response was cut off before its end; anyone who writes it ends the connection or the stream, so that the client can
        /// detect it.
        struct Cut: Error {}

        let sliceSize: Int
        private let channel: ByteChannel
        private let stallLimit: TimeAmount
        /// How much was sent since others had a turn on the event loop.
        private var sentInTurn = 0
        private static let turn = 1 << 20

        init(_ channel: ByteChannel, sliceSize: Int, stallLimit: TimeAmount) {
            self.channel = channel
            self.sliceSize = max(sliceSize, 1)
            self.stallLimit = stallLimit
        }

        /// Sends a part of a long body, and sometimes yields to the event loop's other connections: with a body in
        /// memory and a client that keeps up, it would never have to wait.
        private mutating func send(_ slice: ByteBuffer) async throws {
            try Task.checkCancellation()
            sentInTurn += slice.readableBytes
            try await channel.write(slice, stallLimit: stallLimit)
            guard sentInTurn >= BodyWriter.turn else { return }
            sentInTurn = 0
            await channel.yield()
        }

        mutating func write(_ bytes: ByteChunk) async throws {
            var offset = 0
            while offset < bytes.count {
                let end = min(bytes.count, offset + sliceSize)
                var slice = ByteBuffer()
                slice.reserveCapacity(end - offset)
                bytes[offset..<end].withUnsafeBytes { _ = slice.writeBytes($0) }
                try await send(slice)
                offset = end
            }
        }

        /// - Parameter length: the announced length; nil: all of the source.
        mutating func write(_ source: any ByteSource, exactly length: Int?) async throws {
            var written = 0
            while let chunk = try await source.next() {
                written += chunk.count
                // If there is more than announced, none of it is sent: the client would take the response for complete.
                if let length, written > length { throw Cut() }
                try await write(chunk)
            }
            if let length, written < length { throw Cut() }
        }

        mutating func writeChunks(_ source: any ByteSource) async throws {
            while let chunk = try await source.next() {
                var offset = 0
                while offset < chunk.count {
                    let end = min(chunk.count, offset + sliceSize)
                    var slice = ByteBuffer()
                    slice.reserveCapacity(end - offset + ChunkedEncoder.overhead)
                    ChunkedEncoder.begin(end - offset, in: &slice)
                    chunk[offset..<end].withUnsafeBytes { _ = slice.writeBytes($0) }
                    ChunkedEncoder.end(in: &slice)
                    try await send(slice)
                    offset = end
                }
            }
            var last = ByteBuffer()
            ChunkedEncoder.finish(in: &last)
            try await channel.write(last, stallLimit: stallLimit)
        }
    }

    /// How a response is framed on the wire (RFC 9112 §6.3), derived only from the response and its request.
    struct AnswerPlan: Sendable {
        /// What follows the head.
        enum Content: Sendable {
            case none
            case bytes(ByteChunk)
            /// Exactly this many bytes.
            case exactly(Int, any ByteSource)
            case chunked(any ByteSource)
            /// Everything until the end of the connection.
            case untilClose(any ByteSource)
        }

        /// What is known about the request and its connection.
        struct Circumstances: Sendable {
            var method: RequestMethod
            var version: HTTPVersion
            /// Whether the client and the server allow the connection to stay open.
            var keepsAlive: Bool
        }

        let status: StatusCode
        let framing: ResponseHeadWriter.Framing
        let content: Content
        /// Whether the connection stays open after the response.
        let keepsAlive: Bool

        init(_ response: Response, to circumstances: Circumstances) {
            let isFinal = (200...999).contains(response.status.rawValue)
            // A status that cannot be written, or that is not final, is an error of the handler.
            status = isFinal ? response.status : 500
            let hasNoContent = circumstances.method == .head || status.rawValue == 204 || status.rawValue == 304
            let isTunnel = circumstances.method == .connect && status.isSuccessful
            var keeps = circumstances.keepsAlive && !isTunnel
            if keeps, AnswerPlan.asksToClose(response.fields) { keeps = false }
            // The length in the fields, if they have one.
            var given: Int? { try? ResponseFraming.length(response.fields) }
            let said: ResponseHeadWriter.Framing.Content
            if hasNoContent || isTunnel {
                content = .none
                if status.rawValue == 204 || isTunnel {
                    said = .unsaid
                } else if let length = response.body.length, length > 0, status.rawValue != 304 {
                    said = .length(length)
                } else {
                    said = given.map { .length($0) } ?? .unsaid
                }
            } else if let bytes = response.body.bytesInMemory {
                content = .bytes(bytes)
                said = .length(bytes.count)
            } else if let source = response.body.source {
                if let length = response.body.length ?? given {
                    content = .exactly(length, source)
                    said = .length(length)
                } else if circumstances.version == .http11 {
                    content = .chunked(source)
                    said = .chunked
                } else {
                    content = .untilClose(source)
                    said = .unsaid
                    keeps = false
                }
            } else {
                content = .none
                said = .length(0)
            }
            keepsAlive = keeps
            let connection: ResponseHeadWriter.Framing.Connection =
                keeps ? (circumstances.version == .http10 ? .keepAlive : .unsaid) : .close
            framing = .init(said, connection: connection)
        }

        private static func asksToClose(_ fields: HeaderFields) -> Bool {
            fields.contains { line in
                line.name == .connection
                    && RequestFraming.members(line.value).contains { RequestFraming.matches($0, word: "close") }
            }
        }
    }

    /// The responses that a server makes itself: a status and one line of text.
    enum Refusal {
        /// The response to invalid requests.
        static func response(to fault: MessageFault) -> Response {
            response(fault.status, text: fault.message)
        }

        /// The response to a connection beyond the limit (RFC 9110 §10.2.3).
        static func tooManyConnectionsResponse() -> Response {
            var response = response(503, text: tooManyConnections)
            response.fields.append(.retryAfter, "5")
            return response
        }

        static let tooManyConnections = "Too many connections are open. Try again later."
        static let headTimeout = MessageFault(408, message: "The request's head took too long.")
        static let bodyStall = MessageFault(408, message: "The request's content took too long.")
        static let unknownExpectation = MessageFault(417, message: "Only 100-continue can be expected.")

        static func response(_ status: StatusCode, text: String) -> Response {
            Response(
                status: status,
                fields: [
                    .date: HTTPDate(SystemClock().timestamp).description,
                    .contentType: "text/plain; charset=utf-8",
                ],
                body: ResponseBody(ByteChunk(copying: (text + "\n").utf8)),
                source: .synthesized
            )
        }
    }
#endif

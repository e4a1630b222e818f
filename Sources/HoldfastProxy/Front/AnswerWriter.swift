// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Holdfast
    internal import HoldfastSemantics
    internal import HoldfastStorage
    internal import NIOCore

    /// Writes answers to a connection: a small one in one piece, a larger one as fast as the client takes it.
    struct AnswerWriter {
        /// The answer was cut before its end, and the connection with it, so that the client can see that.
        struct Cut: Error {}

        private let channel: ByteChannel
        private let sliceSize: Int
        private let stallLimit: TimeAmount
        /// Used again for the next answer once the bytes have left; kept only while it is small.
        private var spare = ByteBuffer()
        private static let spareLimit = 16 << 10
        /// How much was sent since others had a turn on the event loop.
        private var sentInTurn = 0
        private static let turn = 1 << 20

        init(_ channel: ByteChannel, configuration: ServerConfiguration) {
            self.channel = channel
            sliceSize = max(configuration.sliceSize, 1)
            stallLimit = configuration.writeStall
        }

        /// Writes a whole answer; whether the connection can be kept.
        ///
        /// - Throws: what ended the connection: it is closed then.
        mutating func write(_ plan: AnswerPlan, response: Response) async throws -> Bool {
            var head = spare
            spare = ByteBuffer()
            head.clear()
            let room = if case .bytes(let bytes) = plan.content { min(bytes.count, sliceSize) } else { 0 }
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
                    try await write(source, exactly: length)
                case .chunked(let source):
                    try await channel.write(head, stallLimit: stallLimit)
                    try await writeChunks(source)
                case .untilClose(let source):
                    try await channel.write(head, stallLimit: stallLimit)
                    try await writeAll(source)
                }
            } catch {
                response.body.discard()
                // A client that takes the end of the connection for that of the content has to see a reset.
                if case .untilClose = plan.content { channel.reset() } else { channel.close() }
                throw error
            }
            if head.capacity <= AnswerWriter.spareLimit { spare = head }
            return plan.keepsAlive
        }

        private mutating func write(_ bytes: ByteChunk, behind head: inout ByteBuffer) async throws {
            guard bytes.count > sliceSize else {
                bytes.withUnsafeBytes { _ = head.writeBytes($0) }
                return try await channel.write(head, stallLimit: stallLimit)
            }
            bytes[0..<sliceSize].withUnsafeBytes { _ = head.writeBytes($0) }
            try await channel.write(head, stallLimit: stallLimit)
            try await writeSlices(of: bytes[sliceSize..<bytes.count])
        }

        /// Sends a part of a long body, and gives way to the event loop's other connections now and then: neither a body in memory
        /// nor a client that keeps up would ever make this wait.
        private mutating func send(_ slice: ByteBuffer) async throws {
            sentInTurn += slice.readableBytes
            try await channel.write(slice, stallLimit: stallLimit)
            guard sentInTurn >= AnswerWriter.turn else { return }
            sentInTurn = 0
            await channel.yield()
        }

        private mutating func writeSlices(of bytes: ByteChunk) async throws {
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

        private mutating func write(_ source: any ByteSource, exactly length: Int) async throws {
            var remaining = length
            while let chunk = try await source.next() {
                // More than was announced is not sent in part: the client would take the answer for whole.
                guard chunk.count <= remaining else { throw Cut() }
                remaining -= chunk.count
                try await writeSlices(of: chunk)
            }
            guard remaining == 0 else { throw Cut() }
        }

        private mutating func writeChunks(_ source: any ByteSource) async throws {
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

        private mutating func writeAll(_ source: any ByteSource) async throws {
            while let chunk = try await source.next() { try await writeSlices(of: chunk) }
        }
    }

    /// How a response is framed on the wire (RFC 9112 §6.3); a pure reading of the response and of what it answers.
    struct AnswerPlan: Sendable {
        /// What follows the head.
        enum Content: Sendable {
            case none
            case bytes(ByteChunk)
            /// So many bytes, neither more nor less.
            case exactly(Int, any ByteSource)
            case chunked(any ByteSource)
            /// All there is, to the end of the connection.
            case untilClose(any ByteSource)
        }

        /// What is known of the request and its connection.
        struct Circumstances: Sendable {
            var method: RequestMethod
            var version: HTTPVersion
            /// Whether the client lets the connection stand.
            var keepsAlive: Bool
            /// Whether this side has to close it after the answer.
            var mustClose: Bool
        }

        let status: StatusCode
        let framing: ResponseHeadWriter.Framing
        let content: Content
        /// Whether the connection is kept after the answer.
        let keepsAlive: Bool

        init(_ response: Response, to circumstances: Circumstances) {
            let isFinal = (200...999).contains(response.status.rawValue)
            // A status that cannot be written, or that ends nothing, is the handler's mistake.
            status = isFinal ? response.status : 500
            let hasNoContent = circumstances.method == .head || status.rawValue == 204 || status.rawValue == 304
            let isTunnel = circumstances.method == .connect && status.isSuccessful
            var keeps = circumstances.keepsAlive && !circumstances.mustClose && !isTunnel
            if keeps, AnswerPlan.asksToClose(response.fields) { keeps = false }
            let given = AnswerPlan.givenLength(response.fields)
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

        /// The length that the fields give, where they give one.
        private static func givenLength(_ fields: HeaderFields) -> Int? {
            var length: Int?
            for line in fields where line.name == .contentLength {
                guard let number = RequestFraming.length(line.value), length == nil || length == number else {
                    return nil
                }
                length = number
            }
            return length
        }

        private static func asksToClose(_ fields: HeaderFields) -> Bool {
            fields.contains { line in
                line.name == .connection
                    && RequestFraming.members(line.value).contains { RequestFraming.matches($0, word: "close") }
            }
        }
    }

    /// The answers that a server makes itself: a status and one line of text.
    enum Refusal {
        /// The answer to bytes that are no request.
        static func response(to fault: MessageFault) -> Response {
            response(fault.status, text: fault.message)
        }

        /// The answer to a connection too many (RFC 9110 §10.2.3).
        static func tooManyConnections(retryAfter: Int) -> Response {
            var response = response(503, text: "Too many connections are open; come back in a while.")
            response.fields.append(.retryAfter, String(retryAfter))
            return response
        }

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

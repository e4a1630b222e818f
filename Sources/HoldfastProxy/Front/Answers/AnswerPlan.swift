// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Holdfast
    internal import HoldfastSemantics
    internal import HoldfastStorage

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
                    && RequestFraming.members(line.value).contains { RequestFraming.matches($0, "close") }
            }
        }
    }
#endif

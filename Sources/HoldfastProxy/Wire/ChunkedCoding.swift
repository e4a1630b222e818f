// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import HoldfastStorage
    package import NIOCore

    /// Reads a message body in the chunked transfer coding (RFC 9112 §7.1) from bytes that arrive in pieces.
    ///
    /// Sizes, chunk extensions and trailers are limited; extensions and trailers are dropped.
    package struct ChunkedDecoder: Sendable {
        /// What comes next in the given bytes.
        package enum Step: Sendable, Hashable {
            /// `skipped` bytes of framing and then `count` bytes of content, at least one; pass the bytes after them to
            /// the next call.
            case content(skipped: Int, count: Int)
            /// All bytes were framing; more are needed.
            case needsMore
            /// The body ends after this many bytes; another message follows.
            case end(skipped: Int)
        }

        private enum State: Sendable {
            case size, padding, extensions, sizeEnd, content, contentReturn, contentEnd
            case trailerStart, trailerName, trailer, trailerEnd, lastEnd, ended
        }

        /// The most bytes of one chunk's extensions, and of all trailers.
        package static let lineLimit = 8 << 10

        private let toleratesPadding: Bool
        private var state = State.size
        private var remaining = 0
        private var digits = 0
        private var lineBytes = 0

        /// Creates a decoder for one body.
        ///
        /// - Parameter toleratesPadding: whether spaces may follow a chunk's size, as some old servers send them; false
        ///   by default.
        package init(toleratesPadding: Bool = false) {
            self.toleratesPadding = toleratesPadding
        }

        /// Whether the body has ended.
        package var isAtEnd: Bool { if case .ended = state { true } else { false } }

        /// Continues with `bytes`; each byte is passed once.
        ///
        /// - Throws: 400, after which the connection cannot be used again.
        package mutating func next(in bytes: UnsafeRawBufferPointer) throws(MessageFault) -> Step {
            var index = 0
            while true {
                if case .ended = state { return .end(skipped: index) }
                guard index < bytes.count else { return .needsMore }
                if case .content = state {
                    let count = min(remaining, bytes.count - index)
                    remaining -= count
                    if remaining == 0 { state = .contentReturn }
                    return .content(skipped: index, count: count)
                }
                try take(bytes[index])
                index += 1
            }
        }

        private mutating func take(_ byte: UInt8) throws(MessageFault) {
            switch state {
            case .size:
                try takeSize(byte)
            case .padding:
                if byte == UInt8(ascii: "\r") {
                    state = .sizeEnd
                } else if byte == UInt8(ascii: ";") {
                    state = .extensions
                } else if !byte.isBlank {
                    throw MessageFault("A chunk's size is followed by something other than its end.")
                }
                try countLine()
            case .extensions:
                if byte == UInt8(ascii: "\r") {
                    state = .sizeEnd
                } else {
                    try requireText(byte)
                }
            case .sizeEnd:
                try require(byte, is: UInt8(ascii: "\n"))
                state = remaining == 0 ? .trailerStart : .content
                digits = 0
                lineBytes = 0
            case .contentReturn:
                try require(byte, is: UInt8(ascii: "\r"))
                state = .contentEnd
            case .contentEnd:
                try require(byte, is: UInt8(ascii: "\n"))
                state = .size
            case .trailerStart:
                if byte == UInt8(ascii: "\r") {
                    state = .lastEnd
                } else {
                    guard FieldLines.isToken(byte) else {
                        throw MessageFault("A trailer field line does not begin with a name.")
                    }
                    state = .trailerName
                    try countLine()
                }
            case .trailerName:
                if FieldLines.isToken(byte) {
                    try countLine()
                } else if byte == UInt8(ascii: ":") {
                    state = .trailer
                    try countLine()
                } else {
                    throw MessageFault("A trailer field line is not a name that a colon follows.")
                }
            case .trailer:
                if byte == UInt8(ascii: "\r") {
                    state = .trailerEnd
                } else {
                    try requireText(byte)
                }
            case .trailerEnd:
                try require(byte, is: UInt8(ascii: "\n"))
                state = .trailerStart
            case .lastEnd:
                try require(byte, is: UInt8(ascii: "\n"))
                state = .ended
            case .content, .ended:
                break
            }
        }

        private mutating func takeSize(_ byte: UInt8) throws(MessageFault) {
            if let digit = byte.hexDigit {
                // 15 digits are below 2^60, so nothing overflows.
                guard digits < 15 else { throw MessageFault("A chunk's size has more than 15 digits.") }
                remaining = remaining << 4 | digit
                digits += 1
                return
            }
            guard digits > 0 else { throw MessageFault("A chunk does not begin with its size.") }
            switch byte {
            case UInt8(ascii: "\r"):
                state = .sizeEnd
            case UInt8(ascii: ";"):
                state = .extensions
            case UInt8(ascii: " "), UInt8(ascii: "\t"):
                guard toleratesPadding else { throw MessageFault("White space follows a chunk's size.") }
                state = .padding
            default:
                throw MessageFault("A chunk's size is followed by something other than its end.")
            }
        }

        private func require(_ byte: UInt8, is wanted: UInt8) throws(MessageFault) {
            guard byte == wanted else { throw MessageFault("A chunk or one of its lines does not end with CR LF.") }
        }

        private mutating func requireText(_ byte: UInt8) throws(MessageFault) {
            guard byte >= 0x20 && byte != 0x7F || byte == UInt8(ascii: "\t") else {
                throw MessageFault("A chunk extension or trailer contains a control character.")
            }
            try countLine()
        }

        private mutating func countLine() throws(MessageFault) {
            lineBytes += 1
            guard lineBytes <= ChunkedDecoder.lineLimit else {
                throw MessageFault(
                    431,
                    message: "Chunk extensions or trailers are longer than \(ChunkedDecoder.lineLimit) bytes."
                )
            }
        }
    }

    /// Extracts the content of a message from the bytes of a connection.
    enum ContentDecoder: Sendable {
        case length(remaining: Int)
        case chunked(ChunkedDecoder)
        /// Everything until the end of the HTTP/2 stream, or of the connection.
        case untilEnd(hasEnded: Bool)

        /// Whether all of it was extracted.
        var isAtEnd: Bool {
            switch self {
            case .length(let remaining): remaining == 0
            case .chunked(let decoder): decoder.isAtEnd
            case .untilEnd(let hasEnded): hasEnded
            }
        }

        /// Handles the end of the input; returns whether it is the end of the content.
        mutating func end() -> Bool {
            guard case .untilEnd = self else { return false }
            self = .untilEnd(hasEnded: true)
            return true
        }

        /// How many bytes are still to come, if known.
        var remaining: Int? { if case .length(let remaining) = self { remaining } else { nil } }

        /// Extracts the next content from the front of `bytes`; nil if there is none or it has ended.
        mutating func next(in bytes: inout ByteBuffer) throws(MessageFault) -> ByteChunk? {
            switch self {
            case .length(let remaining):
                let count = min(remaining, bytes.readableBytes)
                self = .length(remaining: remaining - count)
                return count > 0 ? bytes.readBytes(length: count).map { ByteChunk($0) } : nil
            case .untilEnd:
                return bytes.readableBytes > 0
                    ? bytes.readBytes(length: bytes.readableBytes).map { ByteChunk($0) } : nil
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

        /// Extracts all content from the front of `bytes`; what follows its end remains there.
        mutating func all(in bytes: inout ByteBuffer) throws(MessageFault) -> ByteChunk {
            var first: ByteChunk?
            var several: [UInt8] = []
            while !isAtEnd, bytes.readableBytes > 0 {
                guard let chunk = try next(in: &bytes) else { continue }
                if let first {
                    if several.isEmpty { first.append(to: &several) }
                    chunk.append(to: &several)
                } else {
                    first = chunk
                }
            }
            return several.isEmpty ? first ?? ByteChunk() : ByteChunk(several)
        }

        /// All of the content, if the bytes contain it and it is no longer than `limit`; the bytes are then what
        /// follows it.
        func whole(in bytes: inout ByteBuffer, limit: Int) throws(MessageFault) -> ByteChunk? {
            if let remaining, remaining > min(limit, bytes.readableBytes) { return nil }
            var decoder = self
            var rest = bytes
            let content = try decoder.all(in: &rest)
            guard decoder.isAtEnd, content.count <= limit else { return nil }
            bytes = rest
            return content
        }
    }

    extension FixedWidthInteger {
        /// The bits of a number without a sign in hexadecimal digits, zeros in front included.
        var hexDigits: String {
            let digits = String(self, radix: 16)
            return String(repeating: "0", count: Self.bitWidth / 4 - digits.utf8.count) + digits
        }
    }

    extension UInt8 {
        /// The value of a hexadecimal digit.
        var hexDigit: Int? {
            switch self {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): Int(self &- UInt8(ascii: "0"))
            case UInt8(ascii: "a")...UInt8(ascii: "f"): Int(self &- UInt8(ascii: "a")) + 10
            case UInt8(ascii: "A")...UInt8(ascii: "F"): Int(self &- UInt8(ascii: "A")) + 10
            default: nil
            }
        }
    }

    /// Writes a message body in the chunked transfer coding (RFC 9112 §7.1).
    package enum ChunkedEncoder {
        /// The most bytes that `begin` writes.
        package static let overhead = 20

        /// Writes what precedes a chunk of `count` bytes, at least one.
        package static func begin(_ count: Int, in buffer: inout ByteBuffer) {
            var shift = max(0, (Int.bitWidth - 1 - max(count, 1).leadingZeroBitCount) / 4 * 4)
            while shift >= 0 {
                let digit = UInt8(truncatingIfNeeded: count >> shift & 0xF)
                buffer.writeInteger(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") - 10 + digit)
                shift -= 4
            }
            end(in: &buffer)
        }

        /// Writes what follows a chunk.
        package static func end(in buffer: inout ByteBuffer) {
            buffer.writeInteger(0x0D0A as UInt16)
        }

        /// Writes the last chunk, without trailers.
        package static func finish(in buffer: inout ByteBuffer) {
            buffer.writeStaticString("0\r\n\r\n")
        }
    }
#endif

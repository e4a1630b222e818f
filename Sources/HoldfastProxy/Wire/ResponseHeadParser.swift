// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import HoldfastSemantics
    internal import NIOCore

    /// Reads the head of a response as it arrives (RFC 9112 §4, §5).
    ///
    /// Strict if two readers could see two messages in the same bytes, but tolerant of what old servers do and no one
    /// can misread: no reason phrase, a single LF at the end of a line, white space before a colon, folded lines, a
    /// leading empty line.
    struct ResponseHeadParser: Sendable {
        /// A complete head.
        struct Head: Sendable, Hashable {
            /// The status and the fields, values as ISO 8859-1.
            var head: ResponseHead
            /// Whether its version is HTTP/1.0.
            var isVersion10: Bool
        }

        private let limits: HeadLimits
        private var scanner: HeadScanner
        /// The beginning of an incomplete head.
        private var held: [UInt8] = []

        init(limits: HeadLimits = HeadLimits()) {
            self.limits = limits
            scanner = HeadScanner(limits: limits, rules: .response)
        }

        /// Consumes the next bytes.
        ///
        /// - Returns: the head once it is complete, and how many of `bytes` belong to it; nil if more are needed, and
        ///   then all of them do. The parser is then ready for the next head.
        mutating func read(_ bytes: UnsafeRawBufferPointer) throws(MessageFault) -> (head: Head, count: Int)? {
            if held.isEmpty {
                if let found = try head(in: bytes) { return found }
                held.append(contentsOf: bytes)
                return nil
            }
            let before = held.count
            var all = held
            held = []
            all.append(contentsOf: bytes)
            var found: (head: Head, count: Int)?
            try all.withUnsafeBufferPointer { (buffer: UnsafeBufferPointer<UInt8>) throws(MessageFault) in
                found = try head(in: UnsafeRawBufferPointer(buffer))
            }
            guard let found else {
                held = all
                return nil
            }
            return (found.head, found.count - before)
        }

        /// The head at the start of `bytes`, which are all of it that has arrived, and its length.
        private mutating func head(
            in bytes: UnsafeRawBufferPointer
        ) throws(MessageFault) -> (head: Head, count: Int)? {
            let end = try scanner.end(in: bytes)
            // Anything that is not HTTP is reported at once, because its end may never come. A CR may begin a leading empty line.
            let start = scanner.start
            let begins = bytes.count == 1 && bytes.first == UInt8(ascii: "\r") ? "" : "HTTP/"
            guard zip(bytes[min(start, bytes.count)...], begins.utf8).allSatisfy({ $0 == $1 }) else {
                throw MessageFault("The response is not HTTP. Check that the port uses HTTP/1.1 without TLS.")
            }
            guard let end else { return nil }
            let head = try ResponseHeadParser.parse(
                UnsafeRawBufferPointer(rebasing: bytes[start..<end]),
                limits: limits
            )
            scanner = HeadScanner(limits: limits, rules: .response)
            return (head, end)
        }

        private static func parse(_ bytes: UnsafeRawBufferPointer, limits: HeadLimits) throws(MessageFault) -> Head {
            guard let feed = bytes.firstIndex(of: UInt8(ascii: "\n")) else { throw malformed }
            var lineEnd = feed
            if lineEnd > 0, bytes[lineEnd - 1] == UInt8(ascii: "\r") { lineEnd -= 1 }
            let line = UnsafeRawBufferPointer(rebasing: bytes[..<lineEnd])
            var result = try statusLine(line)
            result.head.fields = try FieldLines.read(
                UnsafeRawBufferPointer(rebasing: bytes[(feed + 1)...]),
                limits: limits,
                rules: .response
            )
            return result
        }

        /// `HTTP/1.x SP 3DIGIT [SP reason]`, with any reason.
        private static func statusLine(_ line: UnsafeRawBufferPointer) throws(MessageFault) -> Head {
            guard line.count >= 8, line[5].isDigit, line[6] == UInt8(ascii: "."), line[7].isDigit else {
                throw malformed
            }
            guard line[5] == UInt8(ascii: "1") else {
                throw MessageFault(505, message: "The response has an HTTP version other than 1.x.")
            }
            let isComplete = line.count == 12 || line.count > 12 && line[12] == UInt8(ascii: " ")
            guard isComplete, line[8] == UInt8(ascii: " ") else { throw malformed }
            var status = 0
            for byte in line[9..<12] {
                guard byte.isDigit else { throw malformed }
                status = status * 10 + Int(byte - UInt8(ascii: "0"))
            }
            // A CR or NUL in the reason may end the line, or the text, for another reader.
            guard status >= 100, !line.contains(UInt8(ascii: "\r")), !line.contains(0) else { throw malformed }
            return Head(head: ResponseHead(status: StatusCode(status)), isVersion10: line[7] == UInt8(ascii: "0"))
        }

        private static let malformed = MessageFault("The status line is malformed.")
    }

    extension ByteChannel {
        /// Reads one head of a response; what follows it is read next. Nil if the peer closes its side before.
        ///
        /// - Parameters:
        ///   - parser: parses the head, and is then ready for the next one.
        ///   - deadline: ends a wait with `.readTimedOut`; nil: never.
        func readHead(_ parser: inout ResponseHeadParser, by deadline: NIODeadline?) async throws -> ResponseHead? {
            while var bytes = try await read(by: deadline) {
                var found: (head: ResponseHeadParser.Head, count: Int)?
                try bytes.withUnsafeReadableBytes { view in found = try parser.read(view) }
                guard let found else { continue }
                bytes.moveReaderIndex(forwardBy: found.count)
                putBack(bytes)
                return found.head.head
            }
            return nil
        }
    }
#endif

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    package import HoldfastSemantics

    /// Reads the field lines of a head (RFC 9112 §5).
    package enum FieldLines {
        /// Which deviations from the grammar are accepted.
        package enum Rules: Sendable, Hashable {
            /// None, as a server requires of requests.
            case request
            /// Those that a proxy must correct in responses: a line that begins with white space continues the previous one
            /// (RFC 9112 §5.2), a line feed alone ends a line (§2.2), white space between name and colon is removed (§5.1),
            /// and control characters in values are kept, but never CR, LF and NUL (RFC 9110 §5.5).
            case response
        }

        static let bareLineFeed = MessageFault("A line must end with CR LF, but there is a single line feed.")
        private static let bareReturn = MessageFault("There is a single carriage return.")

        /// Reads the lines through the empty line that ends them, or through the last byte.
        ///
        /// - Parameters:
        ///   - bytes: the field lines, beginning with the first.
        ///   - limits: how many lines there may be.
        /// - Returns: the lines in order, names as spelled, values as ISO 8859-1 without white space at their ends.
        package static func read(
            _ bytes: UnsafeRawBufferPointer,
            limits: HeadLimits,
            rules: Rules
        ) throws(MessageFault) -> HeaderFields {
            var lines: [HeaderFields.Line] = []
            lines.reserveCapacity(16)
            var count = 0
            var position = 0
            while position < bytes.count {
                let line = try line(bytes, from: position, rules: rules)
                if line.isEmpty { break }
                position = line.end
                count += 1
                guard count <= limits.fieldLines else {
                    throw MessageFault(431, message: "There are more than \(limits.fieldLines) header field lines.")
                }
                if bytes[line.start] == UInt8(ascii: " ") || bytes[line.start] == UInt8(ascii: "\t") {
                    guard rules == .response, let last = lines.popLast() else {
                        throw MessageFault("A header field line begins with white space.")
                    }
                    let rest = try value(bytes, from: line.start, to: line.textEnd, rules: rules)
                    lines.append(HeaderFields.Line(name: last.name, value: last.value + " " + rest))
                    continue
                }
                var colon = line.start
                while colon < line.textEnd, isToken(bytes[colon]) { colon += 1 }
                let nameEnd = colon
                if rules == .response {
                    while colon < line.textEnd, bytes[colon].isBlank { colon += 1 }
                }
                guard nameEnd > line.start, colon < line.textEnd, bytes[colon] == UInt8(ascii: ":"),
                    let name = FieldNames.name(UnsafeRawBufferPointer(rebasing: bytes[line.start..<nameEnd]))
                else { throw badName(bytes, line: line) }
                lines.append(
                    HeaderFields.Line(
                        name: name,
                        value: try value(bytes, from: colon + 1, to: line.textEnd, rules: rules)
                    )
                )
            }
            return HeaderFields(lines)
        }

        private struct Line {
            let start: Int
            /// The end of the text, where the line's end begins.
            let textEnd: Int
            /// The start of the next line.
            let end: Int
            var isEmpty: Bool { textEnd == start }
        }

        private static func line(
            _ bytes: UnsafeRawBufferPointer,
            from start: Int,
            rules: Rules
        ) throws(MessageFault) -> Line {
            var index = start
            while index < bytes.count, bytes[index] != UInt8(ascii: "\n") { index += 1 }
            guard index < bytes.count else { throw MessageFault("The last header field line does not end.") }
            if index > start, bytes[index - 1] == UInt8(ascii: "\r") {
                return Line(start: start, textEnd: index - 1, end: index + 1)
            }
            guard rules == .response else { throw bareLineFeed }
            return Line(start: start, textEnd: index, end: index + 1)
        }

        private static func value(
            _ bytes: UnsafeRawBufferPointer,
            from: Int,
            to: Int,
            rules: Rules
        ) throws(MessageFault) -> String {
            var start = from
            var end = to
            while start < end, bytes[start].isBlank { start += 1 }
            while end > start, bytes[end - 1].isBlank { end -= 1 }
            let part = UnsafeRawBufferPointer(rebasing: bytes[start..<end])
            for byte in part where byte < 0x20 && byte != UInt8(ascii: "\t") || byte == 0x7F {
                if byte == UInt8(ascii: "\r") { throw bareReturn }
                guard rules == .response, byte != 0 else {
                    throw MessageFault("A header field value contains a control character.")
                }
            }
            return FieldText.string(part)
        }

        private static func badName(_ bytes: UnsafeRawBufferPointer, line: Line) -> MessageFault {
            let text = bytes[line.start..<line.textEnd]
            if text.contains(UInt8(ascii: "\r")) { return bareReturn }
            guard let colon = text.firstIndex(of: UInt8(ascii: ":")) else {
                return MessageFault("A header field line has no colon.")
            }
            if colon == line.start { return MessageFault("A header field line has no name.") }
            return bytes[colon - 1].isBlank
                ? MessageFault("There is white space between a header field's name and its colon.")
                : MessageFault("A header field's name is not a token.")
        }

        /// tchar of RFC 9110 §5.6.2, as two 64-bit masks, because it is called for every byte of every name.
        @inline(__always)
        static func isToken(_ byte: UInt8) -> Bool {
            guard byte < 0x80 else { return false }
            let mask: UInt64 = byte < 0x40 ? 0x03FF_6CFA_0000_0000 : 0x57FF_FFFF_C7FF_FFFE
            return mask &>> UInt64(byte & 0x3F) & 1 == 1
        }
    }

    extension UInt8 {
        /// OWS of RFC 9110 §5.6.3.
        @inline(__always)
        var isBlank: Bool { self == UInt8(ascii: " ") || self == UInt8(ascii: "\t") }
    }

    /// Field values as bytes and as text: each byte is one scalar from U+0000 to U+00FF (ISO 8859-1), both ways.
    ///
    /// Received values are therefore sent on byte for byte (RFC 9110 §5.5).
    package enum FieldText {
        /// The text of received bytes; needs one pass, and only a copy if they are ASCII.
        package static func string(_ bytes: UnsafeRawBufferPointer) -> String {
            guard let base = bytes.baseAddress, bytes.count > 0 else { return "" }
            var highBytes = 0
            for byte in bytes { highBytes &+= Int(byte >> 7) }
            let count = bytes.count
            return String(unsafeUninitializedCapacity: count + highBytes) { text in
                guard let target = text.baseAddress else { return 0 }
                guard highBytes > 0 else {
                    UnsafeMutableRawPointer(target).copyMemory(from: base, byteCount: count)
                    return count
                }
                var written = 0
                for byte in bytes {
                    if byte < 0x80 {
                        target[written] = byte
                        written += 1
                    } else {
                        target[written] = 0xC0 | byte >> 6
                        target[written + 1] = 0x80 | byte & 0x3F
                        written += 2
                    }
                }
                return written
            }
        }

        /// Writes the bytes of a text to `target`, which must have room for the text's UTF-8, and returns their number.
        ///
        /// A scalar above U+00FF, which cannot come from received bytes, is written as UTF-8.
        package static func write(_ text: String, to target: UnsafeMutableRawPointer) -> Int {
            var text = text
            return text.withUTF8 { utf8 in
                guard let base = utf8.baseAddress else { return 0 }
                var combined: UInt8 = 0
                for byte in utf8 { combined |= byte }
                guard combined >= 0x80 else {
                    target.copyMemory(from: base, byteCount: utf8.count)
                    return utf8.count
                }
                var written = 0
                var index = 0
                while index < utf8.count {
                    let byte = utf8[index]
                    if byte & 0xFE == 0xC2, index + 1 < utf8.count {
                        // U+0080 to U+00FF are the two-byte forms that begin with C2 and C3.
                        target.storeBytes(of: byte << 6 | utf8[index + 1] & 0x3F, toByteOffset: written, as: UInt8.self)
                        index += 2
                    } else {
                        target.storeBytes(of: byte, toByteOffset: written, as: UInt8.self)
                        index += 1
                    }
                    written += 1
                }
                return written
            }
        }
    }

    /// Names of header fields from received bytes; the most frequent ones are made only once.
    package enum FieldNames {
        private struct Known: Sendable {
            let bytes: [UInt8]
            let name: FieldName
        }

        private static let byLength: [[Known]] = {
            var table = [[Known]](repeating: [], count: 33)
            for spelling in common {
                for text in [spelling, spelling.lowercased()] where text.utf8.count < table.count {
                    guard let name = FieldName(text) else { continue }
                    table[text.utf8.count].append(Known(bytes: Array(text.utf8), name: name))
                }
            }
            return table
        }()

        /// The name that the bytes spell; nil if they are not a token.
        package static func name(_ bytes: UnsafeRawBufferPointer) -> FieldName? {
            if bytes.count < byLength.count {
                for known in byLength[bytes.count] where known.bytes.withUnsafeBytes({ equal($0, to: bytes) }) {
                    return known.name
                }
            }
            return FieldName(FieldText.string(bytes))
        }

        private static func equal(_ left: UnsafeRawBufferPointer, to right: UnsafeRawBufferPointer) -> Bool {
            for index in 0..<left.count where left[index] != right[index] { return false }
            return true
        }

        private static let common = [
            "Host", "User-Agent", "Accept", "Accept-Encoding", "Accept-Language", "Accept-Ranges",
            "Access-Control-Allow-Origin",
            "Age", "Allow", "Alt-Svc", "Authorization", "Cache-Control", "Connection", "Content-Disposition",
            "Content-Encoding", "Content-Language", "Content-Length", "Content-Location", "Content-Range",
            "Content-Security-Policy", "Content-Type", "Cookie", "Date", "ETag", "Expect", "Expires", "Forwarded",
            "If-Match", "If-Modified-Since", "If-None-Match", "If-Range", "If-Unmodified-Since", "Keep-Alive",
            "Last-Modified", "Link", "Location", "Origin", "Pragma", "Priority", "Proxy-Connection", "Range", "Referer",
            "Retry-After", "Sec-Fetch-Dest", "Sec-Fetch-Mode", "Sec-Fetch-Site", "Sec-Fetch-User", "Server",
            "Set-Cookie",
            "Strict-Transport-Security", "TE", "Trailer", "Transfer-Encoding", "Upgrade", "Upgrade-Insecure-Requests",
            "Vary", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Request-ID",
            "X-Content-Type-Options", "X-Frame-Options",
        ]
    }

    /// Finds the end of a head in bytes that arrive in pieces; checks each byte once.
    package struct HeadScanner: Sendable {
        private let limits: HeadLimits
        private let rules: FieldLines.Rules
        private var scanned = 0
        private var lineStart = 0
        /// Where the head begins: after a leading empty line, which is skipped (RFC 9112 §2.2).
        package private(set) var start = 0

        /// Creates a scanner for the next message of a connection.
        package init(limits: HeadLimits = HeadLimits(), rules: FieldLines.Rules) {
            self.limits = limits
            self.rules = rules
        }

        /// Scans the new bytes.
        ///
        /// - Parameter bytes: all bytes of the message so far: those of the last call, and the new ones.
        /// - Returns: the offset after the head's empty line; nil if it has not arrived.
        /// - Throws: 400 for a line feed without its carriage return if the rules require one, or for a first byte that
        ///   cannot begin a message; 414 and 431 if the head exceeds its limit.
        package mutating func end(in bytes: UnsafeRawBufferPointer) throws(MessageFault) -> Int? {
            let bound = min(bytes.count, limits.bytes)
            while scanned < bound {
                guard bytes[scanned] == UInt8(ascii: "\n") else {
                    if scanned == start, !FieldLines.isToken(bytes[scanned]), bytes[scanned] != UInt8(ascii: "\r") {
                        throw MessageFault("The first byte is not the beginning of an HTTP/1.1 message. Is this TLS?")
                    }
                    scanned += 1
                    continue
                }
                let hasReturn = scanned > lineStart && bytes[scanned - 1] == UInt8(ascii: "\r")
                guard hasReturn || rules == .response else { throw FieldLines.bareLineFeed }
                let isEmpty = scanned - lineStart == (hasReturn ? 1 : 0)
                scanned += 1
                if isEmpty {
                    guard lineStart == 0 else { return scanned }
                    start = scanned
                }
                lineStart = scanned
            }
            guard bytes.count < limits.bytes else { throw overflow }
            return nil
        }

        /// Whether nothing of the head has arrived, except for a leading empty line.
        package var isUntouched: Bool { scanned <= start }

        private var overflow: MessageFault {
            lineStart == start
                ? MessageFault(414, message: "The request line is longer than \(limits.bytes) bytes.")
                : MessageFault(431, message: "The header fields are longer than \(limits.bytes) bytes.")
        }
    }

    /// The limits of a message's head.
    package struct HeadLimits: Sendable, Hashable {
        /// The bytes of a head, from the start line through the empty line; 64 KiB by default.
        package var bytes: Int
        /// The field lines of a head; 100 by default, as in Apache.
        package var fieldLines: Int
        /// The bytes of a request's target; 8 KiB by default, as in nginx and Apache.
        package var target: Int

        /// Creates limits; a longer target gets a 414, more bytes or lines a 431 (RFC 9110 §15.5.15, RFC 6585 §5).
        package init(bytes: Int = 64 << 10, fieldLines: Int = 100, target: Int = 8 << 10) {
            self.bytes = max(bytes, 64)
            self.fieldLines = max(fieldLines, 1)
            self.target = max(target, 1)
        }
    }

    /// Why bytes are not an HTTP/1.1 message: the status of the response, and a text for the sender.
    package struct MessageFault: Error, Sendable, Hashable, CustomStringConvertible {
        /// The status of a server's response; meaningless if the bytes are a response.
        package let status: StatusCode
        /// What is wrong, in one sentence that repeats nothing of the message.
        package let message: String

        /// Creates a fault with status 400.
        package init(_ message: String) {
            self.init(400, message: message)
        }

        /// Creates a fault with this status.
        package init(_ status: Int, message: String) {
            self.status = StatusCode(status)
            self.message = message
        }

        /// Whether the message may be valid, and is only larger than a limit.
        var isOverLimit: Bool { status.rawValue == 431 || status.rawValue == 414 }

        /// The message.
        package var description: String { message }
    }
#endif

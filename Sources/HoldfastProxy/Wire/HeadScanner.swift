// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    package import HoldfastSemantics

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
                guard hasReturn || rules.acceptsBareLineFeeds else { throw FieldLines.bareLineFeed }
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

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    package import HoldfastSemantics

    /// Finds where a head ends in bytes that arrive piecemeal; looks at each byte once.
    package struct HeadScanner: Sendable {
        private let limits: HeadLimits
        private let rules: FieldLines.Rules
        private var scanned = 0
        private var lineStart = 0
        /// Where the head begins: behind an empty line in front of it, which is skipped (RFC 9112 §2.2).
        package private(set) var start = 0

        /// A scanner for the next message of a connection.
        package init(limits: HeadLimits = HeadLimits(), rules: FieldLines.Rules) {
            self.limits = limits
            self.rules = rules
        }

        /// Looks through the bytes that are new.
        ///
        /// - Parameter bytes: all bytes of the message so far: those of the last call, and what came since.
        /// - Returns: the offset behind the head's empty line; nil while it has not come.
        /// - Throws: 400 for a line feed without its carriage return where the rules ask for it, or for a first byte that
        ///   begins no message; 414 and 431 when the head exceeds its limit.
        package mutating func end(in bytes: UnsafeRawBufferPointer) throws(MessageFault) -> Int? {
            let bound = min(bytes.count, limits.bytes)
            while scanned < bound {
                guard bytes[scanned] == UInt8(ascii: "\n") else {
                    if scanned == start, !FieldLines.isToken(bytes[scanned]), bytes[scanned] != UInt8(ascii: "\r") {
                        throw MessageFault("The first byte begins no HTTP/1.1 message; is this TLS?")
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

        /// Whether nothing of the head has come, an empty line in front of it aside.
        package var isUntouched: Bool { scanned <= start }

        private var overflow: MessageFault {
            lineStart == start
                ? MessageFault(414, message: "The request line is longer than \(limits.bytes) bytes.")
                : MessageFault(431, message: "The header fields are longer than \(limits.bytes) bytes.")
        }
    }

    /// How much of a message's head is read before it is refused.
    package struct HeadLimits: Sendable, Hashable {
        /// The bytes of a head, from the start line through the empty line; 64 KiB by default.
        package var bytes: Int
        /// The field lines of a head; 100 by default, as in Apache.
        package var fieldLines: Int
        /// The bytes of a request's target; 8 KiB by default, as in nginx and Apache.
        package var target: Int

        /// Limits; a longer target is answered 414, more bytes or lines 431 (RFC 9110 §15.5.15, RFC 6585 §5).
        package init(bytes: Int = 64 << 10, fieldLines: Int = 100, target: Int = 8 << 10) {
            self.bytes = max(bytes, 64)
            self.fieldLines = max(fieldLines, 1)
            self.target = max(target, 1)
        }
    }

    /// Why bytes are no HTTP/1.1 message: the status that a server answers with, and a text for whoever sent them.
    package struct MessageFault: Error, Sendable, Hashable, CustomStringConvertible {
        /// What a server answers; of no meaning where the bytes are a response.
        package let status: StatusCode
        /// What is wrong, in one sentence that repeats nothing of the message.
        package let message: String

        /// A fault that a server answers with 400.
        package init(_ message: String) {
            self.init(400, message: message)
        }

        /// A fault that a server answers with this status.
        package init(_ status: Int, message: String) {
            self.status = StatusCode(status)
            self.message = message
        }

        /// Whether the message may be right, and is only larger than a limit.
        var isOverLimit: Bool { status.rawValue == 431 || status.rawValue == 414 }

        /// The message.
        package var description: String { message }
    }
#endif

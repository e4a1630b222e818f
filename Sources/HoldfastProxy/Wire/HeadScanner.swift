// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
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
                ? MessageFault(414, "The request line is longer than \(limits.bytes) bytes.")
                : MessageFault(431, "The header fields are longer than \(limits.bytes) bytes.")
        }
    }
#endif

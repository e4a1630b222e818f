// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

extension ResponseBytes {
    /// The text by Unicode scalars, the bytes being read as UTF-8.
    ///
    /// What is no UTF-8 is replaced by U+FFFD, just as `String(decoding:as:)` does it, wherever the chunks are cut.
    public var unicodeScalars: UnicodeScalars { UnicodeScalars(bytes: self) }

    /// The Unicode scalars of one body.
    public struct UnicodeScalars: AsyncSequence, Sendable {
        public typealias Element = Unicode.Scalar

        fileprivate let bytes: ResponseBytes

        public func makeAsyncIterator() -> Iterator {
            Iterator(bytes: bytes.makeAsyncIterator())
        }

        /// Hands out the Unicode scalars of one body.
        public struct Iterator: AsyncIteratorProtocol {
            private static let replacement: Unicode.Scalar = "\u{FFFD}"

            fileprivate var bytes: ResponseBytes.Iterator
            /// A byte that was read and begins the next scalar.
            private var held: UInt8?

            fileprivate init(bytes: ResponseBytes.Iterator) {
                self.bytes = bytes
            }

            /// As ``next()``, on the caller's actor: what the standard library does without this leaves it for each scalar.
            public mutating func next(isolation actor: isolated (any Actor)?) async throws -> Unicode.Scalar? {
                try await next()
            }

            /// The next scalar; nil at the end.
            public mutating func next() async throws -> Unicode.Scalar? {
                let first: UInt8
                if let held {
                    first = held
                    self.held = nil
                } else {
                    guard let byte = try await bytes.next() else { return nil }
                    first = byte
                }
                if first < 0x80 { return Unicode.Scalar(first) }
                guard var form = MultibyteForm(first) else { return Self.replacement }
                var value = form.firstBits
                for _ in 0..<form.continuations {
                    guard let byte = try await bytes.next() else { return Self.replacement }
                    guard form.allowed.contains(byte) else {
                        held = byte
                        return Self.replacement
                    }
                    value = value << 6 | UInt32(byte & 0x3F)
                    form.allowed = 0x80...0xBF
                }
                return Unicode.Scalar(value) ?? Self.replacement
            }
        }
    }
}

/// What may follow the first byte of a scalar of several bytes (Unicode 16, table 3-7).
private struct MultibyteForm {
    /// The bits of the scalar that stand in the first byte.
    let firstBits: UInt32
    /// How many bytes follow.
    let continuations: Int
    /// What the next byte may be: less than usual for the second one where overlong forms and surrogates would begin.
    var allowed: ClosedRange<UInt8> = 0x80...0xBF

    /// Nil where no scalar begins with this byte.
    init?(_ first: UInt8) {
        switch first {
        case 0xC2...0xDF: (firstBits, continuations) = (UInt32(first & 0x1F), 1)
        case 0xE0...0xEF: (firstBits, continuations) = (UInt32(first & 0x0F), 2)
        case 0xF0...0xF4: (firstBits, continuations) = (UInt32(first & 0x07), 3)
        default: return nil
        }
        switch first {
        case 0xE0: allowed = 0xA0...0xBF
        case 0xED: allowed = 0x80...0x9F
        case 0xF0: allowed = 0x90...0xBF
        case 0xF4: allowed = 0x80...0x8F
        default: break
        }
    }
}

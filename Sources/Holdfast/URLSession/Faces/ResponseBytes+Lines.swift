// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

extension ResponseBytes {
    /// The text by lines, as Foundation's `AsyncSequence.lines` has them on Apple systems.
    ///
    /// The bytes are read as UTF-8, what is none of it being replaced by U+FFFD. Lines end with LF, VT, FF, CR, CR LF, U+0085,
    /// U+2028 or U+2029, which are left out, as are **empty lines**: to see those (server-sent events need them) read the bytes,
    /// or ``unicodeScalars``. A last line needs no end. A line is collected in memory, however long it is.
    public var lines: Lines { Lines(bytes: self) }

    /// The lines of one body.
    public struct Lines: AsyncSequence, Sendable {
        public typealias Element = String

        fileprivate let bytes: ResponseBytes

        public func makeAsyncIterator() -> Iterator {
            Iterator(bytes: bytes.makeAsyncIterator())
        }

        /// Hands out the lines of one body.
        public struct Iterator: AsyncIteratorProtocol {
            fileprivate var bytes: ResponseBytes.Iterator
            private var line: [UInt8] = []

            fileprivate init(bytes: ResponseBytes.Iterator) {
                self.bytes = bytes
            }

            /// The next line that is not empty; nil at the end.
            public mutating func next() async throws -> String? {
                while let byte = try await bytes.next() {
                    guard let rest = lengthOfEnded(by: byte) else {
                        line.append(byte)
                        continue
                    }
                    // The LF of a CR LF ends a line of its own, which is empty and so left out: nothing has to be waited for.
                    if rest > 0 { return take(rest) }
                    line.removeAll(keepingCapacity: true)
                }
                return line.isEmpty ? nil : take(line.count)
            }

            /// As ``next()``, on the caller's actor: what the standard library does without this leaves it for each line.
            public mutating func next(isolation actor: isolated (any Actor)?) async throws -> String? {
                try await next()
            }

            /// How long the line is that `byte` ends, without the bytes of the end that came before; nil where it ends none.
            private func lengthOfEnded(by byte: UInt8) -> Int? {
                switch byte {
                case 0x0A...0x0D:
                    return line.count
                case 0x85 where line.last == 0xC2:
                    return line.count - 1
                case 0xA8 where endsWithSeparatorPrefix, 0xA9 where endsWithSeparatorPrefix:
                    return line.count - 2
                default:
                    return nil
                }
            }

            /// U+2028 and U+2029 are E2 80 A8 and E2 80 A9; neither E2 nor C2 ever stands within another character.
            private var endsWithSeparatorPrefix: Bool {
                line.count >= 2 && line[line.count - 2] == 0xE2 && line[line.count - 1] == 0x80
            }

            private mutating func take(_ length: Int) -> String {
                defer { line.removeAll(keepingCapacity: true) }
                return String(decoding: line[..<length], as: UTF8.self)
            }
        }
    }
}

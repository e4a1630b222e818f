// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

extension ResponseBytes {
    /// The text by characters (extended grapheme clusters), the bytes being read as UTF-8.
    ///
    /// A character is handed out when the scalar after it has come, since that could have belonged to it.
    public var characters: Characters { Characters(scalars: unicodeScalars) }

    /// The characters of one body.
    public struct Characters: AsyncSequence, Sendable {
        public typealias Element = Character

        fileprivate let scalars: UnicodeScalars

        public func makeAsyncIterator() -> Iterator {
            Iterator(scalars: scalars.makeAsyncIterator())
        }

        /// Hands out the characters of one body.
        public struct Iterator: AsyncIteratorProtocol {
            fileprivate var scalars: UnicodeScalars.Iterator
            /// Tells breaks scalar by scalar. Counting the characters of what was collected would take quadratic time for a
            /// server that sends combining marks without end.
            private var recognizer = Unicode._CharacterRecognizer()
            private var cluster = ""

            fileprivate init(scalars: UnicodeScalars.Iterator) {
                self.scalars = scalars
            }

            /// As ``next()``, on the caller's actor: what the standard library does without this leaves it for each character.
            public mutating func next(isolation actor: isolated (any Actor)?) async throws -> Character? {
                try await next()
            }

            /// The next character; nil at the end.
            public mutating func next() async throws -> Character? {
                while let scalar = try await scalars.next() {
                    let finished = recognizer.hasBreak(before: scalar) ? cluster.first : nil
                    if finished != nil { cluster = "" }
                    cluster.unicodeScalars.append(scalar)
                    if let finished { return finished }
                }
                defer { cluster = "" }
                return cluster.first
            }
        }
    }
}

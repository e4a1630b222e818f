// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastStorage

/// The body of a response, byte by byte.
///
/// An `AsyncSequence` of `UInt8` over the chunks of a ``ResponseBody``: the reader waits once per chunk, and within a chunk a
/// byte costs an index. Bytes in memory can be iterated any number of times; a stream can be read once, so give it one
/// iterator. Dropping the sequence and its iterators ends the transfer.
public struct ResponseBytes: AsyncSequence, Sendable {
    public typealias Element = UInt8

    private let body: ResponseBody

    /// The bytes of `body`.
    public init(_ body: ResponseBody) { self.body = body }

    public func makeAsyncIterator() -> Iterator { Iterator(body.makeAsyncIterator()) }

    /// Returns the bytes of one body.
    public struct Iterator: AsyncIteratorProtocol {
        @usableFromInline var chunk: [UInt8] = []
        @usableFromInline var position = 0
        private var chunks: ResponseBody.Iterator
        private var isAtEnd = false

        init(_ chunks: ResponseBody.Iterator) { self.chunks = chunks }

        /// The next byte; nil at the end, and from then on.
        ///
        /// - Throws: ``ServiceError``, or `CancellationError` if the task was cancelled and the current chunk is used up.
        @inlinable
        public mutating func next() async throws -> UInt8? {
            if position == chunk.count {
                guard try await loadChunk() else { return nil }
            }
            defer { position += 1 }
            return chunk[position]
        }

        /// Like ``next()``, on the caller's actor, which the standard library's default would leave for each byte.
        @inlinable
        public mutating func next(isolation actor: isolated (any Actor)?) async throws -> UInt8? {
            try await next()
        }

        /// Loads the next chunk; false at the end.
        @usableFromInline
        mutating func loadChunk() async throws -> Bool {
            guard !isAtEnd else { return false }
            do {
                try Task.checkCancellation()
                repeat {
                    guard let next = try await chunks.next() else {
                        isAtEnd = true
                        return false
                    }
                    chunk = next.array
                    position = 0
                } while chunk.isEmpty
                return true
            } catch {
                isAtEnd = true
                throw error.isCancellation ? CancellationError() : error
            }
        }
    }
}

extension ResponseBytes {
    /// The text as characters (extended grapheme clusters), with the bytes read as UTF-8.
    ///
    /// A character is returned when the next scalar has arrived, since that could have been part of it.
    public var characters: Characters { Characters(scalars: unicodeScalars) }

    /// The characters of one body.
    public struct Characters: AsyncSequence, Sendable {
        public typealias Element = Character

        fileprivate let scalars: UnicodeScalars

        public func makeAsyncIterator() -> Iterator { Iterator(scalars: scalars.makeAsyncIterator()) }

        /// Returns the characters of one body.
        public struct Iterator: AsyncIteratorProtocol {
            fileprivate var scalars: UnicodeScalars.Iterator
            /// Finds the breaks scalar by scalar. Counting the characters of the collected text would take quadratic time if a
            /// server sends combining marks without end.
            private var recognizer = Unicode._CharacterRecognizer()
            private var cluster = ""

            fileprivate init(scalars: UnicodeScalars.Iterator) { self.scalars = scalars }

            /// Like ``next()``, on the caller's actor, which the standard library's default would leave for each character.
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

extension ResponseBytes {
    /// The text as lines, like Foundation's `AsyncSequence.lines` on Apple systems.
    ///
    /// The bytes are read as UTF-8, and invalid bytes become U+FFFD. Lines end with LF, VT, FF, CR, CR LF, U+0085, U+2028 or
    /// U+2029, which are left out, as are **empty lines**: to see those (server-sent events need them), read the bytes or
    /// ``unicodeScalars``. The last line needs no line end. A line is collected in memory, however long it is.
    public var lines: Lines { Lines(bytes: self) }

    /// The lines of one body.
    public struct Lines: AsyncSequence, Sendable {
        public typealias Element = String

        fileprivate let bytes: ResponseBytes

        public func makeAsyncIterator() -> Iterator { Iterator(bytes: bytes.makeAsyncIterator()) }

        /// Returns the lines of one body.
        public struct Iterator: AsyncIteratorProtocol {
            fileprivate var bytes: ResponseBytes.Iterator
            private var line: [UInt8] = []

            fileprivate init(bytes: ResponseBytes.Iterator) { self.bytes = bytes }

            /// The next line that is not empty; nil at the end.
            public mutating func next() async throws -> String? {
                while let byte = try await bytes.next() {
                    guard let rest = lengthOfEnded(by: byte) else {
                        line.append(byte)
                        continue
                    }
                    // The LF of a CR LF ends its own line, which is empty and therefore skipped: there is no need to wait for it.
                    if rest > 0 { return take(rest) }
                    line.removeAll(keepingCapacity: true)
                }
                return line.isEmpty ? nil : take(line.count)
            }

            /// Like ``next()``, on the caller's actor, which the standard library's default would leave for each line.
            public mutating func next(isolation actor: isolated (any Actor)?) async throws -> String? {
                try await next()
            }

            /// The length of the line that `byte` ends, without earlier bytes of the line end; nil if it ends none.
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

            /// U+2028 and U+2029 are E2 80 A8 and E2 80 A9; neither E2 nor C2 ever occurs inside another character.
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

extension ResponseBytes {
    /// The text as Unicode scalars, with the bytes read as UTF-8.
    ///
    /// Invalid UTF-8 is replaced by U+FFFD, just as `String(decoding:as:)` does it, wherever the chunks are cut.
    public var unicodeScalars: UnicodeScalars { UnicodeScalars(bytes: self) }

    /// The Unicode scalars of one body.
    public struct UnicodeScalars: AsyncSequence, Sendable {
        public typealias Element = Unicode.Scalar

        fileprivate let bytes: ResponseBytes

        public func makeAsyncIterator() -> Iterator { Iterator(bytes: bytes.makeAsyncIterator()) }

        /// Returns the Unicode scalars of one body.
        public struct Iterator: AsyncIteratorProtocol {
            private static let replacement: Unicode.Scalar = "\u{FFFD}"

            fileprivate var bytes: ResponseBytes.Iterator
            /// A byte that was read and begins the next scalar.
            private var held: UInt8?

            fileprivate init(bytes: ResponseBytes.Iterator) { self.bytes = bytes }

            /// Like ``next()``, on the caller's actor, which the standard library's default would leave for each scalar.
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
    /// The bits of the scalar in the first byte.
    let firstBits: UInt32
    /// How many bytes follow.
    let continuations: Int
    /// The range of the next byte: smaller than usual for the second one if overlong forms or surrogates would begin there.
    var allowed: ClosedRange<UInt8> = 0x80...0xBF

    /// Nil if no scalar begins with this byte.
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

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastStorage

/// The body of a response, byte by byte.
///
/// An `AsyncSequence` of `UInt8` over the chunks of a ``ResponseBody``: the reader waits once a chunk, and within one a byte
/// costs an index. Bytes in memory can be iterated any number of times; a stream can be read once, so give it one iterator.
/// Dropping the sequence and its iterators ends the transfer.
public struct ResponseBytes: AsyncSequence, Sendable {
    public typealias Element = UInt8

    private let body: ResponseBody

    /// The bytes of `body`.
    public init(_ body: ResponseBody) {
        self.body = body
    }

    public func makeAsyncIterator() -> Iterator {
        Iterator(body.makeAsyncIterator())
    }

    /// Hands out the bytes of one body.
    public struct Iterator: AsyncIteratorProtocol {
        @usableFromInline var chunk: [UInt8] = []
        @usableFromInline var position = 0
        private var chunks: ResponseBody.Iterator
        private var isAtEnd = false

        init(_ chunks: ResponseBody.Iterator) {
            self.chunks = chunks
        }

        /// The next byte; nil at the end, and ever after.
        ///
        /// - Throws: ``ServiceError``, or `CancellationError` where the task was cancelled and the chunk in hand is used up.
        @inlinable
        public mutating func next() async throws -> UInt8? {
            if position == chunk.count {
                guard try await loadChunk() else { return nil }
            }
            defer { position += 1 }
            return chunk[position]
        }

        /// As ``next()``, on the caller's actor: what the standard library does without this leaves it for each byte.
        @inlinable
        public mutating func next(isolation actor: isolated (any Actor)?) async throws -> UInt8? {
            try await next()
        }

        /// Puts the next chunk in place; false at the end.
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

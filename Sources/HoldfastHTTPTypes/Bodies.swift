// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if HTTPTypes
    public import Holdfast
    internal import HoldfastStorage
    private import Synchronization

    extension RequestBody {
        /// Content that is read from an `AsyncSequence` of bytes, one element at a time, at the transport's pace.
        ///
        /// - Parameters:
        ///   - sequence: elements of bytes, such as `ArraySlice<UInt8>`, `[UInt8]` or `Data`; empty ones are skipped. It should
        ///     end when its task is cancelled, as the library's own sequences do, because a cancelled call waits for it.
        ///   - length: the total number of bytes, if known.
        ///   - isReplayable: whether each iterator returns the same bytes from the start. If so, each attempt makes its own
        ///     iterator. Otherwise the first attempt reads the only one, and a retry is possible only if nothing was read yet.
        public static func sequence<Chunks: AsyncSequence & Sendable>(
            _ sequence: Chunks,
            length: Int? = nil,
            isReplayable: Bool = false
        ) -> RequestBody where Chunks.Element: Sequence<UInt8> {
            isReplayable
                ? .factory(length: length) { SequenceSource(sequence) }
                : .oneShot(length: length, SequenceSource(sequence))
        }
    }

    /// Reads chunks from one iterator of a sequence.
    private final class SequenceSource<Chunks: AsyncSequence & Sendable>: ByteSource
    where Chunks.Element: Sequence<UInt8> {
        private struct State {
            var isCancelled = false
            var pull: Task<ByteChunk?, any Error>?
        }

        private let iterator: IteratorHolder<Chunks>
        private let state = Mutex(State())

        init(_ sequence: Chunks) {
            iterator = IteratorHolder(sequence)
        }

        deinit { cancel() }

        func next() async throws -> ByteChunk? {
            // A separate task, because a caller that cancels this source cannot cancel the task that reads it.
            let pull: Task<ByteChunk?, any Error>? = state.withLock { state in
                guard !state.isCancelled else { return nil }
                let pull = Task { [iterator] in try await iterator.next() }
                state.pull = pull
                return pull
            }
            guard let pull else { throw CancellationError() }
            let outcome = await withTaskCancellationHandler {
                await pull.result
            } onCancel: {
                pull.cancel()
            }
            let isCancelled = state.withLock { state in
                state.pull = nil
                return state.isCancelled
            }
            // A cancelled sequence may report its end, which must not count as the end of the content.
            guard !isCancelled && !Task.isCancelled else { throw CancellationError() }
            return try outcome.get()
        }

        func cancel() {
            let pull = state.withLock { state in
                state.isCancelled = true
                return state.pull
            }
            pull?.cancel()
        }
    }

    /// Owns an iterator, which is not Sendable and stays here.
    private actor IteratorHolder<Chunks: AsyncSequence & Sendable> where Chunks.Element: Sequence<UInt8> {
        private let sequence: Chunks
        private var iterator: Chunks.AsyncIterator?
        /// How it ended; another iterator would start from the beginning.
        private var end: Result<ByteChunk?, any Error>?

        init(_ sequence: Chunks) {
            self.sequence = sequence
        }

        func next() async throws -> ByteChunk? {
            if let end { return try end.get() }
            var current = iterator ?? sequence.makeAsyncIterator()
            iterator = nil
            do {
                while let element = try await current.next(isolation: self) {
                    let chunk = ByteChunk(copying: element)
                    guard !chunk.isEmpty else { continue }
                    iterator = current
                    return chunk
                }
                end = .success(nil)
                return nil
            } catch {
                end = .failure(error)
                throw error
            }
        }
    }

    extension ResponseBody {
        /// The body as an `AsyncSequence` of `ArraySlice<UInt8>`, the element type of generated clients.
        ///
        /// It is read like the body itself: at the reader's pace, and only once if it is a stream.
        public var slices: Slices { Slices(self) }

        /// A body, slice by slice.
        public struct Slices: AsyncSequence, Sendable {
            public typealias Element = ArraySlice<UInt8>

            private let body: ResponseBody

            init(_ body: ResponseBody) {
                self.body = body
            }

            public func makeAsyncIterator() -> Iterator {
                Iterator(body.makeAsyncIterator())
            }

            /// Reads a body slice by slice.
            public struct Iterator: AsyncIteratorProtocol {
                private var chunks: ResponseBody.Iterator

                init(_ chunks: ResponseBody.Iterator) {
                    self.chunks = chunks
                }

                /// The next bytes, never an empty slice; nil at the end.
                public mutating func next() async throws -> ArraySlice<UInt8>? {
                    try await chunks.next().map { $0.array[...] }
                }
            }
        }
    }
#endif

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if HTTPTypes
    public import Holdfast

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

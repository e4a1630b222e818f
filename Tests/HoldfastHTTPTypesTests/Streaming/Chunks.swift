// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if HTTPTypes
    @testable import WeatherExample

    extension String {
        /// All of a body as text, as swift-openapi-runtime reads it.
        init(collecting body: HTTPBody) async throws {
            var bytes: [UInt8] = []
            for try await chunk in body { bytes += chunk }
            self.init(decoding: bytes, as: UTF8.self)
        }
    }

    /// Chunks in memory; each iterator gives them all.
    struct Chunks: AsyncSequence, Sendable {
        typealias Element = ArraySlice<UInt8>

        let chunks: [ArraySlice<UInt8>]

        struct Iterator: AsyncIteratorProtocol {
            var rest: ArraySlice<ArraySlice<UInt8>>

            mutating func next() async throws -> ArraySlice<UInt8>? { rest.popFirst() }
        }

        func makeAsyncIterator() -> Iterator { Iterator(rest: chunks[...]) }

        init(chunks: [ArraySlice<UInt8>]) { self.chunks = chunks }

        init(_ texts: [String]) { chunks = texts.map { ArraySlice($0.utf8) } }
    }
#endif

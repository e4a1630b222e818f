// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if HTTPTypes
    import Foundation
    import HTTPTypes
    import Synchronization

    /// A stand-in with the shape of swift-openapi-runtime's `ClientTransport`, which is no dependency of this package.
    protocol ClientTransport: Sendable {
        func send(
            _ request: HTTPRequest,
            body: HTTPBody?,
            baseURL: URL,
            operationID: String
        ) async throws -> (HTTPResponse, HTTPBody?)
    }

    /// A stand-in with the shape of swift-openapi-runtime's `HTTPBody`, as far as a transport sees it.
    final class HTTPBody: Sendable, AsyncSequence {
        typealias ByteChunk = ArraySlice<UInt8>
        typealias Element = ByteChunk

        enum IterationBehavior: Sendable {
            case single, multiple
        }

        enum Length: Sendable, Equatable {
            case unknown
            case known(Int64)
        }

        struct TooManyIterations: Error {}

        let iterationBehavior: IterationBehavior
        let length: Length
        private let make: @Sendable () -> Iterator
        private let wasIterated = Mutex(false)

        init<Bytes: AsyncSequence & Sendable>(
            _ sequence: Bytes,
            length: Length,
            iterationBehavior: IterationBehavior
        ) where Bytes.Element == ByteChunk {
            self.length = length
            self.iterationBehavior = iterationBehavior
            make = { Iterator(sequence.makeAsyncIterator()) }
        }

        convenience init(_ text: String) {
            let bytes = ArraySlice(text.utf8)
            let stream = Chunks(chunks: [bytes])
            self.init(stream, length: .known(Int64(bytes.count)), iterationBehavior: .multiple)
        }

        func makeAsyncIterator() -> Iterator {
            let isSecond = wasIterated.withLock { wasIterated in
                defer { wasIterated = true }
                return wasIterated
            }
            return isSecond && iterationBehavior == .single ? Iterator(failing: TooManyIterations()) : make()
        }

        struct Iterator: AsyncIteratorProtocol {
            private let produce: () async throws -> ByteChunk?

            init<Base: AsyncIteratorProtocol>(_ base: Base) where Base.Element == ByteChunk {
                var base = base
                produce = { try await base.next(isolation: #isolation) }
            }

            init(failing error: any Error) {
                produce = { throw error }
            }

            mutating func next() async throws -> ByteChunk? {
                try await produce()
            }
        }
    }

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

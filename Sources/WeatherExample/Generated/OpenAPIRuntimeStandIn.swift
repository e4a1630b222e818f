// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if HTTPTypes
    internal import Foundation
    internal import HTTPTypes
    internal import Synchronization

    /// A type with the shape of swift-openapi-runtime's `ClientTransport`, which this package does not depend on.
    protocol ClientTransport: Sendable {
        func send(
            _ request: HTTPRequest,
            body: HTTPBody?,
            baseURL: URL,
            operationID: String
        ) async throws -> (HTTPResponse, HTTPBody?)
    }

    /// A type with the shape of swift-openapi-runtime's `HTTPBody`, as far as a transport uses it.
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

    extension HTTPBody {
        /// All of the content, in memory.
        func collected() async throws -> Data {
            var data = Data()
            for try await chunk in self { data += chunk }
            return data
        }
    }
#endif

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if AsyncHTTPClient
    internal import AsyncHTTPClient
    internal import Foundation
    internal import Holdfast
    internal import HoldfastSemantics
    internal import HoldfastStorage
    internal import NIOCore
    private import Synchronization

    #if canImport(FoundationNetworking)
        internal import FoundationNetworking
    #endif

    /// The content of one request as the client reads it, and how much of it was requested.
    ///
    /// The client's own task reads it when the connection accepts more. That task is not a child of the call, so anyone who ends
    /// the exchange calls ``cancel()``.
    final class Upload: Sendable {
        private struct State {
            var source: (any ByteSource)?
            var hasEnded = false
            /// The bytes that the source has given.
            var taken = 0
            var isCancelled = false
            /// The bytes given to the client since the loops were last waited for.
            var bytesAhead = 0
            var failure: (any Error)?
        }

        /// The length in bytes, if known.
        let length: Int?
        /// How many bytes may be given to the client before its loops have had a turn.
        private static let stride = 256 << 10
        private let make: @Sendable () async throws -> any ByteSource
        private let loops: any EventLoopGroup
        private let state = Mutex(State())

        /// - Parameters:
        ///   - loops: the client's event loops.
        ///   - make: opens the source; called once, when the first bytes are requested.
        init(length: Int?, loops: any EventLoopGroup, _ make: @escaping @Sendable () async throws -> any ByteSource) {
            self.length = length
            self.loops = loops
            self.make = make
        }

        /// How far the request can have come, judging by what was requested of its content.
        ///
        /// The client writes the head before it requests content, and may have written it without requesting any.
        var progress: TransportProgress {
            length == 0 || state.withLock { $0.hasEnded } ? .bodySent : .headSent
        }

        /// The source's error, if it failed.
        var failure: (any Error)? { state.withLock { $0.failure } }

        /// The next bytes for the client.
        func next() async throws -> ByteBuffer? {
            do {
                await keepPace()
                guard let chunk = try await nextChunk() else {
                    state.withLock { $0.hasEnded = true }
                    return nil
                }
                state.withLock { $0.bytesAhead += chunk.count }
                return chunk.withUnsafeBytes { ByteBuffer(bytes: $0) }
            } catch {
                state.withLock { state in
                    if !state.isCancelled, state.failure == nil { state.failure = error }
                }
                throw error
            }
        }

        /// The source's next bytes.
        ///
        /// Those that complete the declared length are given only once the source has ended: to the server they complete the
        /// content, although more may follow.
        private func nextChunk() async throws -> ByteChunk? {
            let source = try await open()
            guard let chunk = try await source.next() else { return nil }
            guard let length else { return chunk }
            let taken = state.withLock { state in
                state.taken += chunk.count
                return state.taken
            }
            if taken < length { return chunk }
            guard taken == length, try await source.next() == nil else { throw HTTPClientError.bodyLengthMismatch }
            return chunk
        }

        /// Releases the source; further requests of the client fail.
        func cancel() {
            let source = state.withLock { state in
                state.isCancelled = true
                defer { state.source = nil }
                return state.source
            }
            source?.cancel()
        }

        /// Lets the client's loops catch up from time to time.
        ///
        /// The client stops requesting when a connection accepts no more, but it learns that on the connection's loop, which
        /// may be any number of writes behind while it is busy. It does not say which loop that is.
        private func keepPace() async {
            let isDue = state.withLock { state in
                guard state.bytesAhead >= Upload.stride else { return false }
                state.bytesAhead = 0
                return true
            }
            guard isDue else { return }
            for loop in loops.makeIterator() { try? await loop.submit {}.get() }
        }

        private func open() async throws -> any ByteSource {
            let opened = try state.withLock { state in
                if state.isCancelled { throw CancellationError() }
                return state.source
            }
            if let opened { return opened }
            let source = try await make()
            let isCancelled = state.withLock { state in
                if !state.isCancelled { state.source = source }
                return state.isCancelled
            }
            guard !isCancelled else {
                source.cancel()
                throw CancellationError()
            }
            return source
        }
    }

    extension Upload: AsyncSequence {
        typealias Element = ByteBuffer

        func makeAsyncIterator() -> Iterator { Iterator(upload: self) }

        /// Reads the upload for the client.
        struct Iterator: AsyncIteratorProtocol {
            fileprivate let upload: Upload

            mutating func next() async throws -> ByteBuffer? {
                try await upload.next()
            }
        }
    }

    extension Upload {
        /// The upload of a request body; a file is opened, but nothing is read.
        ///
        /// - Throws: ``ServiceError`` `.badRequest` with progress `notSent` if a file cannot be read.
        convenience init(_ body: RequestBody, of request: URLRequest, loops: any EventLoopGroup) async throws {
            let content = try await body.content(of: request)
            self.init(length: content.length, loops: loops, content.open)
        }
    }
#endif

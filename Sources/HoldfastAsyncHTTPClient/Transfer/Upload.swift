// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if AsyncHTTPClient
    internal import Holdfast
    internal import HoldfastSemantics
    internal import HoldfastStorage
    internal import NIOCore
    private import Synchronization

    /// The content of one request as the client pulls it, and how much of it was asked for.
    ///
    /// The client's own task reads it, when the connection takes more; that task is nobody's child, so whoever ends the
    /// exchange calls ``cancel()``.
    final class Upload: Sendable {
        private struct State {
            var source: (any ByteSource)?
            var wasAsked = false
            var hasEnded = false
            var isCancelled = false
            var failure: (any Error)?
        }

        /// The length in bytes, if known.
        let length: Int?
        private let make: @Sendable () async throws -> any ByteSource
        private let state = Mutex(State())

        /// - Parameter make: opens the source; called once, when the first bytes are asked for.
        init(length: Int?, _ make: @escaping @Sendable () async throws -> any ByteSource) {
            self.length = length
            self.make = make
        }

        /// How far the request can have come, by what was asked of its content.
        ///
        /// The client writes the head before it asks for content, and may have written it without asking.
        var progress: TransportProgress {
            length == 0 || state.withLock { $0.hasEnded } ? .bodySent : .headSent
        }

        /// What the source failed with, if it did.
        var failure: (any Error)? { state.withLock { $0.failure } }

        /// The next bytes for the client.
        func next() async throws -> ByteBuffer? {
            do {
                guard let chunk = try await open().next() else {
                    state.withLock { $0.hasEnded = true }
                    return nil
                }
                return chunk.withUnsafeBytes { ByteBuffer(bytes: $0) }
            } catch {
                state.withLock { state in
                    if !state.isCancelled, state.failure == nil { state.failure = error }
                }
                throw error
            }
        }

        /// Lets go of the source; what the client still asks for fails.
        func cancel() {
            let source = state.withLock { state in
                state.isCancelled = true
                defer { state.source = nil }
                return state.source
            }
            source?.cancel()
        }

        private func open() async throws -> any ByteSource {
            let opened = try state.withLock { state in
                if state.isCancelled { throw CancellationError() }
                state.wasAsked = true
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

        /// Asks the upload on behalf of the client.
        struct Iterator: AsyncIteratorProtocol {
            fileprivate let upload: Upload

            mutating func next() async throws -> ByteBuffer? {
                try await upload.next()
            }
        }
    }
#endif

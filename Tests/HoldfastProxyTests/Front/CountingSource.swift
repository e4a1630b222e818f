// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import Holdfast
    import HoldfastStorage
    import HoldfastTesting
    import Synchronization

    /// A body that counts how much of it was pulled.
    final class CountingSource: ByteSource {
        /// Counts the pulls, for those who wait for one.
        let pulls = CountWatch()
        /// Counts the end by cancellation.
        let cancellations = CountWatch()
        private let chunk: ByteChunk
        private let limit: Int
        private let error: (any Error)?
        private let onPull: @Sendable (Int) -> Void
        private let hasEnded = Mutex(false)

        /// A body of chunks of so many bytes; endless, or after so many chunks at its end or at an error.
        init(
            chunk: Int,
            limit: Int = .max,
            error: (any Error)? = nil,
            onPull: @escaping @Sendable (Int) -> Void = { _ in }
        ) {
            self.onPull = onPull
            self.chunk = ByteChunk([UInt8](repeating: UInt8(ascii: "x"), count: chunk))
            self.limit = limit
            self.error = error
        }

        var pulled: Int { pulls.count }
        var isCancelled: Bool { cancellations.count > 0 }

        func next() async throws -> ByteChunk? {
            if hasEnded.withLock({ $0 }) { throw CancellationError() }
            guard pulls.count < limit else {
                if let error { throw error }
                return nil
            }
            pulls.increment()
            onPull(pulls.count)
            return chunk
        }

        func cancel() {
            let isFirst = hasEnded.withLock { hasEnded in
                defer { hasEnded = true }
                return !hasEnded
            }
            if isFirst { cancellations.increment() }
        }
    }
#endif

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Holdfast
    internal import HoldfastStorage
    internal import Synchronization

    /// The content of a request on its way from the client to the origin, which tells who keeps whom waiting.
    ///
    /// A time limit to the whole of an upload would end every large one; what is limited is how long the origin may do nothing.
    final class WatchedUpload: ByteSource {
        private enum State {
            /// The client is to send.
            case awaitsClient
            /// The origin is to take what is there, or to answer.
            case awaitsOrigin(since: MonotonicInstant)
        }

        private let upstream: any ByteSource
        private let clock: any HoldfastClock
        private let state: Mutex<State>

        init(_ upstream: any ByteSource, clock: any HoldfastClock) {
            self.upstream = upstream
            self.clock = clock
            state = Mutex(.awaitsOrigin(since: clock.now))
        }

        func next() async throws -> ByteChunk? {
            state.withLock { $0 = .awaitsClient }
            defer {
                let now = clock.now
                state.withLock { $0 = .awaitsOrigin(since: now) }
            }
            return try await upstream.next()
        }

        func cancel() {
            upstream.cancel()
        }

        /// Waits until the origin has done nothing for so long.
        ///
        /// - Throws: `CancellationError` when the task is cancelled.
        func originStalled(for limit: Duration) async throws {
            while true {
                let now = clock.now
                let since =
                    switch state.withLock({ $0 }) {
                    case .awaitsClient: now
                    case .awaitsOrigin(let since): since
                    }
                let end = since.advanced(by: limit)
                guard end > now else { return }
                try await clock.sleep(until: end)
            }
        }
    }
#endif

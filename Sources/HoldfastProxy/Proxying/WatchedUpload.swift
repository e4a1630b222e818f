// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Holdfast
    internal import HoldfastStorage
    internal import Synchronization

    /// The content of a request on its way from the client to the origin, which records who is waiting for whom.
    ///
    /// A time limit for a whole upload would end every large one; this limits how long the origin may do nothing.
    final class WatchedUpload: ByteSource {
        private enum State {
            /// The client has to send.
            case awaitsClient
            /// The origin has to read the available content, or to respond.
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

        /// Waits until the origin has done nothing for this long.
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

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if AsyncHTTPClient
    import HoldfastTesting
    import Synchronization

    /// What came to a server, and how its exchanges ended.
    final class OriginRecord: Sendable {
        private struct State {
            var heads: [LoopbackRequest] = []
            var requests: [LoopbackRequest] = []
            var ends: [LoopbackExchangeEnd] = []
            var connectionCount = 0
        }

        let begun = CountWatch()
        let received = CountWatch()
        let ended = CountWatch()
        private let state = Mutex(State())

        var heads: [LoopbackRequest] { state.withLock { $0.heads } }
        var requests: [LoopbackRequest] { state.withLock { $0.requests } }
        var ends: [LoopbackExchangeEnd] { state.withLock { $0.ends } }
        var connectionCount: Int { state.withLock { $0.connectionCount } }

        func connected() -> Int {
            state.withLock { state in
                defer { state.connectionCount += 1 }
                return state.connectionCount
            }
        }

        func begin(_ head: LoopbackRequest) {
            state.withLock { $0.heads.append(head) }
            begun.increment()
        }

        func receive(_ request: LoopbackRequest) -> LoopbackRequest {
            let numbered = state.withLock { state in
                var numbered = request
                numbered.number = state.requests.count
                state.requests.append(numbered)
                return numbered
            }
            received.increment()
            return numbered
        }

        func end(_ end: LoopbackExchangeEnd) {
            state.withLock { $0.ends.append(end) }
            ended.increment()
        }
    }
#endif

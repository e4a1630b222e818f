// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Foundation
    public import Holdfast
    internal import HoldfastSemantics
    private import Synchronization

    /// What an ``Inspector`` remembers: the traffic of the last five minutes, the last 200 calls, the last decision for some 4,000 URLs,
    /// and which circuits are open.
    ///
    /// List it among `PipelineConfiguration.observers` of the pipeline that uses the cache, and go by the same clock. It holds less
    /// than a megabyte, whatever the traffic. A call that the cache answers costs it half a microsecond; once a second it reads
    /// the cache's counters. Safe to use from any number of tasks.
    public final class InspectorModel: EventObserver {
        /// All that is remembered, taken at one instant.
        struct State: Sendable {
            var history: TrafficHistory
            var calls = RecentCalls()
            var decisions = LastDecisions()
            var circuits = CircuitNotes()
        }

        let cache: HTTPCache
        let clock: any HoldfastClock
        let started: MonotonicInstant
        private let state: Mutex<State>
        /// The second in which the counters were looked at last: whoever moves it on takes the next look.
        private let lookedAt: Atomic<Int64>

        /// A model that knows nothing yet.
        ///
        /// - Parameters:
        ///   - cache: the cache whose traffic it follows.
        ///   - clock: that of the pipeline; the system's by default.
        public init(cache: HTTPCache, clock: any HoldfastClock = SystemClock()) {
            self.cache = cache
            self.clock = clock
            started = clock.now
            let second = started.second
            lookedAt = Atomic(second)
            state = Mutex(State(history: TrafficHistory(second: second, figures: TrafficFigures(cache.statistics))))
        }

        public func observe(_ event: ServiceEvent) {
            switch event.name {
            case .callStarted:
                lookOncePerSecond()
            case .callEnded:
                lookOncePerSecond()
                let call = NotedCall(event)
                let hash =
                    event.cacheDecision == nil
                    ? nil : event.url.map { LastDecisions.hash($0.unredacted.absoluteString) }
                state.withLock { state in
                    if let hash, let decision = call.decision {
                        state.decisions.note(decision, hash: hash, time: call.endedAt)
                    }
                    state.calls.ended(call)
                }
            case .retryScheduled, .resendScheduled, .retriesStopped:
                guard !event.isBackground else { return }
                let attempt = NotedAttempt(event)
                state.withLock { $0.calls.failed(attempt, of: event.callID) }
            case .circuitOpened:
                guard let origin = event.detail else { return }
                let until = clock.now.advanced(by: event.delay ?? .zero)
                state.withLock { $0.circuits.opened(origin, until: until) }
            case .circuitClosed:
                guard let origin = event.detail else { return }
                state.withLock { $0.circuits.closed(origin) }
            case .bodyEnded:
                lookOncePerSecond()
            default:
                break
            }
        }

        /// The traffic of the last 300 seconds, the oldest first, the running one last.
        func seconds() -> [TrafficFigures] {
            look(second: clock.now.second)
            return state.withLock { $0.history }.seconds
        }

        /// The calls that ended after the one of this number, the newest first, and the number of the newest.
        func calls(after number: UInt64, limit: Int) -> (calls: [NotedCall], newest: UInt64) {
            state.withLock { ($0.calls.calls(after: number, limit: limit), $0.calls.count) }
        }

        /// What was decided last for each of some URLs; nil where it is not known.
        func lastDecisions(of urls: [String]) -> [LastDecisions.Noted?] {
            let hashes = urls.map { LastDecisions.hash($0) }
            return state.withLock { state in hashes.map { state.decisions.last(hash: $0) } }
        }

        /// The origins with an open circuit, and until when nothing is sent there.
        var openCircuits: [String: MonotonicInstant] { state.withLock { $0.circuits.open } }

        private func lookOncePerSecond() {
            let second = clock.now.second
            let last = lookedAt.load(ordering: .relaxed)
            guard second > last,
                lookedAt.compareExchange(expected: last, desired: second, ordering: .relaxed).exchanged
            else { return }
            look(second: second)
        }

        private func look(second: Int64) {
            let figures = TrafficFigures(cache.statistics)
            state.withLock { $0.history.look(second: second, figures: figures) }
        }
    }

    extension MonotonicInstant {
        /// The whole seconds since the clock's origin.
        fileprivate var second: Int64 { sinceOrigin.components.seconds }
    }
#endif

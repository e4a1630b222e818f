// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Foundation
    public import Holdfast
    internal import HoldfastSemantics
    private import Synchronization

    /// The data of an ``Inspector``: the traffic of the last five minutes, the last 200 calls, the last decision for
    /// some 4,000 URLs, and the open circuits.
    ///
    /// Add it to `PipelineConfiguration.observers` of the pipeline that uses the cache, with the same clock. It needs
    /// less than a megabyte, whatever the traffic. A call that the cache answers costs it half a microsecond; once a
    /// second it reads the cache's counters. It can be used from any number of tasks.
    public final class InspectorModel: EventObserver {
        /// All data, at one instant.
        struct State: Sendable {
            var history: TrafficHistory
            var calls = RecentCalls()
            var decisions = LastDecisions()
            var circuits = CircuitStates()
        }

        /// The cache whose traffic it shows; a cache with other rules may replace it.
        var cache: HTTPCache { current.withLock { $0 } }
        private let current: Mutex<HTTPCache>
        let clock: any HoldfastClock
        let started: MonotonicInstant
        private let state: Mutex<State>
        /// The second of the last reading of the counters; the task that advances it makes the next reading.
        private let lookedAt: Atomic<Int64>

        /// Creates an empty model.
        ///
        /// - Parameters:
        ///   - cache: the cache whose traffic is recorded.
        ///   - clock: the pipeline's clock; the system's by default.
        public init(cache: HTTPCache, clock: any HoldfastClock = SystemClock()) {
            current = Mutex(cache)
            self.clock = clock
            started = clock.now
            let second = started.second
            lookedAt = Atomic(second)
            state = Mutex(State(history: TrafficHistory(second: second, figures: TrafficFigures(cache.statistics))))
        }

        public var observedEvents: Set<ServiceEvent.Name>? {
            [
                .callStarted, .callEnded, .retryScheduled, .resendScheduled, .retriesStopped, .circuitOpened,
                .circuitClosed,
                .bodyEnded,
            ]
        }

        /// Continues with a cache that replaces the current one; counters are kept.
        func follow(_ cache: HTTPCache) {
            current.withLock { $0 = cache }
        }

        public func observe(_ event: ServiceEvent) {
            switch event.name {
            case .callStarted:
                lookOncePerSecond()
            case .callEnded:
                lookOncePerSecond()
                let call = CallRecord(event)
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
                let attempt = AttemptSummary(event)
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

        /// The traffic of the last 300 seconds, the oldest first, the current one last.
        func seconds() -> [TrafficFigures] {
            look(second: clock.now.second)
            return state.withLock { $0.history }.seconds
        }

        /// The calls that ended after the call with this number, the newest first, and the number of the newest.
        func calls(after number: UInt64, limit: Int) -> (calls: [CallRecord], newest: UInt64) {
            state.withLock { ($0.calls.calls(after: number, limit: limit), $0.calls.count) }
        }

        /// The last decision for each of some URLs; nil if unknown.
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

    /// A call that has ended, as the inspector remembers it.
    struct CallRecord: Sendable {
        /// The number of the recorded call; the first is 1.
        var number: UInt64 = 0
        let id: CallID
        let endedAt: Timestamp
        let subject: CallSubject?
        let decision: CacheDecision?
        let source: ResponseSource?
        let status: StatusCode?
        /// The code of its error; never the text, which may contain anything.
        let errorCode: String?
        let duration: Duration?
        /// Failed attempts and what followed; empty if the first one succeeded.
        var attempts: [AttemptSummary] = []

        init(_ event: ServiceEvent) {
            id = event.callID
            endedAt = event.timestamp
            subject = event.subject
            decision = event.cacheDecision
            source = event.source
            status = event.status
            errorCode = event.errorCode
            duration = event.delay
        }
    }

    /// An attempt that failed, also for JSON.
    struct AttemptSummary: Encodable, Sendable {
        let number: Int
        let status: Int?
        /// The code of its error.
        let error: String?
        /// The milliseconds before the next attempt; nil if there was none.
        let delay: Double?
        /// Why there was none, or why there was another one without asking a retrier.
        let word: String?

        /// - Parameter event: ``ServiceEvent/Name/retryScheduled``, `resendScheduled` or `retriesStopped`.
        init(_ event: ServiceEvent) {
            number = event.attempt ?? 0
            status = event.status?.rawValue
            error = event.errorCode
            let isLast = event.name == .retriesStopped
            delay = isLast ? nil : (event.delay ?? .zero).milliseconds
            word = isLast ? event.stopReason?.rawValue : event.name == .resendScheduled ? event.detail : nil
        }
    }

    /// The last calls, and the failed attempts of current ones; both limited in number.
    struct RecentCalls: Sendable {
        /// The most calls to keep.
        static let limit = 200
        /// The most current calls with failed attempts; beyond that, the oldest lose theirs.
        static let pendingLimit = 256
        /// The most failed attempts to keep for a call; the first ones are kept.
        static let attemptLimit = 16

        private var ring: [CallRecord] = []
        private var next = 0
        private var pending: [CallID: [AttemptSummary]] = [:]
        private var pendingOrder: [CallID] = []
        private var oldestPending = 0
        /// How many calls have ended so far.
        private(set) var count: UInt64 = 0

        /// How many current calls have failed attempts.
        var pendingCount: Int { pending.count }

        /// Records a failed attempt.
        mutating func failed(_ attempt: AttemptSummary, of call: CallID) {
            if let known = pending[call]?.count {
                if known < RecentCalls.attemptLimit { pending[call]?.append(attempt) }
                return
            }
            pending[call] = [attempt]
            // The attempts of a call whose end is never reported would stay, so each must be replaced some day.
            if pendingOrder.count < RecentCalls.pendingLimit {
                pendingOrder.append(call)
            } else {
                pending[pendingOrder[oldestPending]] = nil
                pendingOrder[oldestPending] = call
                oldestPending = (oldestPending + 1) % RecentCalls.pendingLimit
            }
        }

        /// Records the end of a call.
        mutating func ended(_ call: CallRecord) {
            count &+= 1
            var call = call
            call.number = count
            if !pending.isEmpty, let attempts = pending.removeValue(forKey: call.id) { call.attempts = attempts }
            if ring.count < RecentCalls.limit {
                ring.append(call)
            } else {
                ring[next] = call
                next = (next + 1) % RecentCalls.limit
            }
        }

        /// The calls recorded after a number, the newest first.
        func calls(after number: UInt64, limit: Int) -> [CallRecord] {
            var found: [CallRecord] = []
            for step in 0..<ring.count where found.count < limit {
                let call = ring[(next + ring.count - 1 - step) % ring.count]
                guard call.number > number else { break }
                found.append(call)
            }
            return found
        }
    }

    /// The last cache decision for a URL, in a fixed number of places: two URLs with the same place replace each other.
    struct LastDecisions: Sendable {
        /// A decision and its time.
        struct Noted: Sendable {
            let decision: CacheDecision
            let time: Timestamp
        }

        private struct Place: Sendable {
            let hash: Int
            let noted: Noted
        }

        /// How many places there are; a power of two.
        static let limit = 4096

        private var places = [Place?](repeating: nil, count: LastDecisions.limit)

        mutating func note(_ decision: CacheDecision, hash: Int, time: Timestamp) {
            places[LastDecisions.index(hash)] = Place(hash: hash, noted: Noted(decision: decision, time: time))
        }

        func last(hash: Int) -> Noted? {
            guard let place = places[LastDecisions.index(hash)], place.hash == hash else { return nil }
            return place.noted
        }

        /// The hash that identifies a URL.
        static func hash(_ url: String) -> Int {
            var url = url
            return url.withUTF8 { bytes in
                var hasher = Hasher()
                hasher.combine(bytes: UnsafeRawBufferPointer(bytes))
                return hasher.finalize()
            }
        }

        private static func index(_ hash: Int) -> Int { hash & (limit - 1) }
    }

    /// The open circuits, as reported by events; limited in number.
    struct CircuitStates: Sendable {
        static let limit = 64

        /// Until when each origin is refused; after that, probes are allowed.
        private(set) var open: [String: MonotonicInstant] = [:]

        mutating func opened(_ origin: String, until: MonotonicInstant) {
            if open[origin] == nil, open.count >= CircuitStates.limit,
                let oldest = open.min(by: { $0.value < $1.value })?.key
            {
                open[oldest] = nil
            }
            open[origin] = until
        }

        mutating func closed(_ origin: String) {
            open[origin] = nil
        }
    }
#endif

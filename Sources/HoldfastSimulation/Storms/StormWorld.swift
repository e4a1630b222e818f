// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics
private import Synchronization

/// What the calls of a run share: the server, and the book of what happened.
final class StormWorld: Sendable {
    /// A call from its beginning to its end.
    struct Call {
        let start: Duration
        let end: Duration
        let succeeded: Bool
        var resource = 0
    }

    /// What happened.
    struct Book {
        /// When each attempt was sent.
        var attempts: [Duration] = []
        /// The calls that ended, in the order of their ends.
        var calls: [Call] = []
        /// Calls that began.
        var begun = 0
        /// Attempts refused that were sent although their process had been told to wait.
        var earlySends = 0
        /// How long processes had been told to wait, added up over all of them.
        var closedTime: Duration = .zero
        /// Requests served after their sender had given up.
        var wasted = 0
        /// A hash over all events with their times and processes, by FNV-1a.
        var fingerprint: UInt64 = 0xCBF2_9CE4_8422_2325

        fileprivate mutating func note(_ event: Event, _ process: Int, at time: Duration) {
            let nanoseconds = UInt64(clamping: time.attoseconds / 1_000_000_000)
            for word in [nanoseconds, UInt64(process) << 8 | UInt64(event.rawValue)] {
                fingerprint = (fingerprint ^ word) &* 0x0000_0100_0000_01B3
                fingerprint ^= fingerprint >> 32
            }
        }
    }

    fileprivate enum Event: UInt8 {
        case callBegan = 1, sent, callSucceeded, callFailed, stopped
        case served = 16, refused, throttled, timedOut, unavailable
    }

    private struct State {
        var server: StormServer
        var book = Book()
        /// Until when each process has been told to wait.
        var closedUntil: [Duration]
        /// The same for one resource, by process and resource.
        var resourceClosedUntil: [Int: Duration] = [:]
    }

    private let state: Mutex<State>

    init(_ scenario: StormScenario, seed: UInt64) {
        state = Mutex(
            State(
                server: StormServer(scenario, seed: seed),
                closedUntil: Array(repeating: .zero, count: scenario.processes)
            )
        )
    }

    /// What happened so far.
    var book: Book {
        state.withLock { state in
            var book = state.book
            book.wasted = state.server.wasted
            return book
        }
    }

    func callBegan(_ process: Int, now: Duration) {
        state.withLock { state in
            state.book.begun += 1
            state.book.note(.callBegan, process, at: now)
        }
    }

    func callEnded(_ process: Int, resource: Int, start: Duration, now: Duration, succeeded: Bool) {
        state.withLock { state in
            state.book.calls.append(Call(start: start, end: now, succeeded: succeeded, resource: resource))
            state.book.note(succeeded ? .callSucceeded : .callFailed, process, at: now)
        }
    }

    /// Sends an attempt.
    func submit(
        _ process: Int,
        resource: Int,
        attempt: Int,
        now: Duration,
        limit: Duration?
    ) -> StormServer.Answer {
        state.withLock { state in
            state.book.attempts.append(now)
            state.book.note(.sent, process, at: now)
            let closed = max(
                state.closedUntil[process],
                state.resourceClosedUntil[StormWorld.key(process, resource)] ?? .zero
            )
            let answer = state.server.submit(now: now, limit: limit, resource: resource, attempt: attempt)
            // What the server takes all the same was not too early.
            if now < closed, answer.ending != .served { state.book.earlySends += 1 }
            return answer
        }
    }

    /// Takes note that an attempt's answer came.
    func answered(_ process: Int, _ answer: StormServer.Answer, resource: Int, now: Duration) {
        state.withLock { state in
            let event: Event =
                switch answer.ending {
                case .served: .served
                case .refused: .refused
                case .throttled: .throttled
                case .timedOut: .timedOut
                case .unavailable: .unavailable
                }
            state.book.note(event, process, at: now)
            let asked = now + .seconds(answer.advice)
            let key = StormWorld.key(process, resource)
            let closed: Duration
            switch answer.ending {
            case .throttled: closed = state.closedUntil[process]
            case .unavailable: closed = state.resourceClosedUntil[key] ?? .zero
            default: return
            }
            guard asked > closed else { return }
            state.book.closedTime += asked - max(now, closed)
            if answer.ending == .throttled {
                state.closedUntil[process] = asked
            } else {
                state.resourceClosedUntil[key] = asked
            }
        }
    }

    private static func key(_ process: Int, _ resource: Int) -> Int { process * 1_000_000 + resource }

    /// Takes note that an attempt was stopped before its answer.
    func stopped(_ process: Int, _ answer: StormServer.Answer, now: Duration) {
        state.withLock { state in
            if answer.ending == .served { state.server.abandon() }
            state.book.note(.stopped, process, at: now)
        }
    }
}

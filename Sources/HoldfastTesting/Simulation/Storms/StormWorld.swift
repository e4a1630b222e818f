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
    }

    /// What happened.
    struct Book {
        /// When each attempt was sent.
        var attempts: [Duration] = []
        /// The calls that ended, in the order of their ends.
        var calls: [Call] = []
        /// Calls that began.
        var begun = 0
        /// Attempts sent although their process had been told to wait.
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
        case served = 16, refused, throttled, timedOut
    }

    private struct State {
        var server: StormServer
        var book = Book()
        /// Until when each process has been told to wait.
        var closedUntil: [Duration]
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

    func callEnded(_ process: Int, start: Duration, now: Duration, succeeded: Bool) {
        state.withLock { state in
            state.book.calls.append(Call(start: start, end: now, succeeded: succeeded))
            state.book.note(succeeded ? .callSucceeded : .callFailed, process, at: now)
        }
    }

    /// Sends an attempt.
    func submit(_ process: Int, now: Duration, limit: Duration?) -> StormServer.Answer {
        state.withLock { state in
            state.book.attempts.append(now)
            state.book.note(.sent, process, at: now)
            if now < state.closedUntil[process] { state.book.earlySends += 1 }
            return state.server.submit(now: now, limit: limit)
        }
    }

    /// Takes note that an attempt's answer came.
    func answered(_ process: Int, _ answer: StormServer.Answer, now: Duration) {
        state.withLock { state in
            let event: Event =
                switch answer.ending {
                case .served: .served
                case .refused: .refused
                case .throttled: .throttled
                case .timedOut: .timedOut
                }
            state.book.note(event, process, at: now)
            guard answer.ending == .throttled else { return }
            let (closed, asked) = (state.closedUntil[process], now + .seconds(answer.advice))
            guard asked > closed else { return }
            state.book.closedTime += asked - max(now, closed)
            state.closedUntil[process] = asked
        }
    }

    /// Takes note that an attempt was stopped before its answer.
    func stopped(_ process: Int, _ answer: StormServer.Answer, now: Duration) {
        state.withLock { state in
            if answer.ending == .served { state.server.abandon() }
            state.book.note(.stopped, process, at: now)
        }
    }
}

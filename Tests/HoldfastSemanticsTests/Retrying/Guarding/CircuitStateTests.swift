// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastTesting
import Testing

@Suite("CircuitState", .timeLimit(.minutes(20)))
struct CircuitStateTests {
    static func rules(_ change: (inout CircuitRules) -> Void = { _ in }) -> CircuitRules {
        var rules = CircuitRules()
        change(&rules)
        return rules
    }

    /// Runs one attempt and returns what its end changed.
    @discardableResult
    func run(_ state: inout CircuitState, _ succeeded: Bool, at now: Duration) -> CircuitState.Change? {
        guard case .go(let pass) = state.admit(now: now) else { return nil }
        return state.ended(pass, succeeded: succeeded, now: now)
    }

    func pass(_ state: inout CircuitState, at now: Duration) -> CircuitPass? {
        if case .go(let pass) = state.admit(now: now) { pass } else { nil }
    }

    @Test("It opens when enough attempts reach the failure rate, and not before")
    func opens() {
        var state = CircuitState(CircuitRules())
        for index in 0..<19 { #expect(run(&state, index % 2 == 0, at: .zero) == nil) }
        #expect(run(&state, false, at: .seconds(1)) == .opened(until: .seconds(6)))
        #expect(!state.isClosed)
        #expect(state.admit(now: .seconds(5)) == .refuse(until: .seconds(6)))
    }

    @Test("The rate is exact: 3 of 10 reaches 0.3, 29 of 100 does not", arguments: [(3, 10, true), (29, 100, false)])
    func exactShare(failures: Int, attempts: Int, opens: Bool) {
        var state = CircuitState(
            Self.rules {
                $0.failureRatio = 0.3
                $0.minimumAttempts = attempts
            }
        )
        for _ in failures..<attempts { run(&state, true, at: .zero) }
        for _ in 0..<failures { run(&state, false, at: .zero) }
        #expect(state.isClosed != opens)
    }

    @Test("The window slides by tenths: older attempts no longer count")
    func window() {
        var state = CircuitState(CircuitRules())
        for _ in 0..<19 { run(&state, false, at: .seconds(0.5)) }
        #expect(run(&state, false, at: .seconds(10)) == nil)
        #expect(state.isClosed)
        for _ in 0..<19 { run(&state, false, at: .seconds(19.9)) }
        #expect(!state.isClosed)
    }

    @Test("After the open time one probe is sent, and its success closes the circuit with cleared counts")
    func closes() throws {
        var state = CircuitState(CircuitRules())
        for _ in 0..<20 { run(&state, false, at: .zero) }
        let probe = try #require(pass(&state, at: .seconds(5)))
        #expect(state.admit(now: .seconds(5)) == .refuse(until: .seconds(10)))
        #expect(state.ended(probe, succeeded: true, now: .seconds(6)) == .closed)
        for _ in 0..<19 { #expect(run(&state, false, at: .seconds(6)) == nil) }
        #expect(state.isClosed)
    }

    @Test("A failed probe opens it again for the full open time")
    func reopens() throws {
        var state = CircuitState(CircuitRules())
        for _ in 0..<20 { run(&state, false, at: .zero) }
        let probe = try #require(pass(&state, at: .seconds(7)))
        #expect(state.ended(probe, succeeded: false, now: .seconds(8)) == .opened(until: .seconds(13)))
        #expect(state.admit(now: .seconds(12)) == .refuse(until: .seconds(13)))
    }

    @Test("Three probes: three at a time, three successes close it, one failure opens it")
    func severalProbes() throws {
        var state = CircuitState(Self.rules { $0.probes = 3 })
        for _ in 0..<20 { run(&state, false, at: .zero) }
        let passes = [
            try #require(pass(&state, at: .seconds(5))), try #require(pass(&state, at: .seconds(5))),
            try #require(pass(&state, at: .seconds(5))),
        ]
        #expect(pass(&state, at: .seconds(5)) == nil)
        #expect(state.ended(passes[0], succeeded: true, now: .seconds(6)) == nil)
        #expect(pass(&state, at: .seconds(6)) == nil)
        #expect(state.ended(passes[1], succeeded: false, now: .seconds(6)) == .opened(until: .seconds(11)))
        #expect(state.ended(passes[2], succeeded: true, now: .seconds(6)) == nil)
        #expect(pass(&state, at: .seconds(7)) == nil)
    }

    @Test("A cancelled probe is returned, and another takes its place")
    func cancelledProbe() throws {
        var state = CircuitState(CircuitRules())
        for _ in 0..<20 { run(&state, false, at: .zero) }
        let probe = try #require(pass(&state, at: .seconds(5)))
        state.giveBack(probe)
        _ = try #require(pass(&state, at: .seconds(5)))
    }

    @Test("A probe that hangs does not keep the circuit half open: after another open time one more is sent")
    func hangingProbe() throws {
        var state = CircuitState(CircuitRules())
        for _ in 0..<20 { run(&state, false, at: .zero) }
        _ = try #require(pass(&state, at: .seconds(5)))
        let second = try #require(pass(&state, at: .seconds(10)))
        #expect(state.ended(second, succeeded: true, now: .seconds(11)) == .closed)
    }

    @Test("Attempts that began before the circuit changed do not count: late failures do not open it again")
    func latecomers() throws {
        var state = CircuitState(Self.rules { $0.minimumAttempts = 1 })
        let early = try #require(pass(&state, at: .zero))
        run(&state, false, at: .zero)
        #expect(state.ended(early, succeeded: true, now: .seconds(1)) == nil)
        #expect(!state.isClosed)
        let probe = try #require(pass(&state, at: .seconds(5)))
        #expect(state.ended(early, succeeded: false, now: .seconds(5)) == nil)
        #expect(state.ended(probe, succeeded: true, now: .seconds(5)) == .closed)
        #expect(state.ended(early, succeeded: false, now: .seconds(5)) == nil)
        #expect(state.isClosed)
    }

    @Test("Liveness: whatever happened, a healthy server closes it again", arguments: 1...20)
    func liveness(seed: Int) {
        var generator = SeededGenerator(seed: UInt64(seed))
        var state = CircuitState(
            Self.rules {
                $0.probes = Int.random(in: 1...4, using: &generator)
                $0.failureRatio = Double.random(in: 0.05...1, using: &generator)
            }
        )
        var now = Duration.zero
        var passes: [CircuitPass] = []
        for _ in 0..<2000 {
            now += .milliseconds(Int.random(in: 0...200, using: &generator))
            if let pass = pass(&state, at: now) { passes.append(pass) }
            guard !passes.isEmpty, Bool.random(using: &generator) else { continue }
            let pass = passes.remove(at: Int.random(in: passes.indices, using: &generator))
            if Int.random(in: 0..<4, using: &generator) == 0 {
                state.giveBack(pass)
            } else {
                _ = state.ended(pass, succeeded: Bool.random(using: &generator), now: now)
            }
        }
        // The passes that are left over hang for ever.
        for _ in 0..<600 {
            now += .milliseconds(100)
            run(&state, true, at: now)
        }
        #expect(state.isClosed, "seed \(seed)")
    }

    @Test("Invalid rules do not trap", arguments: [Double.nan, -1, 0, 7, .infinity])
    func senseless(ratio: Double) {
        var state = CircuitState(
            Self.rules {
                $0.failureRatio = ratio
                $0.window = .zero
                $0.minimumAttempts = 0
                $0.openTime = .seconds(-1)
                $0.probes = -3
            }
        )
        for index in 0..<100 { run(&state, index % 3 == 0, at: .seconds(index - 50)) }
        #expect(pass(&state, at: .seconds(100)) != nil)
    }

    @Test(
        "What counts: errors, 500, 502, 503, 504 and unknown 5xx, but not 408, 429 or 404; local faults do not count",
        arguments: [
            (AttemptOutcome.response(ResponseHead(status: .ok)), false),
            (.response(ResponseHead(status: .notFound)), false),
            (.response(ResponseHead(status: .requestTimeout)), false),
            (.response(ResponseHead(status: .tooManyRequests)), false),
            (.response(ResponseHead(status: 520)), true),
            (.response(ResponseHead(status: .serviceUnavailable)), true),
            (.response(ResponseHead(status: .notImplemented)), false),
            (.failure(AttemptFailure(kind: .connect, progress: .notSent)), true),
            (.failure(AttemptFailure(kind: .timeout, progress: .bodySent)), true),
            (.failure(AttemptFailure(kind: .cancelled, progress: .bodySent)), nil),
            (.failure(AttemptFailure(kind: .offline, progress: .notSent)), nil),
            (.failure(AttemptFailure(kind: .certificate, progress: .notSent)), nil),
            (.failure(AttemptFailure(kind: .heldBack, progress: .notSent)), nil),
        ] as [(AttemptOutcome, Bool?)]
    )
    func counting(outcome: AttemptOutcome, isFailure: Bool?) {
        #expect(CircuitRules.isFailure(outcome) == isFailure)
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastTesting
import Testing

/// Draws the middle of every range: each refill is 0.05 tokens a second, each backoff three quarters of its ceiling.
private struct Middle: RandomNumberGenerator {
    mutating func next() -> UInt64 { 1 << 52 }
}

/// A pool with its line, and a clock that is moved by hand.
private struct Bench {
    var state: RetryBudgetState
    var now: Duration = .zero
    var lots = Middle()
    private var tickets = 0

    init(_ budget: RetryBudget = .pool) {
        state = RetryBudgetState(budget, now: .zero, using: &lots)
    }

    var pool: RetryPool {
        guard let pool = state.pool else { preconditionFailure("a pool is what is tested") }
        return pool
    }

    /// A retry that is due; with a patience of a second and ten seconds to its end unless said otherwise.
    mutating func ask(patience: Duration = .seconds(1), end: Duration = .seconds(10)) -> RetryBudgetState.Answer {
        tickets += 1
        let turn = RetryTurn(patience: patience, end: now + end)
        return state.ask(.transient, turn: turn, ticket: tickets, now: now, using: &lots)
    }

    mutating func askAgain(_ ticket: Int) -> RetryBudgetState.Answer {
        state.askAgain(ticket, now: now, using: &lots)
    }

    mutating func granted() throws -> RetryGrant {
        guard case .go(let grant) = ask() else { throw Refused() }
        return grant
    }

    @discardableResult
    mutating func end(_ grant: RetryGrant?, _ succeeded: Bool) -> [RetryBudgetState.Call] {
        state.attemptEnded(grant, succeeded: succeeded, now: now, using: &lots)
    }

    /// Sends a retry and lets it fail, `count` times, as soon as each may go.
    mutating func fail(_ count: Int) throws {
        for _ in 0..<count {
            now = max(now, pool.next)
            end(try granted(), false)
        }
    }

    struct Refused: Error {}
}

extension RetryBudgetState.Answer {
    fileprivate var grant: RetryGrant? {
        guard case .go(let grant) = self else { return nil }
        return grant
    }
}

@Suite("The retry pool, rule by rule")
struct RetryPoolTests {
    @Test(
        "If calls fail together, two are retried at once and the others as slots become free, in order"
    )
    func blip() throws {
        var bench = Bench()
        let answers = (0..<8).map { _ in bench.ask() }
        #expect(answers.prefix(2).allSatisfy { $0.grant != nil })
        #expect(answers.dropFirst(2).allSatisfy { $0 == .wait(until: .seconds(10)) })
        #expect(bench.state.line == [3, 4, 5, 6, 7, 8])
        var open = answers.compactMap(\.grant)
        var order: [Int] = []
        while let grant = open.popLast() {
            for call in bench.end(grant, true) {
                order.append(call.ticket)
                open.append(try #require(call.answer.grant))
            }
        }
        #expect(order == [3, 4, 5, 6, 7, 8] && bench.state.line.isEmpty && bench.pool.inFlight == 0)
    }

    @Test(
        "A failed retry costs a token and a success earns a quarter, up to 16; a retry that succeeds is free",
        arguments: [
            (failed: 0, succeeded: 0, tokens: 3.0), (1, 0, 2), (3, 0, 0), (1, 4, 3), (0, 10, 5.5), (0, 400, 16),
            (2, 400, 16),
        ]
    )
    func tokens(_ row: (failed: Int, succeeded: Int, tokens: Double)) throws {
        var bench = Bench()
        // All of a round, so that no time passes.
        let grants = try (0..<min(2, row.failed)).map { _ in try bench.granted() }
        for grant in grants { bench.end(grant, false) }
        if row.failed > 2 { try bench.fail(row.failed - 2) }
        for _ in 0..<row.succeeded { bench.end(nil, true) }
        // What the backoff of a third failure let in again.
        #expect(abs(bench.pool.tokens - row.tokens) < 0.02)
    }

    @Test(
        "Retries that fail back off together, one step a round: 0.15 s, 0.3 s, … 3.75 s",
        arguments: [(rounds: 1, milliseconds: 150), (2, 300), (3, 600), (4, 1200), (5, 2400), (6, 3750), (12, 3750)]
    )
    func backoff(_ row: (rounds: Int, milliseconds: Int)) throws {
        var bench = Bench()
        for _ in 0..<60 { bench.end(nil, true) }
        try bench.fail(row.rounds)
        #expect(bench.pool.level == row.rounds)
        let wait = bench.pool.next - bench.now
        #expect(abs(wait / .milliseconds(1) - Double(row.milliseconds)) < 0.001, "\(wait)")
    }

    @Test("Retries that started together raise the backoff only once when they fail together")
    func round() throws {
        var bench = Bench()
        let (first, second) = (try bench.granted(), try bench.granted())
        bench.now = .milliseconds(5)
        bench.end(first, false)
        #expect(bench.pool.level == 1 && bench.pool.tokens == 2)
        bench.now = .milliseconds(6)
        bench.end(second, false)
        #expect(bench.pool.level == 1 && abs(bench.pool.tokens - 1) < 0.001)
        #expect(abs(bench.pool.next / .milliseconds(1) - 155) < 0.001)
    }

    @Test("While retries fail, one runs at a time, and the others wait up to a second for its result")
    func probe() throws {
        var bench = Bench()
        try bench.fail(1)
        let next = bench.pool.next
        #expect(bench.ask() == .wait(until: next) && bench.ask() == .wait(until: next))
        let asked = bench.now
        bench.now = next
        let probe = try #require(bench.askAgain(2).grant)
        #expect(bench.askAgain(3) == .wait(until: asked + .seconds(1)))
        bench.now = asked + .seconds(1)
        #expect(bench.askAgain(3) == .stop)
        #expect(bench.state.line.isEmpty && bench.pool.inFlight == 1)
        // It succeeds: what waits goes on, and there are two places again.
        #expect(bench.ask() == .wait(until: bench.now + .seconds(1)))
        let called = bench.end(probe, true)
        #expect(called.map(\.ticket) == [4] && called.first?.answer.grant != nil && bench.pool.level == 0)
    }

    @Test(
        "A call gives up when it fails if the backoff for its origin is longer than it can wait",
        arguments: [
            (delay: 0, patience: 1, isRefused: true), (1, 1, true), (2, 1, false), (0, 3, false),
        ]
    )
    func hopeless(_ row: (delay: Int, patience: Int, isRefused: Bool)) throws {
        var bench = Bench()
        for _ in 0..<60 { bench.end(nil, true) }
        // 2.4 s of backoff.
        try bench.fail(5)
        let plan = bench.state.plan(
            .transient,
            after: .seconds(row.delay),
            patience: .seconds(row.patience),
            parks: false,
            now: bench.now
        )
        #expect(plan == (row.isRefused ? .refused : .asks))
        // When it is due it is told the same.
        bench.now += .seconds(row.delay)
        let answer = bench.ask(patience: .seconds(row.patience))
        #expect((answer == .stop) == row.isRefused)
    }

    @Test("Without tokens a retry waits for a running one, or else for time to pass, if it can wait that long")
    func drained() throws {
        var bench = Bench()
        try bench.fail(3)
        bench.now = bench.pool.next
        #expect(bench.pool.tokens < 0.1)
        #expect(bench.ask() == .stop)
        guard case .wait(let until) = bench.ask(patience: .seconds(60), end: .seconds(90)) else {
            Issue.record("it should wait")
            return
        }
        // A token in twenty seconds.
        #expect(abs((until - bench.now) / .seconds(1) - 20) < 1.2)
        bench.now = until
        #expect(bench.askAgain(5).grant != nil)
    }

    @Test("A backoff is forgotten ten seconds after its end, and time refills at most three tokens")
    func forgets() throws {
        var bench = Bench()
        try bench.fail(3)
        #expect(!bench.state.isRested(now: bench.now + .seconds(50)))
        bench.now += .seconds(70)
        #expect(bench.state.isRested(now: bench.now) && bench.state.balance(now: bench.now) == 2)
        #expect(bench.ask().grant != nil && bench.ask().grant != nil)
        #expect(bench.pool.level == 0 && bench.pool.tokens == 3)
    }

    @Test("After a time without tokens, waiting retries return spread over half of its length, others at once")
    func release() throws {
        var bench = Bench()
        for _ in 0..<40 { bench.end(nil, true) }
        try bench.fail(2)
        bench.now = bench.pool.next
        let probe = try bench.granted()
        #expect(bench.ask() == .wait(until: bench.now + .seconds(1)))
        bench.now += .milliseconds(100)
        let dry = bench.now
        // Retries failed for 0.55 s: half of that, and the middle of it.
        let called = bench.end(probe, true)
        #expect(called.map(\.ticket) == [4])
        guard case .wait(let release) = called.first?.answer else {
            Issue.record("it should wait")
            return
        }
        #expect(abs((release - dry) / .milliseconds(1) - 137.5) < 0.001)
        #expect(bench.ask().grant != nil)
        bench.now = release
        #expect(bench.askAgain(4).grant != nil)
    }

    @Test(
        "The window grows by one with a successful retry, up to 16 or 4, and is halved by a failed one",
        arguments: [
            (RetryBudget.pool, 16), (.patientPool, 4),
        ]
    )
    func window(_ budget: RetryBudget, _ limit: Int) throws {
        var bench = Bench(budget)
        for size in 3...20 {
            bench.end(try bench.granted(), true)
            #expect(bench.pool.places == min(size, limit))
        }
        bench.end(try bench.granted(), false)
        #expect(bench.pool.places == 1)
        bench.end(nil, true)
        #expect(bench.pool.places == limit / 2)
    }

    @Test("No wait is longer than the time left for the call")
    func deadline() throws {
        var bench = Bench()
        try bench.fail(1)
        #expect(bench.ask(end: .milliseconds(100)) == .stop)
        bench.now = bench.pool.next
        _ = try bench.granted()
        #expect(bench.ask(end: .milliseconds(100)) == .wait(until: bench.now + .milliseconds(100)))
        #expect(bench.ask(end: .zero) == .stop)
    }

    @Test("A hedge takes no slot, costs a token if it fails, leaves one for retries, and is not sent while they fail")
    func hedges() throws {
        var bench = Bench()
        let hedges = (0..<3).compactMap { _ in bench.state.permit(.hedge, now: .zero) }
        #expect(hedges.count == 2 && bench.pool.tokens == 3 && bench.pool.inFlight == 0)
        #expect(bench.end(hedges[0], false).isEmpty && bench.pool.tokens == 2 && bench.pool.level == 0)
        #expect(bench.state.permit(.hedge, now: .zero) == nil)
        #expect(!bench.state.isRested(now: .seconds(60)))
        _ = bench.state.giveBack(hedges[1], now: .zero, using: &bench.lots)
        #expect(bench.pool.tokens == 2 && bench.state.isRested(now: .seconds(60)))
        let last = bench.state.permit(.hedge, now: .zero)
        #expect(last != nil)
        bench.end(last, true)
        #expect(bench.pool.tokens == 2)
        bench.end(try bench.granted(), false)
        for _ in 0..<8 { bench.end(nil, false) }
        #expect(bench.state.permit(.hedge, now: .zero) == nil)
    }

    @Test(
        "Hedges hold no retry back, in flight or failed: calls that fail together are retried as if there were none",
        arguments: [false, true]
    )
    func hedgesBesideRetries(haveFailed: Bool) throws {
        var bench = Bench()
        let hedges = (0..<3).compactMap { _ in bench.state.permit(.hedge, now: .zero) }
        #expect(!hedges.isEmpty)
        if haveFailed { for hedge in hedges { bench.end(hedge, false) } }
        let answers = (0..<32).map { _ in bench.ask() }
        #expect(answers.prefix(2).allSatisfy { $0.grant != nil } && !answers.contains(.stop))
        var open = answers.compactMap(\.grant)
        while let grant = open.popLast() {
            for call in bench.end(grant, true) { open.append(try #require(call.answer.grant)) }
        }
        #expect(bench.state.line.isEmpty && bench.pool.inFlight == 0)
        #expect(bench.pool.tokens == (haveFailed ? 9 : 11))
    }

    @Test("A returned slot goes to the next waiter, and its result is not counted")
    func givesBack() throws {
        var bench = Bench()
        let grants = [try bench.granted(), try bench.granted()]
        _ = bench.ask()
        let before = bench.pool.tokens
        let called = bench.state.giveBack(grants[0], now: .zero, using: &bench.lots)
        #expect(called.map(\.ticket) == [3] && bench.pool.inFlight == 2 && bench.pool.tokens == before)
        #expect(bench.ask() == .wait(until: .seconds(10)))
        bench.state.withdraw(4)
        #expect(bench.state.line.isEmpty)
        #expect(bench.end(grants[1], true).isEmpty)
    }
}

@Suite("The retry pool after any history")
struct RetryPoolPropertyTests {
    private struct Waiting {
        let ticket: Int
        var until: Duration
    }

    @Test(
        "Every decision matches the algorithm, the pool is bounded and in order, and nobody waits in vain",
        arguments: FuzzRounds.seeds,
        [false, true]
    )
    func history(seed: UInt64, isPatient: Bool) throws {
        var source = SeededGenerator(seed: seed)
        var lots = SeededGenerator(seed: seed &+ 1)
        var oracle = PoolOracle(isPatient: isPatient, now: 0, generator: lots)
        var state = RetryBudgetState(isPatient ? .patientPool : .pool, now: .zero, using: &lots)
        var now = Duration.zero
        var waiting: [Waiting] = []
        var open: [(grant: RetryGrant, started: Double)] = []
        var lastTicket = 0
        var failures = 0.3

        func seconds(_ time: Duration) -> Double { time / .seconds(1) }
        func note(_ ticket: Int, _ answer: RetryBudgetState.Answer) {
            waiting.removeAll { $0.ticket == ticket }
            switch answer {
            case .go(let grant): open.append((grant, seconds(now)))
            case .wait(let until):
                #expect(until > now)
                waiting.append(Waiting(ticket: ticket, until: until))
            case .stop: break
            }
        }
        func compare(_ calls: [RetryBudgetState.Call], _ expected: [(Int, PoolOracle<SeededGenerator>.Answer)]) {
            let ended = calls.filter { if case .wait = $0.answer { false } else { true } }
            #expect(ended.map(\.ticket) == expected.map(\.0), "seed \(seed) at \(now)")
            #expect(ended.map { $0.answer != .stop } == expected.map { $0.1 == .go }, "seed \(seed) at \(now)")
            // In their order, which is that of their tickets.
            #expect(calls.map(\.ticket) == calls.map(\.ticket).sorted())
            for call in calls { note(call.ticket, call.answer) }
        }
        func wake() {
            while let next = waiting.min(by: { $0.until < $1.until }), next.until <= now { wake(next) }
        }
        func wake(_ next: Waiting) {
            let late = now
            // A hair late, since the other counts in floating point.
            now = max(now, next.until + .nanoseconds(10))
            let answer = state.askAgain(next.ticket, now: now, using: &lots)
            let expected = oracle.askAgain(next.ticket, now: seconds(now))
            #expect(kind(answer) == expected, "seed \(seed) at \(now)")
            note(next.ticket, answer)
            now = max(now, late)
        }
        func kind(_ answer: RetryBudgetState.Answer) -> PoolOracle<SeededGenerator>.Answer {
            switch answer {
            case .go: .go
            case .wait: .wait
            case .stop: .stop
            }
        }
        func check() throws {
            let pool = try #require(state.pool)
            #expect(pool.tokens <= 16 && pool.inFlight >= 0 && pool.inFlight == open.count)
            #expect(pool.level == oracle.level && pool.inFlight == oracle.inFlight, "seed \(seed) at \(now)")
            #expect(abs(pool.tokens - oracle.tokens) < 1e-6, "seed \(seed) at \(now)")
            #expect(state.line == waiting.map(\.ticket).sorted() && state.line == oracle.waiting.map(\.ticket))
        }

        for step in 0..<FuzzRounds.of(600) {
            let leap = Int.random(in: 0..<150, using: &source) == 0
            now += .nanoseconds(Int.random(in: 1...(leap ? 30_000_000_000 : 60_000_000), using: &source))
            if step % 60 == 0 { failures = [0, 0.1, 0.5, 1].randomElement(using: &source) ?? 0 }
            wake()
            switch Int.random(in: 0..<8, using: &source) {
            case 0, 1:
                let succeeded = Double.random(in: 0..<1, using: &source) >= failures
                compare(
                    state.attemptEnded(nil, succeeded: succeeded, now: now, using: &lots),
                    oracle.ended(started: nil, succeeded: succeeded, now: seconds(now))
                )
            case 2, 3, 4:
                lastTicket += 1
                let patience = Double.random(in: 0.1...2, using: &source)
                let end = seconds(now) + Double.random(in: 0.05...10, using: &source)
                let turn = RetryTurn(patience: .seconds(patience), end: .seconds(end))
                let answer = state.ask(.transient, turn: turn, ticket: lastTicket, now: now, using: &lots)
                let call = PoolOracle<SeededGenerator>.Call(ticket: lastTicket, patience: patience, end: end)
                #expect(kind(answer) == oracle.ask(call, now: seconds(now)), "seed \(seed) at \(now)")
                note(lastTicket, answer)
            case 5, 6:
                guard !open.isEmpty else { continue }
                let (grant, started) = open.remove(at: Int.random(in: 0..<open.count, using: &source))
                let succeeded = Double.random(in: 0..<1, using: &source) >= failures
                compare(
                    state.attemptEnded(grant, succeeded: succeeded, now: now, using: &lots),
                    oracle.ended(started: started, succeeded: succeeded, now: seconds(now))
                )
            default:
                if Bool.random(using: &source), let gone = waiting.randomElement(using: &source) {
                    waiting.removeAll { $0.ticket == gone.ticket }
                    state.withdraw(gone.ticket)
                    oracle.withdraw(gone.ticket)
                } else if !open.isEmpty {
                    let (grant, _) = open.removeFirst()
                    compare(state.giveBack(grant, now: now, using: &lots), oracle.givenBack(now: seconds(now)))
                }
            }
            try check()
        }
        // Nothing new comes: all that wait go or stop, in a bounded number of steps.
        for _ in 0..<2_000 where !(waiting.isEmpty && open.isEmpty) {
            if let (grant, started) = open.popLast() {
                compare(
                    state.attemptEnded(grant, succeeded: false, now: now, using: &lots),
                    oracle.ended(started: started, succeeded: false, now: seconds(now))
                )
            } else if let next = waiting.min(by: { $0.until < $1.until }) {
                wake(next)
            }
            try check()
        }
        #expect(state.line.isEmpty && waiting.isEmpty && open.isEmpty, "seed \(seed)")
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastTesting
import Testing

@testable import HoldfastSemantics

@Suite struct RetryBudgetTests {
    @Test(
        "An invalid value is named",
        arguments: [
            (RetryBudget.ratio(0), "share 0.0"), (.ratio(.nan), "share nan"), (.ratio(1001), "share 1001"),
            (.ratio(0.1, reservePerSecond: -1), "reservePerSecond -1"),
            (.ratio(0.1, reservePerSecond: .infinity), "reservePerSecond inf"),
            (.ratio(0.1, timeToLive: .zero), "timeToLive 0"),
            (.ratio(0.1, timeToLive: .seconds(3601)), "timeToLive 36"),
            (.tokens(capacity: 0, transient: 1, timeout: 1), "capacity 0"),
            (.tokens(transient: -5, timeout: 1), "transient -5"), (.tokens(transient: 1, timeout: 501), "timeout 501"),
            (.tokens(transient: 1, timeout: 1, throttling: 0), "throttling 0"),
            (.tokens(transient: 1, timeout: 1, reward: -1), "reward -1"),
            (.grpc(maxTokens: 0), "maxTokens 0"), (.grpc(maxTokens: 1001), "maxTokens 1001"),
            (.grpc(tokenRatio: 0), "tokenRatio 0.0"), (.grpc(tokenRatio: 11), "tokenRatio 11"),
        ]
    )
    func problems(budget: RetryBudget, beginning: String) throws {
        let problem = try #require(budget.problem)
        #expect(problem.hasPrefix(beginning) && problem.contains("use"), "\(problem)")
        // It still does not trap, and gives no more than its nearest sensible value would.
        var state = RetryBudgetState(budget, now: .zero)
        state.callBegan(now: .zero)
        if let grant = state.permit(.transient, now: .zero) { state.attemptEnded(grant, succeeded: true, now: .zero) }
        #expect(state.balance(now: .zero) >= 0)
    }

    @Test(
        "The predefined budgets are valid",
        arguments: [RetryBudget.unlimited, .pool, .patientPool, .finagle, .aws20, .aws21, .grpc(), .ratio(0.3)]
    )
    func named(budget: RetryBudget) {
        #expect(budget.problem == nil)
    }

    @Test("Complaint 8 of 12: there is a budget by default, in every preset")
    func byDefault() {
        for rules in [RetryRules.default, .strict, .patient, .interactive, .gateway] {
            #expect(rules.budget != .unlimited)
        }
        #expect(RetryRules().budget == .pool && RetryRules.patient.budget == .patientPool)
    }

    @Test("Deposits and withdrawals expire after ten slots, not before", arguments: [(9999, 0), (10_000, 5)])
    func expiry(milliseconds: Int, left: Int) {
        var state = RetryBudgetState(.ratio(0.1), now: .zero)
        var granted = 0
        while granted <= 5, let grant = state.permit(.transient, now: .milliseconds(500)) {
            granted += 1
            state.attemptEnded(grant, succeeded: false, now: .milliseconds(500))
        }
        #expect(granted == 5)
        #expect(state.balance(now: .milliseconds(milliseconds)) == left)
    }

    @Test("Complaint 9 of 12, useless at low traffic: a client that calls once a minute can retry")
    func lowTraffic() throws {
        var state = RetryBudgetState(.ratio(0.1), now: .zero)
        for minute in 0..<100 {
            let now = Duration.seconds(60 * minute)
            state.callBegan(now: now)
            let first = try state.granted(.transient, now: now)
            state.attemptEnded(first, succeeded: false, now: now)
            let second = try state.granted(.transient, now: now)
            state.attemptEnded(second, succeeded: false, now: now)
        }
    }

    @Test("An unused grant returns its cost")
    func giveBack() throws {
        for budget in [RetryBudget.ratio(0.1), .aws20, .aws21, .finagle] {
            var state = RetryBudgetState(budget, now: .zero)
            for _ in 0..<20 { state.callBegan(now: .zero) }
            let before = state
            let grant = try state.granted(.timeout, now: .zero)
            #expect(state != before)
            state.giveBack(grant, now: .zero)
            #expect(state == before)
        }
    }

    @Test("A reward of 0 changes nothing")
    func nothing() {
        var state = RetryBudgetState(.tokens(transient: 1, timeout: 1, reward: 0), now: .zero)
        let before = state
        state.attemptEnded(nil, succeeded: true, now: .zero)
        #expect(state == before)
    }
}

extension RetryBudgetState {
    /// A budget that only counts draws no lots.
    init(_ budget: RetryBudget, now: Duration) {
        var generator = SeededGenerator(seed: 1)
        self.init(budget, now: now, using: &generator)
    }

    /// The budget's own units: tokens, thousandths of them, or retries by time.
    func units(now: Duration) -> Int {
        switch balance {
        case .unlimited: .max
        case .ratio(let ratio): ratio.retries(now: now)
        case .tokens(let tokens): tokens.tokens
        case .throttle(let throttle): throttle.thousandths
        }
    }

    mutating func attemptEnded(_ grant: RetryGrant?, succeeded: Bool, now: Duration) {
        var generator = SeededGenerator(seed: 1)
        _ = attemptEnded(grant, succeeded: succeeded, now: now, using: &generator)
    }

    mutating func giveBack(_ grant: RetryGrant, now: Duration) {
        var generator = SeededGenerator(seed: 1)
        _ = giveBack(grant, now: now, using: &generator)
    }

    /// A grant, for tests that have no use for a refusal.
    mutating func granted(_ cause: RetryCause, now: Duration) throws -> RetryGrant {
        let grant = permit(cause, now: now)
        return try #require(grant, "refused")
    }
}

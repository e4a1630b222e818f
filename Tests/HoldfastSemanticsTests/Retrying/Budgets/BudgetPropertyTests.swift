// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastTesting
import Testing

/// Complaints 8 and 9 of RETRY.md §6: what holds for every budget after any history.
@Suite struct BudgetPropertyTests {
    private static let budgets: [RetryBudget] = [
        .ratio(0.1), .finagle, .aws20, .aws21, .grpc(), .unlimited, .ratio(1000, reservePerSecond: 1_000_000),
        .ratio(0.25, timeToLive: .milliseconds(10)),
        .tokens(capacity: 3, transient: 2, timeout: 3, throttling: 1, reward: 2),
        .grpc(maxTokens: 3, tokenRatio: 0.333),
    ]
    private static let causes: [RetryCause] = [.transient, .timeout, .throttling, .hedge]

    private static let most: [RetryBudget: Int] = [
        .aws20: 500, .aws21: 500, .grpc(): 10_000,
        .tokens(capacity: 3, transient: 2, timeout: 3, throttling: 1, reward: 2): 3,
        .grpc(maxTokens: 3, tokenRatio: 0.333): 3000,
    ]

    @Test(
        "The balance is never below 0 and never above its initial value",
        arguments: budgets,
        propertySeeds
    )
    func anyHistory(budget: RetryBudget, seed: UInt64) {
        var source = SeededGenerator(seed: seed)
        var state = RetryBudgetState(budget, now: .zero)
        var grants: [RetryGrant] = []
        var now = Duration.zero
        for step in 0..<400 {
            // A clock that stands still, goes back, or leaps is no reason to trap.
            now += .milliseconds(Int.random(in: -200...400, using: &source))
            if Int.random(in: 0..<150, using: &source) == 0 { now = .seconds(1e12) }
            switch Int.random(in: 0..<5, using: &source) {
            case 0: state.callBegan(now: now)
            case 1: state.attemptEnded(nil, succeeded: Bool.random(using: &source), now: now)
            case 2, 3:
                let before = state.balance(now: now)
                if let grant = state.permit(.transient, now: now) {
                    grants.append(grant)
                    #expect(before > 0, "step \(step): granted from an empty budget")
                } else {
                    #expect(before == 0, "step \(step): refused with \(before) left")
                }
            default:
                guard !grants.isEmpty else { continue }
                let grant = grants.remove(at: Int.random(in: 0..<grants.count, using: &source))
                if Bool.random(using: &source) {
                    state.giveBack(grant, now: now)
                } else {
                    state.attemptEnded(grant, succeeded: Bool.random(using: &source), now: now)
                }
            }
            #expect(state.balance(now: now) >= 0)
            #expect(state.units(now: now) <= BudgetPropertyTests.most[budget] ?? .max, "step \(step)")
        }
    }

    @Test(
        "If every grant is returned, the state is as if nothing had been requested",
        arguments: budgets,
        propertySeeds
    )
    func conservation(budget: RetryBudget, seed: UInt64) {
        var source = SeededGenerator(seed: seed)
        var asked = RetryBudgetState(budget, now: .zero)
        for _ in 0..<50 { asked.callBegan(now: .zero) }
        var unasked = asked
        var milliseconds = 0
        for _ in 0..<100 {
            var grants: [RetryGrant] = []
            for _ in 0..<Int.random(in: 0...6, using: &source) {
                let cause = BudgetPropertyTests.causes.randomElement(using: &source) ?? .hedge
                grants += asked.permit(cause, now: .milliseconds(milliseconds)).map { [$0] } ?? []
                // Longer than the memory too: what was forgotten must not come back as a deposit.
                milliseconds += Int.random(in: 0...(Bool.random(using: &source) ? 3000 : 10), using: &source)
            }
            for grant in grants.shuffled(using: &source) { asked.giveBack(grant, now: .milliseconds(milliseconds)) }
            asked.callBegan(now: .milliseconds(milliseconds))
            unasked.callBegan(now: .milliseconds(milliseconds))
            #expect(asked == unasked)
        }
    }

    @Test("Defect 14 of 15: a refused permit costs nothing", arguments: budgets, causes)
    func refusal(budget: RetryBudget, cause: RetryCause) {
        guard budget != .unlimited else { return }
        var state = RetryBudgetState(budget, now: .zero)
        var granted = 0
        // gRPC's tokens are taken by failures, not by retries.
        for _ in 0..<10 { state.attemptEnded(nil, succeeded: false, now: .zero) }
        while granted < 2000, state.permit(cause, now: .zero) != nil { granted += 1 }
        guard granted < 2000 else { return }
        let refused = state
        #expect(state.permit(cause, now: .zero) == nil)
        #expect(state == refused)
    }

    @Test("Without new calls, no history allows more retries than the reserve", arguments: propertySeeds)
    func noCalls(seed: UInt64) {
        var source = SeededGenerator(seed: seed)
        var state = RetryBudgetState(.ratio(0.1), now: .zero)
        var times: [Int] = []
        for step in 0..<3000 {
            let now = Duration.milliseconds(step * 20)
            guard Bool.random(using: &source), let grant = state.permit(.transient, now: now) else { continue }
            times.append(step * 20)
            state.attemptEnded(grant, succeeded: false, now: now)
        }
        for time in times {
            let recent = times.filter { $0 <= time && $0 > time - 9000 }.count
            #expect(recent <= 5, "at \(time) ms")
        }
        #expect(times.count >= 25, "the reserve comes back")
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastTesting
import Testing

/// RETRY.md E2, E3 and E13 for the budget alone: what it lets through in an outage, and that it comes back.
@Suite struct BudgetLivenessTests {
    private static let budgets = [RetryBudget.finagle, .aws20, .aws21, .grpc(), .ratio(0.1)]

    /// Calls at 14 a second that all fail, each with three retries at once; returns attempts per call.
    private func outage(_ state: inout RetryBudgetState, from start: Duration, seconds: Int) -> Double {
        var attempts = 0
        let calls = 14 * seconds
        for call in 0..<calls {
            let now = start + .milliseconds(call * 1000 / 14)
            state.callBegan(now: now)
            state.attemptEnded(nil, succeeded: false, now: now)
            attempts += 1
            for _ in 0..<3 {
                guard let grant = state.permit(.transient, now: now) else { break }
                attempts += 1
                state.attemptEnded(grant, succeeded: false, now: now)
            }
        }
        return Double(attempts) / Double(calls)
    }

    @Test("E13, defect 15 of 15: retries are possible again after an outage and one healthy minute", arguments: budgets)
    func liveness(budget: RetryBudget) throws {
        var state = RetryBudgetState(budget, now: .zero)
        _ = outage(&state, from: .zero, seconds: 120)
        #expect(state.balance(now: .milliseconds(119_999)) <= 1, "not drained")
        for call in 0..<840 {
            let now = Duration.seconds(120) + .milliseconds(call * 1000 / 14)
            state.callBegan(now: now)
            state.attemptEnded(nil, succeeded: true, now: now)
        }
        let now = Duration.seconds(180)
        #expect(state.permit(.transient, now: now) != nil)
        // By the ratio of the calls: 840 of them at a tenth, or by the tokens they earn.
        #expect(state.units(now: now) >= 14)
    }

    @Test(
        "Defect 5 of 15: a reserve of ten retries a second for each process makes most of the retries in an outage"
    )
    func reserve() {
        var state = RetryBudgetState(.finagle, now: .zero)
        // 0.2 + 10 / 14 by arithmetic.
        #expect(outage(&state, from: .zero, seconds: 30) > 1.8)
    }
}

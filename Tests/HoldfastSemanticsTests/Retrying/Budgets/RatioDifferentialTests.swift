// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastTesting
import Testing

@Suite struct RatioDifferentialTests {
    private struct Form: Sendable, CustomTestStringConvertible {
        var share: Double
        var reservePerSecond: Double
        var secondsToLive: Double

        var testDescription: String { "\(share) + \(reservePerSecond)/s" }

        var budget: RetryBudget {
            .ratio(share, reservePerSecond: reservePerSecond, timeToLive: .seconds(secondsToLive))
        }

        var oracle: RatioOracle {
            RatioOracle(share: share, reservePerSecond: reservePerSecond, secondsToLive: secondsToLive)
        }
    }

    private static let forms = [
        Form(share: 0.1, reservePerSecond: 0.5, secondsToLive: 10),
        Form(share: 0.2, reservePerSecond: 10, secondsToLive: 10),
        Form(share: 0.333, reservePerSecond: 0, secondsToLive: 60),
    ]

    @Test(
        "RETRY.md §5.1, E14: Finagle's budget and similar ones, decision for decision",
        arguments: forms,
        FuzzRounds.seeds
    )
    private func decisions(form: Form, seed: UInt64) {
        var source = SeededGenerator(seed: seed)
        var state = RetryBudgetState(form.budget, now: .zero)
        var oracle = form.oracle
        var grants: [RetryGrant] = []
        var milliseconds = 0
        var failures = 0.3
        for step in 0..<FuzzRounds.of(1200) {
            // Mostly dense, sometimes longer than the memory; phases with and without failures.
            let pace = Int.random(in: 0..<200, using: &source) == 0 ? 20_000 : 120
            milliseconds += Int.random(in: 0...pace, using: &source)
            if step % 100 == 0 { failures = [0, 0.3, 0.9, 1].randomElement(using: &source) ?? 0 }
            let now = Duration.milliseconds(milliseconds)
            let seconds = Double(milliseconds) / 1000
            switch Int.random(in: 0..<4, using: &source) {
            case 0, 1:
                state.callBegan(now: now)
                oracle.callBegan(at: seconds)
            case 2:
                let grant = state.permit(.transient, now: now)
                #expect((grant != nil) == oracle.permit(at: seconds), "step \(step)")
                if let grant { grants.append(grant) }
            default:
                guard let grant = grants.popLast() else { continue }
                let succeeded = Double.random(in: 0..<1, using: &source) >= failures
                state.attemptEnded(grant, succeeded: succeeded, now: now)
            }
        }
    }
}

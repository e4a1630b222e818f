// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastTesting
import Testing

/// RETRY.md E0: every budget of the vectors that is one of ours, with any parameters.
@Suite struct BudgetVectorTests {
    private static func traces(_ belongs: (String) -> Bool) -> [BackoffVectors.Trace] {
        (VectorFile.backoff?.budgets ?? []).filter { belongs($0.id) }
    }

    private func integer(_ params: VectorParameters, _ name: String) -> Int? { params[name].map { Int($0) } }

    @Test("E0: quotas of the AWS SDKs", arguments: traces { $0.hasPrefix("aws-standard") })
    func quotas(vector: BackoffVectors.Trace) throws {
        let budget = RetryBudget.tokens(
            capacity: try #require(integer(vector.params, "capacity")),
            transient: try #require(integer(vector.params, "transient")),
            timeout: try #require(integer(vector.params, "timeout")),
            throttling: try #require(integer(vector.params, "throttling")),
            reward: integer(vector.params, "no_retry_increment") ?? 1
        )
        if vector.id == "aws-standard-2.0", VectorFile.isOwn { #expect(budget == .aws20) }
        if vector.id == "aws-standard-2.1", VectorFile.isOwn { #expect(budget == .aws21) }
        let causes: [String: RetryCause] = [
            "transient": .transient, "timeout": .timeout, "throttling": .throttling,
        ]
        var state = RetryBudgetState(budget, now: .zero)
        var grant: RetryGrant?
        for (number, step) in try #require(vector.trace).enumerated() {
            let event = try #require(step.event)
            if let cause = causes[event] {
                if grant != nil { state.attemptEnded(grant, succeeded: false, now: .zero) }
                grant = state.permit(cause, now: .zero)
                #expect((grant != nil) == step.granted, "step \(number)")
            } else {
                if event == "ok" { state.attemptEnded(grant, succeeded: true, now: .zero) }
                if event == "begin" { state.callBegan(now: .zero) }
                grant = nil
            }
            if let available = step.available { #expect(state.units(now: .zero) == Int(available), "step \(number)") }
        }
    }

    @Test("E0: what a total outage draws from a full quota", arguments: traces { $0.hasPrefix("aws-drain") })
    func drain(vector: BackoffVectors.Trace) throws {
        let cost = try #require(integer(vector.params, "cost"))
        let capacity = try #require(integer(vector.params, "capacity"))
        var state = RetryBudgetState(.tokens(capacity: capacity, transient: cost, timeout: cost), now: .zero)
        let expected = try #require(vector.expected)
        #expect(state.balance(now: .zero) == integer(expected, "retries_granted"))
        var granted = 0
        while let grant = state.permit(.timeout, now: .zero) {
            granted += 1
            state.attemptEnded(grant, succeeded: false, now: .zero)
        }
        #expect(granted == integer(expected, "retries_granted"))
        #expect(state.units(now: .zero) == integer(expected, "left"))
    }

    @Test("E0: gRPC's retry throttling", arguments: traces { $0 == "grpc-retryThrottling" })
    func throttling(vector: BackoffVectors.Trace) throws {
        let maxTokens = try #require(integer(vector.params, "maxTokens"))
        let tokenRatio = try #require(vector.params["tokenRatio"])
        var state = RetryBudgetState(.grpc(maxTokens: maxTokens, tokenRatio: tokenRatio), now: .zero)
        for (number, step) in try #require(vector.trace).enumerated() {
            state.attemptEnded(nil, succeeded: step.outcome == "S", now: .zero)
            let count = try #require(step.tokenCount)
            #expect(state.units(now: .zero) == Int(count * 1000 + 0.5), "step \(number)")
            for cause in [RetryCause.transient, .hedge] {
                let grant = state.permit(cause, now: .zero)
                #expect((grant != nil) == step.retriesAllowed, "step \(number)")
                if let grant { state.giveBack(grant, now: .zero) }
            }
            #expect((state.balance(now: .zero) > 0) == step.retriesAllowed)
        }
    }

    @Test("E0: the failure rate at which gRPC's count stays constant", arguments: traces { $0 == "grpc-break-even" })
    func breakEven(vector: BackoffVectors.Trace) throws {
        let tokenRatio = try #require(vector.params["tokenRatio"])
        let expected = try #require(vector.expected)
        let failures = try #require(expected["failure_ratio"])
        for (factor, isAllowed) in [(0.9, true), (1.1, false)] {
            var state = RetryBudgetState(.grpc(tokenRatio: tokenRatio), now: .zero)
            var owed = 0.0
            for _ in 0..<4000 {
                owed += failures * factor
                state.attemptEnded(nil, succeeded: owed < 1, now: .zero)
                if owed >= 1 { owed -= 1 }
            }
            #expect((state.balance(now: .zero) > 0) == isAllowed, "\(factor) of \(failures)")
        }
    }

    @Test("E0: Finagle's reserve and ratio", arguments: traces { $0 == "finagle-retrybudget" })
    func finagle(vector: BackoffVectors.Trace) throws {
        let share = try #require(vector.params["percentCanRetry"])
        let reserve = try #require(vector.params["minRetriesPerSec"])
        let life = Duration.seconds(try #require(vector.params["ttl_s"]))
        let budget = RetryBudget.ratio(
            share,
            reservePerSecond: reserve,
            timeToLive: life
        )
        var state = RetryBudgetState(budget, now: .zero)
        let expected = try #require(vector.expected)
        #expect(state.balance(now: .zero) == integer(expected, "initial_balance"))
        for _ in 0..<1000 { state.callBegan(now: .zero) }
        let deposit = try #require(expected["deposit"])
        let withdrawal = try #require(expected["withdraw"])
        let ours = state.balance(now: .zero) - (integer(expected, "initial_balance") ?? 0)
        // Theirs is cut to a thousandth of a deposit; ours is exact.
        #expect(abs(Double(ours) - 1000 * deposit / withdrawal) <= 1)
        #expect(ours == Int(1000 * share + 0.5))
    }

    @Test(
        "Defect 4 of 15: tower's ratio is rounded to 1, ours is exact",
        arguments: traces { $0 == "tower-tpsbudget-quantisation" }
    )
    func quantization(vector: BackoffVectors.Trace) throws {
        let share = try #require(vector.params["retry_percent"])
        let budget = RetryBudget.ratio(share, reservePerSecond: 0)
        var state = RetryBudgetState(budget, now: .zero)
        for _ in 0..<1000 { state.callBegan(now: .zero) }
        var granted = 0
        while state.permit(.transient, now: .zero) != nil { granted += 1 }
        #expect(granted == Int(1000 * share + 0.5))
        let expected = try #require(vector.expected)
        let theirs = try #require(expected["effective_ratio"])
        if abs(theirs - share) > 0.001 { #expect(abs(Double(granted) / 1000 - theirs) > 0.01) }
    }
}

/// RETRY.md E0: the analytic figures that follow from the rules of budgets, by a small Monte Carlo.
@Suite struct AmplificationVectorTests {
    private static func claims(_ id: String) -> [BackoffVectors.Claim] {
        (VectorFile.backoff?.analytic ?? []).filter { $0.id == id }
    }

    /// Attempts per call, and the share of calls that succeed.
    private func simulate(
        _ state: inout RetryBudgetState,
        calls: Int,
        failures: Double,
        maxRetries: Int,
        using source: inout SeededGenerator
    ) -> (attempts: Double, success: Double) {
        var attempts = 0
        var successes = 0
        for _ in 0..<calls {
            state.callBegan(now: .zero)
            var grant: RetryGrant?
            for retry in 0...maxRetries {
                attempts += 1
                let succeeded = Double.random(in: 0..<1, using: &source) >= failures
                state.attemptEnded(grant, succeeded: succeeded, now: .zero)
                successes += succeeded ? 1 : 0
                guard !succeeded, retry < maxRetries else { break }
                grant = state.permit(.transient, now: .zero)
                guard grant != nil else { break }
            }
        }
        return (Double(attempts) / Double(calls), Double(successes) / Double(calls))
    }

    @Test("E0: (1 - p^(R+1)) / (1 - p) attempts without a budget", arguments: claims("unbudgeted-amplification"))
    func unbudgeted(claim: BackoffVectors.Claim) throws {
        var source = SeededGenerator(seed: 9)
        var state = RetryBudgetState(.unlimited, now: .zero)
        let failures = try #require(claim.params["p_fail"])
        let maxRetries = Int(try #require(claim.params["max_retries"]))
        let calls = 1000
        let found = simulate(&state, calls: calls, failures: failures, maxRetries: maxRetries, using: &source)
        let attempts = try #require(claim.expected["attempts_per_request"])
        let success = try #require(claim.expected["success"])
        // Four standard errors, with the spread of a geometric series cut at R as an upper bound.
        let deviation =
            ElementaryFunction.squareRoot(failures) * attempts / ElementaryFunction.squareRoot(Double(calls))
        #expect(abs(found.attempts - attempts) <= 4 * deviation + 1e-9, "\(found.attempts), not \(attempts)")
        #expect(abs(found.success - success) <= 0.065, "\(found.success), not \(success)")
    }

    @Test(
        "E0: 1 + (1 - p) / (cost p) attempts with an empty quota",
        arguments: claims("aws-bucket-steady-amplification")
    )
    func quota(claim: BackoffVectors.Claim) throws {
        var source = SeededGenerator(seed: 9)
        let cost = Int(try #require(claim.params["retry_cost"]))
        let failures = try #require(claim.params["p_fail"])
        var state = RetryBudgetState(.tokens(transient: cost, timeout: cost), now: .zero)
        while let grant = state.permit(.transient, now: .zero) {
            state.attemptEnded(grant, succeeded: false, now: .zero)
        }
        _ = simulate(&state, calls: 300, failures: failures, maxRetries: 2, using: &source)
        let found = simulate(&state, calls: 3000, failures: failures, maxRetries: 2, using: &source)
        let expected = try #require(claim.expected["amplification"])
        #expect(abs(found.attempts - expected) <= 0.04, "\(found.attempts), not \(expected)")
    }
}

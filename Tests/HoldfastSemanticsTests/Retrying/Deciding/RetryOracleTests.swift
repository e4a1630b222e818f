// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastSemantics
import HoldfastTestKit
import HoldfastTesting
import Testing

@Suite struct RetryOracleTests {
    /// Scripts in all; `HOLDFAST_LONG_TESTS=1` runs the 100,000 of E14.
    private static let scripts = LongTests.areOn ? 100_000 : 3_000

    @Test("E14: decisions for random scripts match a direct implementation of RETRY.md", arguments: FuzzRounds.seeds)
    func differential(seed: UInt64) {
        var source = SeededGenerator(seed: seed)
        var decisions: [String: Int] = [:]
        for script in 0..<(Self.scripts / FuzzRounds.seeds.count) {
            var call = Self.call(using: &source)
            var oracle = RetryOracle(call)
            while true {
                let outcome = Self.outcome(using: &source)
                let found = call.decideWithReasons(outcome)
                let expected = oracle.next(outcome)
                guard case .retry = found.decision else {
                    guard found.decision == expected.decision, found.cause == nil else {
                        Issue.record("script \(script) of seed \(seed): \(found), not \(expected), after \(outcome)")
                        return
                    }
                    if case .stop(let reason) = found.decision { decisions[reason.rawValue, default: 0] += 1 }
                    break
                }
                let cost = found.cause.map { "\($0)" } ?? "free"
                guard found.decision == expected.decision, cost == expected.cost else {
                    Issue.record("script \(script) of seed \(seed): \(found), not \(expected), after \(outcome)")
                    return
                }
                decisions[cost, default: 0] += 1
                #expect(call.attempt < call.rules.maxAttempts + 5)
            }
        }
        // A comparison that never comes to the end of a branch proves nothing about it.
        let reached: Set = [
            "free", "transient", "timeout", "throttling", "not-retryable", "not-idempotent", "not-replayable",
            "committed", "cancelled", "attempts-exhausted", "deadline", "server-delay-too-long", "server-forbids",
            "retried-below", "retried-above",
        ]
        #expect(Set(decisions.keys) == reached)
    }

    private static func call(using source: inout SeededGenerator) -> RetryCall {
        func chance(_ share: Int, _ source: inout SeededGenerator) -> Bool {
            Int.random(in: 0..<share, using: &source) == 0
        }
        var rules = RetryRules(maxAttempts: Int.random(in: 1...6, using: &source))
        rules.maxServerDelay = .seconds(Int.random(in: 2...20, using: &source))
        rules.isGateway = chance(6, &source)
        rules.retriesUnsafeWhenThrottled = chance(3, &source)
        rules.retriesUnsafeOnStaleSocket = chance(3, &source)
        rules.countsFreeResends = chance(6, &source)
        rules.obeysRetryAfter = !chance(6, &source)
        rules.obeysRateLimit = !chance(4, &source)
        rules.respectsInnerRetries = !chance(4, &source)
        rules.leavesRetriesToCaller = chance(4, &source)
        if chance(2, &source) { rules.vendorHints = .shouldRetry }
        if chance(4, &source) { rules.retryableStatuses = [404, 422, 417, 503] }
        if chance(6, &source) { rules.finalStatuses = [500, 421] }
        if chance(4, &source) { rules.minimumAttemptTime = .milliseconds(500) }
        let methods: [RequestMethod] = [.get, .get, .put, .delete, .post, .post, .patch]
        var call = RetryCall(rules, methods.randomElement(using: &source) ?? .get)
        if chance(4, &source) { call.fields["Idempotency-Key"] = "\"1\"" }
        if chance(4, &source) { call.fields["Expect"] = "100-continue" }
        if chance(12, &source) { call.fields["Upgrade"] = "websocket" }
        if chance(8, &source) { call.fields["X-Retry-Attempt"] = "1" }
        if chance(6, &source) { call.declared = Bool.random(using: &source) }
        call.replayable = !chance(8, &source)
        call.wasRetriedBelow = chance(8, &source)
        if chance(3, &source) { call.timeLeft = .milliseconds(Int.random(in: 0...9000, using: &source)) }
        call.source = SeededGenerator(seed: source.next())
        return call
    }

    private static func outcome(using source: inout SeededGenerator) -> AttemptOutcome {
        if Bool.random(using: &source) {
            let kinds: [AttemptFailure.Kind] = [
                .connectionLost, .connectionLost, .connectionLost, .timeout, .timeout, .refused, .connect, .offline,
                .tls,
                .other, .protocolError, .certificate, .cancelled, .tooLarge,
            ]
            let stages: [TransportProgress] = [
                .notSent, .headSent, .bodySent, .bodySent, .headReceived, .bytesReceived,
            ]
            return .failed(
                kinds.randomElement(using: &source) ?? .other,
                stages.randomElement(using: &source) ?? .bodySent,
                reused: Bool.random(using: &source)
            )
        }
        let statuses = [500, 500, 502, 503, 503, 504, 408, 429, 429, 413, 409, 417, 421, 425, 422, 404, 401, 501]
        var fields = HeaderFields()
        switch Int.random(in: 0..<8, using: &source) {
        case 0...1: fields[.retryAfter] = "\(Int.random(in: 0...12, using: &source))"
        case 2: fields[.retryAfter] = "soon"
        case 3: fields["RateLimit"] = "\"a\";r=0;t=7"
        case 4: fields["x-should-retry"] = Bool.random(using: &source) ? "false" : "true"
        default: break
        }
        return .status(statuses.randomElement(using: &source) ?? 500, fields)
    }
}

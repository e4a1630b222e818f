// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastTesting
import Testing

/// Each preset against its doc sentence.
@Suite struct RetryPresetsTests {
    private static let presets: [RetryRules] = [.default, .strict, .patient, .interactive, .gateway, .never]

    /// Every outcome that the table knows, some of it several times over.
    private static let outcomes: [AttemptOutcome] = {
        let stages: [TransportProgress] = [.notSent, .headSent, .bodySent, .headReceived, .bytesReceived]
        let kinds: [AttemptFailure.Kind] = [.connect, .timeout, .connectionLost, .protocolError, .other]
        let failures = kinds.flatMap { kind in
            stages.flatMap { [AttemptOutcome.failed(kind, $0), .failed(kind, $0, reused: true)] }
        }
        return failures + (400...599).flatMap { [.status($0), .status($0, ["Retry-After": "0"])] }
    }()

    @Test("Every preset passes validate()", arguments: presets)
    func valid(rules: RetryRules) throws {
        try rules.validate()
    }

    /// How many times a call is sent that fails alike for ever.
    private func sends(_ rules: RetryRules, _ outcomes: [AttemptOutcome], _ method: RequestMethod = .get) -> Int {
        var call = RetryCall(rules, method)
        while case .retry = call.decide(outcomes[min(call.attempt, outcomes.count - 1)]) {}
        return call.attempt
    }

    @Test("default: four attempts, full jitter from 100 ms, a budget")
    func standard() {
        let rules = RetryRules.default
        #expect(sends(rules, [.status(500)]) == 4)
        #expect(sends(rules, [.staleSocket, .status(500)]) == 5)
        #expect(rules.backoff == Backoff(base: .milliseconds(100), jitter: .full))
        #expect(rules.budget == .pool && !rules.parks)
    }

    @Test("strict: one retry and no more, whatever the failure (RFC 9110 §9.2.2)")
    func strict() {
        let outcomes = Self.outcomes + [.status(421), .status(425), .failed(.refused), .staleSocket]
        for outcome in outcomes {
            for next in [AttemptOutcome.status(500), .staleSocket, .failed(.refused), .status(421)] {
                #expect(sends(.strict, [outcome, next]) <= 2, "\(outcome), \(next)")
            }
        }
        #expect(sends(.strict, [.status(500)]) == 2)
    }

    @Test("patient: many attempts, and a call waits while the budget is empty")
    func patient() {
        #expect(sends(.patient, [.status(500)]) == 50)
        #expect(RetryRules.patient.parks && RetryRules.patient.maxParking > .seconds(30))
    }

    @Test("interactive: short waits, and it does not wait for a server that asks for more than 2 s")
    func interactive() {
        var call = RetryCall(.interactive)
        call.rules.maxAttempts = 100
        for round in 0..<98 {
            guard case .retry(let wait) = call.decide(.status(round.isMultiple(of: 2) ? 500 : 429)) else {
                Issue.record("round \(round)")
                continue
            }
            #expect(wait <= .seconds(1))
        }
        var asked = RetryCall(.interactive)
        #expect(asked.decide(.status(503, ["Retry-After": "3"])) == .stop(.serverDelayTooLong))
        guard case .retry = asked.decide(.status(503, ["Retry-After": "2"])) else {
            Issue.record("2 s are not waited for")
            return
        }
    }

    @Test("Complaint 4 of 12: gateway never resends a POST that may have been processed, whatever else is set")
    func gateway() {
        var rules = RetryRules.gateway
        rules.retriesUnsafeOnStaleSocket = true
        rules.retriesUnsafeWhenThrottled = true
        rules.mintsIdempotencyKey = true
        rules.retryableStatuses = Set((400...599).map { StatusCode($0) })
        rules.countsFreeResends = false
        rules.maxAttempts = 10
        for outcome in Self.outcomes {
            for method in [RequestMethod.post, .patch, "LOCK"] {
                var call = RetryCall(rules, method, ["Idempotency-Key": "\"8e03\""])
                call.declared = true
                let reasoned = call.decideWithReasons(outcome)
                guard case .retry = reasoned.decision else { continue }
                #expect(reasoned.retryClass == .unprocessed, "\(method) \(outcome)")
                switch outcome {
                case .failure(let failure): #expect(failure.progress == .notSent)
                case .response(let head): #expect([421, 425].contains(head.status.rawValue))
                }
            }
        }
        #expect(sends(.gateway, [.status(500)]) == 2)
        #expect(sends(.gateway, [.staleSocket, .status(500)]) == 2)
        var above = RetryCall(.gateway, .get, ["x-retry-attempt": "1"])
        #expect(above.decide(.status(500)) == .stop(.retriedAbove))
    }

    @Test("none: one attempt, whatever the failure")
    func none() {
        for outcome in Self.outcomes + [.staleSocket, .failed(.refused)] {
            #expect(sends(.never, [outcome]) == 1)
        }
        #expect(
            RetryRules.never.gateNotice(ResponseHead(status: 429, fields: ["Retry-After": "1"]), receivedAt: .noon)
                != nil
        )
    }
}

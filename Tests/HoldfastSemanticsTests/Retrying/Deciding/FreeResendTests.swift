// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import Testing

@Suite struct FreeResendTests {
    private static let free = RetryDecision.retryNow

    @Test(
        "Complaint 7 of 12: a request on a stale connection is resent once at once and for free, then as the policy says"
    )
    func staleSocket() {
        var call = RetryCall()
        #expect(call.decideWithReasons(.staleSocket) == ReasonedRetryDecision(.retryNow, retryClass: .staleSocket))
        let second = call.decideWithReasons(.staleSocket)
        #expect(
            second
                == ReasonedRetryDecision(.retry(after: .milliseconds(100)), retryClass: .ambiguous, cause: .transient)
        )
        #expect(call.decide(.staleSocket) == .retry(after: .milliseconds(200)))
        #expect(call.decide(.staleSocket) == .stop(.attemptsExhausted))
    }

    @Test(
        "Complaint 7 of 12: not on a new connection, not after a byte of the response, not if it is not idempotent"
    )
    func notStale() {
        var call = RetryCall()
        #expect(call.decide(.failed(.connectionLost)) == .retry(after: .milliseconds(100)))
        #expect(call.decide(.failed(.connectionLost, .headReceived, reused: true)) == .retry(after: .milliseconds(200)))
        call = RetryCall(.unjittered, .post)
        #expect(call.decide(.staleSocket) == .stop(.notIdempotent))
        call.rules.retriesUnsafeOnStaleSocket = true
        #expect(call.decide(.staleSocket) == Self.free)
        #expect(call.decide(.staleSocket) == .stop(.notIdempotent))
        #expect(call.decide(.failed(.connectionLost)) == .stop(.notIdempotent))
        call.history = RetryHistory()
        call.wasRetriedBelow = true
        #expect(call.decide(.staleSocket) == .stop(.notIdempotent))
    }

    @Test("RETRY.md §3.1: a refused request of any method is resent once at once, then as the policy says")
    func refused() {
        var call = RetryCall(.unjittered, .post)
        #expect(
            call.decideWithReasons(.failed(.refused, .bodySent))
                == ReasonedRetryDecision(.retryNow, retryClass: .unprocessed)
        )
        let second = call.decideWithReasons(.failed(.refused, .headSent))
        #expect(
            second
                == ReasonedRetryDecision(.retry(after: .milliseconds(100)), retryClass: .unprocessed, cause: .transient)
        )
        call.replayable = false
        #expect(call.decide(.failed(.refused, .headSent)) == .stop(.notReplayable))
        #expect(call.decide(.failed(.refused, .notSent)) == .retry(after: .milliseconds(200)))
        #expect(call.decide(.failed(.refused, .notSent)) == .stop(.attemptsExhausted))
    }

    @Test(
        "RETRY.md §3.1: 421, 425 and a refused expectation are resent once, whatever the method",
        arguments: [421, 425, 417]
    )
    func onceOnly(status: Int) {
        for method in [RequestMethod.get, .post] {
            for rules in [RetryRules.unjittered, .gateway] {
                var call = RetryCall(rules, method, ["Expect": "100-continue"])
                #expect(
                    call.decideWithReasons(.status(status))
                        == ReasonedRetryDecision(.retryNow, retryClass: .unprocessed)
                )
                #expect(call.decide(.status(status)) == .stop(.notRetryable))
                call.replayable = false
                #expect(call.decide(.status(status)) == .stop(.notReplayable))
            }
        }
    }

    @Test("RETRY.md §3.1: the decision says that a resend must leave out Expect")
    func expectation() {
        for (status, fields, expected) in [
            (417, ["Expect": "100-continue"] as HeaderFields, true), (417, [:], false),
            (503, ["Expect": "100-continue"], false),
        ] {
            let failed = FailedExchange(.status(status), method: .post, fields: fields, receivedAt: .noon)
            #expect(failed.isRefusedExpectation == expected)
        }
        let failed = FailedExchange(.failed(.other), method: .post, fields: ["Expect": "x"], receivedAt: .noon)
        #expect(!failed.isRefusedExpectation)
    }

    @Test("Free resends do not count as attempts: at most maxAttempts + 5 sends", arguments: [2, 3, 10])
    func bound(maxAttempts: Int) {
        var call = RetryCall(.unjittered { $0.maxAttempts = maxAttempts }, .get, ["Expect": "100-continue"])
        let cures: [AttemptOutcome] = [
            .status(421), .status(425), .staleSocket, .failed(.refused, .headSent), .status(417),
        ]
        for outcome in cures { #expect(call.decide(outcome) == .retryNow) }
        #expect(call.history.countedAttempts == 1)
        while case .retry = call.decide(.status(500)) { #expect(call.attempt < 99) }
        #expect(call.attempt == maxAttempts + 5)
    }

    @Test("Free resends that count are attempts; with a single attempt there are none")
    func counted() {
        for (maxAttempts, sends) in [(1, 1), (2, 2), (3, 3)] {
            var call = RetryCall(.unjittered { $0.maxAttempts = maxAttempts })
            call.rules.countsFreeResends = true
            var outcome = AttemptOutcome.staleSocket
            while case .retry = call.decide(outcome) { outcome = .status(500) }
            #expect(call.attempt == sends)
        }
        var call = RetryCall(.never)
        #expect(call.decide(.staleSocket) == .stop(.attemptsExhausted))
    }

    @Test("RETRY.md §3.2.2: a resend is not sent earlier than the server asks for either")
    func askedToWait() {
        var call = RetryCall()
        let reasoned = call.decideWithReasons(.status(425, ["Retry-After": "4"]))
        guard case .retry(let wait) = reasoned.decision else { Issue.record("\(reasoned)"); return }
        #expect(wait >= .seconds(4) && wait <= .seconds(6))
        #expect(reasoned.cause == nil)
        #expect(call.decide(.status(421, ["Retry-After": "61"])) == .stop(.serverDelayTooLong))
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastTesting
import Testing

@Suite struct RetryRulesTests {
    @Test("Waits grow, and the number of attempts is limited")
    func attempts() {
        var call = RetryCall()
        #expect(call.decide(.status(500)) == .retry(after: .milliseconds(100)))
        #expect(call.decide(.status(500)) == .retry(after: .milliseconds(200)))
        #expect(call.decide(.status(500)) == .stop(.attemptsExhausted))
        #expect(call.history.countedAttempts == 3)
        for (rules, attempt) in [
            (RetryRules.never, 0), (RetryRules(maxAttempts: -1), 0), (RetryRules(maxAttempts: .min), 0),
            (RetryRules(), Int.max - 1), (RetryRules(maxAttempts: .max), Int.max - 1), (RetryRules(), 8),
        ] {
            var call = RetryCall(rules)
            call.attempt = attempt
            #expect(call.decide(.status(500)) == .stop(.attemptsExhausted))
        }
    }

    @Test("The reason that stops a retry is named")
    func stops() {
        func first(_ outcome: AttemptOutcome, _ change: (inout RetryCall) -> Void = { _ in }) -> RetryDecision {
            var call = RetryCall()
            change(&call)
            return call.decide(outcome)
        }
        #expect(first(.status(404)) == .stop(.notRetryable))
        #expect(first(.status(500)) { $0.method = .post } == .stop(.notIdempotent))
        #expect(first(.status(500)) { $0.replayable = false } == .stop(.notReplayable))
        #expect(first(.failed(.cancelled)) == .stop(.cancelled))
        #expect(first(.status(421)) { $0.timeLeft = .zero } == .stop(.deadline))
        #expect(first(.status(500)) { $0.wasRetriedBelow = true } == .stop(.retriedBelow))
        #expect(first(.status(503)) { $0.method = .connect } == .stop(.committed))
    }

    @Test("Rows 4 and 14 of RETRY.md §1: throttling has its own waits and its own position in their series")
    func twoSeries() {
        var call = RetryCall(.unjittered { $0.maxAttempts = 6 })
        let outcomes: [AttemptOutcome] = [.status(500), .status(429), .failed(.timeout), .status(429), .status(429)]
        let waits = outcomes.map { call.decide($0) }
        let expected: [Duration] = [.milliseconds(100), .seconds(1), .milliseconds(200), .seconds(2), .seconds(4)]
        #expect(waits == expected.map { .retry(after: $0) })
        #expect(call.decide(.status(500)) == .stop(.attemptsExhausted))
        #expect(call.history.transientRetries == 2 && call.history.throttlingRetries == 3)
    }

    @Test("Each series depends on its own waits only")
    func decorrelated() {
        var rules = RetryRules(backoff: Backoff(base: .milliseconds(100), jitter: .decorrelated), maxAttempts: 1000)
        rules.throttlingBackoff = Backoff(base: .seconds(1), jitter: .decorrelated)
        var call = RetryCall(rules)
        var last: [Bool: Duration] = [false: .milliseconds(100), true: .seconds(1)]
        for round in 0..<200 {
            let isThrottled = round.isMultiple(of: 3)
            guard case .retry(let wait) = call.decide(.status(isThrottled ? 429 : 500)) else {
                Issue.record("round \(round)")
                return
            }
            #expect(wait <= (last[isThrottled] ?? .zero) * 3 + .nanoseconds(3))
            last[isThrottled] = wait
        }
        #expect(call.history.backoff != call.history.throttlingBackoff)
    }

    @Test("Complaint 2 of 12: a wait that cannot end in an attempt is not started")
    func deadline() {
        var call = RetryCall()
        call.timeLeft = .milliseconds(100)
        #expect(call.decide(.status(500)) == .stop(.deadline))
        call.timeLeft = .milliseconds(101)
        #expect(call.decide(.status(500)) == .retry(after: .milliseconds(100)))
        call.rules.minimumAttemptTime = .milliseconds(300)
        call.timeLeft = .milliseconds(499)
        #expect(call.decide(.status(500)) == .stop(.deadline))
        call.timeLeft = .milliseconds(500)
        #expect(call.decide(.status(500)) == .retry(after: .milliseconds(200)))
        var stale = RetryCall(call.rules)
        stale.timeLeft = .milliseconds(299)
        #expect(stale.decide(.staleSocket) == .stop(.deadline))
        stale.timeLeft = .seconds(20)
        #expect(stale.decide(.status(503, ["Retry-After": "20"])) == .stop(.deadline))
    }

    @Test("A refused wait leaves the history unchanged")
    func refusedWaits() {
        var call = RetryCall()
        call.timeLeft = .milliseconds(1)
        #expect(call.decide(.status(500)) == .stop(.deadline))
        #expect(call.decide(.status(429, ["Retry-After": "99"])) == .stop(.serverDelayTooLong))
        #expect(call.history.countedAttempts == 1)
    }

    @Test("RETRY.md §3.1: throttled unsafe requests are retried only by opt-in")
    func throttledUnsafe() {
        var call = RetryCall(.unjittered, .post)
        #expect(call.decide(.status(429)) == .stop(.notIdempotent))
        call.rules.retriesUnsafeWhenThrottled = true
        #expect(call.decide(.status(429)) == .retry(after: .seconds(1)))
        #expect(call.decide(.status(500)) == .stop(.notIdempotent))
        call.replayable = false
        #expect(call.decide(.status(429)) == .stop(.notReplayable))
    }

    @Test("RETRY.md §2.2, §3.2.6: what a retry costs; one after a Retry-After of 0 costs a token too")
    func causes() {
        for (outcome, cause) in [
            (AttemptOutcome.status(500), RetryCause.transient), (.status(504), .transient),
            (.failed(.connect, .notSent), .transient), (.failed(.timeout), .timeout),
            (.failed(.timeout, .notSent), .timeout), (.status(429), .throttling),
            (.status(503, ["Retry-After": "0"]), .throttling), (.status(413, ["Retry-After": "0"]), .throttling),
        ] {
            var call = RetryCall()
            let reasoned = call.decideWithReasons(outcome)
            #expect(reasoned.cause == cause, "\(outcome)")
            #expect(call.rules.cause(of: reasoned.retryClass, outcome: outcome) == cause)
            guard case .retry = reasoned.decision else { Issue.record("\(reasoned)"); continue }
        }
        var call = RetryCall()
        #expect(
            call.decideWithReasons(.status(404))
                == ReasonedRetryDecision(.stop(.notRetryable), retryClass: .never(.notRetryable))
        )
        #expect(call.rules.cause(of: .never(.cancelled), outcome: .failed(.cancelled)) == nil)
    }

    @Test("RETRY.md §4.6: what a lower layer has retried is final, unless one resend cures it")
    func retriedBelow() {
        for (outcome, decision) in [
            (AttemptOutcome.status(503), RetryDecision.stop(.retriedBelow)),
            (.failed(.connect, .notSent), .stop(.retriedBelow)), (.staleSocket, .stop(.retriedBelow)),
            (.failed(.refused, .headSent), .retryNow), (.status(421), .retryNow), (.status(404), .stop(.notRetryable)),
        ] {
            var call = RetryCall()
            call.wasRetriedBelow = true
            #expect(call.decide(outcome) == decision, "\(outcome)")
        }
        var call = RetryCall(.unjittered { $0.respectsInnerRetries = false })
        call.wasRetriedBelow = true
        #expect(call.decide(.status(500)) == .retry(after: .milliseconds(100)))
    }

    @Test("RETRY.md §4.6: a request that a higher layer retries gets one attempt")
    func retriedAbove() {
        var call = RetryCall(.unjittered { $0.leavesRetriesToCaller = true })
        #expect(call.decide(.status(500)) == .retry(after: .milliseconds(100)))
        call = RetryCall(call.rules, .get, ["X-Retry-Attempt": "2"])
        #expect(call.decide(.status(500)) == .stop(.retriedAbove))
        #expect(call.decide(.staleSocket) == .stop(.retriedAbove))
        #expect(call.decide(.status(404)) == .stop(.notRetryable))
        call = RetryCall(.unjittered { $0.attemptField = "Try" }, .get, ["Try": "2"])
        #expect(call.decide(.status(500)) == .retry(after: .milliseconds(100)))
        call.rules.leavesRetriesToCaller = true
        // The field of a second attempt is our own.
        #expect(call.decide(.status(500)) == .retry(after: .milliseconds(200)))
        call.attempt = 0
        #expect(call.decide(.status(500)) == .stop(.retriedAbove))
    }

    @Test("Defect 8 of 15: the first retry is not immediate", arguments: propertySeeds)
    func firstRetryWaits(seed: UInt64) {
        var waits: [RetryDecision] = []
        for round in 0..<50 {
            var call = RetryCall(.default)
            call.source = SeededGenerator(seed: seed &+ UInt64(round))
            waits.append(call.decide(.status(500)))
        }
        #expect(waits.filter { $0 == .retryNow }.count <= 1)
        #expect(Set(waits).count > 45)
    }

    @Test("Defect 11 of 15: 429 is retried by default, and the waits are spread")
    func jitterByDefault() {
        var waits: Set<RetryDecision> = []
        for seed in 0..<40 {
            var call = RetryCall(.default)
            call.source = SeededGenerator(seed: UInt64(seed))
            let decision = call.decide(.status(429))
            waits.insert(decision)
            guard case .retry(let wait) = decision, wait < .seconds(1) else { Issue.record("\(decision)"); continue }
        }
        #expect(waits.count > 35)
    }

    @Test("The same generator gives the same decision")
    func determinism() {
        func first(seed: UInt64) -> RetryDecision {
            var call = RetryCall(.default)
            call.source = SeededGenerator(seed: seed)
            return call.decide(.status(503, ["Retry-After": "3"]))
        }
        #expect(first(seed: 9) == first(seed: 9))
        #expect(first(seed: 9) != first(seed: 10))
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastTesting
import Testing

@Suite struct RetryRulesTests {
    private func decide(
        _ outcome: AttemptOutcome,
        rules: RetryRules = RetryRules(backoff: Backoff(jitter: .none)),
        method: RequestMethod = .get,
        attempt: Int = 1,
        replayable: Bool = true,
        declared: Bool? = nil,
        timeLeft: Duration? = nil,
        seed: UInt64 = 7
    ) -> RetryDecision {
        var source = SeededGenerator(seed: seed)
        var history = RetryHistory()
        let failed = FailedExchange(
            outcome,
            method: method,
            attempt: attempt,
            bodyIsReplayable: replayable,
            declaredIdempotent: declared,
            timeLeft: timeLeft,
            receivedAt: .noon
        )
        return rules.decide(failed, history: &history, using: &source)
    }

    private func response(_ status: Int, _ fields: HeaderFields = [:]) -> AttemptOutcome {
        .response(ResponseHead(status: StatusCode(status), fields: fields))
    }

    private func failure(
        _ kind: AttemptFailure.Kind,
        _ progress: TransportProgress,
        reused: Bool = false
    ) -> AttemptOutcome {
        .failure(AttemptFailure(kind: kind, progress: progress, connectionReused: reused))
    }

    @Test("Waits grow, and attempts end")
    func attempts() {
        #expect(decide(response(500)) == .retry(after: .milliseconds(100)))
        #expect(decide(response(500), attempt: 2) == .retry(after: .milliseconds(200)))
        #expect(decide(response(500), attempt: 3) == .stop(.attemptsExhausted))
        #expect(decide(response(500), attempt: .max) == .stop(.attemptsExhausted))
        #expect(decide(response(500), rules: .strict, attempt: 2) == .stop(.attemptsExhausted))
        #expect(decide(response(500), rules: RetryRules(maxAttempts: -1)) == .stop(.attemptsExhausted))
    }

    @Test("What stops a retry is named")
    func stops() {
        #expect(decide(response(404)) == .stop(.notRetryable))
        #expect(decide(response(500), method: .post) == .stop(.notIdempotent))
        #expect(decide(response(500), method: .post, declared: true) == .retry(after: .milliseconds(100)))
        #expect(decide(response(500), replayable: false) == .stop(.notReplayable))
        #expect(decide(failure(.cancelled, .bodySent)) == .stop(.cancelled))
        #expect(decide(response(500), timeLeft: .milliseconds(100)) == .stop(.deadline))
        #expect(decide(response(500), timeLeft: .milliseconds(101)) == .retry(after: .milliseconds(100)))
        #expect(decide(response(421), timeLeft: .zero) == .stop(.deadline))
    }

    @Test("RETRY.md §3.1: at once, once")
    func atOnce() {
        let lost = failure(.connectionLost, .bodySent, reused: true)
        #expect(decide(lost) == .retryNow)
        #expect(decide(lost, attempt: 2) == .retry(after: .milliseconds(200)))
        #expect(decide(response(421), method: .post) == .retryNow)
        #expect(decide(response(425), attempt: 2) == .stop(.notRetryable))
        #expect(decide(failure(.connect, .notSent), method: .post) == .retry(after: .milliseconds(100)))
    }

    @Test(
        "RETRY.md §3.2: Retry-After is never undercut and jittered upward by at most half of it or 5 s",
        arguments: [
            (1, 1.5), (4, 6.0), (10, 15.0), (40, 45.0), (60, 65.0),
        ]
    )
    func retryAfter(seconds: Int, most: Double) throws {
        for seed in propertySeeds {
            let decision = decide(response(503, ["Retry-After": "\(seconds)"]), seed: seed)
            guard case .retry(let delay) = decision else {
                Issue.record("\(decision)")
                continue
            }
            #expect(delay >= .seconds(seconds))
            #expect(delay <= .seconds(most))
        }
    }

    @Test("RETRY.md §3.2 rule 3: too long a wait ends the call at once")
    func serverDelayTooLong() {
        #expect(decide(response(429, ["Retry-After": "61"])) == .stop(.serverDelayTooLong))
        #expect(decide(response(429, ["Retry-After": "30"]), timeLeft: .seconds(30)) == .stop(.deadline))
        #expect(decide(response(413, ["Retry-After": date(7200)])) == .stop(.serverDelayTooLong))
    }

    @Test("RETRY.md §3.2 rule 2: the own backoff counts where it is longer")
    func ownBackoffIsLonger() {
        let rules = RetryRules(backoff: Backoff(base: .seconds(9), jitter: .none))
        #expect(decide(response(503, ["Retry-After": "0"]), rules: rules) == .retry(after: .seconds(9)))
        #expect(decide(response(503, ["Retry-After": "soon"]), rules: rules) == .retry(after: .seconds(9)))
    }

    @Test("RETRY.md §3.1: throttled unsafe requests by opt-in only")
    func throttledUnsafe() {
        var rules = RetryRules(backoff: Backoff(jitter: .none))
        #expect(decide(response(429), rules: rules, method: .post) == .stop(.notIdempotent))
        rules.retriesUnsafeWhenThrottled = true
        #expect(decide(response(429), rules: rules, method: .post) == .retry(after: .milliseconds(100)))
        #expect(decide(response(500), rules: rules, method: .post) == .stop(.notIdempotent))
        #expect(decide(response(429), rules: rules, method: .post, replayable: false) == .stop(.notReplayable))
    }

    @Test("The same generator gives the same decision")
    func determinism() {
        let outcome = response(503, ["Retry-After": "3"])
        #expect(decide(outcome, rules: .default, seed: 9) == decide(outcome, rules: .default, seed: 9))
        #expect(decide(outcome, rules: .default, seed: 9) != decide(outcome, rules: .default, seed: 10))
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastTesting
import Testing

@Suite("RETRY §3.5, §3.2: when a redirect is followed") struct RetryRulesRedirectingTests {
    private static func decide(
        _ fields: HeaderFields,
        timeLeft: Duration? = nil,
        seed: UInt64 = 1,
        _ change: (inout RetryRules) -> Void = { _ in }
    ) -> RetryDecision {
        var rules = RetryRules.default
        change(&rules)
        var generator = SeededGenerator(seed: seed)
        let head = ResponseHead(status: 302, fields: fields)
        return rules.decideFollowing(head, receivedAt: .noon, timeLeft: timeLeft, using: &generator)
    }

    @Test(
        "It is followed at once if there is no wait to obey",
        arguments: [[:], ["Retry-After": "0"], ["Retry-After": "x"], ["Retry-After": date(-9)]] as [HeaderFields]
    )
    func atOnce(_ fields: HeaderFields) {
        #expect(Self.decide(fields, timeLeft: .seconds(1)) == .retryNow)
        #expect(Self.decide(["Retry-After": "9"]) { $0.obeysRetryAfter = false } == .retryNow)
    }

    @Test("It is not followed beyond the rules or the time left, or if the next hop would have too little time")
    func handedUp() {
        #expect(Self.decide(["Retry-After": "61"]) == .stop(.serverDelayTooLong))
        #expect(Self.decide(["Retry-After": "99999999999999999999"]) == .stop(.serverDelayTooLong))
        #expect(Self.decide(["Retry-After": "10"], timeLeft: .seconds(10)) == .stop(.deadline))
        let tooLate = Self.decide(["Retry-After": "10"], timeLeft: .seconds(15)) { $0.minimumAttemptTime = .seconds(6) }
        #expect(tooLate == .stop(.deadline))
    }

    @Test("It is never followed early, and at most half of the wait or 5 s late", arguments: propertySeeds)
    func jitter(_ seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<200 {
            let seconds = Int.random(in: 1...60, using: &generator)
            let decision = Self.decide(["Retry-After": String(seconds)], seed: generator.next())
            guard case .retry(let wait) = decision else {
                Issue.record("seed \(seed): \(seconds) s are within the rules")
                continue
            }
            #expect(wait >= .seconds(seconds), "seed \(seed)")
            #expect(wait <= .seconds(seconds) + min(.milliseconds(500 * seconds), .seconds(5)), "seed \(seed)")
        }
    }
}

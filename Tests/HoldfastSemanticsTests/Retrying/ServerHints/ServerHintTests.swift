// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastTesting
import Testing

@Suite struct ServerHintTests {
    private let quota: HeaderFields = ["RateLimit": "\"a\";r=0;t=30"]

    private func gate(_ status: StatusCode, _ fields: HeaderFields, _ rules: RetryRules = .default) -> Duration? {
        rules.gateNotice(ResponseHead(status: status, fields: fields), receivedAt: .noon)?.asked
    }

    private func asked(_ outcome: AttemptOutcome, _ rules: RetryRules = .default) -> Duration? {
        rules.serverDelay(FailedExchange(outcome, method: .get, receivedAt: .noon))
    }

    @Test(
        "Complaint 3 of 12, RETRY.md §3.2.2: Retry-After is never undercut; jitter adds at most half of it or 5 s",
        arguments: [
            (1, 1.5), (4, 6.0), (10, 15.0), (40, 45.0), (60, 65.0),
        ]
    )
    func upward(seconds: Int, most: Double) {
        var waits: Set<RetryDecision> = []
        for seed in 0..<40 {
            var call = RetryCall(.unjittered { $0.throttlingBackoff = Backoff(base: .zero) })
            call.source = SeededGenerator(seed: UInt64(seed))
            let decision = call.decide(.status(503, ["Retry-After": "\(seconds)"]))
            waits.insert(decision)
            guard case .retry(let wait) = decision else { Issue.record("\(decision)"); continue }
            #expect(wait >= .seconds(seconds))
            #expect(wait <= .seconds(most))
        }
        #expect(waits.count > 35)
    }

    @Test("RETRY.md §3.2.2: the client's own backoff applies if it is longer")
    func ownBackoffIsLonger() {
        var call = RetryCall(.unjittered { $0.throttlingBackoff = Backoff(base: .seconds(9), jitter: .none) })
        #expect(call.decide(.status(503, ["Retry-After": "0"])) == .retry(after: .seconds(9)))
        #expect(call.decide(.status(503, ["Retry-After": "soon"])) == .retry(after: .seconds(18)))
    }

    @Test(
        "Complaint 1 of 12: a wait that is too long ends the call at once, and the error says how long it would have been"
    )
    func tooLong() {
        var call = RetryCall()
        let reasoned = call.decideWithReasons(.status(429, ["Retry-After": "61"]))
        #expect(
            reasoned
                == ReasonedRetryDecision(.stop(.serverDelayTooLong), retryClass: .throttled, serverDelay: .seconds(61))
        )
        #expect(call.decide(.status(413, ["Retry-After": date(7200)])) == .stop(.serverDelayTooLong))
        call.timeLeft = .seconds(30)
        let late = call.decideWithReasons(.status(429, ["Retry-After": "30"]))
        #expect(late == ReasonedRetryDecision(.stop(.deadline), retryClass: .throttled, serverDelay: .seconds(30)))
        #expect(call.history.countedAttempts == 1)
    }

    @Test("Defect 6 of 15: Retry-After is checked against limit, deadline and time given, and does not permit a POST")
    func boundsOfRetryAfter() {
        var call = RetryCall(.unjittered { $0.maxServerDelay = .seconds(10) })
        #expect(call.decide(.status(503, ["Retry-After": "11"])) == .stop(.serverDelayTooLong))
        #expect(call.decide(.status(503, ["Retry-After": date(11)])) == .stop(.serverDelayTooLong))
        guard case .retry(let wait) = call.decide(.status(503, ["Retry-After": date(9)])) else {
            Issue.record("a wait within all limits is refused")
            return
        }
        #expect(wait >= .seconds(9))
        call.method = .post
        #expect(call.decide(.status(503, ["Retry-After": "1"])) == .stop(.notIdempotent))
    }

    @Test("Defect 8 of 15: a limit on Retry-After never makes the retry early", arguments: propertySeeds)
    func neverEarly(seed: UInt64) {
        var source = SeededGenerator(seed: seed)
        for _ in 0..<500 {
            let seconds = Int.random(in: 0...100, using: &source)
            var call = RetryCall(.default)
            call.rules.maxServerDelay = .seconds(Int.random(in: 0...100, using: &source))
            call.source = SeededGenerator(seed: source.next())
            call.timeLeft = Bool.random(using: &source) ? .seconds(Int.random(in: 1...100, using: &source)) : nil
            switch call.decide(.status(503, ["Retry-After": "\(seconds)"])) {
            case .retry(let wait): #expect(wait >= .seconds(seconds) && .seconds(seconds) <= call.rules.maxServerDelay)
            case .stop(.serverDelayTooLong): #expect(.seconds(seconds) > call.rules.maxServerDelay)
            case .stop(let reason): #expect(reason == .deadline && call.timeLeft != nil)
            }
        }
    }

    @Test(
        "Defect 9 of 15: a value that only a lenient parser takes for a number is ignored",
        arguments: ["1.5", "1e3", "0x10", "+5", " ", "1_0", "５"]
    )
    func lenientNumbers(value: String) {
        var call = RetryCall()
        #expect(call.decide(.status(503, ["Retry-After": value])) == .retry(after: .seconds(1)))
        #expect(gate(503, ["Retry-After": value]) == nil)
    }

    @Test("Defect 10 of 15: a long Retry-After is one wait, not several attempts")
    func attemptsAreNotSpent() {
        var call = RetryCall()
        guard case .retry(let wait) = call.decide(.status(503, ["Retry-After": "45"])) else {
            Issue.record("a wait beyond the backoff's series is refused")
            return
        }
        #expect(wait >= .seconds(45))
        #expect(call.history.countedAttempts == 2)
    }

    @Test(
        "Complaint 3 of 12: the wait for a date is exact to the millisecond, never shorter",
        arguments: [0, 1, 400, 999]
    )
    func fractions(milliseconds: Int64) {
        let received = Timestamp.noon.advanced(by: .milliseconds(milliseconds))
        let head: HeaderFields = ["Retry-After": date(30)]
        #expect(RetryAfter.delay(head, receivedAt: received) == .milliseconds(30_000 - milliseconds))
        // The server's Date is cut off to the second, so what it asks for by its own clock is not shortened.
        let dated = head.merging(["Date": date(0)])
        #expect(RetryAfter.delay(dated, receivedAt: received) == .seconds(30))
    }

    @Test("Complaint 3 of 12: the option turns Retry-After off, for retries and for the gate")
    func offSwitch() {
        var call = RetryCall(.unjittered { $0.obeysRetryAfter = false })
        let head: HeaderFields = ["Retry-After": "600"]
        #expect(call.decideWithReasons(.status(503, head)).serverDelay == nil)
        #expect(call.decide(.status(503, head)) == .retry(after: .seconds(2)))
        #expect(gate(503, head, call.rules) == nil)
        #expect(asked(.status(503, head), call.rules) == nil)
        #expect(gate(503, head) == .seconds(600))
        #expect(asked(.status(503, head)) == .seconds(600))
    }

    @Test("RETRY.md §3.2.4: Retry-After is read on failures and redirects", arguments: [301, 307, 413, 429, 500, 503])
    func statuses(status: Int) {
        #expect(asked(.status(status, ["Retry-After": "3"])) == .seconds(3))
        #expect(asked(.status(status, ["Retry-After": date(40), "Date": date(20), "Age": "5"])) == .seconds(15))
        #expect(asked(.failed(.timeout)) == nil)
    }

    @Test("RETRY.md §3.3: Retry-After takes precedence over t, and an empty quota on a redirect does not count")
    func precedence() {
        #expect(asked(.status(429, quota)) == .seconds(30))
        #expect(asked(.status(429, quota.merging(["Retry-After": "2"]))) == .seconds(2))
        #expect(asked(.status(429, quota.merging(["Retry-After": "x"]))) == .seconds(30))
        #expect(asked(.status(302, quota)) == nil)
        var rules = RetryRules()
        rules.obeysRateLimit = false
        #expect(asked(.status(429, quota), rules) == nil)
        #expect(gate(200, quota, rules) == nil)
    }

    @Test("RETRY.md §3.3: an absurd t ends a call like an absurd Retry-After, and closes the gate for the limit")
    func absurd() {
        let fields: HeaderFields = ["RateLimit": "\"a\";r=0;t=999999999"]
        var call = RetryCall()
        #expect(call.decide(.status(429, fields)) == .stop(.serverDelayTooLong))
        #expect(gate(200, fields) == .seconds(60))
        #expect(gate(429, fields) == .seconds(60))
    }

    @Test("RETRY.md §3.2.5, §3.3: what closes the gate, and for how long")
    func gateCloses() {
        #expect(gate(429, ["Retry-After": "3"]) == .seconds(3))
        #expect(gate(503, ["Retry-After": date(9)]) == .seconds(9))
        #expect(gate(503, ["Retry-After": "100", "Age": "20"]) == .seconds(80))
        #expect(gate(503, ["Retry-After": "0"]) == nil)
        #expect(gate(429, quota.merging(["Retry-After": "0"])) == nil)
        for status in [200, 204, 404, 429, 500, 503] as [StatusCode] { #expect(gate(status, quota) == .seconds(30)) }
        #expect(gate(301, quota) == nil)
        for status in [200, 413, 500, 302] as [StatusCode] { #expect(gate(status, ["Retry-After": "3"]) == nil) }
        var rules = RetryRules()
        rules.closesGate = false
        #expect(gate(429, ["Retry-After": "3"], rules) == nil && gate(200, quota, rules) == nil)
    }

    @Test("Vendor fields and the gate")
    func vendorsAndGate() {
        var rules = RetryRules()
        rules.vendorHints = .all
        #expect(gate(429, ["retry-after-ms": "250"], rules) == .milliseconds(250))
        #expect(gate(500, ["retry-after-ms": "250"], rules) == nil)
        #expect(gate(429, ["X-RateLimit-Reset": "9"], rules) == .seconds(9))
        #expect(gate(200, ["X-RateLimit-Reset": "9"], rules) == nil)
        #expect(gate(200, ["X-RateLimit-Reset": "9", "X-RateLimit-Remaining": "0"], rules) == .seconds(9))
    }
}

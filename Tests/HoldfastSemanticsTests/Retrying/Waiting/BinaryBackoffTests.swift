// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import Testing

@Suite struct BinaryBackoffTests {
    private static let throttled = AttemptOutcome.response(ResponseHead(status: .tooManyRequests))

    private func waits(_ backoff: BinaryBackoff) -> [Duration] {
        var waits: [Duration] = []
        while case .retry(let wait) = backoff.decide(BinaryBackoffTests.failed(attempt: waits.count + 1)) {
            waits.append(wait)
        }
        return waits
    }

    private static func failed(attempt: Int) -> FailedExchange {
        FailedExchange(throttled, method: .get, attempt: attempt, receivedAt: .distantPast)
    }

    @Test("S-T20: 1, 2, 4, … 512 s; eleven sends")
    func defaults() {
        #expect(waits(BinaryBackoff()) == (0..<10).map { .seconds(1 << $0) })
        let end = BinaryBackoff().decide(BinaryBackoffTests.failed(attempt: 11))
        #expect(end == .stop(.attemptsExhausted))
    }

    @Test("S-T21: the bound is strict", arguments: [(4, 2), (5, 3), (1, 0), (0, 0), (-1, 0)])
    func bound(seconds: Int, retries: Int) {
        #expect(waits(BinaryBackoff(maxBackoff: .seconds(seconds))).count == retries)
    }

    @Test("S-T22, S29: what is not retried", arguments: [404, 500, 503, 408, 200])
    func otherStatuses(status: Int) {
        #expect(!BinaryBackoff.retries(.response(ResponseHead(status: StatusCode(status)))))
    }

    @Test(
        "S-T22, S29: failures",
        arguments: [
            (AttemptFailure.Kind.offline, true), (.timeout, true), (.other, true), (.connect, true),
            (.connectionLost, true), (.badRequest, false), (.certificate, false), (.cancelled, false),
            (.resolve, false),
            (.protocolError, false), (.tooLarge, false), (.tls, false),
        ]
    )
    func failures(kind: AttemptFailure.Kind, isRetried: Bool) {
        let failure = AttemptFailure(kind: kind, progress: .notSent)
        #expect(BinaryBackoff.retries(.failure(failure)) == isRetried)
    }

    @Test("S-T23: throttled for 20 s, success at t = 31 s")
    func throttledForAWhile() {
        var elapsed = Duration.zero
        var sends = [elapsed]
        for wait in waits(BinaryBackoff()) where elapsed < .seconds(20) {
            elapsed += wait
            sends.append(elapsed)
        }
        #expect(sends == [0, 1, 3, 7, 15, 31].map { .seconds($0) })
    }

    @Test("RFC 9110 §9.2.2 applies here too")
    func safety() {
        let lost = AttemptOutcome.failure(AttemptFailure(kind: .timeout, progress: .bodySent))
        let backoff = BinaryBackoff()
        func decide(
            _ outcome: AttemptOutcome,
            fields: HeaderFields = [:],
            replayable: Bool = true,
            timeLeft: Duration? = nil
        ) -> RetryDecision {
            backoff.decide(
                FailedExchange(
                    outcome,
                    method: .post,
                    fields: fields,
                    bodyIsReplayable: replayable,
                    timeLeft: timeLeft,
                    receivedAt: .distantPast
                )
            )
        }
        #expect(decide(lost) == .stop(.notIdempotent))
        #expect(decide(lost, fields: ["Idempotency-Key": "\"a\""]) == .retry(after: .seconds(1)))
        #expect(decide(lost, fields: ["Upgrade": "websocket"]) == .stop(.committed))
        #expect(decide(BinaryBackoffTests.throttled) == .retry(after: .seconds(1)))
        #expect(decide(BinaryBackoffTests.throttled, replayable: false) == .stop(.notReplayable))
        #expect(decide(BinaryBackoffTests.throttled, timeLeft: .seconds(1)) == .stop(.deadline))
    }

    @Test("No retry number traps", arguments: [Int.min, -1, 39, 40, 64, Int.max])
    func extremes(retry: Int) {
        let endless = BinaryBackoff(maxBackoff: .seconds(1e15), unit: .seconds(-1))
        #expect(endless.delay(retry: retry).map { $0 == .zero } ?? true)
    }
}

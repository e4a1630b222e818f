// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import Testing

@Suite struct RetryabilityTests {
    private func classify(
        _ outcome: AttemptOutcome,
        _ method: RequestMethod = .get,
        replayable: Bool = true,
        declared: Bool? = nil
    ) -> RetryClass {
        RetryRules.default.classify(
            FailedExchange(
                outcome,
                method: method,
                bodyIsReplayable: replayable,
                declaredIdempotent: declared,
                receivedAt: .distantPast
            )
        )
    }

    private func response(_ status: Int, _ fields: HeaderFields = [:]) -> AttemptOutcome {
        .response(ResponseHead(status: StatusCode(status), fields: fields))
    }

    @Test(
        "RETRY.md §3.1: the N list is final for every method",
        arguments: [
            200, 204, 301, 304, 400, 401, 402, 403, 404, 405, 406, 407, 409, 410, 411, 412, 413, 414, 415, 416, 417,
            422,
            426, 428, 431, 451, 499, 501, 505, 506, 507, 508, 510, 511, 600, 0,
        ]
    )
    func never(status: Int) {
        for method in [RequestMethod.get, .post] {
            #expect(classify(response(status), method) == .never(.notRetryable))
            #expect(classify(response(status), method, replayable: false) == .never(.notRetryable))
        }
    }

    @Test(
        "RETRY.md §3.1: statuses that may be retried",
        arguments: [
            (421, RetryClass.unprocessed), (425, .unprocessed), (408, .ambiguous), (500, .ambiguous), (502, .ambiguous),
            (504, .ambiguous), (520, .ambiguous), (429, .throttled), (503, .ambiguous),
        ]
    )
    func statuses(status: Int, expected: RetryClass) {
        let unsafe = expected == .unprocessed ? expected : .never(.notIdempotent)
        #expect(classify(response(status)) == expected)
        #expect(classify(response(status), .put) == expected)
        #expect(classify(response(status), .query) == expected)
        #expect(classify(response(status), .post) == unsafe)
        #expect(classify(response(status), "UNKNOWN") == unsafe)
        #expect(classify(response(status), .post, declared: true) == expected)
        #expect(classify(response(status), .get, declared: false) == unsafe)
        #expect(classify(response(status), replayable: false) == .never(.notReplayable))
    }

    @Test("RETRY.md §3.1: 413 with Retry-After only")
    func contentTooLarge() {
        #expect(classify(response(413, ["Retry-After": "1"])) == .throttled)
    }

    @Test(
        "RETRY.md §3.1: what a failure proves",
        arguments: [
            (AttemptFailure.Kind.resolve, TransportProgress.notSent, false, RetryClass.unprocessed),
            (.connect, .notSent, false, .unprocessed), (.tls, .notSent, false, .unprocessed),
            (.offline, .notSent, false, .unprocessed), (.timeout, .notSent, false, .unprocessed),
            (.connectionLost, .notSent, true, .unprocessed), (.other, .notSent, false, .unprocessed),
            (.connectionLost, .headSent, true, .staleSocket), (.connectionLost, .bodySent, true, .staleSocket),
            (.connectionLost, .bodySent, false, .ambiguous), (.connectionLost, .headReceived, true, .ambiguous),
            (.connectionLost, .bytesReceived, true, .ambiguous), (.timeout, .bodySent, true, .ambiguous),
            (.protocolError, .headReceived, false, .ambiguous), (.connect, .headSent, false, .ambiguous),
            (.certificate, .notSent, false, .never(.notRetryable)),
            (.badRequest, .notSent, false, .never(.notRetryable)),
            (.tooLarge, .bytesReceived, false, .never(.notRetryable)),
            (.cancelled, .notSent, false, .never(.cancelled)),
        ]
    )
    func failures(kind: AttemptFailure.Kind, progress: TransportProgress, reused: Bool, expected: RetryClass) {
        let outcome = AttemptOutcome.failure(
            AttemptFailure(kind: kind, progress: progress, connectionReused: reused)
        )
        #expect(outcome.isFailure)
        #expect(classify(outcome) == expected)
        switch expected {
        case .never, .unprocessed:
            #expect(classify(outcome, .post) == expected)
            #expect(classify(outcome, replayable: false) == expected)
        default:
            #expect(classify(outcome, .post) == .never(.notIdempotent))
            #expect(classify(outcome, .post, declared: true) == expected)
            #expect(classify(outcome, replayable: false) == .never(.notReplayable))
        }
    }

    @Test(
        "Budgets, circuits and hedges agree on which outcomes are the server's failures",
        arguments: [
            (200, true), (404, true), (501, true), (505, true), (510, true),
            (408, false), (429, false), (500, false), (503, false), (520, false), (599, false),
        ]
    )
    func serverSucceeded(status: Int, expected: Bool) {
        let outcome = response(status)
        #expect(outcome.serverSucceeded == expected)
        #expect(outcome.isServerTrouble == !expected)
        let mindsItself = status == 408 || status == 429
        #expect(CircuitRules.isFailure(outcome) == (!expected && !mindsItself))
    }

    @Test("A failure on this side says nothing about the server, a certificate error included")
    func localFailures() {
        for kind in [
            AttemptFailure.Kind.cancelled, .badRequest, .tooLarge, .certificate, .offline, .heldBack, .throttled,
        ] {
            let outcome = AttemptOutcome.failure(AttemptFailure(kind: kind, progress: .notSent))
            #expect(outcome.serverSucceeded == nil && !outcome.isServerTrouble)
            #expect(CircuitRules.isFailure(outcome) == nil)
        }
        let lost = AttemptOutcome.failure(AttemptFailure(kind: .connectionLost, progress: .bodySent))
        #expect(lost.serverSucceeded == false && lost.isServerTrouble && CircuitRules.isFailure(lost) == true)
    }

    @Test func failureOfAnAttempt() {
        #expect(response(400).isFailure && response(599).isFailure)
        #expect(!response(399).isFailure && !response(200).isFailure)
        let order: [TransportProgress] = [.notSent, .headSent, .bodySent, .headReceived, .bytesReceived]
        #expect(order == order.sorted())
        #expect(order.map(\.rawValue) == [0, 1, 2, 3, 4])
    }
}

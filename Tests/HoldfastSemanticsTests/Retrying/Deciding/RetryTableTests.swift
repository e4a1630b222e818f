// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import Testing

/// The table of RETRY.md §3.1 as data, and the whole product of its columns.
///
/// Letters: U unprocessed, S stale socket, A ambiguous, T throttled; final are n not retryable, c cancelled, i not
/// idempotent, b body not replayable.
@Suite struct RetryTableTests {
    /// One letter for each progress from `notSent` to `bytesReceived`, on a fresh connection and on a reused one.
    private static let failures: [(AttemptFailure.Kind, fresh: String, reused: String)] = [
        (.resolve, "UAAAA", "UAAAA"), (.connect, "UAAAA", "UAAAA"), (.timeout, "UAAAA", "UAAAA"),
        (.tls, "UAAAA", "UAAAA"), (.offline, "UAAAA", "UAAAA"), (.other, "UAAAA", "UAAAA"),
        (.throttled, "UAAAA", "UAAAA"),
        (.protocolError, "UAAAA", "UAAAA"), (.connectionLost, "UAAAA", "USSAA"), (.refused, "UUUUU", "UUUUU"),
        (.certificate, "nnnnn", "nnnnn"), (.badRequest, "nnnnn", "nnnnn"), (.tooLarge, "nnnnn", "nnnnn"),
        (.cancelled, "ccccc", "ccccc"), (AttemptFailure.Kind(rawValue: "unheard-of"), "UAAAA", "UAAAA"),
    ]

    /// Statuses by letter; a star marks a response with Retry-After, a k a request with a key, an e one with Expect.
    private static let statuses: [(Character, String)] = [
        ("U", "421 425 421* 417e"), ("A", "408 500 502 503 504 520 599 500*"), ("T", "429 413* 429* 503* 409k 409k*"),
        (
            "n",
            """
            400 401 402 403 404 405 406 407 409 409* 410 411 412 413 414 415 416 417 418 422 426 428 431 451 499 501 505 \
            506 507 508 511 600 413e
            """
        ),
    ]

    /// How a call may differ, and which classes are sent again then for idempotent methods and for the others.
    private struct Mode: CustomTestStringConvertible {
        var name: String
        var key = ""
        var declared: Bool?
        var idempotent = "USAT"
        var others = "U"
        var change: @Sendable (inout RetryRules) -> Void = { _ in }
        var testDescription: String { name }
    }

    private static let modes: [Mode] = [
        Mode(name: "plain"),
        Mode(name: "keyed", key: "\"8e03\"", others: "USAT"),
        Mode(name: "empty key", key: " "),
        Mode(name: "declared", declared: true, others: "USAT"),
        Mode(name: "declared not to be", declared: false, idempotent: "U"),
        Mode(name: "keyed, declared not to be", key: "\"8e03\"", declared: false, idempotent: "U"),
        Mode(name: "throttled by opt-in", others: "UT") { $0.retriesUnsafeWhenThrottled = true },
        Mode(name: "stale socket by opt-in", others: "US") { $0.retriesUnsafeOnStaleSocket = true },
        Mode(name: "gateway") { $0 = .gateway },
        Mode(name: "gateway, all allowed", key: "\"8e03\"", declared: true) { rules in
            rules.isGateway = true
            rules.retriesUnsafeWhenThrottled = true
            rules.retriesUnsafeOnStaleSocket = true
            rules.mintsIdempotencyKey = true
        },
        Mode(name: "gateway, declared not to be", declared: false, idempotent: "U") { $0.isGateway = true },
    ]

    private static let idempotent: [RequestMethod] = [.get, .head, .put, .delete, .query]
    private static let others: [RequestMethod] = [.post, .patch, "LOCK", "get"]

    /// What stands in the table for one call: the letter of the outcome, then whether it can be and may be sent again.
    private func expected(_ letter: Character, isUnsent: Bool, replayable: Bool, allowed: String) -> Character {
        if "nc".contains(letter) { return letter }
        if !replayable, !isUnsent { return "b" }
        return allowed.contains(letter) ? letter : "i"
    }

    private func letter(_ found: RetryClass) -> Character {
        switch found {
        case .unprocessed: "U"
        case .staleSocket: "S"
        case .ambiguous: "A"
        case .throttled: "T"
        case .never(.notRetryable): "n"
        case .never(.cancelled): "c"
        case .never(.notIdempotent): "i"
        case .never(.notReplayable): "b"
        case .never: "?"
        }
    }

    private func compare(_ mode: Mode, _ outcome: AttemptOutcome, _ row: Character, isUnsent: Bool, expects: Bool) {
        var rules = RetryRules()
        mode.change(&rules)
        var fields = HeaderFields()
        if !mode.key.isEmpty { fields[.idempotencyKey] = mode.key }
        if expects { fields[.expect] = "100-continue" }
        for (methods, allowed) in [(Self.idempotent, mode.idempotent), (Self.others, mode.others)] {
            for method in methods {
                for replayable in [true, false] {
                    let failed = FailedExchange(
                        outcome,
                        method: method,
                        fields: fields,
                        bodyIsReplayable: replayable,
                        declaredIdempotent: mode.declared,
                        receivedAt: .noon
                    )
                    let found = letter(rules.classify(failed))
                    let table = expected(row, isUnsent: isUnsent, replayable: replayable, allowed: allowed)
                    guard found != table else { continue }
                    Issue.record(
                        "\(mode.name), \(method), replayable \(replayable), \(outcome): \(found), not \(table)"
                    )
                }
            }
        }
    }

    @Test("RETRY.md §3.1, complaint 4 of 12: method × failure × progress × replayability", arguments: modes)
    private func failures(mode: Mode) {
        let stages: [TransportProgress] = [.notSent, .headSent, .bodySent, .headReceived, .bytesReceived]
        for row in Self.failures {
            for (isReused, letters) in [(false, row.fresh), (true, row.reused)] {
                for (progress, letter) in zip(stages, letters) {
                    let failure = AttemptFailure(kind: row.0, progress: progress, connectionReused: isReused)
                    compare(mode, .failure(failure), letter, isUnsent: progress == .notSent, expects: false)
                }
            }
        }
    }

    @Test("RETRY.md §3.1, complaint 4 of 12: method × status × replayability", arguments: modes)
    private func statuses(mode: Mode) throws {
        let isKeyed = mode.key.contains("8")
        for (letter, list) in Self.statuses {
            // Of all statuses a conflict alone means something else where the request has a key.
            for word in list.split(separator: " ") where !word.hasPrefix("409") || word.contains("k") == isKeyed {
                let status = StatusCode(try #require(Int(word.prefix(3))))
                var fields = HeaderFields()
                if word.contains("*") { fields[.retryAfter] = "1" }
                let head = ResponseHead(status: status, fields: fields)
                compare(mode, .response(head), letter, isUnsent: false, expects: word.contains("e"))
            }
        }
    }

    @Test("An idempotency key and an expectation decide what a 409, a 417 and a 422 mean (RETRY.md §3.1, §3.4)")
    func keyed() {
        var rules = RetryRules()
        rules.retryableStatuses = [422, 409]
        func find(_ status: StatusCode, _ fields: HeaderFields, declared: Bool? = nil) -> RetryClass {
            let failed = FailedExchange(
                .response(ResponseHead(status: status)),
                method: .post,
                fields: fields,
                declaredIdempotent: declared,
                receivedAt: .noon
            )
            return rules.classify(failed)
        }
        #expect(find(422, ["Idempotency-Key": "\"1\""]) == .never(.notRetryable))
        #expect(find(422, [:], declared: true) == .ambiguous)
        #expect(find(409, ["Idempotency-Key": "\"1\""]) == .throttled)
        #expect(find(409, [:]) == .never(.notIdempotent))
        rules.retriesUnsafeWhenThrottled = true
        #expect(find(409, ["Idempotency-Key": "\"1\""], declared: false) == .never(.notIdempotent))
        #expect(find(417, ["Expect": "100-continue"]) == .unprocessed)
    }

    @Test("RETRY.md §3.1: a tunnel or an upgrade is final after its first byte")
    func committed() {
        let calls: [(RequestMethod, HeaderFields)] = [
            (.connect, [:]), (.get, ["Upgrade": "websocket", "Connection": "Upgrade"]), (.get, ["upgrade": "h2c"]),
        ]
        for (method, fields) in calls {
            for (outcome, expected) in [
                (AttemptOutcome.failure(AttemptFailure(kind: .connect, progress: .notSent)), RetryClass.unprocessed),
                (.failure(AttemptFailure(kind: .refused, progress: .headSent)), .never(.committed)),
                (.failure(AttemptFailure(kind: .connectionLost, progress: .bodySent)), .never(.committed)),
                (.response(ResponseHead(status: 503)), .never(.committed)),
                (.response(ResponseHead(status: 404)), .never(.notRetryable)),
            ] {
                let failed = FailedExchange(
                    outcome,
                    method: method,
                    fields: fields,
                    declaredIdempotent: true,
                    receivedAt: .noon
                )
                #expect(RetryRules.default.classify(failed) == expected)
            }
        }
    }

    @Test("The rules' own statuses: final ones override retryable ones, and both override the table")
    func ownStatuses() {
        var rules = RetryRules()
        rules.retryableStatuses = [404, 429, 500]
        rules.finalStatuses = [500, 421]
        for (status, expected) in [
            (404, RetryClass.ambiguous), (429, .throttled), (500, .never(.notRetryable)), (421, .never(.notRetryable)),
            (410, .never(.notRetryable)),
        ] {
            let outcome = AttemptOutcome.response(ResponseHead(status: StatusCode(status)))
            #expect(rules.classify(FailedExchange(outcome, method: .get, receivedAt: .noon)) == expected, "\(status)")
        }
    }
}

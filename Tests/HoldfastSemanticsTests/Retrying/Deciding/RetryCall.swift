// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastTesting

/// One call whose attempts fail one after another, judged by the same history.
struct RetryCall {
    var rules: RetryRules
    var method: RequestMethod = .get
    var fields: HeaderFields = [:]
    var replayable = true
    var declared: Bool?
    var timeLeft: Duration?
    var wasRetriedBelow = false
    var history = RetryHistory()
    var attempt = 0
    var source = SeededGenerator(seed: 7)

    /// A call by rules whose waits are not random: 100 ms, 200 ms, … and 1 s, 2 s, … after throttling.
    init(_ rules: RetryRules = .unjittered, _ method: RequestMethod = .get, _ fields: HeaderFields = [:]) {
        self.rules = rules
        self.method = method
        self.fields = fields
    }

    /// Judges the next attempt.
    mutating func decideWithReasons(_ outcome: AttemptOutcome) -> ReasonedRetryDecision {
        attempt += 1
        var failed = FailedExchange(
            outcome,
            method: method,
            fields: fields,
            attempt: attempt,
            bodyIsReplayable: replayable,
            declaredIdempotent: declared,
            timeLeft: timeLeft,
            receivedAt: .noon
        )
        failed.wasRetriedBelow = wasRetriedBelow
        return rules.decideWithReasons(failed, history: &history, using: &source)
    }

    /// What follows the next attempt.
    mutating func decide(_ outcome: AttemptOutcome) -> RetryDecision {
        decideWithReasons(outcome).decision
    }
}

extension RetryRules {
    /// The defaults without jitter.
    static let unjittered: RetryRules = {
        var rules = RetryRules(backoff: Backoff(jitter: .none), maxAttempts: 3)
        rules.throttlingBackoff = Backoff(base: .seconds(1), jitter: .none)
        return rules
    }()

    /// The defaults without jitter, changed.
    static func unjittered(_ change: (inout RetryRules) -> Void) -> RetryRules {
        var rules = RetryRules.unjittered
        change(&rules)
        return rules
    }
}

extension AttemptOutcome {
    static func status(_ status: Int, _ fields: HeaderFields = [:]) -> AttemptOutcome {
        .response(ResponseHead(status: StatusCode(status), fields: fields))
    }

    static func failed(
        _ kind: AttemptFailure.Kind,
        _ progress: TransportProgress = .bodySent,
        reused: Bool = false
    ) -> AttemptOutcome {
        .failure(AttemptFailure(kind: kind, progress: progress, connectionReused: reused))
    }

    /// A reused connection that was closed before any byte of an answer.
    static let staleSocket = failed(.connectionLost, .bodySent, reused: true)
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

extension RetryRules {
    /// What a failed attempt proves, by these rules.
    public func classify(_ failed: FailedExchange) -> RetryClass {
        let found = Retryability.classify(
            method: failed.method,
            outcome: failed.outcome,
            bodyIsReplayable: failed.bodyIsReplayable,
            declaredIdempotent: failed.declaredIdempotent
        )
        guard retriesUnsafeWhenThrottled, found == .never(.notIdempotent) else { return found }
        let asIdempotent = Retryability.classify(
            method: failed.method,
            outcome: failed.outcome,
            bodyIsReplayable: failed.bodyIsReplayable,
            declaredIdempotent: true
        )
        return asIdempotent == .throttled ? .throttled : found
    }

    /// Decides what follows a failed attempt; a pure function of its inputs.
    ///
    /// A server's Retry-After is never undercut: the wait is the longer of it and the own backoff, and up to half of what
    /// was asked (5 s at most) is added at random. A wait that does not fit the rules or the time left ends the call now.
    ///
    /// - Parameters:
    ///   - failed: the attempt.
    ///   - history: what is remembered of the call, one value for all its failures.
    ///   - generator: a source of randomness; seeded in tests.
    public func decide(
        _ failed: FailedExchange,
        history: inout RetryHistory,
        using generator: inout some RandomNumberGenerator
    ) -> RetryDecision {
        let retryClass = classify(failed)
        if case .never(let reason) = retryClass { return .stop(reason) }
        guard failed.attempt < maxAttempts else { return .stop(.attemptsExhausted) }
        if let timeLeft = failed.timeLeft, timeLeft <= .zero { return .stop(.deadline) }
        if retryClass == .staleSocket, failed.attempt <= 1 { return .retryNow }
        if retryClass == .unprocessed, case .response = failed.outcome {
            // 421 and 425 are cured by another connection or a finished handshake, once or not at all.
            return failed.attempt <= 1 ? .retryNow : .stop(.notRetryable)
        }
        var delay = backoff.delay(retry: max(0, failed.attempt - 1), using: &generator)
        if let asked = serverDelay(failed) {
            guard asked <= maxServerDelay else { return .stop(.serverDelayTooLong) }
            let sample = Double.random(in: 0..<1, using: &generator)
            let spread = min(asked.doubleSeconds * 0.5, 5)
            delay = max(delay, asked) + Duration(boundedSeconds: sample * spread)
        }
        if let timeLeft = failed.timeLeft, delay >= timeLeft { return .stop(.deadline) }
        return .retry(after: delay)
    }

    /// The wait that the server asks for, counted from the receipt of its answer; nil where it asks for none.
    public func serverDelay(_ failed: FailedExchange) -> Duration? {
        guard obeysRetryAfter, case .response(let head) = failed.outcome else { return nil }
        return RetryAfter.delay(head.fields, receivedAt: failed.receivedAt)
    }

    /// What a retry of this failure costs by; nil where it is free.
    ///
    /// Free is what cannot feed a storm: a resend that is made once a call and that proves its worth at once.
    public func cause(of failed: FailedExchange) -> RetryBudgetState.Cause? {
        switch classify(failed) {
        case .staleSocket: nil
        case .throttled: .throttling
        case .unprocessed:
            if case .response = failed.outcome { nil } else { .transient }
        case .ambiguous, .never:
            if case .failure(let failure) = failed.outcome, failure.kind == .timeout { .timeout } else { .transient }
        }
    }

    /// For how long a response holds back all calls to its partition; nil: not at all.
    ///
    /// Asked of every response, also of good ones: a RateLimit field with nothing left closes the gate before a 429 does.
    public func gateDelay(_ head: ResponseHead, receivedAt: Timestamp) -> Duration? {
        guard closesGate, obeysRetryAfter else { return nil }
        guard [.tooManyRequests, .serviceUnavailable].contains(head.status) else { return nil }
        return RetryAfter.delay(head.fields, receivedAt: receivedAt)
    }
}

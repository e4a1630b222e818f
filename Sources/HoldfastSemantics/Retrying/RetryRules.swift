// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The rules of a retrier: how often, how long, and whom to obey.
///
/// Three attempts are more than RFC 9110 §9.2.2 asks of a client by itself; backoff and a budget make up for it. Use
/// ``strict`` for one retry only.
public struct RetryRules: Sendable, Hashable {
    /// The waits between attempts.
    public var backoff: Backoff

    /// How many attempts a call may make, the first included; 3 by default, less than 1 counts as 1.
    public var maxAttempts: Int

    /// The longest Retry-After that is waited out; 60 s by default. A longer one ends the call rather than being cut.
    public var maxServerDelay: Duration

    /// Whether requests that are not idempotent are sent again after 429, 503 and 413 with Retry-After; false by default.
    public var retriesUnsafeWhenThrottled: Bool

    /// The default rules.
    public static let `default` = RetryRules()

    /// One retry and no more, as RFC 9110 §9.2.2 has it.
    public static let strict = RetryRules(maxAttempts: 2)

    /// Creates rules; each default stands at its property.
    public init(
        backoff: Backoff = Backoff(),
        maxAttempts: Int = 3,
        maxServerDelay: Duration = .seconds(60),
        retriesUnsafeWhenThrottled: Bool = false
    ) {
        self.backoff = backoff
        self.maxAttempts = maxAttempts
        self.maxServerDelay = maxServerDelay
        self.retriesUnsafeWhenThrottled = retriesUnsafeWhenThrottled
    }

    /// Decides what follows a failed attempt; a pure function of its inputs.
    ///
    /// A server's Retry-After is never undercut: the wait is the longer of it and the own backoff, and up to half of what
    /// was asked (5 s at most) is added at random. A wait that does not fit the rules or the time left ends the call now.
    ///
    /// - Parameters:
    ///   - outcome: how the attempt ended.
    ///   - method: the request's method.
    ///   - attempt: the number of the attempt that ended; the first is 1.
    ///   - bodyIsReplayable: whether the content can be sent from its start again; true for no content.
    ///   - declaredIdempotent: the caller's word on idempotency; nil leaves it to the method.
    ///   - timeLeft: what remains of the call's time; nil for no limit.
    ///   - receivedAt: when the outcome came.
    ///   - generator: a source of randomness; seeded in tests.
    public func decide(
        outcome: AttemptOutcome,
        method: RequestMethod,
        attempt: Int,
        bodyIsReplayable: Bool,
        declaredIdempotent: Bool? = nil,
        timeLeft: Duration? = nil,
        receivedAt: Timestamp,
        using generator: inout some RandomNumberGenerator
    ) -> RetryDecision {
        let retryClass = classify(outcome, method, bodyIsReplayable, declaredIdempotent)
        if case .never(let reason) = retryClass { return .stop(reason) }
        guard attempt < maxAttempts else { return .stop(.attemptsExhausted) }
        if let timeLeft, timeLeft <= .zero { return .stop(.deadline) }
        if retryClass == .staleSocket, attempt <= 1 { return .retryNow }
        if retryClass == .unprocessed, case .response = outcome {
            // 421 and 425 are cured by another connection or a finished handshake, once or not at all.
            return attempt <= 1 ? .retryNow : .stop(.notRetryable)
        }
        var delay = backoff.delay(retry: max(0, attempt - 1), using: &generator)
        if case .response(let head) = outcome, let asked = RetryAfter.delay(head.fields, receivedAt: receivedAt) {
            guard asked <= maxServerDelay else { return .stop(.serverDelayTooLong) }
            let sample = Double.random(in: 0..<1, using: &generator)
            let spread = min(asked.doubleSeconds * 0.5, 5)
            delay = max(delay, asked) + Duration(boundedSeconds: sample * spread)
        }
        if let timeLeft, delay >= timeLeft { return .stop(.deadline) }
        return .retry(after: delay)
    }

    private func classify(
        _ outcome: AttemptOutcome,
        _ method: RequestMethod,
        _ bodyIsReplayable: Bool,
        _ declaredIdempotent: Bool?
    ) -> RetryClass {
        let found = Retryability.classify(
            method: method,
            outcome: outcome,
            bodyIsReplayable: bodyIsReplayable,
            declaredIdempotent: declaredIdempotent
        )
        guard retriesUnsafeWhenThrottled, found == .never(.notIdempotent) else { return found }
        let asIdempotent = Retryability.classify(
            method: method,
            outcome: outcome,
            bodyIsReplayable: bodyIsReplayable,
            declaredIdempotent: true
        )
        return asIdempotent == .throttled ? .throttled : found
    }
}

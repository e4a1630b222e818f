// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

extension RetryRules {
    /// Decides what follows a failed attempt: ``judge(_:history:using:)`` without its reasons.
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
        judge(failed, history: &history, using: &generator).decision
    }

    /// Judges a failed attempt; a pure function of its inputs.
    ///
    /// A stale connection, REFUSED_STREAM and its like, 421, 425 and a 417 to an expectation earn one resend each at once,
    /// which costs no budget and does not count against ``maxAttempts`` (unless ``countsFreeResends``); after it, the
    /// first is judged as ambiguous, the second by the policy, and the statuses are final. No call is sent more than
    /// ``maxAttempts`` + 5 times. A server's Retry-After is never undercut: the wait is the longer of it and the own
    /// backoff, and up to half of what was asked (5 s at most) is added at random. A wait that does not fit the rules or
    /// the time left, ``minimumAttemptTime`` included, ends the call now. So does an open circuit, unless the rules
    /// park (``parks``): then the call waits until a probe may go.
    ///
    /// - Parameters:
    ///   - failed: the attempt.
    ///   - history: what is remembered of the call, one value for all its failures.
    ///   - generator: a source of randomness; seeded in tests.
    public func judge(
        _ failed: FailedExchange,
        history: inout RetryHistory,
        using generator: inout some RandomNumberGenerator
    ) -> RetryJudgement {
        var retryClass = classify(failed)
        let isBelow = failed.wasRetriedBeneath && respectsInnerRetries
        let earned = freeResend(after: failed, retryClass)
        var free = earned.flatMap { history.freeResends.contains($0) ? nil : $0 }
        // A layer beneath that retries has sent it once more already.
        if free == .staleSocket, isBelow { free = nil }
        if retryClass == .staleSocket, free == nil {
            retryClass = permits(.ambiguous, failed) ? .ambiguous : .never(.notIdempotent)
        }
        let hint = serverHint(failed)
        var judgement = RetryJudgement(.retryNow, retryClass, serverDelay: hint.wait)
        if let reason = refusal(retryClass, failed, hint) {
            judgement.decision = .stop(reason)
        } else if free == nil, isBelow {
            judgement.decision = .stop(.retriedBeneath)
        } else if free == nil, earned != nil, failed.status != nil {
            judgement.decision = .stop(.notRetryable)
        } else if !mayBeSent(after: failed, history, isFree: free != nil) {
            judgement.decision = .stop(.attemptsExhausted)
        } else {
            let own = free == nil ? ownDelay(retryClass, &history, using: &generator) : .zero
            judgement.decision = wait(own, asked: hint.wait, failed.timeLeft, using: &generator)
        }
        guard case .retry = judgement.decision else { return judgement }
        if let free {
            history.freeResends.insert(free)
        } else {
            judgement.cause = cause(of: retryClass, outcome: failed.outcome)
            if retryClass == .throttled { history.throttlingRetries += 1 } else { history.transientRetries += 1 }
        }
        return judgement
    }

    /// A retry after the own wait, or the longer one that is asked for, if that is allowed and ends in an attempt.
    private func wait(
        _ own: Duration,
        asked: Duration?,
        _ timeLeft: Duration?,
        using generator: inout some RandomNumberGenerator
    ) -> RetryDecision {
        var delay = own
        if let asked {
            guard asked <= maxServerDelay else { return .stop(.serverDelayTooLong) }
            delay = spreadOut(max(own, asked), asked: asked, timeLeft, using: &generator)
        }
        guard fits(delay, timeLeft) else { return .stop(.deadline) }
        return .retry(after: delay)
    }

    /// What is said about the next attempt: by a response's fields, or by what held the attempt back.
    package func serverHint(_ failed: FailedExchange) -> ServerHint {
        switch failed.outcome {
        case .response(let head): hint(head, receivedAt: failed.receivedAt)
        case .failure(let failure): ServerHint(wait: failure.retryAfter)
        }
    }

    /// Why a failure is final whatever the call has been through.
    private func refusal(_ retryClass: RetryClass, _ failed: FailedExchange, _ hint: ServerHint) -> StopReason? {
        if case .never(let reason) = retryClass { return reason }
        if isLeftToCaller(failed) { return .retriedAbove }
        // A circuit is there to fail fast: only who parks anyway waits for its probes.
        if !parks, case .failure(let failure) = failed.outcome, failure.kind == .heldBack, failure.retryAfter != nil {
            return .circuitOpen
        }
        return hint.forbidsRetry ? .serverForbids : nil
    }

    private func isLeftToCaller(_ failed: FailedExchange) -> Bool {
        guard leavesRetriesToCaller, failed.fields.contains(attemptField ?? RetryRules.usualAttemptField) else {
            return false
        }
        // From the second attempt on the field may be our own.
        return attemptField == nil || failed.attempt <= 1
    }

    /// Why a request is not sent again whatever a retrier says; nil where it may be.
    ///
    /// What the server may have acted on is sent again only where these rules permit it for the method, and by a gateway nothing
    /// else but what certainly was not processed (RFC 9110 §9.2.2). A request that never left this machine, or that the server
    /// refused with a 4xx or put off, was not acted on. Which statuses the rules retry plays no part.
    ///
    /// - Parameters:
    ///   - failed: the attempt.
    ///   - sends: how often the call was sent, resends that cost nothing included.
    ///   - most: how often it may be sent.
    package func veto(_ failed: FailedExchange, sends: Int, most: Int) -> StopReason? {
        if !failed.bodyIsReplayable { return .notReplayable }
        if sends >= most { return .attemptsExhausted }
        let proof = Retryability.proof(of: failed.outcome, to: failed.fields)
        let mayBeRepeated =
            switch proof {
            case .unprocessed: true
            case .staleSocket, .ambiguous: permits(proof, failed)
            case .throttled: !isGateway || permits(proof, failed)
            case .never: failed.wasRefused && !isGateway || failed.isUnsent || permits(.ambiguous, failed)
            }
        return mayBeRepeated ? nil : .notIdempotent
    }

    /// How often a call may be sent, all resends included.
    package var mostSends: Int {
        guard maxAttempts > 1 else { return 1 }
        let (sends, overflow) = maxAttempts.addingReportingOverflow(FreeResend.kinds)
        return overflow ? .max : sends
    }

    /// How often a call may be sent whose retrier comes with no rules.
    package static let mostUngovernedSends = 100

    private func mayBeSent(after failed: FailedExchange, _ history: RetryHistory, isFree: Bool) -> Bool {
        guard maxAttempts > 1, failed.attempt < mostSends else { return false }
        if countsFreeResends { return history.countedAttempts + history.freeResends.count < maxAttempts }
        return isFree || history.countedAttempts < maxAttempts
    }

    private func ownDelay(
        _ retryClass: RetryClass,
        _ history: inout RetryHistory,
        using generator: inout some RandomNumberGenerator
    ) -> Duration {
        guard retryClass == .throttled else {
            return backoff.delay(retry: history.transientRetries, using: &generator, state: &history.backoff)
        }
        return throttlingBackoff.delay(
            retry: history.throttlingRetries,
            using: &generator,
            state: &history.throttlingBackoff
        )
    }

    /// A wait that a server asked for, and what is added to it at random: no more than the time left allows, so that nobody
    /// who could have obeyed is given up for it.
    func spreadOut(
        _ wait: Duration,
        asked: Duration,
        _ timeLeft: Duration?,
        using generator: inout some RandomNumberGenerator
    ) -> Duration {
        let spread = RetryRules.spread(of: asked, using: &generator)
        guard let timeLeft, fits(wait, timeLeft) else { return wait + spread }
        let room = timeLeft - wait - max(minimumAttemptTime, .milliseconds(1))
        return wait + max(.zero, min(spread, room))
    }

    /// What is added at random to a wait that a server asked for: up to half of it, and 5 s at most.
    package static func spread(of asked: Duration, using generator: inout some RandomNumberGenerator) -> Duration {
        let sample = Double.random(in: 0..<1, using: &generator)
        return Duration(boundedSeconds: sample * min(asked.doubleSeconds * 0.5, 5))
    }

    /// Whether a wait leaves time for an attempt.
    package func fits(_ delay: Duration, _ timeLeft: Duration?) -> Bool {
        guard let timeLeft else { return true }
        return delay < timeLeft && delay + minimumAttemptTime <= timeLeft
    }

    /// What ``leavesRetriesToCaller`` looks for where ``attemptField`` names nothing else.
    public static let usualAttemptField: FieldName = "x-retry-attempt"
}

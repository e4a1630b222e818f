// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What to do after a failed attempt.
public enum RetryDecision: Sendable, Hashable {
    /// Send once more, after at least this wait.
    case retry(after: Duration)
    /// Return the outcome.
    case stop(StopReason)

    /// Send once more at once.
    public static let retryNow = RetryDecision.retry(after: .zero)
}

/// Why no further attempt is made.
public struct StopReason: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
    /// The stable code, suitable for metric labels.
    public let rawValue: String

    public var description: String { rawValue }

    /// Creates a reason from its stable code.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// The outcome would be the same again.
    public static let notRetryable = StopReason(rawValue: "not-retryable")
    /// The request may have taken effect, and sending it twice could do it twice (RFC 9110 §9.2.2). The record of the attempt
    /// says how far it got; this is not part of the code, to keep the number of labels small.
    public static let notIdempotent = StopReason(rawValue: "not-idempotent")
    /// The content was one-shot and part of it is gone.
    public static let notReplayable = StopReason(rawValue: "not-replayable")
    /// The request asked for a tunnel or an upgrade, and part of it was sent, so it cannot be repeated.
    public static let committed = StopReason(rawValue: "committed")
    /// The rules allow no more attempts.
    public static let attemptsExhausted = StopReason(rawValue: "attempts-exhausted")
    /// The wait would pass the call's deadline.
    public static let deadline = StopReason(rawValue: "deadline")
    /// The server asks for a longer wait than the rules allow.
    public static let serverDelayTooLong = StopReason(rawValue: "server-delay-too-long")
    /// A retrier declined.
    public static let retrierDeclined = StopReason(rawValue: "retrier-declined")
    /// The server asked not to retry.
    public static let serverForbids = StopReason(rawValue: "server-forbids")
    /// The retry budget of the partition is spent.
    public static let budget = StopReason(rawValue: "budget")
    /// The gate of the partition is closed for longer than the call may wait.
    public static let gateClosed = StopReason(rawValue: "gate-closed")
    /// The circuit of the partition is open.
    public static let circuitOpen = StopReason(rawValue: "circuit-open")
    /// A lower layer has already retried and given up.
    public static let retriedBelow = StopReason(rawValue: "retried-below")
    /// The client that sent the request retries it itself.
    public static let retriedAbove = StopReason(rawValue: "retried-above")
    /// The credentials were refreshed and still rejected.
    public static let unauthorized = StopReason(rawValue: "unauthorized")
    /// The caller cancelled.
    public static let cancelled = StopReason(rawValue: "cancelled")
}

/// The rules' result for a failed attempt: the decision, and its reasons.
package struct ReasonedRetryDecision: Sendable, Hashable {
    /// What to do.
    public var decision: RetryDecision
    /// What the attempt proved.
    public var retryClass: RetryClass
    /// The cause by which the retry is charged to the budget; nil if it is free, or if there is no retry.
    public var cause: RetryCause?
    /// The wait that the server asked for, even if the call ends because of it, so that the caller knows when to try again. Counted
    /// from the receipt of the answer; nil if it asked for none.
    public var serverDelay: Duration?

    /// A result with these parts.
    public init(
        _ decision: RetryDecision,
        retryClass: RetryClass,
        cause: RetryCause? = nil,
        serverDelay: Duration? = nil
    ) {
        self.decision = decision
        self.retryClass = retryClass
        self.cause = cause
        self.serverDelay = serverDelay
    }
}

extension RetryRules {
    /// The cause by which a retry is charged to the budget, if it is not a free resend.
    ///
    /// A Retry-After of 0, which allows returning at once, does not change the cost.
    ///
    /// - Parameters:
    ///   - retryClass: what the attempt proved.
    ///   - outcome: how it ended.
    /// - Returns: nil if nothing is sent again.
    public func cause(of retryClass: RetryClass, outcome: AttemptOutcome) -> RetryCause? {
        switch (retryClass, outcome) {
        case (.never, _): nil
        case (.throttled, _): .throttling
        case (_, .failure(let failure)) where failure.kind == .timeout: .timeout
        default: .transient
        }
    }
}

/// What the rules remember between the failures of one call.
///
/// Use one value for all failures of a call: with a new one for each, every failure would be the first.
public struct RetryHistory: Sendable, Hashable {
    /// The state of the backoff that follows transient failures.
    package var backoff = BackoffState()

    /// The state of the backoff that follows throttling.
    package var throttlingBackoff = BackoffState()

    /// How many retries followed transient failures, without free resends: the position in that backoff's series.
    package var transientRetries = 0

    /// How many retries followed throttling: the position in that backoff's series.
    package var throttlingRetries = 0

    /// The kinds of free resend that the call has already had.
    package var freeResends: Set<FreeResend> = []

    /// How many attempts ``RetryRules/maxAttempts`` counts so far: the first one, and the retries of both series.
    ///
    /// Free resends do not count, nor do resends that a loop makes for its own reasons, such as after a refresh of credentials.
    package var countedAttempts: Int { 1 + transientRetries + throttlingRetries }

    /// A call's history before its first failure.
    public init() {}
}

/// The failures after which a request is sent once more at once, for free.
package enum FreeResend: Sendable, Hashable, CaseIterable {
    /// A reused connection was closed before any byte of an answer.
    case staleSocket
    /// The server did not process the request: REFUSED_STREAM, GOAWAY, H3_REQUEST_REJECTED.
    case refused
    /// 421: the connection was the wrong one.
    case misdirected
    /// 425: the request arrived as early data.
    case tooEarly
    /// 417: the server does not support the expectation.
    case expectation
}

extension RetryRules {
    /// Decides what follows a failed attempt: a pure function of its inputs.
    ///
    /// - Parameters:
    ///   - failed: the attempt.
    ///   - history: the memory of the call, one value for all its failures.
    ///   - generator: a source of randomness; seeded in tests.
    public func decide(
        _ failed: FailedExchange,
        history: inout RetryHistory,
        using generator: inout some RandomNumberGenerator
    ) -> RetryDecision {
        decideWithReasons(failed, history: &history, using: &generator).decision
    }

    /// Decides about a failed attempt; a pure function of its inputs.
    ///
    /// A stale connection, REFUSED_STREAM and similar refusals, 421, 425 and a 417 to an expectation each allow one immediate
    /// resend, which costs no budget and does not count against ``maxAttempts`` (unless ``countsFreeResends``). After that resend,
    /// the first counts as ambiguous, the second follows the rules, and the statuses are final. No call is sent more than
    /// ``maxAttempts`` + 5 times. The wait is never shorter than a server's Retry-After: it is the longer of that and the own
    /// backoff, and up to half of what was asked (5 s at most) is added at random. A wait that does not fit the rules or the time
    /// left, including ``minimumAttemptTime``, ends the call now. So does an open circuit, unless the rules park (``parks``): then
    /// the call waits until a probe may go.
    ///
    /// - Parameters:
    ///   - failed: the attempt.
    ///   - history: the memory of the call, one value for all its failures.
    ///   - generator: a source of randomness; seeded in tests.
    package func decideWithReasons(
        _ failed: FailedExchange,
        history: inout RetryHistory,
        using generator: inout some RandomNumberGenerator
    ) -> ReasonedRetryDecision {
        var retryClass = classify(failed)
        let isBelow = failed.wasRetriedBelow && respectsInnerRetries
        let earned = freeResend(after: failed, retryClass)
        var free = earned.flatMap { history.freeResends.contains($0) ? nil : $0 }
        // A lower layer that retries has already sent it once more.
        if free == .staleSocket, isBelow { free = nil }
        if retryClass == .staleSocket, free == nil {
            retryClass = permits(.ambiguous, for: failed) ? .ambiguous : .never(.notIdempotent)
        }
        let hint = serverHint(failed)
        var reasoned = ReasonedRetryDecision(.retryNow, retryClass: retryClass, serverDelay: hint.wait)
        if let reason = refusal(retryClass, failed: failed, hint: hint) {
            reasoned.decision = .stop(reason)
        } else if free == nil, isBelow {
            reasoned.decision = .stop(.retriedBelow)
        } else if free == nil, earned != nil, failed.status != nil {
            reasoned.decision = .stop(.notRetryable)
        } else if !mayBeSent(after: failed, history, isFree: free != nil) {
            reasoned.decision = .stop(.attemptsExhausted)
        } else {
            let own = free == nil ? ownDelay(retryClass, history: &history, using: &generator) : .zero
            reasoned.decision = wait(own, asked: hint.wait, timeLeft: failed.timeLeft, using: &generator)
        }
        guard case .retry = reasoned.decision else { return reasoned }
        if let free {
            history.freeResends.insert(free)
        } else {
            reasoned.cause = cause(of: retryClass, outcome: failed.outcome)
            if retryClass == .throttled { history.throttlingRetries += 1 } else { history.transientRetries += 1 }
        }
        return reasoned
    }

    /// A retry after the own wait, or after the longer one that was asked for, if that is allowed and leaves time for an attempt.
    func wait(
        _ own: Duration,
        asked: Duration?,
        timeLeft: Duration?,
        using generator: inout some RandomNumberGenerator
    ) -> RetryDecision {
        var delay = own
        if let asked {
            guard asked <= maxServerDelay else { return .stop(.serverDelayTooLong) }
            delay = spreadOut(max(own, asked), asked: asked, timeLeft: timeLeft, using: &generator)
        }
        guard fits(delay, within: timeLeft) else { return .stop(.deadline) }
        return .retry(after: delay)
    }

    /// What is said about the next attempt: by a response's fields, or by what held the attempt back.
    package func serverHint(_ failed: FailedExchange) -> ServerHint {
        switch failed.outcome {
        case .response(let head): hint(head, receivedAt: failed.receivedAt)
        case .failure(let failure): ServerHint(wait: failure.retryAfter)
        }
    }

    /// Why a failure is final, whatever the call's history.
    private func refusal(_ retryClass: RetryClass, failed: FailedExchange, hint: ServerHint) -> StopReason? {
        if case .never(let reason) = retryClass { return reason }
        if isLeftToCaller(failed) { return .retriedAbove }
        // A circuit exists to fail fast: only rules that park wait for its probes.
        if !parks, case .failure(let failure) = failed.outcome, failure.kind == .heldBack, failure.retryAfter != nil {
            return .circuitOpen
        }
        return hint.forbidsRetry ? .serverForbids : nil
    }

    private func isLeftToCaller(_ failed: FailedExchange) -> Bool {
        guard leavesRetriesToCaller, failed.fields.contains(attemptField ?? RetryRules.usualAttemptField) else {
            return false
        }
        // From the second attempt on, the field may be our own.
        return attemptField == nil || failed.attempt <= 1
    }

    /// Why a request must not be sent again, whatever a retrier says; nil if it may be.
    ///
    /// A request that the server may have acted on is sent again only if these rules permit it for the method; a gateway sends
    /// nothing else again except what certainly was not processed (RFC 9110 §9.2.2). A request was not acted on if it never left
    /// this machine, or if the server refused it with a 4xx or deferred it. The statuses that the rules retry do not matter here.
    ///
    /// - Parameters:
    ///   - failed: the attempt.
    ///   - sends: how often the call was sent, including free resends.
    ///   - most: how often it may be sent.
    package func veto(_ failed: FailedExchange, sends: Int, most: Int) -> StopReason? {
        if !failed.bodyIsReplayable { return .notReplayable }
        if sends >= most { return .attemptsExhausted }
        let proof = Retryability.proof(of: failed.outcome, to: failed.fields)
        let mayBeRepeated =
            switch proof {
            case .unprocessed: true
            case .staleSocket, .ambiguous: permits(proof, for: failed)
            case .throttled: !isGateway || permits(proof, for: failed)
            case .never: failed.wasRefused && !isGateway || failed.isUnsent || permits(.ambiguous, for: failed)
            }
        return mayBeRepeated ? nil : .notIdempotent
    }

    /// How often a call may be sent, including one free resend of each kind.
    package var mostSends: Int {
        guard maxAttempts > 1 else { return 1 }
        let (sends, overflow) = maxAttempts.addingReportingOverflow(FreeResend.allCases.count)
        return overflow ? .max : sends
    }

    /// How often a call may be sent if its retrier has no rules.
    package static let mostUngovernedSends = 100

    private func mayBeSent(after failed: FailedExchange, _ history: RetryHistory, isFree: Bool) -> Bool {
        guard maxAttempts > 1, failed.attempt < mostSends else { return false }
        if countsFreeResends { return history.countedAttempts + history.freeResends.count < maxAttempts }
        return isFree || history.countedAttempts < maxAttempts
    }

    private func ownDelay(
        _ retryClass: RetryClass,
        history: inout RetryHistory,
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

    /// A wait that a server asked for, with a random addition, limited to the time left so that no call that could have waited is
    /// given up.
    private func spreadOut(
        _ wait: Duration,
        asked: Duration,
        timeLeft: Duration?,
        using generator: inout some RandomNumberGenerator
    ) -> Duration {
        let spread = RetryRules.spread(of: asked, using: &generator)
        guard let timeLeft, fits(wait, within: timeLeft) else { return wait + spread }
        let room = timeLeft - wait - max(minimumAttemptTime, .milliseconds(1))
        return wait + max(.zero, min(spread, room))
    }

    /// The random addition to a wait that a server asked for: up to half of it, and 5 s at most.
    package static func spread(of asked: Duration, using generator: inout some RandomNumberGenerator) -> Duration {
        let sample = Double.random(in: 0..<1, using: &generator)
        return Duration(boundedSeconds: sample * min(asked.doubleSeconds * 0.5, 5))
    }

    /// Whether a wait leaves time for an attempt.
    package func fits(_ delay: Duration, within timeLeft: Duration?) -> Bool {
        guard let timeLeft else { return true }
        return delay < timeLeft && delay + minimumAttemptTime <= timeLeft
    }

    /// The field that ``leavesRetriesToCaller`` looks for if ``attemptField`` names no other.
    package static let usualAttemptField: FieldName = "x-retry-attempt"
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What is done after a failed attempt.
public enum RetryDecision: Sendable, Hashable {
    /// Send once more, not before this length has passed.
    case retry(after: Duration)
    /// Hand the outcome up.
    case stop(StopReason)

    /// Send once more at once.
    public static let retryNow = RetryDecision.retry(after: .zero)
}

/// Why no further attempt is made.
public struct StopReason: RawRepresentable, Sendable, Hashable {
    /// The stable code, fit for metric labels.
    public let rawValue: String

    /// Creates a reason from its stable code.
    public init(rawValue: String) {
        self.rawValue = rawValue
    }

    /// The outcome would be the same again.
    public static let notRetryable = StopReason(rawValue: "not-retryable")
    /// The request may have taken effect, and sending it twice could do it twice (RFC 9110 §9.2.2). How far it had come
    /// stands in the record of the attempt; a label must not multiply by it.
    public static let notIdempotent = StopReason(rawValue: "not-idempotent")
    /// The content was one-shot and part of it is gone.
    public static let notReplayable = StopReason(rawValue: "not-replayable")
    /// The request asked for a tunnel or an upgrade, and a part of it was sent: the connection is no longer ours to repeat.
    public static let committed = StopReason(rawValue: "committed")
    /// As many attempts were made as the rules allow.
    public static let attemptsExhausted = StopReason(rawValue: "attempts-exhausted")
    /// The wait would pass the call's deadline.
    public static let deadline = StopReason(rawValue: "deadline")
    /// The server asks for a longer wait than the rules allow.
    public static let serverDelayTooLong = StopReason(rawValue: "server-delay-too-long")
    /// A retrier said no.
    public static let retrierDeclined = StopReason(rawValue: "retrier-declined")
    /// The server asked not to be asked again.
    public static let serverForbids = StopReason(rawValue: "server-forbids")
    /// The retry budget of the partition is spent.
    public static let budget = StopReason(rawValue: "budget")
    /// The gate of the partition is closed for longer than the call may wait.
    public static let gateClosed = StopReason(rawValue: "gate-closed")
    /// The circuit of the partition is open.
    public static let circuitOpen = StopReason(rawValue: "circuit-open")
    /// A layer beneath has retried already and given up.
    public static let retriedBeneath = StopReason(rawValue: "retried-beneath")
    /// Whoever sent the request retries it itself.
    public static let retriedAbove = StopReason(rawValue: "retried-above")
    /// The credentials were refreshed and are refused all the same.
    public static let unauthorized = StopReason(rawValue: "unauthorized")
    /// The caller cancelled.
    public static let cancelled = StopReason(rawValue: "cancelled")
}

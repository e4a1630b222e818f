// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import Foundation
    public import FoundationNetworking
#else
    public import Foundation
#endif

/// Decides, after a failed attempt of one call, whether to send again.
///
/// **Choose.** ``BackoffRetrier``, ``NilRetrier``. **Use.** Through a ``RetrierFactory``, which makes one for each call that
/// fails. **Implement.** ``retry(_:after:context:)`` is called once per failed attempt, one at a time. To wait, return
/// `.retry(after:)` instead of sleeping: the loop waits on the pipeline's clock, stops if the wait cannot end before the
/// deadline, and is cancelled promptly. A retrier is not called after a cancellation.
public protocol Retrier: Sendable {
    /// Whether to ask again after a retry has failed too; false by default: one retry, whose failure is final. A debug build
    /// prints a warning if the default decides.
    var allowsMultipleRetries: Bool { get }

    /// Decides whether to send the call again, and after what wait.
    ///
    /// The loop overrules a retrier if sending again is impossible or would do harm: the content cannot be replayed, no time is
    /// left, the budget is spent, or the server may have acted on a request that is not idempotent (`StopReason.notIdempotent`;
    /// RFC 9110 §9.2.2), unless the call sets ``CallOptions/isIdempotent`` or has an Idempotency-Key. A call is sent at most
    /// five times more than `RetryRules.maxAttempts`, or a hundred times if its factory has no governor.
    func retry(_ request: URLRequest, after attempt: FailedAttempt, context: CallContext) async -> RetryDecision
}

extension Retrier {
    public var allowsMultipleRetries: Bool {
        DebugWarning.isAskedOnce(Self.self)
        return false
    }
}

/// An attempt that failed, with an error or with a response whose status is 400 or more.
public struct FailedAttempt: Sendable, CustomStringConvertible, CustomReflectable {
    /// What the retry rules look at: outcome, method, number, time left.
    public let exchange: FailedExchange
    /// The error, if there was no response.
    public let error: (any Error)?
    /// The response, with its body unread, if there was one.
    public let response: Response?

    /// What the failure proves, by the rules that apply to the call, or by `RetryRules.default` if there are none.
    ///
    /// `.never` says that the rules would not send the request again, and why.
    public let classification: RetryClass

    /// Which attempt it was; the first is 1.
    public var number: Int { exchange.attempt }
    /// How it ended.
    public var outcome: AttemptOutcome { exchange.outcome }
    /// Whether the request's content can be sent again, byte for byte.
    public var bodyIsReplayable: Bool { exchange.bodyIsReplayable }
    /// When the outcome was known.
    public var receivedAt: Timestamp { exchange.receivedAt }
    /// The time left before the call's deadline; nil without one.
    public var timeLeft: Duration? { exchange.timeLeft }

    /// One line: which attempt it was, and its response or error, without credentials.
    public var description: String {
        "attempt \(number): " + (response.map { "\($0)" } ?? error.map { "\($0)" } ?? "no response")
    }

    /// What `dump` shows: the ``description``.
    public var customMirror: Mirror { Mirror(self, children: ["text": description]) }
}

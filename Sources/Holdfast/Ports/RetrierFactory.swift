// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import Foundation
    public import FoundationNetworking
#else
    public import Foundation
#endif

/// Makes the retrier of a call.
///
/// ``create(for:)`` is called once per exchange, after the first failed attempt, so a call that succeeds at once costs nothing.
/// Make a new retrier each time if it keeps state: two calls must never share one.
public protocol RetrierFactory: Sendable {
    /// A retrier for a call whose first attempt failed.
    func create(for request: URLRequest) -> any Retrier

    /// The budgets, gates and learned rates that all calls through this factory share; nil, the default: none.
    ///
    /// One object for the life of the factory.
    var governor: RetryGovernor? { get }

    /// Whether each attempt's content is checked, so that the retrier is asked if it cannot be decoded; false by default: such
    /// a call fails at once.
    ///
    /// Used by the typed calls of HoldfastServices; other calls set ``Acceptance/checksAttempts``.
    var checksAttempts: Bool { get }
}

extension RetrierFactory {
    public var governor: RetryGovernor? { nil }
    public var checksAttempts: Bool { false }
}

/// A retrier factory made of a closure.
public struct AnyRetrierFactory: RetrierFactory {
    public let governor: RetryGovernor?
    public let checksAttempts: Bool
    private let make: @Sendable (URLRequest) -> any Retrier

    /// A factory that calls `make` for each call that fails.
    ///
    /// - Parameters:
    ///   - governor: limits the retries of all calls by its budgets and gates, and each call to five more attempts than its
    ///     rules allow; nil, the default: only the retrier itself, and a maximum of a hundred sends, limit them.
    ///   - checksAttempts: as ``RetrierFactory/checksAttempts``; false by default.
    ///   - make: makes the retrier of one call.
    public init(
        governor: RetryGovernor? = nil,
        checksAttempts: Bool = false,
        _ make: @escaping @Sendable (URLRequest) -> any Retrier
    ) {
        self.governor = governor
        self.checksAttempts = checksAttempts
        self.make = make
    }

    public func create(for request: URLRequest) -> any Retrier {
        make(request)
    }
}

/// Factories by the name of the decision. Each use makes a new one with budgets and gates of its own: make it once per client.
extension RetrierFactory where Self == BackoffRetrier.Factory {
    /// Exponential backoff with full jitter, with parameters for what is commonly changed.
    ///
    /// The wait before retry n is random between 0 and the lesser of `cap` and `base` · 2ⁿ⁻¹, whatever the failure, and no less
    /// than what the server asks for in Retry-After. Parameters that you leave out have the values of `RetryRules.default`,
    /// including its budget and gates: while retries to an origin fail, a retry may wait up to a second longer for its turn
    /// (`RetryBudget.pool`). A value that `RetryRules.validate()` rejects stops the program with its message, because it is a
    /// programming error.
    ///
    /// - Parameters:
    ///   - base: the longest first wait; nil, the default: 100 ms, or a second if the server throttles (429, 503, 413 with
    ///     Retry-After), or `cap` if that is less.
    ///   - cap: the longest wait, and no less than `base`; nil, the default: 20 s, or `base` if that is more.
    ///   - attempts: how many attempts a call may make, the first included; 4 by default, 1 to 1,000.
    ///   - statuses: the statuses that are retried, of 400 or more, and no others; nil, the default: those of
    ///     `RetryRules.default`. Attempts that end without a response are retried in any case.
    ///   - methods: the methods that are sent again even if the server may have acted; nil, the default: the idempotent ones.
    ///     Include POST only if the server does nothing twice.
    ///   - connectivity: says whether the machine is online, for `RetryRules.waitsForConnectivity`; nil, the default: not
    ///     checked.
    ///   - condition: must also be true for a retry; nil, the default: no condition.
    public static func backoff(
        base: Duration? = nil,
        cap: Duration? = nil,
        attempts: Int = 4,
        retry statuses: Set<StatusCode>? = nil,
        methods: Set<RequestMethod>? = nil,
        connectivity: (any Connectivity)? = nil,
        if condition: (@Sendable (FailedAttempt) async -> Bool)? = nil
    ) -> BackoffRetrier.Factory {
        let cap = cap ?? max(.seconds(20), base ?? .zero)
        var rules = RetryRules(
            backoff: Backoff(base: base ?? min(.milliseconds(100), cap), cap: cap),
            maxAttempts: attempts
        )
        rules.throttlingBackoff = Backoff(base: base ?? min(.seconds(1), cap), cap: cap)
        if let statuses {
            rules.retryableStatuses = statuses
            rules.finalStatuses = Set((400...599).map { StatusCode($0) }).subtracting(statuses)
        }
        rules.repeatableMethods = methods
        rules.budget = .pool(forAttempts: attempts)
        return .backoff(rules, connectivity: connectivity, if: condition)
    }

    /// Exponential backoff by `rules`.
    ///
    /// - Parameters:
    ///   - rules: the rules; a value that `RetryRules.validate()` rejects stops the program with its message, because it is a
    ///     programming error.
    ///   - connectivity: says whether the machine is online, for `rules.waitsForConnectivity`.
    ///   - condition: must also be true for a retry that the rules allow; nil, the default: no condition.
    public static func backoff(
        _ rules: RetryRules,
        connectivity: (any Connectivity)? = nil,
        if condition: (@Sendable (FailedAttempt) async -> Bool)? = nil
    ) -> BackoffRetrier.Factory {
        BackoffRetrier.factory(
            strategy: .exponential(rules),
            retryCondition: condition,
            connectivity: connectivity
        )
    }

    /// Four attempts, full jitter and the pool budget: `RetryRules.default`.
    public static var `default`: BackoffRetrier.Factory { .backoff(.default) }

    /// One retry and no more: `RetryRules.strict`.
    public static var strict: BackoffRetrier.Factory { .backoff(.strict) }

    /// Many attempts, waiting for the budget instead of giving up: `RetryRules.patient`.
    public static var patient: BackoffRetrier.Factory { .backoff(.patient) }

    /// Short waits, for a person who is waiting: `RetryRules.interactive`.
    public static var interactive: BackoffRetrier.Factory { .backoff(.interactive) }

    /// The rules that a gateway must follow: `RetryRules.gateway`.
    public static var gateway: BackoffRetrier.Factory { .backoff(.gateway) }

    /// Waits of 1, 2, 4, … seconds without jitter, while the next one is less than `maxBackoff`; no budget and no gate.
    public static func exponentialBinary(maxBackoff: Duration = .seconds(600)) -> BackoffRetrier.Factory {
        BackoffRetrier.factory(strategy: .exponentialBinary(maxBackoff: maxBackoff))
    }
}

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

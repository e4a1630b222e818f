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
/// Asked lazily, once per exchange, on the first failed attempt, so a call that succeeds at once costs nothing. A retrier
/// that keeps state must be made anew each time: two calls never share one.
public protocol RetrierFactory: Sendable {
    /// A retrier for a call whose first attempt failed.
    func create(for request: URLRequest) -> any Retrier

    /// What all calls through this factory share: budgets, gates, learned rates. Nil, the default: nothing.
    ///
    /// One object for the life of the factory.
    var governor: RetryGovernor? { get }

    /// Whether an accepted status is judged attempt by attempt, so that content which cannot be decoded reaches the retrier; false
    /// by default: such a call fails at once.
    ///
    /// Heard by the typed calls of HoldfastServices; a call of one's own says it by ``Acceptance/judgesAttempts``.
    var judgesAttempts: Bool { get }
}

extension RetrierFactory {
    public var governor: RetryGovernor? { nil }
    public var judgesAttempts: Bool { false }
}

/// A retrier factory made of a closure.
public struct AnyRetrierFactory: RetrierFactory {
    public let governor: RetryGovernor?
    public let judgesAttempts: Bool
    private let make: @Sendable (URLRequest) -> any Retrier

    /// A factory that calls `make` for each call that fails.
    ///
    /// - Parameters:
    ///   - governor: holds the retries of all calls to its budgets and gates, and each call to the attempts of its rules and five
    ///     more; nil, the default: nothing but the retrier itself and a hundred sends bounds them.
    ///   - judgesAttempts: as ``RetrierFactory/judgesAttempts``; false by default.
    ///   - make: makes the retrier of one call.
    public init(
        governor: RetryGovernor? = nil,
        judgesAttempts: Bool = false,
        _ make: @escaping @Sendable (URLRequest) -> any Retrier
    ) {
        self.governor = governor
        self.judgesAttempts = judgesAttempts
        self.make = make
    }

    public func create(for request: URLRequest) -> any Retrier {
        make(request)
    }
}

/// Factories by the name of the decision. Each use makes a new one with budgets and gates of its own: make it once per client.
extension RetrierFactory where Self == BackoffRetrier.Factory {
    /// Exponential backoff with full jitter, budget and gates of `RetryRules.default`, and what is commonly changed of it.
    ///
    /// The wait before retry n is random between 0 and the lesser of `cap` and `base` · 2ⁿ⁻¹; where the server throttles (429, 503 and 413
    /// with Retry-After) `base` counts as a second if it is less, or as `cap` if that is less still. While retries to an origin fail,
    /// a retry may wait up to a second longer for its turn (`RetryBudget.pool`). A value that
    /// `RetryRules.validate()` refuses ends the program with its message, because it is a mistake in the program.
    ///
    /// - Parameters:
    ///   - base: the longest first wait; 100 ms by default.
    ///   - cap: the longest wait; 20 s by default, and no less than `base`.
    ///   - attempts: how many attempts a call may make, the first included; 4 by default, 1 to 1,000.
    ///   - statuses: the statuses that are retried, of 400 or more, and no others; nil, the default: those of
    ///     `RetryRules.default`. Attempts that end without a response are retried all the same.
    ///   - methods: the methods that are sent again although the server may have acted; nil, the default: the idempotent ones.
    ///     Name POST only where the server makes nothing twice.
    ///   - connectivity: says whether the machine is online, for `RetryRules.waitsForConnectivity`; nil, the default: nobody asks.
    public static func backoff(
        base: Duration = .milliseconds(100),
        cap: Duration = .seconds(20),
        attempts: Int = 4,
        retry statuses: Set<StatusCode>? = nil,
        methods: Set<RequestMethod>? = nil,
        connectivity: (any Connectivity)? = nil
    ) -> BackoffRetrier.Factory {
        var rules = RetryRules(backoff: Backoff(base: base, cap: cap), maxAttempts: attempts)
        rules.throttlingBackoff = Backoff(base: min(max(base, .seconds(1)), cap), cap: cap)
        if let statuses {
            rules.retryableStatuses = statuses
            rules.finalStatuses = Set((400...599).map { StatusCode($0) }).subtracting(statuses)
        }
        rules.repeatableMethods = methods
        return .backoff(rules, connectivity: connectivity)
    }

    /// Exponential backoff by `rules`.
    ///
    /// - Parameters:
    ///   - rules: the rules; a value that `RetryRules.validate()` refuses ends the program with its message, because it
    ///     is a mistake in the program.
    ///   - connectivity: says whether the machine is online, for `rules.waitsForConnectivity`.
    public static func backoff(
        _ rules: RetryRules,
        connectivity: (any Connectivity)? = nil
    ) -> BackoffRetrier.Factory {
        BackoffRetrier.factory(strategy: .exponential(rules), connectivity: connectivity)
    }

    /// Four attempts, full jitter, the pool of retries: `RetryRules.default`.
    public static var `default`: BackoffRetrier.Factory { .backoff(.default) }

    /// One retry and no more: `RetryRules.strict`.
    public static var strict: BackoffRetrier.Factory { .backoff(.strict) }

    /// Many attempts, waiting for the budget instead of giving up: `RetryRules.patient`.
    public static var patient: BackoffRetrier.Factory { .backoff(.patient) }

    /// Short waits, for somebody who looks on: `RetryRules.interactive`.
    public static var interactive: BackoffRetrier.Factory { .backoff(.interactive) }

    /// What a gateway may do: `RetryRules.gateway`.
    public static var gateway: BackoffRetrier.Factory { .backoff(.gateway) }

    /// Waits of 1, 2, 4, … seconds without jitter, while the next one is less than `maxBackoff`; no budget and no gate.
    public static func exponentialBinary(maxBackoff: Duration = .seconds(600)) -> BackoffRetrier.Factory {
        BackoffRetrier.factory(strategy: .exponentialBinary(maxBackoff: maxBackoff))
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import HoldfastSemantics
private import Synchronization

#if canImport(FoundationNetworking)
    internal import Foundation
    public import FoundationNetworking
#else
    public import Foundation
#endif

/// Retries with increasing waits: capped exponential backoff with full jitter and, by default, four attempts in all.
///
/// What is retried depends on what the failure proves: requests that are not idempotent are sent again only if the first
/// attempt was certainly not processed (RFC 9110 §9.2.2), unless the call sets `isIdempotent`. A wait is never shorter than a
/// server's Retry-After (in any form); if that is longer than the rules or the call's time allow, the call ends at once. Waits
/// use the pipeline's clock and end promptly with cancellation.
public final class BackoffRetrier: Retrier {
    /// How the waits grow and what is retried.
    public struct Strategy: Sendable, Hashable {
        enum Form: Sendable, Hashable {
            case exponential(RetryRules)
            case exponentialBinary(BinaryBackoff)
        }

        let form: Form

        /// Capped exponential backoff with jitter by `rules`; the default.
        public static func exponential(_ rules: RetryRules = .default) -> Strategy {
            Strategy(form: .exponential(rules))
        }

        /// Waits of 1, 2, 4, … seconds without jitter, while the next one is less than `maxBackoff`.
        public static func exponentialBinary(maxBackoff: Duration = .seconds(600)) -> Strategy {
            Strategy(form: .exponentialBinary(BinaryBackoff(maxBackoff: maxBackoff)))
        }
    }

    private let strategy: Strategy
    private let retryCondition: (@Sendable (FailedAttempt) async -> Bool)?
    private let state: Mutex<State>

    private struct State {
        var generator: any RandomNumberGenerator & Sendable
        var history = RetryHistory()
    }

    /// A retrier for one call.
    ///
    /// - Parameters:
    ///   - strategy: the waits and rules.
    ///   - retryCondition: must also be true for a retry that the rules allow; nil: no condition.
    ///   - generator: the source of jitter; seeded in tests.
    public init(
        strategy: Strategy = .exponential(),
        retryCondition: (@Sendable (FailedAttempt) async -> Bool)? = nil,
        generator: sending any RandomNumberGenerator & Sendable = SystemRandomNumberGenerator()
    ) {
        self.strategy = strategy
        self.retryCondition = retryCondition
        state = Mutex(State(generator: generator))
    }

    /// A factory that makes one retrier for each call that fails, and one governor for all calls.
    ///
    /// Make it once and keep it: budgets and gates that are made anew for each call protect nothing.
    ///
    /// - Parameters:
    ///   - strategy: the waits and rules.
    ///   - retryCondition: must also be true for a retry that the rules allow; nil: no condition.
    ///   - checksAttempts: whether content that a typed call cannot decode is a failed attempt, so that the rules see it as a
    ///     ``ServiceError`` with code `.decodingFailed`; false by default (``RetrierFactory/checksAttempts``). Equal concurrent
    ///     calls then do not share an exchange.
    ///   - connectivity: says whether the machine is online, for `rules.waitsForConnectivity`.
    ///   - makeGenerator: makes the source of jitter; seeded in tests.
    public static func factory(
        strategy: Strategy = .exponential(),
        retryCondition: (@Sendable (FailedAttempt) async -> Bool)? = nil,
        checksAttempts: Bool = false,
        connectivity: (any Connectivity)? = nil,
        makeGenerator: @escaping @Sendable () -> any RandomNumberGenerator & Sendable = {
            SystemRandomNumberGenerator()
        }
    ) -> Factory {
        let governor: RetryGovernor? =
            switch strategy.form {
            case .exponential(let rules):
                RetryGovernor(rules, connectivity: connectivity, generator: makeGenerator())
            case .exponentialBinary: nil
            }
        return Factory(
            strategy: strategy,
            retryCondition: retryCondition,
            makeGenerator: makeGenerator,
            governor: governor,
            checksAttempts: checksAttempts
        )
    }

    public var allowsMultipleRetries: Bool { true }

    public func retry(
        _ request: URLRequest,
        after attempt: FailedAttempt,
        context: CallContext
    ) async -> RetryDecision {
        let decision = decide(attempt.exchange)
        if case .retry = decision, let retryCondition, await !retryCondition(attempt) { return .stop(.retrierDeclined) }
        return decision
    }

    private func decide(_ failed: FailedExchange) -> RetryDecision {
        switch strategy.form {
        case .exponential(let rules):
            state.withLock { state in
                rules.decide(failed, history: &state.history, using: &state.generator)
            }
        case .exponentialBinary(let binary):
            binary.decide(failed)
        }
    }

    /// Makes ``BackoffRetrier``s.
    public struct Factory: RetrierFactory, RuledRetrierFactory {
        let strategy: Strategy
        let retryCondition: (@Sendable (FailedAttempt) async -> Bool)?
        let makeGenerator: @Sendable () -> any RandomNumberGenerator & Sendable
        public let governor: RetryGovernor?
        public let checksAttempts: Bool

        public func create(for request: URLRequest) -> any Retrier {
            BackoffRetrier(strategy: strategy, retryCondition: retryCondition, generator: makeGenerator())
        }

        func create(for request: URLRequest, rules: RetryRules) -> (any Retrier)? {
            BackoffRetrier(
                strategy: .exponential(rules),
                retryCondition: retryCondition,
                generator: makeGenerator()
            )
        }
    }
}

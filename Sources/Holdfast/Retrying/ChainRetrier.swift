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

/// Asks several retriers in order: the first that says retry wins; if all decline, the last one's reason counts.
///
/// Each member keeps its own ``Retrier/allowsMultipleRetries``: one that allows a single retry is asked until it has granted
/// one, and not again. So you can combine a retrier that refreshes credentials after a 401 with one that backs off after a 503,
/// and neither counts the other's retries. A member is made when it is first asked, once per call.
public final class ChainRetrier: Retrier {
    private struct State {
        var members: [any Retrier] = []
        var spent: Set<Int> = []
    }

    private let factories: [any RetrierFactory]
    private let request: URLRequest
    /// The rules of the call, which replace those of the members that use rules.
    private let rules: RetryRules?
    private let state = Mutex(State())

    /// A retrier for one call.
    ///
    /// - Parameters:
    ///   - factories: make the members, in the order in which they are asked.
    ///   - request: the call's request.
    public convenience init(_ factories: [any RetrierFactory], for request: URLRequest) {
        self.init(factories, for: request, rules: nil)
    }

    fileprivate init(_ factories: [any RetrierFactory], for request: URLRequest, rules: RetryRules?) {
        self.factories = factories
        self.request = request
        self.rules = rules
    }

    /// A factory of chains whose members `factories` make.
    public static func factory(_ factories: [any RetrierFactory]) -> Factory {
        Factory(factories: factories)
    }

    /// True, because each member decides for itself.
    public var allowsMultipleRetries: Bool { true }

    public func retry(_ request: URLRequest, after attempt: FailedAttempt, context: CallContext) async -> RetryDecision
    {
        var last = RetryDecision.stop(.retrierDeclined)
        for index in factories.indices {
            guard let member = member(index) else {
                last = .stop(.attemptsExhausted)
                continue
            }
            last = await member.retry(request, after: attempt, context: context)
            guard case .retry = last else { continue }
            if !member.allowsMultipleRetries { state.withLock { _ = $0.spent.insert(index) } }
            return last
        }
        return last
    }

    /// The member, made on first use; nil if its one retry is used up. Asked in order, by one task at a time.
    private func member(_ index: Int) -> (any Retrier)? {
        let (known, isSpent) = state.withLock { state in
            (index < state.members.count ? state.members[index] : nil, state.spent.contains(index))
        }
        if isSpent { return nil }
        if let known { return known }
        let factory = factories[index]
        let ruled = rules.flatMap { (factory as? any RuledRetrierFactory)?.create(for: request, rules: $0) }
        let made = ruled ?? factory.create(for: request)
        state.withLock { $0.members.append(made) }
        return made
    }

    /// Makes ``ChainRetrier``s.
    public struct Factory: RetrierFactory, RuledRetrierFactory {
        let factories: [any RetrierFactory]

        public func create(for request: URLRequest) -> any Retrier {
            ChainRetrier(factories, for: request)
        }

        func create(for request: URLRequest, rules: RetryRules) -> (any Retrier)? {
            guard
                factories.contains(where: {
                    ($0 as? any RuledRetrierFactory)?.create(for: request, rules: rules) != nil
                })
            else { return nil }
            return ChainRetrier(factories, for: request, rules: rules)
        }

        /// The governor of the first member that has one: its budgets and gates apply to the retries of all members.
        public var governor: RetryGovernor? { factories.lazy.compactMap(\.governor).first }

        /// Whether any member's is true; the others are then asked about such failures as well.
        public var checksAttempts: Bool { factories.contains(where: \.checksAttempts) }
    }
}

extension RetrierFactory where Self == ChainRetrier.Factory {
    /// Asks the retriers of these factories in order; the first that says retry wins.
    public static func chain(_ factories: any RetrierFactory...) -> ChainRetrier.Factory {
        ChainRetrier.factory(factories)
    }
}

/// Never retries; has no state, so all calls can share one.
public struct NilRetrier: Retrier {
    /// A retrier that always declines.
    public init() {}

    public func retry(_ request: URLRequest, after attempt: FailedAttempt, context: CallContext) async -> RetryDecision
    {
        .stop(.retrierDeclined)
    }

    /// The factory of this retrier.
    public struct Factory: RetrierFactory {
        /// A factory.
        public init() {}

        public func create(for request: URLRequest) -> any Retrier { NilRetrier() }
    }
}

extension RetrierFactory where Self == NilRetrier.Factory {
    /// Never retries: each call, or each hop of it, is sent exactly once.
    public static var never: NilRetrier.Factory { NilRetrier.Factory() }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import Foundation
    internal import FoundationNetworking
#else
    internal import Foundation
#endif

/// Which rules of retrying hold for a call of a pipeline, and who makes its retrier: one answer for all who ask.
///
/// The call's own word comes first, then its own factory, then the pipeline's. A gateway stays one whatever a call says.
struct Governance: Sendable {
    /// The pipeline's factory.
    private let factory: any RetrierFactory
    /// Its governor, which calls with a factory of their own that has none come under as well.
    let own: RetryGovernor?
    /// Governs calls that bring rules of their own where the pipeline has no governor.
    private let fallback: RetryGovernor

    init(_ factory: any RetrierFactory) {
        self.factory = factory
        own = factory.governor
        fallback = own ?? RetryGovernor()
    }

    /// The factory of the call's retrier.
    func factory(for options: CallOptions) -> any RetrierFactory { options.retrierFactory ?? factory }

    /// What the call shares with others; nil where nothing is governed.
    func governor(for options: CallOptions) -> RetryGovernor? {
        if options.areDefault { return own }
        return options.retrierFactory?.governor ?? own ?? (options.rulesInForce == nil ? nil : fallback)
    }

    /// The rules of the call; nil where neither it nor a factory has any.
    func rules(for options: CallOptions) -> RulesInForce? {
        guard !options.areDefault else { return own?.inForce }
        guard let inForce = options.rulesInForce ?? options.retrierFactory?.governor?.inForce else {
            return own?.inForce
        }
        guard own?.rules.isGateway == true, !inForce.rules.isGateway else { return inForce }
        var rules = inForce.rules
        rules.isGateway = true
        return RulesInForce(rules)
    }

    /// The retrier of a call that failed.
    func makeRetrier(for request: URLRequest, _ options: CallOptions) -> any Retrier {
        let factory = factory(for: options)
        guard options.rulesInForce != nil, let rules = rules(for: options)?.rules else {
            return factory.create(for: request)
        }
        if rules.maxAttempts <= 1 { return NilRetrier() }
        return (factory as? any RuledRetrierFactory)?.create(for: request, rules: rules)
            ?? BackoffRetrier(strategy: .exponential(rules))
    }
}

/// A factory whose retriers go by rules, which a call can replace without losing the rest of it.
protocol RuledRetrierFactory: RetrierFactory {
    /// A retrier by other rules; nil where none of its parts goes by rules.
    func create(for request: URLRequest, rules: RetryRules) -> (any Retrier)?
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

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

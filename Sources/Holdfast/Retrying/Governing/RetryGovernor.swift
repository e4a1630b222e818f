// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import Foundation
    internal import FoundationNetworking
#else
    internal import Foundation
#endif

/// What all calls of a retrier factory share: the budgets, gates and learned rates of each origin.
///
/// Make one and keep it as long as the client. Safe to use from any number of tasks; holds a bounded number of partitions.
public final class RetryGovernor: Sendable {
    /// The rules it goes by.
    public let rules: RetryRules
    private let account: RetryAccount

    /// A governor that knows nothing yet.
    public init(_ rules: RetryRules = .default) {
        self.rules = rules
        account = RetryAccount(rules)
    }

    /// The state that calls to the request's origin share.
    func account(for request: URLRequest) -> RetryAccount {
        account
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The parameters of ``RetryBudget/tokens(capacity:transient:timeout:throttling:reward:)``.
package struct TokenRules: Sendable, Hashable {
    var capacity: Int
    var transient: Int
    var timeout: Int
    var throttling: Int
    var reward: Int

    private static let most = 1_000_000_000

    var problem: String? {
        let figures = [
            ("capacity", capacity), ("transient", transient), ("timeout", timeout), ("throttling", throttling),
        ]
        for (name, figure) in figures where !(1...TokenRules.most ~= figure) {
            return "\(name) \(figure) is no number of tokens; use 1 to \(TokenRules.most)."
        }
        guard 0...TokenRules.most ~= reward else {
            return "reward \(reward) is no number of tokens; use 0, for nothing, to \(TokenRules.most)."
        }
        for (name, figure) in figures where figure > capacity {
            return "\(name) \(figure) is more than capacity \(capacity), so that no such retry is ever made; use less."
        }
        return nil
    }

    /// The same with each figure within its bounds.
    var bounded: TokenRules {
        func within(_ figure: Int, _ least: Int) -> Int { min(max(figure, least), TokenRules.most) }
        return TokenRules(
            capacity: within(capacity, 1),
            transient: within(transient, 1),
            timeout: within(timeout, 1),
            throttling: within(throttling, 1),
            reward: within(reward, 0)
        )
    }

    func cost(of cause: RetryBudgetState.Cause) -> Int {
        switch cause {
        case .transient, .hedge: transient
        case .timeout: timeout
        case .throttling: throttling
        }
    }
}

/// A bucket of tokens as the AWS SDKs have it; time plays no part.
struct TokenBalance: Sendable, Hashable {
    private let rules: TokenRules
    private(set) var tokens: Int

    init(_ rules: TokenRules) {
        self.rules = rules.bounded
        tokens = self.rules.capacity
    }

    /// How many retries after transient failures are left.
    var retries: Int { tokens / rules.transient }

    /// Takes what a retry costs and returns it, or nil if there is less.
    mutating func take(_ cause: RetryBudgetState.Cause) -> Int? {
        let cost = rules.cost(of: cause)
        guard tokens >= cost else { return nil }
        tokens -= cost
        return cost
    }

    /// Returns a retry's cost.
    mutating func add(_ cost: Int) {
        tokens = min(rules.capacity, tokens + cost)
    }

    /// Adds what a success without a retry earns.
    mutating func reward() {
        add(rules.reward)
    }
}

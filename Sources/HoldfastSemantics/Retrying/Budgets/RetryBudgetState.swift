// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The balance of a ``RetryBudget``: a value that is changed by what happens to calls, at the times it is told.
public struct RetryBudgetState: Sendable {
    /// What a retry costs by.
    public enum Cause: Sendable, Hashable {
        case transient, timeout, throttling, hedge
    }

    /// The budget.
    public let budget: RetryBudget

    /// A partition's state before its first call.
    ///
    /// - Parameter now: the time since any fixed origin, as in all calls.
    public init(_ budget: RetryBudget, now: Duration) {
        self.budget = budget
    }

    /// Takes note of a fresh call; never called for a retry.
    public mutating func callBegan(now: Duration) {}

    /// Takes what a retry costs, and its place among the retries in flight; nil where either is lacking.
    public mutating func permit(_ cause: Cause, now: Duration) -> RetryGrant? {
        RetryGrant()
    }

    /// Takes note of an attempt's end; a grant must be ended or given back exactly once.
    ///
    /// - Parameters:
    ///   - grant: what the attempt was permitted by; nil for a first attempt.
    ///   - succeeded: whether the server did its work: any answer that is no reason to retry.
    public mutating func attemptEnded(_ grant: RetryGrant?, succeeded: Bool, now: Duration) {}

    /// Gives back a grant whose attempt was not made.
    public mutating func giveBack(_ grant: RetryGrant, now: Duration) {}

    /// How many transient retries could be made now; `Int.max` without a limit.
    public func balance(now: Duration) -> Int {
        .max
    }
}

/// The permission for one retry.
public struct RetryGrant: Sendable, Hashable {
    /// What was taken from the balance, in the budget's own units.
    package var cost = 0
    /// Whether it holds a place among the retries in flight.
    package var holdsPlace = false
}

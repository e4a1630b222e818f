// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics
private import Synchronization

/// The state that the calls to one partition share.
final class RetryAccount: Sendable {
    private let budget: Mutex<RetryBudgetState>

    init(_ rules: RetryRules) {
        budget = Mutex(RetryBudgetState(rules.budget, now: .zero))
    }

    /// Takes note of a fresh call.
    func callBegan(now: MonotonicInstant) {
        budget.withLock { $0.callBegan(now: now.sinceOrigin) }
    }

    /// Takes what a retry or a hedge costs; nil where the budget is spent.
    func permit(_ cause: RetryBudgetState.Cause, now: MonotonicInstant) -> RetryGrant? {
        budget.withLock { $0.permit(cause, now: now.sinceOrigin) }
    }

    /// Takes note of an attempt's end; `grant` is nil for a first attempt.
    func attemptEnded(_ grant: RetryGrant?, succeeded: Bool, now: MonotonicInstant) {
        budget.withLock { $0.attemptEnded(grant, succeeded: succeeded, now: now.sinceOrigin) }
    }

    /// Gives back what was granted to an attempt that was not made.
    func giveBack(_ grant: RetryGrant, now: MonotonicInstant) {
        budget.withLock { $0.giveBack(grant, now: now.sinceOrigin) }
    }

    /// Whether the partition's gate is closed now.
    func isClosed(now: MonotonicInstant) -> Bool {
        false
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import HoldfastSemantics

/// How it stands with the retries to one origin: for dashboards and tests.
public struct RetryStatus: Sendable, Hashable {
    /// How many retries the budget would permit now; `Int.max` without a budget.
    public let balance: Int
    /// When the last closed gate of the origin opens, by the pipeline's clock; nil where all are open.
    public let gateOpens: MonotonicInstant?
    /// How many calls wait at a closed gate or for a token.
    public let waiting: Int
    /// The attempts a second that adaptive pacing lets through; nil where nothing was throttled, or nothing is paced.
    public let learnedRate: Double?
    /// What has been counted since the origin was first called.
    public let counts: RetryCounts
}

/// What a governor counts of an origin.
public struct RetryCounts: Sendable, Hashable {
    /// Fresh calls: each call once, however many attempts it makes, and each hop of a redirect chain.
    public internal(set) var calls = 0
    /// Attempts that ended in trouble.
    public internal(set) var failedAttempts = 0
    /// Retries that the budget permitted, and hedges.
    public internal(set) var retries = 0
    /// Hedges among them.
    public internal(set) var hedges = 0
    /// Why calls that had failed made no further attempt.
    public internal(set) var stops: [StopReason: Int] = [:]

    mutating func note(_ cause: RetryBudgetState.Cause) {
        retries += 1
        if cause == .hedge { hedges += 1 }
    }

    mutating func note(_ reason: StopReason) {
        // Reasons of other people's retriers could be anything, so their number is bounded.
        guard stops[reason] != nil || stops.count < 64 else { return }
        stops[reason, default: 0] += 1
    }
}

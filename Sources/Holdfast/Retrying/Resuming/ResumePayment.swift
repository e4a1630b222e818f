// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics

/// What one resume was permitted by: ended or given back exactly once, whatever happens.
struct ResumePayment {
    private let account: RetryAccount?
    private let traffic: RetryAccount.Traffic
    private var grant: RetryGrant?

    /// Takes what a resume costs; nil where the budget is spent. Without an account it costs nothing.
    init?(_ account: RetryAccount?, _ context: CallContext) {
        self.account = account
        traffic = context.isBackground ? .background : .caller
        guard let account else { return }
        grant = account.permit(.transient, traffic, now: context.clock.now)
        if grant == nil { return nil }
    }

    /// Takes note of how the resume ended; only the first word counts.
    mutating func ended(succeeded: Bool, now: MonotonicInstant) {
        guard let grant else { return }
        self.grant = nil
        account?.attemptEnded(grant, succeeded: succeeded, traffic, now: now)
    }

    /// Gives back what was granted to a resume that was not made, or whose end says nothing.
    mutating func giveBack(now: MonotonicInstant) {
        guard let grant else { return }
        self.grant = nil
        account?.giveBack(grant, traffic, now: now)
    }
}

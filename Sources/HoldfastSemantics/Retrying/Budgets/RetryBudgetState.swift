// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The balance of a ``RetryBudget``: a value that is changed by what happens to calls, at the times it is told.
///
/// Small, without references, and each step costs the same however long it has lived. Time that stands still or goes back is
/// taken as standing still. Not a lock: whoever shares it between tasks guards it, and each method is one step then.
public struct RetryBudgetState: Sendable, Hashable {
    /// What a retry costs by.
    public enum Cause: Sendable, Hashable {
        case transient, timeout, throttling, hedge
    }

    private enum Balance: Sendable, Hashable {
        case unlimited
        case ratio(RatioBalance, refunds: Bool)
        case tokens(TokenBalance)
        case throttle(FailureThrottle)
    }

    /// The budget.
    public let budget: RetryBudget

    /// How many retries and hedges hold a grant.
    public private(set) var inFlight = 0

    private var balance: Balance
    private var window: RetryWindowSize?

    /// A partition's state before its first call.
    ///
    /// - Parameters:
    ///   - budget: the rules.
    ///   - now: the time since any fixed origin, as in all calls.
    public init(_ budget: RetryBudget, now: Duration) {
        self.budget = budget
        window = budget.window.map(RetryWindowSize.init)
        balance =
            switch budget.kind {
            case .unlimited: .unlimited
            case .ratio(let rules): .ratio(RatioBalance(rules, now: now), refunds: rules.refunds)
            case .tokens(let rules): .tokens(TokenBalance(rules))
            case .throttle(let maxTokens, let tokenRatio):
                .throttle(FailureThrottle(maxTokens: maxTokens, tokenRatio: tokenRatio))
            }
    }

    /// How many retries and hedges may be in flight at once now; nil where the budget has no window.
    public var windowSize: Int? { window?.retries }

    /// Takes note of a fresh call; never called for a retry.
    public mutating func callBegan(now: Duration) {
        guard case .ratio(var ratio, let refunds) = balance else { return }
        ratio.callBegan(now: now)
        balance = .ratio(ratio, refunds: refunds)
    }

    /// Takes what a retry costs, and its place among the retries in flight; nil where either is lacking.
    ///
    /// One step: a refusal takes nothing of either.
    public mutating func permit(_ cause: Cause, now: Duration) -> RetryGrant? {
        if let window, inFlight >= window.retries { return nil }
        guard var grant = take(cause, now: now) else { return nil }
        grant.cause = cause
        grant.holdsPlace = true
        inFlight += 1
        return grant
    }

    /// Takes note of an attempt's end; a grant must be ended or given back exactly once.
    ///
    /// A retry that succeeds gives back its cost where the budget refunds, and widens the window; one that fails halves it. A
    /// hedge gives back its place alone, so it makes no difference which copy won, or whether this one was cancelled.
    ///
    /// - Parameters:
    ///   - grant: what the attempt was permitted by; nil for a first attempt.
    ///   - succeeded: whether the server did its work: any answer that is no reason to retry.
    ///   - now: when it ended.
    public mutating func attemptEnded(_ grant: RetryGrant?, succeeded: Bool, now: Duration) {
        leave(grant)
        let isHedge = grant?.cause == .hedge
        if grant != nil, !isHedge { window?.retryEnded(succeeded: succeeded) }
        switch balance {
        case .unlimited: break
        case .ratio(var ratio, let refunds):
            guard refunds, succeeded, !isHedge, let grant else { return }
            ratio.refund(grant.cost, now: now)
            balance = .ratio(ratio, refunds: refunds)
        case .tokens(var tokens):
            guard succeeded, !isHedge else { return }
            if let grant { tokens.add(grant.cost) } else { tokens.reward() }
            balance = .tokens(tokens)
        case .throttle(var throttle):
            throttle.attemptEnded(succeeded: succeeded)
            balance = .throttle(throttle)
        }
    }

    /// Gives back a grant whose attempt was not made: cost and place as if it had never been, the window untouched.
    public mutating func giveBack(_ grant: RetryGrant, now: Duration) {
        leave(grant)
        switch balance {
        case .unlimited, .throttle: break
        case .ratio(var ratio, let refunds):
            ratio.giveBack(grant.cost, from: grant.slot, now: now)
            balance = .ratio(ratio, refunds: refunds)
        case .tokens(var tokens):
            tokens.add(grant.cost)
            balance = .tokens(tokens)
        }
    }

    /// How many transient retries could be made now; `Int.max` without a limit.
    public func balance(now: Duration) -> Int {
        let left =
            switch balance {
            case .unlimited: Int.max
            case .ratio(let ratio, _): ratio.retries(now: now)
            case .tokens(let tokens): tokens.retries
            case .throttle(let throttle): throttle.retries
            }
        guard let window else { return left }
        return min(left, max(0, window.retries - inFlight))
    }

    /// What the budget counts in, for comparison with others: tokens, thousandths of them, or retries by time.
    package func units(now: Duration) -> Int {
        switch balance {
        case .unlimited: .max
        case .ratio(let ratio, _): ratio.retries(now: now)
        case .tokens(let tokens): tokens.tokens
        case .throttle(let throttle): throttle.thousandths
        }
    }

    private mutating func take(_ cause: Cause, now: Duration) -> RetryGrant? {
        switch balance {
        case .unlimited:
            return RetryGrant()
        case .ratio(var ratio, let refunds):
            let slot = ratio.take(now: now)
            balance = .ratio(ratio, refunds: refunds)
            return slot.map { RetryGrant(cost: ratio.cost, slot: $0) }
        case .tokens(var tokens):
            guard let cost = tokens.take(cause) else { return nil }
            balance = .tokens(tokens)
            return RetryGrant(cost: cost)
        case .throttle(let throttle):
            return throttle.allows ? RetryGrant() : nil
        }
    }

    private mutating func leave(_ grant: RetryGrant?) {
        guard let grant, grant.holdsPlace else { return }
        inFlight = max(0, inFlight - 1)
    }
}

/// The permission for one retry.
public struct RetryGrant: Sendable, Hashable {
    /// What was taken from the balance, in the budget's own units.
    package var cost = 0
    /// Whether it holds a place among the retries in flight.
    package var holdsPlace = false
    /// What it was granted for.
    package var cause = RetryBudgetState.Cause.transient
    /// The slot of time that the cost was taken from, where the budget counts by time.
    package var slot: Int64 = 0
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// How many retries the calls to an origin may make together, so that a fleet of clients does not overload a server that is
/// failing.
///
/// Jitter spreads retries but does not reduce them; only a budget does. Each process has its own budget for each origin, and hedges
/// use it as retries do. ``pool`` is the default; the others are for compatibility with other clients.
public struct RetryBudget: Sendable, Hashable {
    package enum Kind: Sendable, Hashable {
        case unlimited
        case pool(PoolRules)
        case ratio(RatioRules)
        case tokens(TokenRules)
        case throttle(maxTokens: Int, tokenRatio: Double)
    }

    package let kind: Kind

    /// No limit: for older strategies, and for servers that nobody else uses.
    public static let unlimited = RetryBudget(kind: .unlimited)

    /// The default: retries that succeed are free, and retries that fail are limited.
    ///
    /// Permission is requested when a retry is due, not when the attempt fails. A retry that fails costs a token; each success of
    /// any attempt earns a quarter of one, up to 16. An unknown origin has 3 tokens, and so has one that an outage drained a minute
    /// or two ago. While retries fail, one at a time is sent, after a backoff of 0.1 s, 0.2 s, … 5 s that all calls to the origin
    /// share. A due retry waits up to 1 s for it. If there is only no free place, and nothing fails, it waits until the call's
    /// deadline (without one, ``RetryRules/maxParking``). At first, two retries may be in flight, and one more with each success,
    /// up to 16.
    public static let pool = RetryBudget(kind: .pool(.standard))

    /// The ``pool`` with enough tokens for one call with this many attempts to an unknown origin.
    package static func pool(forAttempts attempts: Int) -> RetryBudget {
        var rules = PoolRules.standard
        rules.start = min(max(rules.start, Double(attempts - 1)), rules.capacity)
        return RetryBudget(kind: .pool(rules))
    }

    /// The pool for work that can wait: at most 4 retries in flight, and calls that waited through an outage return over 10 s. Use
    /// it with ``RetryRules/parks``.
    public static let patientPool = RetryBudget(kind: .pool(.patient))

    /// A share of the calls, and a reserve for clients with few calls, as in Finagle, Linkerd and tower.
    ///
    /// Each call deposits the share, which lasts for `timeToLive` (in ten slots); a retry costs 1, whether it succeeds or not. The
    /// reserve is **per process**: fifty processes with 10 per second, a common setting, add 500 retries per second.
    ///
    /// - Parameters:
    ///   - share: retries per call, above 0 and up to 1,000; exact to the millionth.
    ///   - reservePerSecond: retries per second that need no calls, on average over `timeToLive`; 0.5 by default.
    ///   - timeToLive: how long deposits and retries count; 10 s by default, up to an hour.
    public static func ratio(
        _ share: Double,
        reservePerSecond: Double = 0.5,
        timeToLive: Duration = .seconds(10)
    ) -> RetryBudget {
        RetryBudget(
            kind: .ratio(RatioRules(share: share, reservePerSecond: reservePerSecond, timeToLive: timeToLive))
        )
    }

    /// The budget of Finagle, Linkerd and tower: a fifth of the calls, and 10 retries per second in addition.
    ///
    /// The reserve is far too large for a server with many clients: with fifty of these, an overloaded server never recovers.
    public static let finagle = RetryBudget.ratio(0.2, reservePerSecond: 10)

    /// The retry quota of the AWS SDKs, standard mode 2.0: 500 tokens, 5 for a retry and 10 after a timeout.
    public static let aws20 = RetryBudget.tokens(transient: 5, timeout: 10)

    /// The retry quota of the AWS SDKs, standard mode 2.1: 500 tokens, 14 for a retry and 5 after throttling.
    public static let aws21 = RetryBudget.tokens(transient: 14, timeout: 14)

    /// A bucket of tokens that retries empty and successes fill.
    ///
    /// A call that succeeds without a retry adds `reward`; a retry that succeeds returns its cost; failures return nothing. The
    /// bucket starts full, so each new process may make a burst of retries. A hedge counts as a transient retry.
    ///
    /// - Parameters:
    ///   - capacity: the most tokens; 500 by default, 1 to 1,000,000,000, as for each cost.
    ///   - transient: the cost of a retry after a transient failure.
    ///   - timeout: the cost of a retry after a timeout.
    ///   - throttling: the cost of a retry after throttling; 5 by default.
    ///   - reward: what a success without a retry adds; 1 by default, 0 for nothing.
    public static func tokens(
        capacity: Int = 500,
        transient: Int,
        timeout: Int,
        throttling: Int = 5,
        reward: Int = 1
    ) -> RetryBudget {
        RetryBudget(
            kind: .tokens(
                TokenRules(
                    capacity: capacity,
                    transient: transient,
                    timeout: timeout,
                    throttling: throttling,
                    reward: reward
                )
            )
        )
    }

    /// The retry throttling of gRPC (A6): retries and hedges only while more than half of the tokens are left.
    ///
    /// Each failed attempt, even the first of a call, takes one; each successful one adds `tokenRatio`. Retries stop if more than
    /// tokenRatio / (1 + tokenRatio) of all attempts fail, 9 % with the defaults.
    ///
    /// - Parameters:
    ///   - maxTokens: the initial and maximum tokens; 10 by default, 1 to 1,000.
    ///   - tokenRatio: above 0 and up to `maxTokens`; 0.1 by default. Decimals after the third are ignored.
    public static func grpc(maxTokens: Int = 10, tokenRatio: Double = 0.1) -> RetryBudget {
        RetryBudget(kind: .throttle(maxTokens: maxTokens, tokenRatio: tokenRatio))
    }

    /// What is wrong with a value, and what to set instead; nil if nothing is.
    ///
    /// A budget with a problem works with the nearest valid value.
    public var problem: String? {
        switch kind {
        case .unlimited, .pool: nil
        case .ratio(let rules): rules.problem
        case .tokens(let rules): rules.problem
        case .throttle(let maxTokens, let tokenRatio):
            FailureThrottle.problem(maxTokens: maxTokens, tokenRatio: tokenRatio)
        }
    }
}

/// The cause of a retry, where it affects the cost.
public enum RetryCause: Sendable, Hashable {
    case transient, timeout, throttling, hedge
}

/// The state of a ``RetryBudget`` for the calls to one origin, and the queue of retries that wait for its permission, changed by
/// calls at the given times.
///
/// The cost of each step does not depend on its age, only on the number of waiting retries. Time that goes back counts as standing
/// still. It is not a lock: callers that share it between tasks must guard it, so that each method is one step. A waiting retry
/// returns with ``askAgain(_:now:using:)`` at the given time, or earlier if a method's result calls it.
package struct RetryBudgetState: Sendable, Hashable {
    /// The reply to a retry at the failure that it follows.
    package enum Plan: Sendable, Hashable {
        /// It has been paid for.
        case granted(RetryGrant)
        /// It must ask when it is due.
        case asks
        case refused
    }

    /// The reply to a retry that is due.
    package enum Answer: Sendable, Hashable {
        case go(RetryGrant)
        /// Ask again then, unless called before.
        case wait(until: Duration)
        case stop
    }

    /// A waiting retry, and what it must do now.
    package struct Call: Sendable, Hashable {
        package let ticket: Int
        package let answer: Answer
    }

    enum Balance: Sendable, Hashable {
        case unlimited
        case ratio(RatioBalance)
        case tokens(TokenBalance)
        case throttle(FailureThrottle)
    }

    private struct Waiter: Sendable, Hashable {
        let ticket: Int
        let cause: RetryCause
        var turn: RetryTurn
        var until: Duration
    }

    /// The pool; nil if the budget only counts. Separate from the balance, so that it is changed in place.
    package private(set) var pool: RetryPool?
    private(set) var balance: Balance
    /// First come, first served.
    private var waiters: [Waiter] = []

    /// The state of an origin before its first call.
    ///
    /// - Parameters:
    ///   - budget: the rules.
    ///   - now: the time since any fixed origin, as in all calls.
    package init(_ budget: RetryBudget, now: Duration, using generator: inout some RandomNumberGenerator) {
        balance =
            switch budget.kind {
            case .unlimited, .pool: .unlimited
            case .ratio(let rules): .ratio(RatioBalance(rules, now: now))
            case .tokens(let rules): .tokens(TokenBalance(rules))
            case .throttle(let maxTokens, let tokenRatio):
                .throttle(FailureThrottle(maxTokens: maxTokens, tokenRatio: tokenRatio))
            }
        if case .pool(let rules) = budget.kind { pool = RetryPool(rules, now: now, using: &generator) }
    }

    /// The tickets of the waiting retries, in order.
    package var line: [Int] { waiters.map(\.ticket) }

    /// Records a call; never call it for a retry.
    package mutating func callBegan(now: Duration) {
        guard case .ratio(var ratio) = balance else { return }
        ratio.callBegan(now: now)
        balance = .ratio(ratio)
    }

    /// Asks, at a failure, for a retry that is due after `delay`.
    ///
    /// Counting budgets are charged now. The pool is asked when the retry is due, and refuses now if that would be in vain.
    package mutating func plan(
        _ cause: RetryCause,
        after delay: Duration,
        patience: Duration,
        parks: Bool,
        now: Duration
    ) -> Plan {
        if let isHopeless = pool?.isHopeless(after: delay, patience: patience, now: now) {
            return isHopeless ? .refused : .asks
        }
        if let grant = permit(cause, now: now) { return .granted(grant) }
        return parks ? .asks : .refused
    }

    /// Asks for a retry that is due; one that must wait joins the queue.
    ///
    /// - Parameter ticket: identifies it when it is called and when it asks again.
    package mutating func ask(
        _ cause: RetryCause,
        turn: RetryTurn,
        ticket: Int,
        now: Duration,
        using generator: inout some RandomNumberGenerator
    ) -> Answer {
        var waiter = Waiter(ticket: ticket, cause: cause, turn: turn, until: now)
        waiter.turn.since = now
        let answer = ask(&waiter, now: now, using: &generator)
        if case .wait(let until) = answer {
            waiter.until = until
            waiters.append(waiter)
        }
        return answer
    }

    /// Asks again for a waiting retry that has not been called; `stop` for a ticket that is not in the queue.
    package mutating func askAgain(
        _ ticket: Int,
        now: Duration,
        using generator: inout some RandomNumberGenerator
    ) -> Answer {
        guard let index = waiters.firstIndex(where: { $0.ticket == ticket }) else { return .stop }
        var waiter = waiters[index]
        let answer = ask(&waiter, now: now, using: &generator)
        if case .wait(let until) = answer {
            waiter.until = until
            waiters[index] = waiter
        } else {
            waiters.remove(at: index)
        }
        return answer
    }

    /// Removes a retry that no longer waits from the queue; does nothing if it was called.
    package mutating func withdraw(_ ticket: Int) {
        waiters.removeAll { $0.ticket == ticket }
    }

    /// Takes the cost of a retry or a hedge, if it need not wait.
    package mutating func permit(_ cause: RetryCause, now: Duration) -> RetryGrant? {
        if pool != nil {
            // A retry asks when it is due, and may have to wait.
            return cause == .hedge && pool?.hedge(now: now) == true ? RetryGrant(cause: cause) : nil
        }
        switch balance {
        case .unlimited:
            return RetryGrant(cause: cause)
        case .ratio(var ratio):
            let slot = ratio.take(now: now)
            balance = .ratio(ratio)
            return slot.map { RetryGrant(cause: cause, cost: ratio.cost, slot: $0) }
        case .tokens(var tokens):
            guard let cost = tokens.take(cause) else { return nil }
            balance = .tokens(tokens)
            return RetryGrant(cause: cause, cost: cost)
        case .throttle(let throttle):
            return throttle.allows ? RetryGrant(cause: cause) : nil
        }
    }

    /// Records the end of an attempt; a grant must be ended or given back exactly once.
    ///
    /// - Parameters:
    ///   - grant: what permitted the attempt; nil for a first attempt.
    ///   - succeeded: whether the server did its work: any answer that is no reason to retry.
    ///   - now: when it ended.
    /// - Returns: the retries that no longer wait, or not as long, in order.
    package mutating func attemptEnded(
        _ grant: RetryGrant?,
        succeeded: Bool,
        now: Duration,
        using generator: inout some RandomNumberGenerator
    ) -> [Call] {
        if pool != nil {
            // The attempt that a hedge belongs to shows the state of the server.
            if grant?.cause == .hedge {
                pool?.hedgeEnded(succeeded: succeeded, now: now)
                return []
            }
            pool?.ended(started: grant?.started, succeeded: succeeded, now: now, using: &generator)
            // The failure of a first attempt changes nothing for waiting retries.
            if grant == nil, !succeeded { return [] }
            return waiters.isEmpty ? [] : calls(now: now, using: &generator)
        }
        switch balance {
        case .unlimited:
            return []
        case .ratio:
            break
        case .tokens(var tokens):
            guard succeeded else { return [] }
            if let grant { tokens.add(grant.cost) } else { tokens.reward() }
            balance = .tokens(tokens)
        case .throttle(var throttle):
            throttle.attemptEnded(succeeded: succeeded)
            balance = .throttle(throttle)
        }
        return waiters.isEmpty ? [] : calls(now: now, using: &generator)
    }

    /// Gives back a grant whose attempt was not made, or whose end says nothing.
    ///
    /// - Returns: the retries that no longer wait, in order.
    package mutating func giveBack(
        _ grant: RetryGrant,
        now: Duration,
        using generator: inout some RandomNumberGenerator
    ) -> [Call] {
        if grant.cause == .hedge { pool?.hedgeEnded(succeeded: true, now: now) } else { pool?.leave() }
        switch balance {
        case .unlimited, .throttle:
            break
        case .ratio(var ratio):
            ratio.giveBack(grant.cost, from: grant.slot, now: now)
            balance = .ratio(ratio)
        case .tokens(var tokens):
            tokens.add(grant.cost)
            balance = .tokens(tokens)
        }
        return waiters.isEmpty ? [] : calls(now: now, using: &generator)
    }

    /// How many retries could be made now; `Int.max` without a limit.
    package func balance(now: Duration) -> Int {
        if let pool { return pool.balance(now: now) }
        return switch balance {
        case .unlimited: .max
        case .ratio(let ratio): ratio.retries(now: now)
        case .tokens(let tokens): tokens.retries
        case .throttle(let throttle): throttle.retries
        }
    }

    /// Whether it can be dropped without a loss: a new one would permit as much, and nothing waits.
    package func isRested(now: Duration) -> Bool {
        guard waiters.isEmpty, pool?.isRested(now: now) ?? true else { return false }
        return switch balance {
        case .unlimited: true
        case .ratio(let ratio): ratio.isRested(now: now)
        case .tokens(let tokens): tokens.isRested
        case .throttle(let throttle): throttle.isRested
        }
    }

    private mutating func ask(
        _ waiter: inout Waiter,
        now: Duration,
        using generator: inout some RandomNumberGenerator
    ) -> Answer {
        if let answer = pool?.ask(&waiter.turn, cause: waiter.cause, now: now, using: &generator) { return answer }
        if let grant = permit(waiter.cause, now: now) { return .go(grant) }
        let patient = waiter.turn.patientUntil
        guard now < patient else { return .stop }
        // Tokens come with the ends of attempts; deposits and withdrawals expire when slots end.
        if case .ratio(let ratio) = balance { return .wait(until: min(patient, ratio.nextSlot(now: now))) }
        return .wait(until: patient)
    }

    /// Asks again for all waiting retries.
    private mutating func calls(now: Duration, using generator: inout some RandomNumberGenerator) -> [Call] {
        var calls: [Call] = []
        var left: [Waiter] = []
        left.reserveCapacity(waiters.count)
        for var waiter in waiters {
            let answer = ask(&waiter, now: now, using: &generator)
            if case .wait(let until) = answer {
                // If it may come earlier, it is told; if it must come later, it can still come at the old time and is then told
                // again.
                if until < waiter.until {
                    waiter.until = until
                    calls.append(Call(ticket: waiter.ticket, answer: answer))
                }
                left.append(waiter)
            } else {
                calls.append(Call(ticket: waiter.ticket, answer: answer))
            }
        }
        waiters = left
        return calls
    }
}

/// The permission for one retry or hedge.
package struct RetryGrant: Sendable, Hashable {
    /// The cause that it was granted for.
    package var cause: RetryCause
    /// What was taken from the balance, in the budget's own units.
    var cost = 0
    /// The slot of time that the cost was taken from, if the budget counts by time.
    var slot: Int64 = 0
    /// When it was granted.
    var started: Duration = .zero
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// How many retries the calls to an origin may make together: what keeps a fleet of clients from finishing off a server.
///
/// Jitter spreads retries and does not lessen them; only a budget does. Each process has its own budget for each origin, and
/// hedges draw on it as retries do. ``pool`` is the default; the others are for those who must agree with another client.
public struct RetryBudget: Sendable, Hashable {
    package enum Kind: Sendable, Hashable {
        case unlimited
        case pool(PoolRules)
        case ratio(RatioRules)
        case tokens(TokenRules)
        case throttle(maxTokens: Int, tokenRatio: Double)
    }

    package let kind: Kind

    /// No limit: for strategies of old, and for servers that nobody else uses.
    public static let unlimited = RetryBudget(kind: .unlimited)

    /// Retries that help are free, and retries that fail are few: the default.
    ///
    /// Permission is asked when a retry is due, not when the attempt fails. A retry that fails costs a token; each success of
    /// any attempt earns a quarter of one, up to 16. An origin about which nothing is known has 3 tokens, and so has one that an
    /// outage drained a minute or two ago. While retries fail, one at a time is sent, after a backoff of 0.1 s, 0.2 s, … 5 s that
    /// all calls to the origin share; a retry that is due waits up to 1 s for it, and where places lack but nothing fails until the
    /// call's deadline (``RetryRules/maxParking`` without one). Two retries may be in flight at first, one more with each that
    /// succeeds, up to 16.
    public static let pool = RetryBudget(kind: .pool(.standard))

    /// The pool for work that may wait: at most 4 retries in flight, and calls that waited through an outage return over
    /// 10 s. Goes with ``RetryRules/parks``.
    public static let patientPool = RetryBudget(kind: .pool(.patient))

    /// A share of the calls, and a reserve for clients that call seldom, as Finagle, Linkerd and tower have it.
    ///
    /// Each call deposits the share, which lives for `timeToLive` (in ten slots); a retry costs 1, whether it helps or not. The
    /// reserve is counted **per process**: fifty processes with 10 a second, as is common, add 500 retries a second.
    ///
    /// - Parameters:
    ///   - share: retries per call, above 0 and up to 1,000; exact to the millionth.
    ///   - reservePerSecond: retries a second that need no calls, on the average over `timeToLive`; 0.5 by default.
    ///   - timeToLive: how long deposits, and retries made, are remembered; 10 s by default, up to an hour.
    public static func ratio(
        _ share: Double,
        reservePerSecond: Double = 0.5,
        timeToLive: Duration = .seconds(10)
    ) -> RetryBudget {
        RetryBudget(
            kind: .ratio(RatioRules(share: share, reservePerSecond: reservePerSecond, timeToLive: timeToLive))
        )
    }

    /// The budget of Finagle, Linkerd and tower: a fifth of the calls and 10 retries a second beside.
    ///
    /// The reserve is far too much for a server with many clients: fifty of these never let an overloaded one recover.
    public static let finagle = RetryBudget.ratio(0.2, reservePerSecond: 10)

    /// The retry quota of the AWS SDKs, standard mode 2.0: 500 tokens, 5 for a retry and 10 after a timeout.
    public static let aws20 = RetryBudget.tokens(transient: 5, timeout: 10)

    /// The retry quota of the AWS SDKs, standard mode 2.1: 500 tokens, 14 for a retry and 5 after throttling.
    public static let aws21 = RetryBudget.tokens(transient: 14, timeout: 14)

    /// A bucket of tokens that retries empty and successes fill.
    ///
    /// A call that succeeds without a retry adds `reward`; a retry that succeeds returns its cost; failures return nothing. It
    /// begins full, which is a burst of retries free for each new process. A hedge costs what a transient retry does.
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
    /// Each failed attempt, the first of a call too, takes one; each good one adds `tokenRatio`. Retries stop where more than
    /// tokenRatio / (1 + tokenRatio) of all attempts fail, 9 % with the defaults.
    ///
    /// - Parameters:
    ///   - maxTokens: the tokens it begins with; 10 by default, 1 to 1,000.
    ///   - tokenRatio: above 0 and up to `maxTokens`; 0.1 by default. Decimals after the third are ignored.
    public static func grpc(maxTokens: Int = 10, tokenRatio: Double = 0.1) -> RetryBudget {
        RetryBudget(kind: .throttle(maxTokens: maxTokens, tokenRatio: tokenRatio))
    }
}

extension RetryBudget {
    /// What is wrong with a value, and what to set instead; nil if nothing is.
    ///
    /// A budget with a problem works with the nearest value that makes sense.
    public var problem: String? {
        switch kind {
        case .unlimited, .pool: nil
        case .ratio(let rules): rules.problem
        case .tokens(let rules): rules.problem
        case .throttle(let maxTokens, let tokenRatio): FailureThrottle.problem(maxTokens, tokenRatio)
        }
    }
}

/// What a retry costs by, where a budget makes a difference.
public enum RetryCause: Sendable, Hashable {
    case transient, timeout, throttling, hedge
}

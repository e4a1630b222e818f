// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// How many retries the calls of a partition may make together: what keeps a fleet of clients from finishing off a server.
///
/// Jitter spreads retries and does not lessen them; only a budget does. Each process has its own budget for each origin, and
/// hedges draw on it as retries do. ``ratio`` is the default; the others are for those who must agree with another client.
/// A ``RetryBudgetState`` holds a budget's balance.
public struct RetryBudget: Sendable, Hashable {
    package enum Kind: Sendable, Hashable {
        case unlimited
        case ratio(RatioRules)
        case tokens(TokenRules)
        case throttle(maxTokens: Int, tokenRatio: Double)
    }

    package let kind: Kind

    /// No limit: for strategies of old, and for servers that nobody else uses.
    public static let unlimited = RetryBudget(kind: .unlimited)

    /// A tenth of the fresh calls, and one retry in two seconds beside; see ``ratio(_:reservePerSecond:timeToLive:refunds:window:)``.
    public static let ratio = RetryBudget.ratio(0.1)

    /// A share of the fresh calls, and a small reserve for clients that call seldom.
    ///
    /// Each fresh call deposits the share, which lives for `timeToLive` (in ten slots); a retry costs 1; one that succeeds
    /// gives it back, so what a budget really limits is retries that do not help. The reserve is counted **per process**: fifty
    /// processes with the default add 25 retries a second to what the share allows, and with 10 a second, as is common, 500.
    ///
    /// - Parameters:
    ///   - share: retries per fresh call, above 0 and up to 1,000; exact to the millionth.
    ///   - reservePerSecond: retries a second that need no calls, on the average over `timeToLive`; 0.5 by default.
    ///   - timeToLive: how long deposits, and retries made, are remembered; 10 s by default, up to an hour.
    ///   - refunds: whether a retry that succeeds costs nothing in the end; true by default. A hedge always costs.
    ///   - window: limits the retries in flight; nil for no such limit.
    public static func ratio(
        _ share: Double,
        reservePerSecond: Double = 0.5,
        timeToLive: Duration = .seconds(10),
        refunds: Bool = true,
        window: RetryWindow? = RetryWindow()
    ) -> RetryBudget {
        RetryBudget(
            kind: .ratio(
                RatioRules(
                    share: share,
                    reservePerSecond: reservePerSecond,
                    timeToLive: timeToLive,
                    refunds: refunds,
                    window: window
                )
            )
        )
    }

    /// The budget of Finagle, Linkerd and tower: a fifth of the calls and 10 retries a second beside.
    ///
    /// The reserve is far too much for a server with many clients: fifty of these never let an overloaded one recover.
    public static let finagle = RetryBudget.ratio(0.2, reservePerSecond: 10, refunds: false, window: nil)

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
        case .unlimited: nil
        case .ratio(let rules): rules.problem
        case .tokens(let rules): rules.problem
        case .throttle(let maxTokens, let tokenRatio): FailureThrottle.problem(maxTokens, tokenRatio)
        }
    }

    /// The window of retries in flight; nil without one.
    package var window: RetryWindow? {
        guard case .ratio(let rules) = kind else { return nil }
        return rules.window
    }
}

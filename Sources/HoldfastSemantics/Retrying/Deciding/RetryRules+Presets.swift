// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

extension RetryRules {
    /// Four attempts, full jitter from 100 ms, the pool.
    public static let `default` = RetryRules()

    /// One retry and no more, as RFC 9110 §9.2.2 has it.
    ///
    /// The resend that cures a stale connection counts as that retry.
    public static let strict: RetryRules = {
        var rules = RetryRules(maxAttempts: 2)
        rules.countsFreeResends = true
        return rules
    }()

    /// For work that may wait: many attempts, and a retry waits its turn, for a minute, instead of being given up.
    public static let patient: RetryRules = {
        var rules = RetryRules(maxAttempts: 50)
        rules.parks = true
        rules.budget = .patientPool
        return rules
    }()

    /// For somebody who looks on: short waits, an end within 10 s, and a server that asks for more than 2 s is not waited for.
    ///
    /// An attempt may take 4 s and the whole call 10 s, where neither the call nor its pipeline sets another limit.
    public static let interactive: RetryRules = {
        var rules = RetryRules(
            backoff: Backoff(base: .milliseconds(50), cap: .seconds(1)),
            maxAttempts: 3,
            maxServerDelay: .seconds(2)
        )
        rules.throttlingBackoff = Backoff(base: .milliseconds(200), cap: .seconds(1))
        rules.attemptTimeout = .seconds(4)
        rules.callTimeout = .seconds(10)
        return rules
    }()

    /// For a gateway: one retry, never of what is not idempotent, and none of what its client retries itself.
    ///
    /// What certainly was not processed is sent again whatever its method (RFC 9110 §9.2.2).
    public static let gateway: RetryRules = {
        var rules = RetryRules(maxAttempts: 2)
        rules.countsFreeResends = true
        rules.isGateway = true
        rules.leavesRetriesToCaller = true
        rules.replayLimit = 0
        return rules
    }()

    /// One attempt. A closed gate still holds back what would be refused.
    public static let none = RetryRules(maxAttempts: 1)
}

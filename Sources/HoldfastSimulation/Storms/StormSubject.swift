// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import HoldfastSemantics

/// Rules with a name: Holdfast's presets, and what others do by default.
public struct StormSubject: Sendable, Hashable {
    /// The name, for reports.
    public let name: String
    /// The rules.
    public let rules: RetryRules

    /// A subject.
    public init(_ name: String, _ rules: RetryRules) {
        self.name = name
        self.rules = rules
    }

    /// The presets of `RetryRules`, by their names.
    public static let presets = [
        StormSubject("default", .default), StormSubject("strict", .strict), StormSubject("patient", .patient),
        StormSubject("interactive", .interactive), StormSubject("gateway", .gateway), StormSubject("none", .none),
    ]

    /// What others do, as far as a simulated server without hints can tell: attempts, waits and budget.
    public static let peers = [fullJitter, aws, grpc, finagle, alamofire, polly, immediate]

    /// Three retries without a wait.
    public static let immediate = peer(
        "3-retries-immediate",
        attempts: 4,
        Backoff(base: .zero, jitter: .none),
        .unlimited
    )

    /// Four attempts, full jitter below 100 ms, 200 ms and 400 ms, no budget.
    public static let fullJitter = peer("full-jitter", attempts: 4, Backoff(), .unlimited)

    /// The standard mode of the AWS SDKs from 2026 on (2.1): three attempts, full jitter from 50 ms, 500 tokens of which a
    /// retry costs 14.
    public static let aws = peer("aws-2.1", attempts: 3, Backoff(base: .milliseconds(50)), .aws21)

    /// gRPC's retry policy (A6) with the numbers of its text: four attempts, 100 ms to 1 s give or take a fifth, and a throttle
    /// of 10 tokens and 0.1.
    public static let grpc = peer(
        "grpc",
        attempts: 4,
        Backoff(cap: .seconds(1), jitter: .proportional(0.2)),
        .grpc()
    )

    /// Finagle's budget, a fifth of the calls and 10 retries a second, with four attempts and full jitter.
    public static let finagle = peer("finagle", attempts: 4, Backoff(), .finagle)

    /// Polly's retries as .NET's standard resilience handler sets them up: four attempts, from 2 s, its jitter, no budget.
    public static let polly = peer("polly", attempts: 4, Backoff(base: .seconds(2), jitter: .pollyV2), .unlimited)

    /// The defaults of Alamofire's RetryPolicy: three attempts, after 0.5 s and 1 s, no jitter, no budget.
    public static let alamofire = peer(
        "alamofire",
        attempts: 3,
        Backoff(base: .milliseconds(500), cap: .seconds(1 << 30), jitter: .none),
        .unlimited
    )

    /// Rules that wait alike after all failures and heed neither the server's hints nor each other.
    private static func peer(
        _ name: String,
        attempts: Int,
        _ backoff: Backoff,
        _ budget: RetryBudget
    ) -> StormSubject {
        var rules = RetryRules(backoff: backoff, maxAttempts: attempts)
        rules.throttlingBackoff = backoff
        rules.budget = budget
        rules.obeysRetryAfter = false
        rules.obeysRateLimit = false
        rules.closesGate = false
        return StormSubject(name, rules)
    }
}

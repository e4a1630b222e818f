// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import HoldfastSemantics

/// Factories by the name of the decision. Each use makes a new one with budgets and gates of its own: make it once per client.
extension RetrierFactory where Self == BackoffRetrier.Factory {
    /// Exponential backoff with full jitter by `rules`: 100 ms, 200 ms, … capped at 20 s, four attempts by default.
    ///
    /// - Parameters:
    ///   - rules: the rules; a value that `RetryRules.validate()` refuses ends the program with its message, because it
    ///     is a mistake in the program.
    ///   - connectivity: says whether the machine is online, for `rules.waitsForConnectivity`.
    public static func backoff(
        _ rules: RetryRules = .default,
        connectivity: (any Connectivity)? = nil
    ) -> BackoffRetrier.Factory {
        BackoffRetrier.factory(strategy: .exponential(rules), connectivity: connectivity)
    }

    /// Four attempts, full jitter, a budget of a tenth of the calls: `RetryRules.default`.
    public static var `default`: BackoffRetrier.Factory { .backoff(.default) }

    /// One retry and no more: `RetryRules.strict`.
    public static var strict: BackoffRetrier.Factory { .backoff(.strict) }

    /// Many attempts, waiting for the budget instead of giving up: `RetryRules.patient`.
    public static var patient: BackoffRetrier.Factory { .backoff(.patient) }

    /// Short waits, for somebody who looks on: `RetryRules.interactive`.
    public static var interactive: BackoffRetrier.Factory { .backoff(.interactive) }

    /// What a gateway may do: `RetryRules.gateway`.
    public static var gateway: BackoffRetrier.Factory { .backoff(.gateway) }

    /// Waits of 1, 2, 4, … seconds without jitter, while the next one is less than `maxBackoff`; no budget and no gate.
    public static func exponentialBinary(maxBackoff: Duration = .seconds(600)) -> BackoffRetrier.Factory {
        BackoffRetrier.factory(strategy: .exponentialBinary(maxBackoff: maxBackoff))
    }
}

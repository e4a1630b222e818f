// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Holdfast
public import HoldfastSemantics
private import Synchronization

extension RetrierFactory where Self == BackoffRetrier.Factory {
    /// As `.backoff(rules)`, its draws from one seed: the same calls in the same order get the same waits.
    public static func backoff(_ rules: RetryRules, seed: UInt64) -> BackoffRetrier.Factory {
        let seeds = SharedGenerator(seed: seed)
        return BackoffRetrier.factory(
            strategy: .exponential(rules),
            makeGenerator: { SplitMix64(seed: seeds.next()) }
        )
    }
}

/// One generator for many.
private final class SharedGenerator: Sendable {
    private let generator: Mutex<SplitMix64>

    init(seed: UInt64) {
        generator = Mutex(SplitMix64(seed: seed))
    }

    func next() -> UInt64 {
        generator.withLock { $0.next() }
    }
}

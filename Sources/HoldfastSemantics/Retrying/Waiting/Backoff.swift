// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Capped exponential backoff with jitter: how long to wait before each retry.
///
/// The cap comes before the jitter, so delays at the cap stay spread; a delay is a pure function of the retry's number
/// and the sample.
public struct Backoff: Sendable, Hashable {
    /// The ceiling of the first retry; 100 ms by default.
    public var base: Duration

    /// The growth from one retry to the next; 2 by default, less than 1 counts as 1.
    public var multiplier: Double

    /// The greatest ceiling; 20 s by default.
    public var cap: Duration

    /// The least delay; 0 by default.
    public var floor: Duration

    /// How a delay is spread below its ceiling; full by default.
    public var jitter: Jitter

    /// Creates a backoff; each default stands at its property. Negative lengths count as 0.
    public init(
        base: Duration = .milliseconds(100),
        multiplier: Double = 2,
        cap: Duration = .seconds(20),
        floor: Duration = .zero,
        jitter: Jitter = .full
    ) {
        self.base = base
        self.multiplier = multiplier
        self.cap = cap
        self.floor = floor
        self.jitter = jitter
    }

    /// The capped delay before jitter: min(cap, base × multiplier^n).
    ///
    /// - Parameter retry: the retry's number n from 0; any size, negative counts as 0.
    public func ceiling(retry: Int) -> Duration {
        Duration(boundedSeconds: ceilingSeconds(retry: retry))
    }

    /// The delay before a retry.
    ///
    /// - Parameters:
    ///   - retry: the retry's number from 0.
    ///   - sample: a uniform sample from 0 up to but not including 1.
    public func delay(retry: Int, sample: Double) -> Duration {
        let seconds = jitter.spread(
            ceiling: ceilingSeconds(retry: retry),
            floor: floor.doubleSeconds,
            sample: sample
        )
        return Duration(boundedSeconds: seconds)
    }

    /// The delay before a retry, its sample drawn from a generator.
    ///
    /// - Parameters:
    ///   - retry: the retry's number from 0.
    ///   - generator: a source of randomness; seeded in tests.
    public func delay(retry: Int, using generator: inout some RandomNumberGenerator) -> Duration {
        delay(retry: retry, sample: Double.random(in: 0..<1, using: &generator))
    }

    private func ceilingSeconds(retry: Int) -> Double {
        let start = max(0, base.doubleSeconds)
        let limit = max(0, cap.doubleSeconds)
        guard start > 0 else { return 0 }
        let growth = multiplier > 1 ? multiplier : 1
        var power = 1.0
        var square = growth
        // Twenty squarings take any useful multiplier beyond the largest Double; more would only multiply infinities.
        var exponent = min(max(0, retry), 1 << 20)
        while exponent > 0 {
            if exponent & 1 == 1 { power *= square }
            square *= square
            exponent >>= 1
        }
        return min(limit, start * power)
    }
}

extension Duration {
    /// Seconds as a Double, for arithmetic with samples.
    package var doubleSeconds: Double {
        Double(attoseconds) * 1e-18
    }

    /// A length from finite or infinite seconds, to the nearest nanosecond so that 0.1 means 100 ms exactly, and bounded
    /// at 0 and about 126 years so that nothing traps.
    package init(boundedSeconds seconds: Double) {
        let bounded = seconds > 0 ? min(seconds, 4e9) : 0
        // Adding a half rather than rounding(): that would need the C library's maths, which this module does not link.
        self = .nanoseconds(Int64(bounded * 1e9 + 0.5))
    }
}

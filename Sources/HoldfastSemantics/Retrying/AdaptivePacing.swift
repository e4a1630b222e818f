// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// A sending rate that adapts to throttling; ``RetryRules/pacesAdaptively`` turns it on.
///
/// The adaptive mode of the AWS SDKs as a pure value. Until a server throttles, everything may be sent at once. From then on each
/// attempt takes a token from a bucket. Throttling reduces the fill rate to 0.7 of itself. Successes raise it along a cubic curve,
/// to at most twice the measured rate of answers (over half seconds, smoothed by 0.8) and never below one request in two seconds.
/// One value for each partition; the cost of a step does not depend on its age. Time that goes back counts as standing still.
package struct AdaptivePacing: Sendable, Hashable {
    private static let leastRate = 0.5
    private static let smoothing = 0.8
    private static let bucketsPerSecond = 2.0
    private static let mostOverMeasured = 2.0

    /// The latest time in seconds that is used: beyond it, half seconds would lose precision.
    private static let latest = 4e9

    private var time: Double
    private var cubic: CubicRate
    private var measuredUntil: Double
    private var answers = 0.0
    private var tokens = 0.0

    /// How many requests per second may be sent; nil while there is no limit.
    package var rate: Double? { isLimiting ? fillRate : nil }

    /// Whether there has been throttling; from then on each attempt needs a token.
    package private(set) var isLimiting = false

    /// The measured rate of answers in requests per second.
    package private(set) var measuredRate = 0.0

    /// The fill rate of the bucket in tokens per second; maintained even before it limits.
    package private(set) var fillRate = AdaptivePacing.leastRate

    /// The pacing of a partition before its first attempt.
    ///
    /// - Parameter now: the time since any fixed origin, as in all calls.
    package init(now: Duration) {
        let start = AdaptivePacing.seconds(now)
        time = start
        cubic = CubicRate(throttledAt: start)
        measuredUntil = AdaptivePacing.startOfBucket(start)
    }

    /// Takes the token for one attempt.
    ///
    /// - Returns: 0 if the attempt may be sent now; otherwise how long to wait before asking again, 2 s at most. Nothing is taken
    ///   then: others may be first, and a waiting call that is cancelled owes nothing.
    package mutating func acquire(now: Duration) -> Duration {
        guard isLimiting else { return .zero }
        refill(to: now)
        // A rounding error after an exact wait must not cause another wait.
        guard tokens < 1 - 1e-6 else {
            tokens = max(0, tokens - 1)
            return .zero
        }
        return Duration(boundedSeconds: (1 - tokens) / fillRate) + .nanoseconds(1)
    }

    /// Returns the token of an attempt that was not made after all.
    package mutating func giveBack() {
        if isLimiting { tokens = min(capacity, tokens + 1) }
    }

    /// Records an answer that was not throttling: any other answer, since failures say nothing about the rate.
    package mutating func succeeded(now: Duration) {
        refill(to: now)
        countAnswer()
        setRate(cubic.succeeded(at: time))
    }

    /// Records a throttling answer; from the first one on the rate is limited.
    package mutating func throttled(now: Duration) {
        refill(to: now)
        countAnswer()
        let present = isLimiting ? min(measuredRate, fillRate) : measuredRate
        isLimiting = true
        setRate(cubic.throttled(rate: present, at: time))
    }

    /// Adds the tokens for the elapsed time, at the rate until now.
    private mutating func refill(to now: Duration) {
        let later = max(time, AdaptivePacing.seconds(now))
        tokens = min(capacity, tokens + (later - time) * fillRate)
        time = later
    }

    private var capacity: Double { max(fillRate, 1) }

    private mutating func countAnswer() {
        answers += 1
        let bucket = AdaptivePacing.startOfBucket(time)
        guard bucket > measuredUntil else { return }
        let present = answers / (bucket - measuredUntil)
        measuredRate = present * AdaptivePacing.smoothing + measuredRate * (1 - AdaptivePacing.smoothing)
        measuredUntil = bucket
        answers = 0
    }

    private mutating func setRate(_ rate: Double) {
        fillRate = max(min(rate, AdaptivePacing.mostOverMeasured * measuredRate), AdaptivePacing.leastRate)
        tokens = min(tokens, capacity)
    }

    private static func seconds(_ now: Duration) -> Double {
        min(max(now.doubleSeconds, -latest), latest)
    }

    private static func startOfBucket(_ time: Double) -> Double {
        // Half seconds are exact in a Double; time may be negative, so the truncation is corrected.
        let count = Double(Int64(time * bucketsPerSecond))
        return (count > time * bucketsPerSecond ? count - 1 : count) / bucketsPerSecond
    }
}

/// The cubic curve of a sending rate: reduced after throttling, soon back near the old rate, slow near it, and faster beyond it.
///
/// As in the adaptive mode of the AWS SDKs (RETRY.md §2.3): K = ∛(0.3 w / 0.4), rate = 0.4 (t − t₀ − K)³ + w, with w the rate at
/// the last throttling and t₀ its time; throttling reduces the rate to 0.7 of itself. Rates are requests per second, times are
/// seconds since any fixed origin.
package struct CubicRate: Sendable, Hashable {
    private static let cut = 0.7
    private static let scale = 0.4

    /// The rate at the last throttling; 0 before the first.
    package var throttledRate: Double
    /// The time of the last throttling; the start time before the first.
    package var throttledAt: Double

    /// A curve before any throttling, or one that continues from known values.
    package init(throttledRate: Double = 0, throttledAt: Double) {
        self.throttledRate = throttledRate
        self.throttledAt = throttledAt
    }

    /// The rate that a success allows; below the rate of the last throttling until K has passed, above it after that.
    ///
    /// It is not limited: the caller limits it to the measured rate.
    package func succeeded(at time: Double) -> Double {
        let root = ElementaryFunction.cubeRoot(throttledRate * (1 - CubicRate.cut) / CubicRate.scale)
        let distance = time - throttledAt - root
        return CubicRate.scale * distance * distance * distance + throttledRate
    }

    /// The rate after throttling at a rate of `rate`.
    package mutating func throttled(rate: Double, at time: Double) -> Double {
        throttledRate = rate
        throttledAt = time
        return CubicRate.cut * rate
    }
}

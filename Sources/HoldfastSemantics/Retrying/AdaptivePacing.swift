// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// A sending rate that is learned from throttling: what ``RetryRules/pacesAdaptively`` switches on.
///
/// The adaptive mode of the AWS SDKs as a pure value. Until a server throttles, everything may be sent at once. From then on
/// each attempt takes a token from a bucket; throttling cuts the rate at which it fills to 0.7, successes raise it along a
/// cubic curve, to at most twice the rate of answers that was measured (over half seconds, smoothed by 0.8) and never below
/// one request in two seconds. One value for each partition; each step costs the same however long it has lived. Time that
/// goes back is taken as standing still.
package struct AdaptivePacing: Sendable, Hashable {
    private static let leastRate = 0.5
    private static let smoothing = 0.8
    private static let bucketsPerSecond = 2.0
    private static let mostOverMeasured = 2.0

    /// The greatest time in seconds that is told apart from later ones: beyond it half seconds would get lost.
    private static let latest = 4e9

    private var time: Double
    private var cubic: CubicRate
    private var measuredUntil: Double
    private var answers = 0.0
    private var tokens = 0.0

    /// How many requests a second may be sent; nil while nothing limits them.
    package var rate: Double? { isLimiting ? fillRate : nil }

    /// Whether there was throttling, since when each attempt needs a token.
    package private(set) var isLimiting = false

    /// The rate of answers in requests a second, as measured.
    package private(set) var measuredRate = 0.0

    /// What the bucket fills with, in tokens a second; kept before it limits too.
    package private(set) var fillRate = AdaptivePacing.leastRate

    /// A partition's pacing before its first attempt.
    ///
    /// - Parameter now: the time since any fixed origin, as in all calls.
    package init(now: Duration) {
        let start = AdaptivePacing.seconds(now)
        time = start
        cubic = CubicRate(throttledAt: start)
        measuredUntil = AdaptivePacing.startOfBucket(start)
    }

    /// Takes the token of one attempt.
    ///
    /// - Returns: 0 if the attempt may be sent now; otherwise how long to wait before asking again, 2 s at most. Nothing is
    ///   taken then: others may be first, and who is cancelled while waiting owes nothing.
    package mutating func acquire(now: Duration) -> Duration {
        guard isLimiting else { return .zero }
        refill(to: now)
        // What rounding may lack after a wait that was computed exactly is no reason for another.
        guard tokens < 1 - 1e-6 else {
            tokens = max(0, tokens - 1)
            return .zero
        }
        return Duration(boundedSeconds: (1 - tokens) / fillRate) + .nanoseconds(1)
    }

    /// Takes note of an answer that was no throttling: any other, for failures say nothing about the rate.
    package mutating func succeeded(now: Duration) {
        refill(to: now)
        countAnswer()
        setRate(cubic.succeeded(at: time))
    }

    /// Takes note of an answer that says that too much is sent; from the first one on the rate is limited.
    package mutating func throttled(now: Duration) {
        refill(to: now)
        countAnswer()
        let present = isLimiting ? min(measuredRate, fillRate) : measuredRate
        isLimiting = true
        setRate(cubic.throttled(rate: present, at: time))
    }

    /// The tokens that time has brought, at the rate that held until now.
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
        // Half seconds are exact in a Double; time may be negative, so the truncation is put right.
        let count = Double(Int64(time * bucketsPerSecond))
        return (count > time * bucketsPerSecond ? count - 1 : count) / bucketsPerSecond
    }
}

/// The cubic curve of a sending rate: cut after throttling, back to the old rate soon, careful near it, bold beyond.
///
/// As in the adaptive mode of the AWS SDKs (RETRY.md §2.3): K = ∛(0.3 w / 0.4), rate = 0.4 (t − t₀ − K)³ + w, with w the rate
/// at the last throttling and t₀ its time; throttling cuts the rate to 0.7 of itself. Rates are requests a second, times
/// seconds since any fixed origin.
package struct CubicRate: Sendable, Hashable {
    private static let cut = 0.7
    private static let scale = 0.4

    /// The rate at which throttling set in; 0 until it did.
    package var throttledRate: Double
    /// When it did; the time of the beginning until then.
    package var throttledAt: Double

    /// A curve before any throttling, or one that goes on from known values.
    package init(throttledRate: Double = 0, throttledAt: Double) {
        self.throttledRate = throttledRate
        self.throttledAt = throttledAt
    }

    /// The rate that a success allows; below the rate of the last throttling until K has passed, above it after that.
    ///
    /// It is no bound: whoever uses it limits it to what was measured.
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

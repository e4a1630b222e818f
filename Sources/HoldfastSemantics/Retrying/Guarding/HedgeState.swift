// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What is known of one partition's speed, and how many hedges it may have: a value that is changed by what happens to
/// attempts, at the times it is told.
///
/// Hedging is for single stragglers. It stops by itself where a second copy would only add load: while more attempts than
/// the percentile foretells are late, while the median of the last 64 answers is more than twice the usual one, and while
/// more than an eighth of the last 64 attempts failed. Besides, hedges are paid for out of a share of the attempts.
package struct HedgeState: Sendable {
    private static let price = 1_000_000
    /// How many hedges can be saved up.
    private static let savings = 10

    private let rules: HedgeRules
    private let income: Int
    private let expectedLate: Int
    private var window: LatencyWindow
    private var usualMedian: Duration?
    private var balance = 0
    private var late = RecentShare()
    private var failed = RecentShare()
    private var slow = RecentShare()

    /// A partition's state before its first attempt.
    ///
    /// - Parameter now: the time since any fixed origin, as in all calls.
    package init(_ rules: HedgeRules, now: Duration) {
        self.rules = rules
        income = rules.maxExtraLoad.millionths
        // Four standard deviations above what is to be expected of 64 attempts.
        let mean = Double(HedgeState.price - rules.percentile.millionths) * 1e-6 * Double(RecentShare.capacity)
        expectedLate = Int(mean + 4 * mean.squareRoot()) + 1
        window = LatencyWindow(now: now)
    }

    /// Takes note of a fresh attempt, and says after which delay it is late; nil: it will not be hedged.
    package mutating func attemptBegan(now: Duration) -> Duration? {
        if income > 0 { balance = min(balance + income, HedgeState.savings * HedgeState.price) }
        refresh(now: now)
        if let fixed = rules.fixedDelay { return max(fixed, .zero) }
        guard window.count >= max(1, rules.minimumSamples) else { return nil }
        return window.percentile(rules.percentile).map { max($0, rules.minimumDelay) }
    }

    /// Takes note that an attempt is late, and says whether it is hedged; a hedge is paid for with that.
    ///
    /// - Parameter isFirst: whether this is the attempt's first hedge: an attempt is late once.
    package mutating func permitHedge(isFirst: Bool = true) -> Bool {
        if isFirst { late.record(true) }
        guard balance >= HedgeState.price, !isDistressed else { return false }
        balance -= HedgeState.price
        return true
    }

    /// Gives back what a hedge cost that was not sent.
    package mutating func giveBack() {
        balance = min(balance + HedgeState.price, HedgeState.savings * HedgeState.price)
    }

    /// Takes note of an attempt's end, of its first copy if there were several.
    ///
    /// - Parameters:
    ///   - length: how long it took; of a copy that was overtaken by another, how long it had taken until then: it was
    ///     slower than that, so leaving it out would make the server look faster than it is.
    ///   - succeeded: whether the server answered as it should; other lengths are not measured.
    ///   - wasLate: whether permitHedge(isFirst:) was asked for it.
    package mutating func attemptEnded(length: Duration, succeeded: Bool, wasLate: Bool, now: Duration) {
        if !wasLate { late.record(false) }
        failed.record(!succeeded)
        guard succeeded else { return }
        refresh(now: now)
        window.record(length, now: now)
        if usualMedian == nil, window.count >= RecentShare.capacity { usualMedian = window.percentile(0.5) }
        slow.record(usualMedian.map { length > $0 * 2 } ?? false)
    }

    /// Whether slowness or failure is general.
    private var isDistressed: Bool {
        // A delay that was set by hand foretells nothing of how many attempts exceed it.
        (rules.fixedDelay == nil && late.hits > expectedLate)
            || slow.hits > RecentShare.capacity / 2
            || failed.hits > RecentShare.capacity / 8
    }

    /// The usual median follows the window's down at once, and up by a quarter in a slot: only what stays slow for minutes
    /// is usual.
    private mutating func refresh(now: Duration) {
        guard window.rotate(now: now) else { return }
        guard let median = window.percentile(0.5) else {
            usualMedian = nil
            slow = RecentShare()
            return
        }
        usualMedian = usualMedian.map { min(median, $0 + $0 / 4) }
    }
}

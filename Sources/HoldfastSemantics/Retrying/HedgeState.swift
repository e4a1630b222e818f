// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What is known of one partition's speed, and how many hedges it may have, changed by the ends of attempts at the given times.
///
/// Hedging is for single slow requests. It stops by itself if a second copy would only add load: while more attempts are late than
/// the percentile predicts, while the median of the last 64 answers is more than twice the usual one, and while more than an eighth
/// of the last 64 attempts failed. In addition, hedges are limited to a share of the attempts.
package struct HedgeState: Sendable {
    private static let price = 1_000_000
    /// The most hedges that can be saved up.
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

    /// The state of a partition before its first attempt.
    ///
    /// - Parameter now: the time since any fixed origin, as in all calls.
    package init(_ rules: HedgeRules, now: Duration) {
        self.rules = rules
        income = rules.maxExtraLoad.millionths
        // Four standard deviations above the expected value for 64 attempts.
        let mean = Double(HedgeState.price - rules.percentile.millionths) * 1e-6 * Double(RecentShare.capacity)
        expectedLate = Int(mean + 4 * mean.squareRoot()) + 1
        window = LatencyWindow(now: now)
    }

    /// Records a new attempt, and returns the delay after which it is late; nil: it will not be hedged.
    package mutating func attemptBegan(now: Duration) -> Duration? {
        if income > 0 { balance = min(balance + income, HedgeState.savings * HedgeState.price) }
        refresh(now: now)
        if let fixed = rules.fixedDelay { return max(fixed, .zero) }
        guard window.count >= max(1, rules.minimumSamples) else { return nil }
        return window.percentile(rules.percentile).map { max($0, rules.minimumDelay) }
    }

    /// Records that an attempt is late, and returns whether it is hedged; this pays for the hedge.
    ///
    /// - Parameter isFirst: whether this is the attempt's first hedge: an attempt is late only once.
    package mutating func permitHedge(isFirst: Bool = true) -> Bool {
        if isFirst { late.record(true) }
        guard balance >= HedgeState.price, !isDistressed else { return false }
        balance -= HedgeState.price
        return true
    }

    /// Returns the cost of a hedge that was not sent.
    package mutating func giveBack() {
        balance = min(balance + HedgeState.price, HedgeState.savings * HedgeState.price)
    }

    /// Records the end of an attempt, or of its first copy if there were several.
    ///
    /// - Parameters:
    ///   - length: how long it took. For a copy that another one overtook, how long it had taken until then: it was slower than
    ///     that, so leaving it out would make the server look faster than it is.
    ///   - succeeded: whether the server answered properly; other durations are not measured.
    ///   - wasLate: whether permitHedge(isFirst:) was called for it.
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
        // A fixed delay does not predict how many attempts exceed it.
        (rules.fixedDelay == nil && late.hits > expectedLate)
            || slow.hits > RecentShare.capacity / 2
            || failed.hits > RecentShare.capacity / 8
    }

    /// The usual median follows the window's down at once, and up by a quarter in each slot, so that only lasting slowness becomes
    /// usual.
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

/// When a second copy of a slow request is sent.
public struct HedgeRules: Sendable, Hashable {
    /// The share of answers that are faster than the delay before a hedge; 0.95 by default, from 0.5 up to but not including 1.
    public var percentile = 0.95

    /// The most copies in flight for one attempt, including the first; 2 by default, 2 to 5.
    public var maxCopies = 2

    /// The shortest delay before a hedge; 10 ms by default.
    public var minimumDelay: Duration = .milliseconds(10)

    /// How many answers must have been measured before anything is hedged; 100 by default.
    public var minimumSamples = 100

    /// The most hedges as a share of the attempts; 0.05 by default.
    public var maxExtraLoad = 0.05

    /// A fixed delay, independent of measurements; nil, the default: the percentile.
    public var fixedDelay: Duration?

    /// The defaults.
    public init() {}
}

/// When the copies of one request are sent: the first at once, each further one a delay after the previous one.
///
/// A value that is told what happens; times are durations since any fixed origin. The schedule is gRPC's (proposal A6): a failure
/// that another copy may avoid sends the next one at once, a server's pushback delays it, and an answer ends the plan.
package struct HedgePlan: Sendable, Hashable {
    /// The most copies of one request, whatever the rules say.
    package static let mostCopies = 5

    private let delay: Duration
    private let maxCopies: Int

    /// How many copies were sent.
    package private(set) var sent = 0

    /// How many copies have not ended.
    package private(set) var inFlight = 0

    /// When the next copy is due; nil if none follows.
    package private(set) var nextSend: Duration?

    /// A plan whose first copy is due at `start`.
    ///
    /// - Parameters:
    ///   - delay: the time between copies; 0 sends all at once.
    ///   - maxCopies: the most copies, including the first; at least 1, and more than 5 counts as 5.
    package init(delay: Duration, maxCopies: Int, start: Duration) {
        self.delay = max(delay, .zero)
        self.maxCopies = min(max(maxCopies, 1), HedgePlan.mostCopies)
        nextSend = start
    }

    /// Records that the due copy was sent.
    package mutating func copySent(now: Duration) {
        sent += 1
        inFlight += 1
        nextSend = sent < maxCopies ? now + delay : nil
    }

    /// Records that the due copy may not be sent, nor any after it.
    package mutating func stop() {
        nextSend = nil
    }

    /// Records that a copy failed in a way that another one may avoid.
    ///
    /// - Parameter pushback: how long the server asks to wait. Nil: it asks for nothing, and the next copy is due at once;
    ///   negative: no copy follows.
    package mutating func copyFailed(pushback: Duration? = nil, now: Duration) {
        inFlight = max(0, inFlight - 1)
        guard nextSend != nil else { return }
        switch pushback {
        case nil: nextSend = now
        case .some(let wait) where wait < .zero: nextSend = nil
        case .some(let wait): nextSend = now + wait
        }
    }
}

/// How many of the last 64 events had a property: a shift register, so that events expire by number and not by time.
struct RecentShare: Sendable {
    private var bits: UInt64 = 0

    /// How many events are remembered.
    static let capacity = 64

    /// How many of them had the property.
    var hits: Int { bits.nonzeroBitCount }

    mutating func record(_ hit: Bool) {
        bits = bits << 1 | (hit ? 1 : 0)
    }
}

extension Double {
    /// A share from 0 to 1 in whole millionths, so that it can be compared with counts exactly; values out of range are clamped,
    /// and NaN counts as 0.
    var millionths: Int {
        self > 0 ? Int(Swift.min(self, 1) * 1_000_000 + 0.5) : 0
    }
}

/// The durations of recent answers, as a histogram: what share of them was faster than a given duration.
///
/// The width of the buckets grows with the duration (32 for each doubling, so a percentile is at most 3.2 % too high and never too
/// low), from 62.5 µs to 65 s; values outside count as the nearest. Four slots rotate with time, so that what is older than the
/// window is forgotten. At most about 13 KB, whatever is recorded. Record only answers: a server that refuses quickly is not fast.
package struct LatencyWindow: Sendable {
    private static let slotCount = 4
    private static let perOctave = 32
    private static let octaves = 20
    private static let bucketCount = perOctave * octaves
    /// The lower edge of the first bucket.
    private static let least = 62.5e-6

    private let slotLength: Duration
    private var slots: [[UInt32]] = []
    private var current = 0
    private var currentSlot: Int64 = 0
    private var sums = [UInt32](repeating: 0, count: bucketCount)
    private var highest = 0

    /// How many answers it holds.
    package private(set) var count = 0

    /// An empty window.
    ///
    /// - Parameters:
    ///   - length: how long an answer is remembered, at least three quarters of this; at least 4 ms.
    ///   - now: the time since any fixed origin, as in all calls.
    package init(length: Duration = .seconds(120), now: Duration) {
        slotLength = max(length, .milliseconds(4)) / LatencyWindow.slotCount
        currentSlot = slotNumber(now)
    }

    /// Adds the duration of an answer.
    package mutating func record(_ length: Duration, now: Duration) {
        rotate(now: now)
        if slots.isEmpty { slots = [[UInt32]](repeating: [], count: LatencyWindow.slotCount) }
        if slots[current].isEmpty { slots[current] = [UInt32](repeating: 0, count: LatencyWindow.bucketCount) }
        let bucket = LatencyWindow.bucket(of: length)
        guard sums[bucket] < .max else { return }
        slots[current][bucket] += 1
        sums[bucket] += 1
        highest = max(highest, bucket)
        count += 1
    }

    /// Forgets what is older than the window; true if a slot of it began since the last call.
    @discardableResult
    package mutating func rotate(now: Duration) -> Bool {
        let slot = slotNumber(now)
        guard slot > currentSlot else { return false }
        let steps = Int(min(slot - currentSlot, Int64(LatencyWindow.slotCount)))
        currentSlot = slot
        for _ in 0..<steps {
            current = (current + 1) % LatencyWindow.slotCount
            drop(current)
        }
        return true
    }

    /// The shortest duration that `share` of the answers did not exceed, rounded up to a bucket's edge; nil without answers.
    ///
    /// - Parameter share: from 0 to 1; values outside are clamped.
    package func percentile(_ share: Double) -> Duration? {
        guard count > 0 else { return nil }
        // How many answers may be slower; counted from above, where few buckets contain the slow ones.
        let allowed = min(count - 1, (1_000_000 - share.millionths) * count / 1_000_000)
        var slower = 0
        var bucket = highest
        while bucket > 0 {
            slower += Int(sums[bucket])
            if slower > allowed { break }
            bucket -= 1
        }
        return LatencyWindow.upperEdge(of: bucket)
    }

    private mutating func drop(_ slot: Int) {
        guard !slots.isEmpty, !slots[slot].isEmpty else { return }
        for bucket in 0..<LatencyWindow.bucketCount {
            let dropped = slots[slot][bucket]
            sums[bucket] -= dropped
            count -= Int(dropped)
        }
        slots[slot] = []
        while highest > 0, sums[highest] == 0 { highest -= 1 }
    }

    private func slotNumber(_ now: Duration) -> Int64 {
        Int64(clamping: max(now, .zero).attoseconds / slotLength.attoseconds)
    }

    private static func bucket(of length: Duration) -> Int {
        let ratio = length.doubleSeconds / least
        guard ratio > 1 else { return 0 }
        guard ratio < Double(UInt64(1) << UInt64(octaves)) else { return bucketCount - 1 }
        let octave = Int(ratio.exponent)
        let step = Int((ratio.significand - 1) * Double(perOctave))
        return octave * perOctave + step
    }

    private static func upperEdge(of bucket: Int) -> Duration {
        let octave = bucket / perOctave
        let step = bucket % perOctave
        let octaveStart = least * Double(UInt64(1) << UInt64(octave))
        return Duration(boundedSeconds: octaveStart * (1 + Double(step + 1) / Double(perOctave)))
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

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

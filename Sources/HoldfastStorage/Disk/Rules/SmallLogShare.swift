// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The small log's part of the capacity, found by trying: a hit ratio for each period, and a step that turns when it falls.
///
/// New entries prove themselves in the small log. Most traffic wants it narrow; some, where only the newest entries are
/// asked for, wants it wide, and a climb from the narrow side would not find that: so a wide one is tried first.
struct SmallLogShare: Sendable {
    private static let narrow = 0.10
    private static let wide = 0.60
    private static let firstStep = 0.03

    /// The part, 0.005 to 0.8.
    private(set) var value = SmallLogShare.narrow
    private var seen = (requests: 0, hits: 0)
    private var period = 0
    private var ratios: [Double] = []
    private var step = SmallLogShare.firstStep

    /// Looks at the requests counted so far; a period is over when there were enough since the last one.
    ///
    /// - Parameters:
    ///   - entries: how many entries there are; a period is four times as many requests, and 1,000 at least.
    mutating func update(requests: Int, hits: Int, entries: Int) {
        let count = requests &- seen.requests
        guard count >= max(1_000, 4 * min(entries, Int.max / 4)) else { return }
        next(after: Double(hits &- seen.hits) / Double(count))
        seen = (requests, hits)
    }

    private mutating func next(after ratio: Double) {
        // The first period fills the store; the three after it compare.
        period = min(period + 1, 5)
        ratios.append(ratio)
        if ratios.count > 3 { ratios.removeFirst() }
        switch period {
        case 1: break
        case 2: value = Self.wide
        case 3: value = Self.narrow
        case 4: if ratios[1] > max(ratios[0], ratios[2]) + 0.02 { value = Self.wide }
        default: climb(from: ratios[1], to: ratio)
        }
    }

    private mutating func climb(from previous: Double, to ratio: Double) {
        if ratio < previous { step = -step }
        if abs(ratio - previous) >= 0.05 {
            step = step < 0 ? -Self.firstStep : Self.firstStep
        } else {
            step *= 0.9
        }
        value = min(0.8, max(0.005, value + step))
    }
}

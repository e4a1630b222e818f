// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Chooses the window's part of the capacity by trying: a hit ratio for each period, a step that turns when it falls.
///
/// The first periods compare a narrow window with a wide one, because a climb from the narrow side would not find a peak far away.
struct WindowClimber: Sendable {
    private static let narrow = 0.10
    private static let wide = 0.60
    private static let firstStep = 0.03

    private(set) var share = WindowClimber.narrow
    private var requests = 0
    private var hits = 0
    private var period = 0
    private var ratios: [Double] = []
    private var step = WindowClimber.firstStep

    /// Counts a request.
    mutating func note(isHit: Bool) {
        requests += 1
        if isHit { hits += 1 }
    }

    /// The window's new part of the capacity, once a period of `length` requests is over.
    mutating func endPeriod(length: Int) -> Double? {
        guard requests >= length else { return nil }
        let ratio = Double(hits) / Double(requests)
        requests = 0
        hits = 0
        return next(after: ratio)
    }

    /// The part for the next period, given the hit ratio of the one that ends.
    mutating func next(after ratio: Double) -> Double {
        period += 1
        ratios.append(ratio)
        if ratios.count > 3 { ratios.removeFirst() }
        switch period {
        case 1: break
        case 2: share = Self.wide
        case 3: share = Self.narrow
        case 4: if ratios[1] > max(ratios[0], ratios[2]) + 0.02 { share = Self.wide }
        default: climb(from: ratios[1], to: ratio)
        }
        return share
    }

    private mutating func climb(from previous: Double, to ratio: Double) {
        if ratio < previous { step = -step }
        if abs(ratio - previous) >= 0.05 {
            step = step < 0 ? -Self.firstStep : Self.firstStep
        } else {
            step *= 0.9
        }
        share = min(0.8, max(0.005, share + step))
    }
}

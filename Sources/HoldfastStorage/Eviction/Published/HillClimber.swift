// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Moves the border between a window and the protected part in the direction in which the hit ratio rises.
struct HillClimber: Sendable {
    /// Bytes of the window, and of the protected part.
    private(set) var window: Int
    private(set) var protected: Int

    private let longest: Double
    private let bounds: ClosedRange<Double>
    private var position: Double
    private var stride: Double
    private var hits = 0
    private var requests = 0
    private var ratio = 0.0

    /// A window of a hundredth of the capacity.
    init(capacity: Int) {
        window = capacity / 100
        protected = Int(Double(capacity - window) * 0.8)
        position = Double(window)
        longest = Double(capacity) / 16
        stride = -longest
        bounds = Double(capacity) * 0.005...Double(capacity) * 0.8
    }

    /// Notes a request; tells whether the border moved, which happens once in so many requests.
    mutating func note(isHit: Bool, period: Int) -> Bool {
        requests += 1
        if isHit { hits += 1 }
        guard requests >= period else { return false }
        let change = Double(hits) / Double(requests) - ratio
        let step = change < 0 ? -stride : stride
        ratio += change
        (hits, requests) = (0, 0)
        stride = abs(change) < 0.05 ? step * 0.98 : step < 0 ? -longest : longest
        position = min(max(position + step, bounds.lowerBound), bounds.upperBound)
        protected = max(0, protected - (Int(position) - window))
        window = Int(position)
        return true
    }
}

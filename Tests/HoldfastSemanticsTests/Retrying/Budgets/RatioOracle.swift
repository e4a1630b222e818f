// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics

/// The ratio budget as the study of RETRY.md §5.1 simulated it (candidate D): floating point, a dictionary of slots.
///
/// Written for clarity and without a look at ours, to be compared with it decision for decision.
struct RatioOracle {
    var share: Double
    var reservePerSecond: Double
    var secondsToLive: Double
    var refunds: Bool
    var hasWindow: Bool
    var growth = 1.0

    private var slots: [Int: Double] = [:]
    private(set) var window = 1.0
    private(set) var inFlight = 0

    init(share: Double, reservePerSecond: Double, secondsToLive: Double, refunds: Bool, hasWindow: Bool) {
        self.share = share
        self.reservePerSecond = reservePerSecond
        self.secondsToLive = secondsToLive
        self.refunds = refunds
        self.hasWindow = hasWindow
    }

    mutating func callBegan(at time: Double) {
        add(share, at: time)
    }

    mutating func permit(at time: Double) -> Bool {
        guard !hasWindow || inFlight < Int(window) else { return false }
        expire(at: time)
        guard slots.values.reduce(0, +) + reservePerSecond * secondsToLive >= 1 - 1e-9 else { return false }
        add(-1, at: time)
        inFlight += 1
        return true
    }

    mutating func retryEnded(succeeded: Bool, at time: Double) {
        inFlight -= 1
        if succeeded, refunds { add(1, at: time) }
        window = succeeded ? min(16, window + growth) : max(1, window / 2)
    }

    private mutating func add(_ amount: Double, at time: Double) {
        slots[expire(at: time), default: 0] += amount
    }

    @discardableResult
    private mutating func expire(at time: Double) -> Int {
        let slot = Int(time / (secondsToLive / 10))
        for old in slots.keys where old <= slot - 10 { slots[old] = nil }
        return slot
    }
}

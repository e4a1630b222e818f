// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics

/// The ratio budget in floating point with a dictionary of slots.
///
/// Written for clarity and without a look at ours, to be compared with it decision for decision.
struct RatioOracle {
    var share: Double
    var reservePerSecond: Double
    var secondsToLive: Double

    private var slots: [Int: Double] = [:]

    init(share: Double, reservePerSecond: Double, secondsToLive: Double) {
        self.share = share
        self.reservePerSecond = reservePerSecond
        self.secondsToLive = secondsToLive
    }

    mutating func callBegan(at time: Double) {
        add(share, at: time)
    }

    mutating func permit(at time: Double) -> Bool {
        expire(at: time)
        guard slots.values.reduce(0, +) + reservePerSecond * secondsToLive >= 1 - 1e-9 else { return false }
        add(-1, at: time)
        return true
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

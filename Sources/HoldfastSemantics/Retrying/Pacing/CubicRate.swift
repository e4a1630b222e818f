// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

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

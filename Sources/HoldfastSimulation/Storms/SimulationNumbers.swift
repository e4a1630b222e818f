// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Random numbers of the distributions that simulations draw from; the same seed gives the same numbers on every platform.
///
/// Only additions, multiplications, divisions and square roots, which IEEE 754 rounds alike everywhere; the logarithm of a
/// C library may differ in its last digit from one system to the next.
struct SimulationNumbers {
    private var generator: SplitMix64

    init(seed: UInt64) {
        generator = SplitMix64(seed: seed)
    }

    /// A seed for something else.
    mutating func seed() -> UInt64 {
        generator.next()
    }

    /// From 0 up to but not including 1, evenly.
    mutating func uniform() -> Double {
        Double(generator.next() >> 11) * 0x1p-53
    }

    /// From 0, exponentially distributed around a mean.
    mutating func exponential(mean: Double) -> Double {
        -mean * SimulationNumbers.logarithm(1 - uniform())
    }

    /// Normally distributed, by the polar method of Marsaglia and Bray (1964).
    mutating func normal(mean: Double, deviation: Double) -> Double {
        while true {
            let (x, y) = (2 * uniform() - 1, 2 * uniform() - 1)
            let square = x * x + y * y
            guard square > 0, square < 1 else { continue }
            return mean + deviation * x * (-2 * SimulationNumbers.logarithm(square) / square).squareRoot()
        }
    }

    /// The natural logarithm of a positive normal number, to a few units in the last place.
    static func logarithm(_ value: Double) -> Double {
        var (significand, exponent) = (value.significand, Double(value.exponent))
        if significand > 1.414_213_562_373_095_1 {
            significand /= 2
            exponent += 1
        }
        let ratio = (significand - 1) / (significand + 1)
        let square = ratio * ratio
        // ln m = 2 artanh((m − 1) / (m + 1)); its argument is 0.172 at most, so that twelve terms exhaust a Double.
        var sum = 0.0
        for term in stride(from: 23, through: 1, by: -2) {
            sum = sum * square + 1 / Double(term)
        }
        return exponent * 0.693_147_180_559_945_3 + 2 * ratio * sum
    }
}

/// Steele, Lea and Flood's generator (OOPSLA 2014): the same numbers for the same seed on every platform.
struct SplitMix64: RandomNumberGenerator, Sendable {
    private var state: UInt64

    init(seed: UInt64) {
        state = seed
    }

    mutating func next() -> UInt64 {
        defer { state &+= SplitMix64.step }
        return SplitMix64.mixed(state)
    }

    private static let step: UInt64 = 0x9E37_79B9_7F4A_7C15

    /// A mix of all bits, so that numbers that count up serve as hashes: what a generator of this seed gives first.
    static func mixed(_ seed: UInt64) -> UInt64 {
        var mixed = seed &+ step
        mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }
}

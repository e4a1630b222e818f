// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The curve of Polly's second decorrelated formula: g(t) = 2^t tanh √(4t), and 0 for t below 0.
///
/// Computed in units of 2^(n-1), since 2^5000 is not a Double but the quotient of two neighbors is.
package enum DecorrelatedCurve {
    /// The divisor that puts the medians of the delays near base × 1, 1, 2, 4, …
    private static let median = 1.4

    /// The share of its supremum that a delay takes, from 0 to 1.
    ///
    /// - Parameters:
    ///   - retry: the retry's number from 0.
    ///   - sample: its sample, from 0 to 1.
    ///   - previous: the number and the sample of the previous retry; nil for none.
    package static func share(retry: Int, sample: Double, previous: (retry: Int, sample: Double)?) -> Double {
        var start = 0.0
        if let previous { start = scaled(retry: previous.retry, sample: previous.sample, unit: retry) }
        let step = scaled(retry: retry, sample: sample, unit: retry) - start
        let highest = scaled(retry: retry, sample: 1, unit: retry) - scaled(retry: retry - 1, sample: 0, unit: retry)
        return min(1, max(0, step / highest))
    }

    /// The supremum of the retry's delay with a base of 1 and no cap; infinite if a Double cannot hold it.
    package static func supremum(retry: Int) -> Double {
        let highest = scaled(retry: retry, sample: 1, unit: retry) - scaled(retry: retry - 1, sample: 0, unit: retry)
        return ElementaryFunction.exp2(Double(retry) - 1) * highest / median
    }

    /// g(retry + sample) / 2^(unit - 1).
    private static func scaled(retry: Int, sample: Double, unit: Int) -> Double {
        guard retry >= 0 else { return 0 }
        let position = Double(retry) + sample
        // Subtracts the integers first: next to a large number, the sample would lose its digits.
        let power = ElementaryFunction.exp2(Double(retry - unit + 1) + sample)
        return power * ElementaryFunction.tanh(ElementaryFunction.squareRoot(4 * position))
    }
}

/// The few real functions that backoff and pacing need, because this module imports nothing, not even a C library.
///
/// The relative error is at most 1e-13 for normal results; no argument traps.
package enum ElementaryFunction {
    private static let naturalLogOfTwo = 0.693_147_180_559_945_309_4

    /// 2 to the power of `exponent`; infinity or 0 beyond the range of a Double.
    package static func exp2(_ exponent: Double) -> Double {
        guard exponent < 1025 else { return exponent.isNaN ? .nan : .infinity }
        guard exponent > -1080 else { return 0 }
        let whole = nearestInteger(exponent)
        let fraction = expMinusOne((exponent - Double(whole)) * naturalLogOfTwo) + 1
        return Double(sign: .plus, exponent: whole, significand: fraction)
    }

    /// The hyperbolic tangent.
    package static func tanh(_ value: Double) -> Double {
        guard value < 0 else { return tanhOfPositive(value) }
        return -tanhOfPositive(-value)
    }

    /// The real cube root, also for negative numbers.
    package static func cubeRoot(_ value: Double) -> Double {
        guard value.isFinite, value != 0 else { return value }
        let magnitude = value.magnitude
        // After this, it is from 1 up to 8, whatever the magnitude, so Newton's method needs at most six steps.
        let third = (Int(magnitude.exponent) - (magnitude.exponent < 0 ? 2 : 0)) / 3
        let reduced = Double(
            sign: .plus,
            exponent: Int(magnitude.exponent) - 3 * third,
            significand: magnitude.significand
        )
        var root = 1 + (reduced - 1) / 7
        for _ in 0..<6 {
            root -= (root - reduced / (root * root)) / 3
        }
        let result = Double(sign: .plus, exponent: third, significand: root)
        return value < 0 ? -result : result
    }

    /// The square root; NaN for a negative number or NaN.
    package static func squareRoot(_ value: Double) -> Double {
        guard value > 0 else { return value == 0 ? 0 : .nan }
        guard value.isFinite else { return value }
        let exponent = Int(value.exponent)
        let half = (exponent - (exponent < 0 ? 1 : 0)) / 2
        let reduced = Double(sign: .plus, exponent: exponent - 2 * half, significand: value.significand)
        var root = 1 + (reduced - 1) / 3
        for _ in 0..<5 {
            root = (root + reduced / root) / 2
        }
        return Double(sign: .plus, exponent: half, significand: root)
    }

    private static func tanhOfPositive(_ value: Double) -> Double {
        // Beyond 20, the result differs from 1 by less than a Double can show.
        guard value < 20 else { return value.isNaN ? .nan : 1 }
        // Computes e^-2x - 1 as a whole: the difference of two numbers near 1 would lose the digits of small values.
        let doubled = -2 * value
        let change = doubled > -0.35 ? expMinusOne(doubled) : exp2(doubled / naturalLogOfTwo) - 1
        return -change / (2 + change)
    }

    /// e^x - 1 for |x| up to 0.36: fourteen terms of its series leave an error of 1e-17.
    private static func expMinusOne(_ value: Double) -> Double {
        var sum = 0.0
        var divisor = 14.0
        while divisor > 1 {
            sum = value / divisor * (1 + sum)
            divisor -= 1
        }
        return value * (1 + sum)
    }

    private static func nearestInteger(_ value: Double) -> Int {
        Int(value < 0 ? value - 0.5 : value + 0.5)
    }
}

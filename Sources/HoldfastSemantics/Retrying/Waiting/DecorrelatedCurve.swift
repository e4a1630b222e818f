// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The curve of Polly's second decorrelated formula: g(t) = 2^t tanh √(4t), and 0 for t below 0.
///
/// Asked for in units of 2^(n-1), since 2^5000 is no Double but the quotient of two neighbors is.
package enum DecorrelatedCurve {
    /// The divisor that puts the medians of the delays near base × 1, 1, 2, 4, …
    private static let median = 1.4

    /// The share of its supremum that a delay takes, from 0 to 1.
    ///
    /// - Parameters:
    ///   - retry: the retry's number from 0.
    ///   - sample: its sample, from 0 to 1.
    ///   - previous: the number and the sample of the retry before; nil for none.
    package static func share(retry: Int, sample: Double, previous: (retry: Int, sample: Double)?) -> Double {
        var start = 0.0
        if let previous { start = scaled(retry: previous.retry, sample: previous.sample, unit: retry) }
        let step = scaled(retry: retry, sample: sample, unit: retry) - start
        let highest = scaled(retry: retry, sample: 1, unit: retry) - scaled(retry: retry - 1, sample: 0, unit: retry)
        return min(1, max(0, step / highest))
    }

    /// The supremum of what the retry's delay can be with a base of 1 and no cap; infinite where a Double cannot hold it.
    package static func supremum(retry: Int) -> Double {
        let highest = scaled(retry: retry, sample: 1, unit: retry) - scaled(retry: retry - 1, sample: 0, unit: retry)
        return ElementaryFunction.exp2(Double(retry) - 1) * highest / median
    }

    /// g(retry + sample) / 2^(unit - 1).
    private static func scaled(retry: Int, sample: Double, unit: Int) -> Double {
        guard retry >= 0 else { return 0 }
        let position = Double(retry) + sample
        // The difference of the integers first: next to a large number the sample would lose its digits.
        let power = ElementaryFunction.exp2(Double(retry - unit + 1) + sample)
        return power * ElementaryFunction.tanh(ElementaryFunction.squareRoot(4 * position))
    }
}

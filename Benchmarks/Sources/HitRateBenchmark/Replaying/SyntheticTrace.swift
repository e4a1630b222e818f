// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Harness
internal import HoldfastSimulation

/// Generated requests for people without a recording: by Zipf's law, with log-normal sizes; a tenth of the requests are for
/// keys that occur only once.
enum SyntheticTrace {
    /// Creates a trace, which is the same for the same seed.
    ///
    /// 50,000 keys with exponent 0.8, median 8 KiB, sigma 1.5.
    static func make(seed: UInt64, requests: Int) -> RequestTrace {
        var numbers = SeededNumbers(seed: seed)
        let keys = 50_000
        var sum = 0.0
        let cumulative = (1...keys).map { rank in
            sum += pow(Double(rank), -0.8)
            return sum
        }
        let sizes = (0..<keys).map { _ in size(&numbers) }
        var trace = RequestTrace()
        for index in 0..<requests {
            if Int.random(in: 0..<10, using: &numbers) == 0 {
                trace.append(key: UInt64(keys + index), size: size(&numbers))
                continue
            }
            let point = Double.random(in: 0..<sum, using: &numbers)
            var (low, high) = (0, keys - 1)
            while low < high {
                let middle = (low + high) / 2
                if cumulative[middle] > point { high = middle } else { low = middle + 1 }
            }
            trace.append(key: UInt64(low), size: sizes[low])
        }
        return trace
    }

    /// A size from a log-normal distribution (Box and Muller 1958).
    private static func size(_ numbers: inout SeededNumbers) -> UInt32 {
        let radius = (-2 * log(Double.random(in: Double.leastNonzeroMagnitude..<1, using: &numbers))).squareRoot()
        let normal = radius * cos(2 * Double.pi * Double.random(in: 0..<1, using: &numbers))
        return UInt32(min(max(1, 8_192 * exp(1.5 * normal)), 1e9))
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation

/// A Zipf distribution over ranks from 0: rank r is drawn in proportion to 1 / (r + 1)^exponent.
struct Zipf: Sendable {
    /// The exponent of the program's load: what web caches see (0.64 to 0.9, the steeper end).
    static let usualExponent = 0.9

    private let cumulative: [Double]

    /// A distribution over `count` ranks, at least one.
    init(count: Int, exponent: Double = usualExponent) {
        var sum = 0.0
        cumulative = (1...max(1, count)).map { rank in
            sum += pow(Double(rank), -exponent)
            return sum
        }
    }

    /// The chance of a rank; 0 for one that does not exist.
    func share(of rank: Int) -> Double {
        guard cumulative.indices.contains(rank), let total = cumulative.last else { return 0 }
        return (cumulative[rank] - (rank > 0 ? cumulative[rank - 1] : 0)) / total
    }

    /// Draws a rank; costs O(log count).
    func rank(using generator: inout SplitMix) -> Int {
        let point = generator.nextShare() * (cumulative.last ?? 0)
        var low = 0
        var high = cumulative.count - 1
        while low < high {
            let middle = low + (high - low) / 2
            if cumulative[middle] > point {
                high = middle
            } else {
                low = middle + 1
            }
        }
        return low
    }
}

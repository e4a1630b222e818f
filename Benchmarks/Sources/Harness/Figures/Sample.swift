// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Several measurements of one thing.
public struct Sample: Sendable, Equatable {
    /// The figures, smallest first.
    public let sorted: [Double]

    /// Creates a sample of these figures; NaN and infinity are left out.
    public init(_ figures: [Double]) {
        sorted = figures.filter { $0.isFinite }.sorted()
    }

    /// The middle figure, or the mean of the two middle ones; nil without figures.
    public var median: Double? {
        guard !sorted.isEmpty else { return nil }
        let middle = sorted.count / 2
        return sorted.count % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
    }

    /// The smallest figure; nil without figures.
    public var best: Double? { sorted.first }

    /// The spread of the figures: the difference of the largest and the smallest, divided by the median; 0 for fewer than two.
    public var spread: Double {
        guard let median, median != 0, let first = sorted.first, let last = sorted.last else { return 0 }
        return (last - first) / median
    }
}

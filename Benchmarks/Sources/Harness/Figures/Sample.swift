// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Figures of one thing measured several times.
public struct Sample: Sendable, Equatable {
    /// The figures, smallest first.
    public let sorted: [Double]

    /// A sample of these figures; those that are no numbers are left out.
    public init(_ figures: [Double]) {
        sorted = figures.filter { $0.isFinite }.sorted()
    }

    /// The middle figure, or the mean of the two in the middle; nil without figures.
    public var median: Double? {
        guard !sorted.isEmpty else { return nil }
        let middle = sorted.count / 2
        return sorted.count % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
    }

    /// The smallest figure; nil without figures.
    public var best: Double? { sorted.first }

    /// How far apart the figures lie: the distance from the smallest to the largest by the median; 0 for fewer than two.
    public var spread: Double {
        guard let median, median != 0, let first = sorted.first, let last = sorted.last else { return 0 }
        return (last - first) / median
    }
}

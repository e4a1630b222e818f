// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// One figure of a run: what was measured of whom.
public struct Figure: Sendable, Equatable {
    /// What was measured, such as `get-16KiB`.
    public let name: String
    /// Who was measured, such as `holdfast` or a peer.
    public let subject: String
    /// The figure; the median where there were several.
    public let value: Double
    /// Its unit: `ns`, `ms`, `bytes`, `ops`.
    public let unit: String
    /// The smallest of several figures; nil where there was one.
    public let best: Double?
    /// See ``Sample/spread``; nil where there was one figure.
    public let spread: Double?
    /// Places behind the point that JSON has at most.
    public let places: Int
    /// Why there is no figure; nil where there is one.
    public let skipped: String?

    /// A single figure.
    ///
    /// - Parameter places: 3 by default; more for ratios.
    public init(_ name: String, _ subject: String, _ value: Double, _ unit: String, places: Int = 3) {
        (self.name, self.subject, self.value, self.unit) = (name, subject, value, unit)
        (best, spread) = (nil, nil)
        self.places = places
        skipped = nil
    }

    /// A subject that was not measured, and why: one sentence without its full stop.
    public init(_ name: String, _ subject: String, skipped: String, _ unit: String) {
        (self.name, self.subject, self.unit, self.skipped) = (name, subject, unit, skipped)
        (value, best, spread, places) = (.nan, nil, nil, 3)
    }

    /// The median of several figures; nil without figures.
    public init?(_ name: String, _ subject: String, _ sample: Sample, _ unit: String) {
        guard let median = sample.median else { return nil }
        (self.name, self.subject, self.value, self.unit) = (name, subject, median, unit)
        best = sample.best
        places = 3
        skipped = nil
        spread = sample.sorted.count > 1 ? sample.spread : nil
    }
}

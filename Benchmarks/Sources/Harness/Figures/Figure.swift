// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// One figure of a run: the measurement and its subject.
public struct Figure: Sendable, Equatable {
    /// What was measured, such as `get-16KiB`.
    public let name: String
    /// The subject, such as `holdfast` or a peer.
    public let subject: String
    /// The value; the median of several figures.
    public let value: Double
    /// Its unit: `ns`, `ms`, `bytes`, `ops`.
    public let unit: String
    /// The smallest of several figures; nil for a single one.
    public let best: Double?
    /// See ``Sample/spread``; nil for a single figure.
    public let spread: Double?
    /// The maximum number of decimal places in JSON.
    public let places: Int
    /// Why there is no figure; nil if there is one.
    public let skipped: String?

    /// Creates a single figure.
    ///
    /// - Parameter places: 3 by default; more for ratios.
    public init(_ name: String, _ subject: String, _ value: Double, _ unit: String, places: Int = 3) {
        (self.name, self.subject, self.value, self.unit) = (name, subject, value, unit)
        (best, spread) = (nil, nil)
        self.places = places
        skipped = nil
    }

    /// Creates an entry for a subject that was not measured, with the reason: one sentence without its period.
    public init(_ name: String, _ subject: String, skipped: String, _ unit: String) {
        (self.name, self.subject, self.unit, self.skipped) = (name, subject, unit, skipped)
        (value, best, spread, places) = (.nan, nil, nil, 3)
    }

    /// Creates the median of several figures; nil without figures.
    public init?(_ name: String, _ subject: String, _ sample: Sample, _ unit: String) {
        guard let median = sample.median else { return nil }
        (self.name, self.subject, self.value, self.unit) = (name, subject, median, unit)
        best = sample.best
        places = 3
        skipped = nil
        spread = sample.sorted.count > 1 ? sample.spread : nil
    }
}

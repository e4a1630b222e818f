// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// When a second copy of a slow request is sent.
public struct HedgeRules: Sendable, Hashable {
    /// The share of answers that are faster than the delay before a hedge; 0.95 by default, from 0.5 up to but not including 1.
    public var percentile = 0.95

    /// The most copies in flight for one attempt, the first included; 2 by default, 2 to 5.
    public var maxCopies = 2

    /// The least delay before a hedge; 10 ms by default.
    public var minimumDelay: Duration = .milliseconds(10)

    /// How many answers must have been measured before anything is hedged; 100 by default.
    public var minimumSamples = 100

    /// The most hedges as a share of the attempts; 0.05 by default.
    public var maxExtraLoad = 0.05

    /// A delay that does not follow what is measured; nil, the default: the percentile.
    public var fixedDelay: Duration?

    /// The defaults.
    public init() {}
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// How a random sample spreads a backoff delay, so that clients that failed together do not return together.
///
/// Applied to a delay that is capped already; clamping after it would bring the herd together again at the cap.
public struct Jitter: Sendable, Hashable {
    private enum Kind: Sendable, Hashable {
        case none
        case full
        case equal
    }

    private let kind: Kind

    /// The delay is the ceiling itself.
    public static let none = Jitter(kind: .none)

    /// The delay is anywhere from the floor to the ceiling: the widest spread, and the default.
    public static let full = Jitter(kind: .full)

    /// The delay is anywhere in the upper half below the ceiling.
    public static let equal = Jitter(kind: .equal)

    /// Spreads one delay.
    ///
    /// - Parameters:
    ///   - ceiling: the capped delay in seconds, not negative.
    ///   - floor: the least delay in seconds; more than the ceiling counts as the ceiling.
    ///   - sample: from 0 up to but not including 1; anything else is clamped.
    /// - Returns: the delay in seconds, between floor and ceiling.
    package func spread(ceiling: Double, floor: Double, sample: Double) -> Double {
        let lowest = min(max(floor, 0), ceiling)
        let unit = sample > 0 ? min(sample, 1) : 0
        return switch kind {
        case .none: ceiling
        case .full: lowest + unit * (ceiling - lowest)
        case .equal: max(lowest, ceiling / 2 + unit * (ceiling / 2))
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// How a random sample spreads a backoff delay, so that clients that failed together do not return together.
///
/// All kinds spread below a ceiling that is capped already; clamping after the spread would bring the herd together again
/// at the cap. ``full`` is the best known choice; the others are for those who must agree with another client.
public struct Jitter: Sendable, Hashable {
    package enum Kind: Sendable, Hashable {
        case none
        case full
        case equal
        case proportional(Double)
        case decorrelated
        case pollyV2
    }

    package let kind: Kind

    /// The delay is the ceiling itself.
    public static let none = Jitter(kind: .none)

    /// The delay is anywhere from the floor to the ceiling, never above it: the widest spread, and the default.
    public static let full = Jitter(kind: .full)

    /// The delay is anywhere in the upper half below the ceiling.
    public static let equal = Jitter(kind: .equal)

    /// The delay is anywhere from the base to three times the delay before it, and at most the cap.
    ///
    /// The formula of the AWS Architecture Blog, min(cap, base + u (3 × last − base)), the first delay's last being the base.
    /// At the cap one delay in three is still spread below it. The multiplier of the backoff plays no part.
    public static let decorrelated = Jitter(kind: .decorrelated)

    /// The delays of Polly's second decorrelated formula: smooth, with medians near base × 1, 1, 2, 4, …
    ///
    /// g(t) = 2^t tanh √(4t), t = n + u, delay = (g(t) − g(t of the retry before)) × base / 1.4. As g grows, retry n reaches
    /// up to s = (g(n+1) − g(n−1)) × base / 1.4, and n−1 counts as g = 0 where n = 0. Where s exceeds the cap, the delay is
    /// multiplied by cap / s: the supremum becomes the cap and the spread stays. The backoff's multiplier plays no part.
    public static let pollyV2 = Jitter(kind: .pollyV2)

    /// The delay is the ceiling more or less a share of it: ceiling × (1 − share + 2 share u).
    ///
    /// It exceeds the cap by up to that share, because gRPC's A6 (± 20 %) and others define it so; ``full`` never does.
    ///
    /// - Parameter share: from 0 to 1; anything else is clamped.
    public static func proportional(_ share: Double) -> Jitter {
        Jitter(kind: .proportional(share > 0 ? min(share, 1) : 0))
    }

    /// Spreads one delay of a kind that remembers nothing; decorrelated kinds count as full here.
    ///
    /// - Parameters:
    ///   - ceiling: the capped delay in seconds, not negative.
    ///   - floor: the least delay in seconds; more than the ceiling counts as the ceiling.
    ///   - unit: from 0 to 1.
    /// - Returns: the delay in seconds, between floor and ceiling, or beyond it for ``proportional(_:)``.
    package func spread(ceiling: Double, floor: Double, unit: Double) -> Double {
        let lowest = min(max(floor, 0), ceiling)
        // The floor raises the lower end of the spread: lifting single delays up to it would gather them there.
        func between(_ lower: Double, _ upper: Double) -> Double {
            let start = max(lowest, lower)
            return start + unit * (upper - start)
        }
        return switch kind {
        case .none: ceiling
        case .full, .decorrelated, .pollyV2: between(lowest, ceiling)
        case .equal: between(ceiling / 2, ceiling)
        case .proportional(let share): between(ceiling * (1 - share), ceiling * (1 + share))
        }
    }
}

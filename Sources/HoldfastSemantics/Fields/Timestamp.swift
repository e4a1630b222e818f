// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// An instant as whole milliseconds since 1970-01-01T00:00:00Z.
///
/// This module reads no clock: every instant comes from the caller. All arithmetic saturates at `distantPast` and `distantFuture`,
/// so dates in a message never trap.
public struct Timestamp: Sendable, Hashable, Comparable {
    /// Milliseconds since 1970 in UTC, without leap seconds; negative before 1970.
    public let millisecondsSinceEpoch: Int64

    /// The earliest instant; arithmetic saturates here.
    public static let distantPast = Timestamp(millisecondsSinceEpoch: .min)

    /// The latest instant; arithmetic saturates here.
    public static let distantFuture = Timestamp(millisecondsSinceEpoch: .max)

    /// Creates an instant from milliseconds since 1970.
    ///
    /// - Parameter millisecondsSinceEpoch: any value.
    public init(millisecondsSinceEpoch: Int64) { self.millisecondsSinceEpoch = millisecondsSinceEpoch }

    /// Creates an instant from seconds since 1970.
    ///
    /// - Parameter secondsSinceEpoch: any value; saturates if it does not fit in milliseconds.
    public init(secondsSinceEpoch: Int64) {
        let (product, overflow) = secondsSinceEpoch.multipliedReportingOverflow(by: 1000)
        millisecondsSinceEpoch = overflow ? (secondsSinceEpoch < 0 ? .min : .max) : product
    }

    /// Seconds since 1970, rounded down.
    public var secondsSinceEpoch: Int64 {
        let quotient = millisecondsSinceEpoch / 1000
        return millisecondsSinceEpoch % 1000 < 0 ? quotient - 1 : quotient
    }

    /// The instant `duration` later, truncated to the millisecond; saturates at both ends.
    ///
    /// - Parameter duration: any length; a negative one goes back.
    /// - Returns: the new instant.
    public func advanced(by duration: Duration) -> Timestamp {
        let milliseconds = Int64(clamping: duration.attoseconds / Timestamp.attosecondsPerMillisecond)
        return advanced(byMilliseconds: milliseconds)
    }

    /// The duration from this instant to another one; negative if `other` is earlier.
    ///
    /// - Parameter other: the end of the duration.
    /// - Returns: the duration, saturated at the limits of 64-bit milliseconds.
    public func duration(to other: Timestamp) -> Duration {
        .milliseconds(millisecondsUntil(other))
    }

    /// The instant `duration` later; saturates at both ends.
    public static func + (instant: Timestamp, duration: Duration) -> Timestamp {
        instant.advanced(by: duration)
    }

    /// The duration from the right instant to the left one.
    public static func - (end: Timestamp, start: Timestamp) -> Duration {
        start.duration(to: end)
    }

    /// Whether the left instant is before the right one.
    public static func < (left: Timestamp, right: Timestamp) -> Bool {
        left.millisecondsSinceEpoch < right.millisecondsSinceEpoch
    }

    private static var attosecondsPerMillisecond: Int128 { 1_000_000_000_000_000 }

    package func advanced(byMilliseconds milliseconds: Int64) -> Timestamp {
        let (sum, overflow) = millisecondsSinceEpoch.addingReportingOverflow(milliseconds)
        guard overflow else { return Timestamp(millisecondsSinceEpoch: sum) }
        return milliseconds < 0 ? .distantPast : .distantFuture
    }

    package func millisecondsUntil(_ other: Timestamp) -> Int64 {
        let (difference, overflow) =
            other.millisecondsSinceEpoch.subtractingReportingOverflow(millisecondsSinceEpoch)
        guard overflow else { return difference }
        return other < self ? .min : .max
    }
}

/// An instant of a hybrid logical clock: it orders the requests of a cache even if wall clocks stand still or are set back.
///
/// Each instant is later than every instant issued or observed before it, and otherwise as close to the wall clock as possible
/// (Kulkarni et al., *Logical Physical Clocks*, OPODIS 2014). It is stored with a response, so that it orders the requests of
/// several processes, or of one process before and after a restart. It is not used for ages: those are computed from a
/// ``Timestamp``.
package struct HybridTimestamp: Sendable, Hashable, Comparable {
    /// Milliseconds since 1970 in the upper 48 bits, a counter in the lower 16; below 2⁶².
    package let rawValue: UInt64

    /// The first instant of a millisecond; before 1970 and after the year 4199, the first or last possible instant.
    package init(_ timestamp: Timestamp) {
        let milliseconds = UInt64(clamping: timestamp.millisecondsSinceEpoch)
        rawValue = min(milliseconds, HybridTimestamp.latest >> 16) << 16
    }

    /// A stored instant; nil for an impossible value.
    package init?(rawValue: UInt64) {
        guard rawValue <= HybridTimestamp.latest else { return nil }
        self.rawValue = rawValue
    }

    private init(clamping rawValue: UInt64) { self.rawValue = min(rawValue, HybridTimestamp.latest) }

    /// The instant of something that happens after this one, with the wall clock at `now`.
    package func next(at now: Timestamp) -> HybridTimestamp {
        max(HybridTimestamp(clamping: rawValue + 1), HybridTimestamp(now))
    }

    /// Whether the left instant is before the right one.
    package static func < (left: HybridTimestamp, right: HybridTimestamp) -> Bool {
        left.rawValue < right.rawValue
    }

    private static var latest: UInt64 { 1 << 62 - 1 }
}

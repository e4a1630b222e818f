// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// An instant as whole milliseconds since 1970-01-01T00:00:00Z.
///
/// The module reads no clock: every instant comes in from the caller. All arithmetic saturates at `distantPast` and
/// `distantFuture`, so dates out of a message can never trap.
public struct Timestamp: Sendable, Hashable, Comparable {
    /// Milliseconds since 1970 in UTC, leap seconds not counted; negative before 1970.
    public let millisecondsSinceEpoch: Int64

    /// The earliest instant there is; saturated arithmetic stops here.
    public static let distantPast = Timestamp(millisecondsSinceEpoch: .min)

    /// The latest instant there is; saturated arithmetic stops here.
    public static let distantFuture = Timestamp(millisecondsSinceEpoch: .max)

    /// Creates an instant from milliseconds since 1970.
    ///
    /// - Parameter millisecondsSinceEpoch: any value.
    public init(millisecondsSinceEpoch: Int64) {
        self.millisecondsSinceEpoch = millisecondsSinceEpoch
    }

    /// Creates an instant from seconds since 1970.
    ///
    /// - Parameter secondsSinceEpoch: any value; what does not fit in milliseconds saturates.
    public init(secondsSinceEpoch: Int64) {
        let (product, overflow) = secondsSinceEpoch.multipliedReportingOverflow(by: 1000)
        millisecondsSinceEpoch = overflow ? (secondsSinceEpoch < 0 ? .min : .max) : product
    }

    /// Seconds since 1970, rounded down.
    public var secondsSinceEpoch: Int64 {
        let quotient = millisecondsSinceEpoch / 1000
        return millisecondsSinceEpoch % 1000 < 0 ? quotient - 1 : quotient
    }

    /// The instant `duration` later, to the millisecond (the rest is cut off); saturates at both ends.
    ///
    /// - Parameter duration: any length, negative ones go back.
    /// - Returns: the moved instant.
    public func advanced(by duration: Duration) -> Timestamp {
        let milliseconds = Int64(clamping: duration.attoseconds / Timestamp.attosecondsPerMillisecond)
        return advanced(byMilliseconds: milliseconds)
    }

    /// The length from this instant to another one; negative when `other` is earlier.
    ///
    /// - Parameter other: the end of the length.
    /// - Returns: the length, saturated at the reach of 64-bit milliseconds.
    public func duration(to other: Timestamp) -> Duration {
        .milliseconds(millisecondsUntil(other))
    }

    /// The instant `duration` later; saturates at both ends.
    public static func + (instant: Timestamp, duration: Duration) -> Timestamp {
        instant.advanced(by: duration)
    }

    /// The length from the right instant to the left one.
    public static func - (end: Timestamp, start: Timestamp) -> Duration {
        start.duration(to: end)
    }

    /// Whether the left instant comes before the right one.
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

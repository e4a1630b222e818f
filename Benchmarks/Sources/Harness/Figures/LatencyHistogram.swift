// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Counts of durations in buckets whose width is at most 1/64 of their values, so that millions of durations take a fixed 30
/// KiB.
public struct LatencyHistogram: Sendable, Equatable {
    /// Buckets within one power of two; each smaller number of nanoseconds has its own bucket.
    private static let parts = 64
    private static let bucketCount = parts * 60

    private var buckets = [UInt64](repeating: 0, count: bucketCount)
    /// The number of durations.
    public private(set) var count: UInt64 = 0
    /// The longest duration, in nanoseconds, exactly.
    public private(set) var maximum: UInt64 = 0

    /// Creates an empty histogram.
    public init() {}

    /// Counts one duration.
    public mutating func note(nanoseconds: UInt64) {
        buckets[Self.bucket(nanoseconds)] += 1
        count += 1
        maximum = max(maximum, nanoseconds)
    }

    /// Adds the counts of another histogram.
    public mutating func merge(_ other: LatencyHistogram) {
        for place in buckets.indices { buckets[place] += other.buckets[place] }
        count += other.count
        maximum = max(maximum, other.maximum)
    }

    /// The smallest duration that at least `share` (0...1) of all do not exceed, as the upper end of its bucket; nil if empty.
    public func percentile(_ share: Double) -> UInt64? {
        guard count > 0 else { return nil }
        let rank = max(1, UInt64((min(max(share, 0), 1) * Double(count)).rounded(.up)))
        var seen: UInt64 = 0
        for place in buckets.indices {
            seen += buckets[place]
            if seen >= rank { return min(maximum, Self.upperEnd(place)) }
        }
        return maximum
    }

    private static func bucket(_ value: UInt64) -> Int {
        if value < UInt64(parts) { return Int(value) }
        let shift = 63 - value.leadingZeroBitCount - 6
        return min(bucketCount - 1, (shift + 1) * parts + Int(value >> UInt64(shift)) - parts)
    }

    private static func upperEnd(_ place: Int) -> UInt64 {
        if place < parts { return UInt64(place) }
        let shift = UInt64(place / parts - 1)
        let base = UInt64(place % parts + parts)
        return ((base + 1) << shift) &- 1
    }
}

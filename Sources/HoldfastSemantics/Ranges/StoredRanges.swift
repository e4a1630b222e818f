// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Which bytes of a representation are stored (RFC 9111 §3.3, §3.4).
///
/// Intervals are never empty, ascend, and neither overlap nor touch. There are at most ``maximumIntervals`` of them, so
/// every operation costs little.
public struct StoredRanges: Sendable, Hashable {
    /// The intervals stored, in ascending order.
    public private(set) var intervals: [Range<Int64>]

    /// The length of the whole; nil while it is not known.
    public private(set) var completeLength: Int64?

    /// How many intervals are kept; a part that would make one more is not taken.
    public static let maximumIntervals = 64

    /// Nothing stored of a whole of this length.
    ///
    /// - Parameter completeLength: nil when it is not known, which is also what a negative length means.
    public init(completeLength: Int64? = nil) {
        intervals = []
        self.completeLength = completeLength.flatMap { $0 < 0 ? nil : $0 }
    }

    /// Reads back what was written down elsewhere.
    ///
    /// - Parameters:
    ///   - intervals: any intervals, in any order.
    ///   - completeLength: the length of the whole, if known.
    /// - Returns: nil when they contradict each other or are too many; bytes from a disk may say anything.
    public init?(intervals: some Sequence<Range<Int64>>, completeLength: Int64?) {
        if let completeLength, completeLength < 0 { return nil }
        self.init(completeLength: completeLength)
        for interval in intervals {
            guard insert(interval) else { return nil }
        }
    }

    /// Adds an interval.
    ///
    /// - Parameters:
    ///   - interval: the positions that are stored from now on.
    ///   - completeLength: the length of the whole as the part gave it; nil when it gave none.
    /// - Returns: false, and nothing changes, when the interval is empty or negative, when the lengths contradict each
    ///   other, when an interval lies beyond the whole, and when there would be too many.
    public mutating func insert(_ interval: Range<Int64>, completeLength: Int64? = nil) -> Bool {
        guard !interval.isEmpty, interval.lowerBound >= 0 else { return false }
        if let known = self.completeLength, let completeLength, known != completeLength { return false }
        let length = self.completeLength ?? completeLength
        if let length, max(interval.upperBound, intervals.last?.upperBound ?? 0) > length { return false }
        // Intervals that touch the new one become one with it.
        let low = intervals.firstIndex { $0.upperBound >= interval.lowerBound } ?? intervals.endIndex
        let high = intervals.firstIndex { $0.lowerBound > interval.upperBound } ?? intervals.endIndex
        var merged = interval
        for old in intervals[low..<high] {
            merged = min(merged.lowerBound, old.lowerBound)..<max(merged.upperBound, old.upperBound)
        }
        guard intervals.count - (high - low) < StoredRanges.maximumIntervals else { return false }
        intervals.replaceSubrange(low..<high, with: [merged])
        self.completeLength = length
        return true
    }

    /// Whether every byte of the whole is stored, which takes a known length.
    public var isComplete: Bool {
        guard let completeLength else { return false }
        return covers(0..<completeLength)
    }

    /// Whether all these positions are stored; true for an empty range.
    public func covers(_ range: Range<Int64>) -> Bool {
        range.isEmpty || intervals.contains { $0.lowerBound <= range.lowerBound && range.upperBound <= $0.upperBound }
    }

    /// The positions within a range that are not stored, in ascending order.
    public func missing(within range: Range<Int64>) -> [Range<Int64>] {
        var gaps: [Range<Int64>] = []
        var position = range.lowerBound
        for interval in intervals where interval.upperBound > position && interval.lowerBound < range.upperBound {
            if interval.lowerBound > position { gaps.append(position..<interval.lowerBound) }
            position = interval.upperBound
        }
        if position < range.upperBound { gaps.append(position..<range.upperBound) }
        return gaps
    }

    /// The smallest single interval that holds all positions missing within a range; nil when none is.
    ///
    /// One request asks for one interval, since the answer to several is a multipart that is not combined.
    public func missingInterval(within range: Range<Int64>) -> Range<Int64>? {
        let gaps = missing(within: range)
        guard let first = gaps.first, let last = gaps.last else { return nil }
        return first.lowerBound..<last.upperBound
    }
}

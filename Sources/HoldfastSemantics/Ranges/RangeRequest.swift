// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The Range field of a request, in bytes (RFC 9110 §14.2).
public struct RangeRequest: Sendable, Hashable, CustomStringConvertible {
    /// The ranges in the order they were asked for; at least one and at most ``maximumRanges``.
    public let ranges: [ByteRange]

    /// How many ranges one field may hold; a field with more is ignored, as RFC 9110 §14.2 allows against attacks.
    public static let maximumRanges = 64

    /// Ranges closer to each other than this are answered as one, since a part of its own would cost more bytes
    /// (RFC 9110 §15.3.7.2).
    public static let partOverhead: Int64 = 80

    /// Reads the Range field of a request.
    ///
    /// - Parameter fields: the request's fields; nil when the field is absent or must be ignored, which is the case for
    ///   other units than bytes, anything malformed, more than one line, and too many ranges.
    public init?(_ fields: HeaderFields) {
        let values = fields.values(of: .range)
        guard values.count == 1, let value = values.first else { return nil }
        self.init(parsing: value)
    }

    /// Reads a field value such as `bytes=0-499, -500`; the unit's letter case does not matter.
    ///
    /// - Parameter value: any text; linear time. Nil where it is no valid range of bytes, or names too many.
    public init?(parsing value: String) {
        var scanner = FieldScanner(value)
        guard scanner.token()?.loweringASCII() == "bytes", scanner.consume(UInt8(ascii: "=")) else { return nil }
        var ranges: [ByteRange] = []
        while !scanner.isAtEnd {
            let member = scanner.text(upTo: UInt8(ascii: ","))
            if member.isEmpty { continue }
            guard ranges.count < RangeRequest.maximumRanges, let range = ByteRange(member) else { return nil }
            ranges.append(range)
        }
        guard !ranges.isEmpty else { return nil }
        self.ranges = ranges
    }

    /// Asks for one interval.
    ///
    /// - Parameter interval: the positions wanted; an upper bound beyond ``ByteRange/limit`` asks for all that follows.
    ///   Nil when it is empty or negative.
    public init?(_ interval: Range<Int64>) {
        guard !interval.isEmpty, interval.lowerBound >= 0 else { return nil }
        ranges =
            interval.upperBound > ByteRange.limit
            ? [.from(first: interval.lowerBound)]
            : [.bounded(first: interval.lowerBound, last: interval.upperBound - 1)]
    }

    /// The field value.
    public var description: String {
        "bytes=" + ranges.map(\.description).joined(separator: ",")
    }

    /// What is to be sent of content with a known length (RFC 9110 §14.2, §15.3.7.2).
    ///
    /// Ranges that cannot be satisfied are left out; those that overlap, touch, or lie less than ``partOverhead`` apart
    /// become one, so that no request can make the answer larger than the whole. The others keep the order asked for.
    ///
    /// - Parameter completeLength: the length of the whole.
    public func answer(completeLength: Int64) -> RangeAnswer {
        let wanted = ranges.compactMap { $0.resolved(completeLength: completeLength) }
        if let answer = RangeAnswer(intervals: RangeRequest.coalesced(wanted)) { return answer }
        // A suffix of nothing is satisfiable, but no Content-Range can say so (RFC 9110 §14.1.2, §14.4).
        let asksSuffix = ranges.contains {
            if case .suffix(let length) = $0 { length > 0 } else { false }
        }
        return completeLength <= 0 && asksSuffix ? .whole : .unsatisfiable
    }

    /// Makes one of intervals that overlap, touch, or lie less than `gap` apart, in the order of the first of each.
    package static func coalesced(_ intervals: [Range<Int64>], gap: Int64 = partOverhead) -> [Range<Int64>] {
        var merged: [(order: Int, interval: Range<Int64>)] = []
        let sorted = intervals.enumerated().sorted { $0.element.lowerBound < $1.element.lowerBound }
        for (order, interval) in sorted {
            guard let last = merged.last,
                interval.lowerBound <= last.interval.upperBound
                    || interval.lowerBound - last.interval.upperBound < gap
            else {
                merged.append((order, interval))
                continue
            }
            let end = max(last.interval.upperBound, interval.upperBound)
            merged[merged.count - 1] = (min(last.order, order), last.interval.lowerBound..<end)
        }
        return merged.sorted { $0.order < $1.order }.map(\.interval)
    }
}

/// What a Range field comes to, once the content is known (RFC 9110 §14.2).
public enum RangeAnswer: Sendable, Hashable {
    /// The whole content, as if no range had been asked for.
    case whole
    /// One interval: a 206 with Content-Range (RFC 9110 §15.3.7.1).
    case part(Range<Int64>)
    /// Several intervals, at least two: a 206 of multipart/byteranges (RFC 9110 §15.3.7.2).
    case parts([Range<Int64>])
    /// Nothing of what was asked for is there: a 416 (RFC 9110 §15.5.17).
    case unsatisfiable

    package init?(intervals: [Range<Int64>]) {
        guard let first = intervals.first else { return nil }
        self = intervals.count == 1 ? .part(first) : .parts(intervals)
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The Range field of a request, in bytes (RFC 9110 §14.2).
package struct RangeRequest: Sendable, Hashable, CustomStringConvertible {
    /// The ranges in the requested order; at least one and at most ``maximumRanges``.
    package let ranges: [ByteRange]

    /// The most ranges in one field; a field with more is ignored, as RFC 9110 §14.2 allows against attacks.
    package static let maximumRanges = 64

    /// Ranges closer together than this are sent as one, since a separate part would cost more bytes (RFC 9110 §15.3.7.2).
    package static let partOverhead: Int64 = 80

    /// Reads the Range field of a request.
    ///
    /// - Parameter fields: the request's fields. Nil if the field is absent or must be ignored: for units other than bytes, a
    ///   malformed value, more than one line, and too many ranges.
    package init?(_ fields: HeaderFields) {
        let values = fields.values(of: .range)
        guard values.count == 1, let value = values.first else { return nil }
        self.init(parsing: value)
    }

    /// Parses a field value such as `bytes=0-499, -500`; the unit is case-insensitive.
    ///
    /// - Parameter value: any text; linear time. Nil if it is not a valid range of bytes, or has too many ranges.
    package init?(parsing value: String) {
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
    /// - Parameter interval: the requested positions; an upper bound beyond ``ByteRange/limit`` requests everything from its start.
    ///   Nil if it is empty or negative.
    package init?(_ interval: Range<Int64>) {
        guard !interval.isEmpty, interval.lowerBound >= 0 else { return nil }
        ranges =
            interval.upperBound > ByteRange.limit
            ? [.from(first: interval.lowerBound)]
            : [.bounded(first: interval.lowerBound, last: interval.upperBound - 1)]
    }

    /// The field value.
    package var description: String {
        "bytes=" + ranges.map(\.description).joined(separator: ",")
    }

    /// What to send of content with a known length (RFC 9110 §14.2, §15.3.7.2).
    ///
    /// Unsatisfiable ranges are skipped. Ranges that overlap, touch, or are less than ``partOverhead`` apart are merged, so that no
    /// request can make the answer larger than the whole. The others keep the requested order.
    ///
    /// - Parameter completeLength: the length of the whole.
    package func answer(completeLength: Int64) -> RangeAnswer {
        let wanted = ranges.compactMap { $0.resolved(completeLength: completeLength) }
        if let answer = RangeAnswer(intervals: RangeRequest.coalesced(wanted)) { return answer }
        // A suffix of nothing is satisfiable, but no Content-Range can say so (RFC 9110 §14.1.2, §14.4).
        let asksSuffix = ranges.contains {
            if case .suffix(let length) = $0 { length > 0 } else { false }
        }
        return completeLength <= 0 && asksSuffix ? .whole : .unsatisfiable
    }

    /// Merges intervals that overlap, touch, or are less than `gap` apart, in the order of the first of each.
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

/// The result of a Range field for known content (RFC 9110 §14.2).
package enum RangeAnswer: Sendable, Hashable {
    /// The whole content, as if no range had been requested.
    case whole
    /// One interval: a 206 with Content-Range (RFC 9110 §15.3.7.1).
    case part(Range<Int64>)
    /// Several intervals, at least two: a 206 of multipart/byteranges (RFC 9110 §15.3.7.2).
    case parts([Range<Int64>])
    /// None of the requested bytes exist: a 416 (RFC 9110 §15.5.17).
    case unsatisfiable

    package init?(intervals: [Range<Int64>]) {
        guard let first = intervals.first else { return nil }
        self = intervals.count == 1 ? .part(first) : .parts(intervals)
    }
}

/// One member of a Range field in bytes (RFC 9110 §14.1.2).
///
/// Positions count from 0. Numbers too large for 64 bits are reduced to ``limit``, which no content reaches.
package enum ByteRange: Sendable, Hashable {
    /// From the first position through the last one, inclusive; the last is never before the first.
    case bounded(first: Int64, last: Int64)
    /// From the first position to the end.
    case from(first: Int64)
    /// The last bytes, this many.
    case suffix(length: Int64)

    /// The largest number in a range; one less than the 64-bit maximum, so that the position after it exists.
    package static let limit = Int64.max - 1

    /// Parses one range-spec such as `0-499`, `500-` or `-500`.
    ///
    /// - Parameter text: the member without surrounding whitespace. Nil if it is malformed or its last position is before its
    ///   first. Linear time.
    package init?(_ text: String) {
        let bytes = Array(text.utf8)
        guard let dash = bytes.firstIndex(of: UInt8(ascii: "-")) else { return nil }
        let before = bytes[..<dash]
        let after = bytes[(dash + 1)...]
        if before.isEmpty {
            guard let length = FieldScanner.number(after, limit: ByteRange.limit) else { return nil }
            self = .suffix(length: length)
            return
        }
        guard let first = FieldScanner.number(before, limit: ByteRange.limit) else { return nil }
        if after.isEmpty {
            self = .from(first: first)
            return
        }
        guard let last = FieldScanner.number(after, limit: ByteRange.limit), last >= first else { return nil }
        self = .bounded(first: first, last: last)
    }

    /// The requested bytes of content with a known length (RFC 9110 §14.1.2).
    ///
    /// - Parameter completeLength: the length of the whole; negative counts as 0.
    /// - Returns: a range within the whole that is not empty; nil if none of it exists.
    package func resolved(completeLength: Int64) -> Range<Int64>? {
        let end = max(0, completeLength)
        switch self {
        case .bounded(let first, let last):
            guard first >= 0, first < end, last >= first else { return nil }
            return first..<(last < end ? last + 1 : end)
        case .from(let first):
            return first >= 0 && first < end ? first..<end : nil
        case .suffix(let length):
            return length > 0 && end > 0 ? (end - min(length, end))..<end : nil
        }
    }

    /// The requested bytes if the length of the whole is unknown; nil unless both ends are given.
    package var bounds: Range<Int64>? {
        guard case .bounded(let first, let last) = self, first >= 0, last >= first, last <= ByteRange.limit else {
            return nil
        }
        return first..<(last + 1)
    }
}

extension ByteRange: CustomStringConvertible {
    /// The range as in a Range field, without the unit.
    package var description: String {
        switch self {
        case .bounded(let first, let last): "\(first)-\(last)"
        case .from(let first): "\(first)-"
        case .suffix(let length): "-\(length)"
        }
    }
}

/// The Content-Range field in bytes: the position of a part in the whole (RFC 9110 §14.4).
package struct ContentRange: Sendable, Hashable, CustomStringConvertible {
    /// The positions of the part, never empty; nil in a 416, which has none.
    package let interval: Range<Int64>?

    /// The length of the whole; nil if the sender did not know it.
    package let completeLength: Int64?

    /// Describes a part.
    ///
    /// - Parameters:
    ///   - interval: its positions. Nil if they are empty, negative, or beyond the whole.
    ///   - completeLength: the length of the whole, or nil if it is not known.
    package init?(_ interval: Range<Int64>, completeLength: Int64?) {
        guard !interval.isEmpty, interval.lowerBound >= 0, interval.upperBound <= ByteRange.limit,
            completeLength.map({ interval.upperBound <= $0 && $0 <= ByteRange.limit }) ?? true
        else { return nil }
        self.interval = interval
        self.completeLength = completeLength
    }

    /// Describes the whole in reply to a request for none of it, as in a 416.
    ///
    /// - Parameter completeLength: the length of the whole; negative counts as 0.
    package init(unsatisfiedOf completeLength: Int64) {
        interval = nil
        self.completeLength = max(0, completeLength)
    }

    /// Reads the Content-Range of a response; nil if it is absent, repeated or invalid.
    package init?(_ fields: HeaderFields) {
        let values = fields.values(of: .contentRange)
        guard values.count == 1, let value = values.first else { return nil }
        self.init(parsing: value)
    }

    /// Parses a field value: `bytes 0-499/1234`, `bytes 0-499/*` or `bytes */1234`.
    ///
    /// - Parameter value: any text; linear time. Nil for other units, a malformed value, numbers beyond ``ByteRange/limit``, a last
    ///   position before the first, and one beyond the whole.
    package init?(parsing value: String) {
        var scanner = FieldScanner(value)
        guard scanner.token()?.loweringASCII() == "bytes", scanner.consume(UInt8(ascii: " ")) else { return nil }
        scanner.skipWhitespace()
        let positions = scanner.text(upTo: UInt8(ascii: "/"))
        let rest = scanner.text(upTo: UInt8(ascii: "/"))
        guard scanner.isAtEnd, !rest.isEmpty, value.utf8.last != UInt8(ascii: "/") else { return nil }
        let completeLength = ContentRange.number(rest)
        if positions == "*" {
            guard let completeLength else { return nil }
            self.init(unsatisfiedOf: completeLength)
            return
        }
        guard completeLength != nil || rest == "*", !positions.utf8.contains(where: \.isOptionalWhitespace),
            case .bounded(let first, let last) = ByteRange(positions)
        else { return nil }
        self.init(first..<(last + 1), completeLength: completeLength)
    }

    /// The field value.
    package var description: String {
        let length = completeLength.map { String($0) } ?? "*"
        guard let interval else { return "bytes */\(length)" }
        return "bytes \(interval.lowerBound)-\(interval.upperBound - 1)/\(length)"
    }

    /// A number that was reduced does not count: it would put the part in the wrong place.
    private static func number(_ text: String) -> Int64? {
        FieldScanner.number(text.utf8, limit: ByteRange.limit).flatMap { $0 < ByteRange.limit ? $0 : nil }
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// How a stored response that may lack some bytes serves a request (RFC 9111 §3.3, §3.4).
///
/// Whether it matches, and whether it is fresh or must be validated, is decided before. A stale response that lacks bytes needs no
/// separate validation: requesting them with If-Range is one.
package enum PartialReuse: Sendable, Hashable {
    /// Everything that was requested is stored.
    case answer(RangeAnswer)
    /// Send the request with these fields in place of the caller's Range and conditions, and join the result.
    ///
    /// For a 206, ask ``PartCombination``; then decide again. Any other final status is the caller's answer, including a 200 that
    /// replaces what is stored. If the caller asked for a range, it is answered from that 200.
    case complete(missing: Range<Int64>, fields: HeaderFields)
    /// Send the request in its original form.
    case forward

    /// Decides for one request.
    ///
    /// - Parameters:
    ///   - request: the caller's request; check its conditions with ``Precondition`` first.
    ///   - stored: the response selected for it, with status 200 as in ``ReceivedPart/storedHead``.
    ///   - ranges: what is stored of its content.
    /// - Returns: an answer only from stored bytes; ranges that would be merged stay separate if only the bytes between them are
    ///   missing. At most one interval is requested, and never more bytes than the caller wants; none is requested without a strong
    ///   validator (RFC 9110 §15.3.7.3).
    package static func decide(request: RequestHead, stored: StoredResponse, ranges: StoredRanges) -> PartialReuse {
        let wanted = PartialContent.ranges(of: request, for: stored)
        guard let length = ranges.completeLength else {
            return decideWithoutLength(request, wanted: wanted, stored: stored, ranges: ranges)
        }
        let answer = wanted?.answer(completeLength: length) ?? .whole
        let intervals: [Range<Int64>] =
            switch answer {
            case .whole: [0..<length]
            case .part(let interval): [interval]
            case .parts(let several): several
            case .unsatisfiable: []
            }
        let missing = intervals.compactMap { ranges.missingInterval(within: $0) }
        guard let first = missing.min(by: { $0.lowerBound < $1.lowerBound }),
            let end = missing.map(\.upperBound).max()
        else { return .answer(answer) }
        let exact = RangeRequest.coalesced(
            wanted?.ranges.compactMap { $0.resolved(completeLength: length) } ?? [],
            gap: 0
        )
        if exact.allSatisfy(ranges.covers), let separate = RangeAnswer(intervals: exact) { return .answer(separate) }
        let gap = first.lowerBound..<end
        let budget = intervals.reduce(0) { $0 + ($1.upperBound - $1.lowerBound) }
        guard end - gap.lowerBound <= budget else { return .forward }
        return completing(gap, request: request, stored: stored)
    }

    /// Without the length of the whole, only ranges with both ends can be resolved.
    private static func decideWithoutLength(
        _ request: RequestHead,
        wanted: RangeRequest?,
        stored: StoredResponse,
        ranges: StoredRanges
    ) -> PartialReuse {
        guard let wanted else {
            // Everything from the first gap on: stored bytes after it may be sent a second time.
            let start = ranges.missing(within: 0..<Int64.max).first?.lowerBound ?? 0
            return start > 0 ? completing(start..<Int64.max, request: request, stored: stored) : .forward
        }
        let bounds = wanted.ranges.compactMap(\.bounds)
        guard bounds.count == wanted.ranges.count else { return .forward }
        let intervals = RangeRequest.coalesced(bounds)
        for candidate in [intervals, RangeRequest.coalesced(bounds, gap: 0)] {
            guard candidate.allSatisfy(ranges.covers), let answer = RangeAnswer(intervals: candidate) else { continue }
            return .answer(answer)
        }
        guard intervals.count == 1, let only = intervals.first, let gap = ranges.missingInterval(within: only) else {
            return .forward
        }
        return completing(gap, request: request, stored: stored)
    }

    private static func completing(
        _ gap: Range<Int64>,
        request: RequestHead,
        stored: StoredResponse
    ) -> PartialReuse {
        guard request.method == .get, stored.method == .get, let validator = StrongValidator(stored),
            let range = RangeRequest(gap)
        else { return .forward }
        // The answer would not say which coding its bytes have, and a date does not tell codings apart.
        if case .lastModified = validator, stored.head.fields.contains(.contentEncoding) { return .forward }
        return .complete(missing: gap, fields: [.range: range.description, .ifRange: validator.fieldValue])
    }
}

/// Which bytes of a representation are stored (RFC 9111 §3.3, §3.4).
///
/// Intervals are ascending, never empty, and neither overlap nor touch. There are at most ``maximumIntervals`` of them, so every
/// operation is cheap.
package struct StoredRanges: Sendable, Hashable {
    /// The intervals stored, in ascending order.
    package private(set) var intervals: [Range<Int64>]

    /// The length of the whole; nil while it is unknown.
    package private(set) var completeLength: Int64?

    /// The most intervals that are kept; a part that would add another one is refused.
    package static let maximumIntervals = 64

    /// Nothing stored of a whole of this length.
    ///
    /// - Parameter completeLength: nil if it is not known; a negative length means the same.
    package init(completeLength: Int64? = nil) {
        intervals = []
        self.completeLength = completeLength.flatMap { $0 < 0 ? nil : $0 }
    }

    /// Restores ranges that were written elsewhere.
    ///
    /// - Parameters:
    ///   - intervals: any intervals, in any order.
    ///   - completeLength: the length of the whole, if known.
    /// - Returns: nil if they contradict each other or there are too many; bytes from a disk may say anything.
    package init?(intervals: some Sequence<Range<Int64>>, completeLength: Int64?) {
        if let completeLength, completeLength < 0 { return nil }
        self.init(completeLength: completeLength)
        for interval in intervals {
            guard insert(interval) else { return nil }
        }
    }

    /// Adds an interval.
    ///
    /// - Parameters:
    ///   - interval: the positions that are now stored.
    ///   - completeLength: the length of the whole according to the part; nil if it gives none.
    /// - Returns: false, without any change, if the interval is empty or negative, if the lengths contradict each other, if an
    ///   interval is beyond the whole, or if there would be too many.
    package mutating func insert(_ interval: Range<Int64>, completeLength: Int64? = nil) -> Bool {
        guard !interval.isEmpty, interval.lowerBound >= 0 else { return false }
        if let known = self.completeLength, let completeLength, known != completeLength { return false }
        let length = self.completeLength ?? completeLength
        if let length, max(interval.upperBound, intervals.last?.upperBound ?? 0) > length { return false }
        // Intervals that touch the new one are merged with it.
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

    /// Whether every byte of the whole is stored; false if the length is unknown.
    package var isComplete: Bool {
        guard let completeLength else { return false }
        return covers(0..<completeLength)
    }

    /// Whether all these positions are stored; true for an empty range.
    package func covers(_ range: Range<Int64>) -> Bool {
        range.isEmpty || intervals.contains { $0.lowerBound <= range.lowerBound && range.upperBound <= $0.upperBound }
    }

    /// The positions within a range that are not stored, in ascending order.
    package func missing(within range: Range<Int64>) -> [Range<Int64>] {
        var gaps: [Range<Int64>] = []
        var position = range.lowerBound
        for interval in intervals where interval.upperBound > position && interval.lowerBound < range.upperBound {
            if interval.lowerBound > position { gaps.append(position..<interval.lowerBound) }
            position = interval.upperBound
        }
        if position < range.upperBound { gaps.append(position..<range.upperBound) }
        return gaps
    }

    /// The smallest single interval that contains all missing positions within a range; nil if none are missing.
    ///
    /// A request asks for one interval, since the multipart answer to several is not combined.
    package func missingInterval(within range: Range<Int64>) -> Range<Int64>? {
        let gaps = missing(within: range)
        guard let first = gaps.first, let last = gaps.last else { return nil }
        return first.lowerBound..<last.upperBound
    }
}

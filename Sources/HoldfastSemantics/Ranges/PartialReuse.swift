// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// How a stored response of which some bytes may be missing serves a request (RFC 9111 §3.3, §3.4).
///
/// Whether it matches, and is fresh or must be validated, is judged before. A stale one that lacks bytes needs no
/// validation of its own: asking for them with If-Range is one.
public enum PartialReuse: Sendable, Hashable {
    /// All that is asked for is stored.
    case answer(RangeAnswer)
    /// Send the request with these fields in place of the caller's Range and conditions, and join what comes.
    ///
    /// A 206 is judged by ``PartCombination``; after it, decide anew. Any other final status is the caller's answer, a
    /// 200 that replaces what is stored included; where the caller had asked for a range, it is answered from that 200.
    case complete(missing: Range<Int64>, fields: HeaderFields)
    /// Send the request as it came.
    case forward

    /// Decides for one request.
    ///
    /// - Parameters:
    ///   - request: the caller's request; its conditions are judged by ``Precondition`` first.
    ///   - stored: the response selected for it, with status 200 as ``ReceivedPart/storedHead`` has it.
    ///   - ranges: what is stored of its content.
    /// - Returns: an answer only from bytes that are stored; ranges that would be answered as one stay apart where only
    ///   the bytes between them are missing. One interval is asked for, and never more bytes than the caller wants;
    ///   without a strong validator nothing is (RFC 9110 §15.3.7.3).
    public static func decide(request: RequestHead, stored: StoredResponse, ranges: StoredRanges) -> PartialReuse {
        let wanted = PartialContent.ranges(of: request, for: stored)
        guard let length = ranges.completeLength else {
            return decideWithoutLength(request, wanted, stored, ranges)
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
        return completing(gap, request, stored)
    }

    /// Without the length of the whole only ranges with both ends given can be resolved.
    private static func decideWithoutLength(
        _ request: RequestHead,
        _ wanted: RangeRequest?,
        _ stored: StoredResponse,
        _ ranges: StoredRanges
    ) -> PartialReuse {
        guard let wanted else {
            // Everything from the first gap on: what is stored behind it may come a second time.
            let start = ranges.missing(within: 0..<Int64.max).first?.lowerBound ?? 0
            return start > 0 ? completing(start..<Int64.max, request, stored) : .forward
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
        return completing(gap, request, stored)
    }

    private static func completing(
        _ gap: Range<Int64>,
        _ request: RequestHead,
        _ stored: StoredResponse
    ) -> PartialReuse {
        guard request.method == .get, stored.method == .get, let validator = StrongValidator(stored),
            let range = RangeRequest(gap)
        else { return .forward }
        // The answer would not say what coding its bytes have, and a date does not tell codings apart.
        if case .lastModified = validator, stored.head.fields.contains(.contentEncoding) { return .forward }
        return .complete(missing: gap, fields: [.range: range.description, .ifRange: validator.fieldValue])
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Parts of a stored response, answered to a request with Range (RFC 9110 §14.2, §15.3.7).
///
/// The caller's other conditions come first: see ``Precondition`` (RFC 9110 §13.2.2).
public enum PartialContent {
    /// The ranges that count for a request and a stored response; nil where the whole is to be answered.
    ///
    /// Range counts only for GET, only where the whole answer would be a 200, and only if If-Range holds. Content whose
    /// coding was undone is answered whole: positions count in bytes that are no longer there.
    ///
    /// - Parameters:
    ///   - request: the caller's request.
    ///   - stored: the response selected for it.
    public static func ranges(of request: RequestHead, for stored: StoredResponse) -> RangeRequest? {
        guard request.method == .get, stored.method == .get, stored.head.status == .ok, !stored.contentDecoded,
            let ranges = RangeRequest(request.fields), StrongValidator.ifRangeHolds(request.fields, for: stored)
        else { return nil }
        return ranges
    }

    /// What of a complete stored response answers a request.
    ///
    /// - Parameters:
    ///   - request: the caller's request.
    ///   - stored: the response selected for it, its content stored whole.
    ///   - completeLength: the length of that content.
    /// - Returns: the answer; its head comes from the functions below, that of the whole from
    ///   ``StoredResponse/responseHead(now:)``.
    public static func answer(
        request: RequestHead,
        stored: StoredResponse,
        completeLength: Int64
    ) -> RangeAnswer {
        ranges(of: request, for: stored)?.answer(completeLength: completeLength) ?? .whole
    }

    /// The head of a 206 with one part (RFC 9110 §15.3.7.1).
    ///
    /// - Parameters:
    ///   - stored: the response the part is taken from.
    ///   - range: where the part stands.
    ///   - now: the time of the answer.
    /// - Returns: all stored fields but those that speak of the whole content, with Content-Range, Content-Length and
    ///   Age.
    public static func head(of stored: StoredResponse, range: ContentRange, now: Timestamp) -> ResponseHead {
        var fields = partFields(stored, now: now)
        let length = range.interval.map { $0.upperBound - $0.lowerBound } ?? 0
        fields[.contentLength] = String(length)
        fields[.contentRange] = range.description
        return ResponseHead(status: .partialContent, fields: fields)
    }

    /// The head of a 206 with several parts: each says its own range, so the head says none (RFC 9110 §15.3.7.2).
    ///
    /// - Parameters:
    ///   - stored: the response the parts are taken from.
    ///   - body: the framing of its content.
    ///   - now: the time of the answer.
    public static func head(of stored: StoredResponse, body: MultipartByteRanges, now: Timestamp) -> ResponseHead {
        var fields = partFields(stored, now: now)
        fields[.contentLength] = String(body.contentLength)
        fields[.contentType] = body.contentType
        return ResponseHead(status: .partialContent, fields: fields)
    }

    /// The head of a 416, whose content is empty (RFC 9110 §15.5.17).
    ///
    /// - Parameters:
    ///   - completeLength: the length of the whole.
    ///   - now: the time of the answer, which the cache makes itself.
    public static func unsatisfiableHead(completeLength: Int64, now: Timestamp) -> ResponseHead {
        ResponseHead(
            status: .rangeNotSatisfiable,
            fields: [
                .date: HTTPDate(now).description,
                .contentRange: ContentRange(unsatisfiedOf: completeLength).description,
                .contentLength: "0",
            ]
        )
    }

    /// Fields about the bytes of one message, which another part of the content does not share (RFC 9530 §2).
    package static let messageBound: Set<FieldName> = [
        .contentLength, .contentRange, "Content-Digest", "Content-MD5",
    ]

    private static func partFields(_ stored: StoredResponse, now: Timestamp) -> HeaderFields {
        var fields = stored.responseHead(now: now).fields
        fields.removeAll { messageBound.contains($0.name) }
        return fields
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Parts of a stored response, as answers to a request with Range (RFC 9110 §14.2, §15.3.7).
///
/// Check the caller's other conditions first: see ``Precondition`` (RFC 9110 §13.2.2).
package enum PartialContent {
    /// The ranges that apply to a request and a stored response; nil if the whole content must be sent.
    ///
    /// Range applies only to GET, only if the whole answer would be a 200, and only if If-Range matches. Decoded content is sent
    /// whole: positions count bytes that no longer exist.
    ///
    /// - Parameters:
    ///   - request: the caller's request.
    ///   - stored: the response selected for it.
    package static func ranges(of request: RequestHead, for stored: StoredResponse) -> RangeRequest? {
        guard request.method == .get, stored.method == .get, stored.head.status == .ok, !stored.contentDecoded,
            let ranges = RangeRequest(request.fields), StrongValidator.ifRangeHolds(request.fields, for: stored)
        else { return nil }
        return ranges
    }

    /// What part of a complete stored response answers a request.
    ///
    /// - Parameters:
    ///   - request: the caller's request.
    ///   - stored: the response selected for it, with its whole content stored.
    ///   - completeLength: the length of that content.
    /// - Returns: the answer. Its head comes from the functions below, or from ``StoredResponse/responseHead(now:)`` for the whole.
    package static func answer(
        request: RequestHead,
        stored: StoredResponse,
        completeLength: Int64
    ) -> RangeAnswer {
        ranges(of: request, for: stored)?.answer(completeLength: completeLength) ?? .whole
    }

    /// The head of a 206 with one part (RFC 9110 §15.3.7.1).
    ///
    /// - Parameters:
    ///   - stored: the response that the part is taken from.
    ///   - range: the position of the part.
    ///   - now: the time of the answer.
    /// - Returns: all stored fields except those about the whole content, with Content-Range, Content-Length and Age.
    package static func head(of stored: StoredResponse, range: ContentRange, now: Timestamp) -> ResponseHead {
        var fields = partFields(stored, now: now)
        let length = range.interval.map { $0.upperBound - $0.lowerBound } ?? 0
        fields[.contentLength] = String(length)
        fields[.contentRange] = range.description
        return ResponseHead(status: .partialContent, fields: fields)
    }

    /// The head of a 206 with several parts: each part has its own range, so the head has none (RFC 9110 §15.3.7.2).
    ///
    /// - Parameters:
    ///   - stored: the response that the parts are taken from.
    ///   - body: the framing of its content.
    ///   - now: the time of the answer.
    package static func head(of stored: StoredResponse, body: MultipartByteRanges, now: Timestamp) -> ResponseHead {
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
    package static func unsatisfiableHead(completeLength: Int64, now: Timestamp) -> ResponseHead {
        ResponseHead(
            status: .rangeNotSatisfiable,
            fields: [
                .date: HTTPDate(now).description,
                .contentRange: ContentRange(unsatisfiedOf: completeLength).description,
                .contentLength: "0",
            ]
        )
    }

    /// Fields about the bytes of one message, which do not apply to another part of the content (RFC 9530 §2).
    package static let messageBound: Set<FieldName> = [
        .contentLength, .contentRange, "Content-Digest", "Content-MD5",
    ]

    private static func partFields(_ stored: StoredResponse, now: Timestamp) -> HeaderFields {
        var fields = stored.responseHead(now: now).fields
        fields.removeAll { messageBound.contains($0.name) }
        return fields
    }
}

/// The content of a 206 with several parts, as pieces to send one after another (RFC 9110 §14.6).
///
/// It neither holds nor copies stored content, so the content can be streamed; the length is known in advance.
package struct MultipartByteRanges: Sendable, Hashable {
    /// A stretch of the content.
    package enum Piece: Sendable, Hashable {
        /// These bytes.
        case literal([UInt8])
        /// The stored bytes at these positions.
        case stored(Range<Int64>)
    }

    /// The text between the parts, without its dashes.
    package let boundary: String

    /// The pieces in the order of sending.
    package let pieces: [Piece]

    /// The length of all pieces in bytes; saturates if 64 bits do not suffice.
    package let contentLength: Int64

    /// Frames parts of one content.
    ///
    /// - Parameters:
    ///   - intervals: the parts, in the order of sending; empty or negative ones, and those beyond the whole, are skipped.
    ///   - completeLength: the length of the whole; nil if it is not known.
    ///   - contentType: the stored Content-Type, which each part repeats; nil if there is none.
    ///   - seed: the source of the boundary; a random number, so that no content can contain the boundary on purpose.
    package init(intervals: [Range<Int64>], completeLength: Int64?, contentType: String?, seed: UInt64) {
        let boundary = MultipartByteRanges.boundary(seed: seed)
        var pieces: [Piece] = []
        var length: Int64 = 0
        func add(_ count: Int64) {
            let (sum, overflow) = length.addingReportingOverflow(count)
            length = overflow ? .max : sum
        }
        for interval in intervals {
            guard let range = ContentRange(interval, completeLength: completeLength) else { continue }
            var lead = pieces.isEmpty ? "" : "\r\n"
            lead += "--\(boundary)\r\n"
            if let contentType { lead += HeaderFields.Line(name: .contentType, value: contentType).text }
            lead += HeaderFields.Line(name: .contentRange, value: range.description).text
            lead += "\r\n"
            let bytes = Array(lead.utf8)
            pieces += [.literal(bytes), .stored(interval)]
            add(Int64(bytes.count))
            add(interval.upperBound - interval.lowerBound)
        }
        let end = Array("\(pieces.isEmpty ? "" : "\r\n")--\(boundary)--\r\n".utf8)
        pieces.append(.literal(end))
        add(Int64(end.count))
        self.boundary = boundary
        self.pieces = pieces
        contentLength = length
    }

    /// The Content-Type of the whole message.
    package var contentType: String { "multipart/byteranges; boundary=\(boundary)" }

    /// Whether a response says that its content is framed like this.
    ///
    /// - Parameter fields: the response's fields.
    package static func isContent(of fields: HeaderFields) -> Bool {
        fields.values(of: .contentType).contains { value in
            var scanner = FieldScanner(value)
            return scanner.text(upTo: UInt8(ascii: ";")).loweringASCII() == "multipart/byteranges"
        }
    }

    /// Sixteen hexadecimal digits after a name; well within the 70 characters of a boundary (RFC 2046 §5.1.1).
    private static func boundary(seed: UInt64) -> String {
        let digits = String(seed, radix: 16)
        return "holdfast-" + String(repeating: "0", count: 16 - digits.utf8.count) + digits
    }
}

extension HeaderFields.Line {
    fileprivate var text: String { "\(name.rawName): \(value)\r\n" }
}

/// A part of a representation as received, ready to be stored (RFC 9111 §3.3).
///
/// There is no such value for a 206 that must not be stored. Whether the response may be stored at all is decided as for a 200:
/// pass ``storedHead`` to ``Storability/decide(request:response:directive:options:isPersonal:hasContentKey:)``.
package struct ReceivedPart: Sendable, Hashable {
    /// The positions received.
    package let interval: Range<Int64>

    /// The length of the whole; nil if it is not known.
    package let completeLength: Int64?

    /// What parts of the same representation must have in common; nil if the part cannot be combined.
    package let validator: StrongValidator?

    /// The head under which the part is stored: that of an incomplete 200 (RFC 9111 §3.3).
    ///
    /// Content-Length is that of the whole, or absent.
    /// ``FieldUpdate/storable(_:contentDecoded:mode:targetedFields:ignoredCookies:)`` must still be applied to it.
    package let storedHead: ResponseHead

    /// Reads the head of a 206.
    ///
    /// - Parameters:
    ///   - response: the head as received.
    ///   - request: its request.
    ///   - receivedAt: when it arrived.
    ///   - contentDecoded: whether a content coding was decoded.
    /// - Returns: nil for any other status or method, a part that was not requested, decoded content, several parts in one message,
    ///   and a missing or invalid Content-Range.
    package init?(_ response: ResponseHead, to request: RequestHead, receivedAt: Timestamp, contentDecoded: Bool) {
        guard response.status == .partialContent, request.method == .get, request.fields.contains(.range),
            !contentDecoded, !MultipartByteRanges.isContent(of: response.fields),
            let range = ContentRange(response.fields), let interval = range.interval
        else { return nil }
        // Two different lengths leave open where the bytes belong, so such a part is never combined.
        let agrees = response.contentLength.map { Int64($0) == interval.upperBound - interval.lowerBound } ?? true
        self.init(
            interval: interval,
            completeLength: range.completeLength,
            validator: agrees
                ? StrongValidator(response, receivedAt: receivedAt, contentDecoded: contentDecoded) : nil,
            head: response
        )
    }

    /// The beginning of a 200 whose content broke off (RFC 9111 §3.3).
    ///
    /// - Parameters:
    ///   - response: the head as received.
    ///   - request: its request.
    ///   - receivedAt: when it arrived.
    ///   - contentDecoded: whether a content coding was decoded.
    ///   - count: the bytes received.
    /// - Returns: nil unless the rest can be requested: this requires a GET, a strong validator, bytes as the origin sent them,
    ///   and, if there is a Content-Length, one larger than `count`.
    package init?(
        incomplete response: ResponseHead,
        to request: RequestHead,
        receivedAt: Timestamp,
        contentDecoded: Bool,
        count: Int64
    ) {
        guard response.status == .ok, request.method == .get, count > 0, count <= ByteRange.limit,
            let validator = StrongValidator(response, receivedAt: receivedAt, contentDecoded: contentDecoded)
        else { return nil }
        let length = response.contentLength.map { Int64($0) }
        // An unreadable Content-Length leaves open what the bytes were a part of.
        guard length.map({ $0 > count }) ?? !response.fields.contains(.contentLength) else { return nil }
        self.init(interval: 0..<count, completeLength: length, validator: validator, head: response)
    }

    /// The part after its content ended.
    ///
    /// - Parameters:
    ///   - count: the bytes received.
    ///   - isWhole: whether the message reached its framed end, instead of breaking off.
    /// - Returns: the part as far as it was received; nil if nothing or more than announced was received. If the message ended
    ///   properly but is shorter than its Content-Range, the server counts wrong: its first position is trusted, the whole ends
    ///   where the content ended, and the part loses its validators, so that it is never combined with anything (RFC 9110 §14.4).
    package func ended(after count: Int64, isWhole: Bool) -> ReceivedPart? {
        let announced = interval.upperBound - interval.lowerBound
        guard count > 0, count <= announced else { return nil }
        if count == announced { return self }
        let end = interval.lowerBound + count
        let reachedEnd = completeLength == interval.upperBound
        var head = storedHead
        if isWhole {
            // Without validators, nothing stored later can be combined with it.
            head.fields.removeAll(.eTag)
            head.fields.removeAll(.lastModified)
        }
        return ReceivedPart(
            interval: interval.lowerBound..<end,
            completeLength: isWhole && reachedEnd ? end : completeLength,
            validator: isWhole ? nil : validator,
            head: head
        )
    }

    /// What is stored if this part is the first or only one.
    package var ranges: StoredRanges {
        var ranges = StoredRanges(completeLength: completeLength)
        _ = ranges.insert(interval)
        return ranges
    }

    private init(interval: Range<Int64>, completeLength: Int64?, validator: StrongValidator?, head: ResponseHead) {
        self.interval = interval
        self.completeLength = completeLength
        self.validator = validator
        var fields = head.fields
        // What an interrupted 200 says about its whole content stays true; what a 206 says about its own does not.
        fields.removeAll { head.status == .partialContent && PartialContent.messageBound.contains($0.name) }
        fields[.contentLength] = completeLength.map { String($0) }
        storedHead = ResponseHead(status: .ok, fields: fields)
    }
}

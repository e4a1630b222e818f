// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// A part of a representation as it was received, fit to be stored (RFC 9111 §3.3).
///
/// A 206 that may not be stored makes no such value. Whether the response may be stored at all is judged as for a 200:
/// give ``storedHead`` to ``Storability/judge(request:response:directive:options:isPersonal:hasContentKey:)``.
public struct ReceivedPart: Sendable, Hashable {
    /// The positions received.
    public let interval: Range<Int64>

    /// The length of the whole; nil when it is not known.
    public let completeLength: Int64?

    /// What parts of the same representation must have in common; nil where the part can only stand alone.
    public let validator: StrongValidator?

    /// The head to store the part under: that of an incomplete 200 (RFC 9111 §3.3).
    ///
    /// Content-Length is that of the whole, or absent. ``FieldUpdate/storable(_:contentDecoded:mode:targetedFields:ignoredCookies:)`` has yet to
    /// strip it.
    public let storedHead: ResponseHead

    /// Reads the head of a 206.
    ///
    /// - Parameters:
    ///   - response: the head as it came.
    ///   - request: the request it answers.
    ///   - receivedAt: when it came.
    ///   - contentDecoded: whether a content coding was undone.
    /// - Returns: nil for any other status or method, an unasked part, content that was decoded, several parts in one
    ///   message, and a Content-Range that is missing or invalid.
    public init?(_ response: ResponseHead, to request: RequestHead, receivedAt: Timestamp, contentDecoded: Bool) {
        guard response.status == .partialContent, request.method == .get, request.fields.contains(.range),
            !contentDecoded, !MultipartByteRanges.isContent(of: response.fields),
            let range = ContentRange(response.fields), let interval = range.interval
        else { return nil }
        // Two lengths that differ leave open where the bytes belong, so such a part is never combined.
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
    ///   - response: the head as it came.
    ///   - request: the request it answers.
    ///   - receivedAt: when it came.
    ///   - contentDecoded: whether a content coding was undone.
    ///   - count: the bytes that came.
    /// - Returns: nil unless the rest could be asked for: for that it takes a GET, a strong validator, bytes as
    ///   the origin sent them, and a Content-Length, if there is one, of more than what came.
    public init?(
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
        // A Content-Length that cannot be read leaves open what the bytes were a part of.
        guard length.map({ $0 > count }) ?? !response.fields.contains(.contentLength) else { return nil }
        self.init(interval: 0..<count, completeLength: length, validator: validator, head: response)
    }

    /// The part after its content ended.
    ///
    /// - Parameters:
    ///   - count: the bytes that came.
    ///   - isWhole: whether the message was framed to its end, rather than broken off.
    /// - Returns: the part as far as it came; nil when nothing came or more than was announced. Content that is framed
    ///   whole and yet shorter than its Content-Range says comes from a server that miscounts: its first position is
    ///   believed, the whole ends where the content ended, and it loses its validators, so that it is never combined
    ///   with anything (RFC 9110 §14.4).
    public func ended(after count: Int64, isWhole: Bool) -> ReceivedPart? {
        let announced = interval.upperBound - interval.lowerBound
        guard count > 0, count <= announced else { return nil }
        if count == announced { return self }
        let end = interval.lowerBound + count
        let reachedEnd = completeLength == interval.upperBound
        var head = storedHead
        if isWhole {
            // Without validators nothing stored later can take it for a part of itself.
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

    /// What is stored when this part is the first or only one.
    public var ranges: StoredRanges {
        var ranges = StoredRanges(completeLength: completeLength)
        _ = ranges.insert(interval)
        return ranges
    }

    private init(interval: Range<Int64>, completeLength: Int64?, validator: StrongValidator?, head: ResponseHead) {
        self.interval = interval
        self.completeLength = completeLength
        self.validator = validator
        var fields = head.fields
        // What a broken 200 says of its whole content stays true; what a 206 says of its own does not.
        fields.removeAll { head.status == .partialContent && PartialContent.messageBound.contains($0.name) }
        fields[.contentLength] = completeLength.map { String($0) }
        storedHead = ResponseHead(status: .ok, fields: fields)
    }
}

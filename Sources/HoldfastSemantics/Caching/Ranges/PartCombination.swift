// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// A stored response that may lack some bytes, joined with another part (RFC 9111 §3.4).
package struct PartCombination: Sendable, Hashable {
    /// The stored response with the fields of the newest part.
    package let response: StoredResponse

    /// What is stored of its content, including the new part.
    package let ranges: StoredRanges

    /// The positions of the new part's bytes.
    package let interval: Range<Int64>

    /// Joins a part to a stored response.
    ///
    /// Both must have the same strong validator (RFC 9110 §15.3.7.3), no two content codings, and lengths that agree. The part's
    /// fields replace the stored ones as a 304's do, except those about its own bytes. Content-Length becomes that of the whole,
    /// and the age is counted from the new part.
    ///
    /// - Parameters:
    ///   - part: the part; called once before its content arrives, to decide whether to take it, and again after its end.
    ///   - head: the head of its 206.
    ///   - stored: the stored response.
    ///   - storedRanges: what is stored of its content.
    ///   - asked: the interval, if the cache itself requested one with Range: the part must begin there and not go beyond it. Nil
    ///     for a caller's own request.
    ///   - requestTime: when the request was sent.
    ///   - responseTime: when the 206 arrived.
    ///   - mode: for whom the cache stores.
    ///   - ignoredCookies: cookies that are never stored; none by default.
    /// - Returns: nil if they do not belong together. The part may then replace what is stored but not join it, and a request that
    ///   the cache turned into a partial one must be sent again in its original form.
    package init?(
        of part: ReceivedPart,
        head: ResponseHead,
        with stored: StoredResponse,
        ranges storedRanges: StoredRanges,
        asked: Range<Int64>?,
        requestTime: Timestamp,
        responseTime: Timestamp,
        mode: CacheOptions.Mode,
        ignoredCookies: IgnoredCookies = .none
    ) {
        guard stored.head.status == .ok, stored.method == .get, head.status == .partialContent,
            let validator = StrongValidator(stored), part.validator == validator,
            PartCombination.isSameCoding(head, as: stored.head, by: validator)
        else { return nil }
        if let asked {
            guard part.interval.lowerBound == asked.lowerBound, part.interval.upperBound <= asked.upperBound else {
                return nil
            }
        }
        var ranges = storedRanges
        guard ranges.insert(part.interval, completeLength: part.completeLength) else { return nil }
        var update = head
        update.fields.removeAll { PartialContent.messageBound.contains($0.name) }
        let freshened = stored.freshened(
            by: update,
            requestTime: requestTime,
            responseTime: responseTime,
            mode: mode,
            ignoredCookies: ignoredCookies
        )
        var fields = freshened.head.fields
        fields.removeAll(.contentRange)
        fields[.contentLength] = ranges.completeLength.map { String($0) }
        response = StoredResponse(
            freshened.facts,
            target: freshened.target,
            method: freshened.method,
            nominated: freshened.nominated,
            fields: fields,
            needsConfirmation: false,
            targetedFields: freshened.targetedFields
        )
        self.ranges = ranges
        interval = part.interval
    }

    /// The joined response as it is stored: without ranges if nothing is missing.
    package var joined: StoredResponse {
        var joined = response
        joined.ranges = ranges.isComplete ? nil : ranges
        return joined
    }

    /// Whether the bytes of both have the same content coding.
    ///
    /// A strong entity tag identifies the bytes of one coding, and a 206 to If-Range need not repeat which (RFC 9110 §15.3.7). A
    /// date identifies the resource in all its codings, so then the field must be the same in both.
    private static func isSameCoding(_ head: ResponseHead, as stored: ResponseHead, by validator: StrongValidator)
        -> Bool
    {
        let codings = (head.fields[.contentEncoding], stored.fields[.contentEncoding])
        switch validator {
        case .entityTag: return codings.0 == nil || codings.0 == codings.1
        case .lastModified: return (codings.0 ?? "identity") == (codings.1 ?? "identity")
        }
    }
}

/// A validator that changes whenever a byte of the representation does; parts can only be combined with such a validator (RFC 9110
/// §8.8.1, §15.3.7.3).
package enum StrongValidator: Sendable, Hashable {
    /// A strong entity tag.
    case entityTag(EntityTag)
    /// A Last-Modified that is known to be strong (RFC 9110 §8.8.2.2).
    case lastModified(HTTPDate)

    /// The strong validator of a response, if it has one.
    ///
    /// A response with an ETag is identified only by that: if the tag is weak or cannot be parsed, there is no strong validator.
    /// Decoded content has none either, because its bytes differ from those of the origin.
    ///
    /// - Parameters:
    ///   - head: status and fields, as received or as stored.
    ///   - receivedAt: when the response arrived, for two-digit years.
    ///   - contentDecoded: whether a content coding was decoded.
    package init?(_ head: ResponseHead, receivedAt: Timestamp, contentDecoded: Bool) {
        guard !contentDecoded else { return nil }
        if head.fields.contains(.eTag) {
            guard let tag = head.entityTag, !tag.isWeak else { return nil }
            self = .entityTag(tag)
            return
        }
        guard let date = StrongValidator.strongDate(head, receivedAt: receivedAt) else { return nil }
        self = .lastModified(date)
    }

    /// The strong validator of a stored response, if it has one.
    package init?(_ stored: StoredResponse) {
        self.init(stored.head, receivedAt: stored.responseTime, contentDecoded: stored.contentDecoded)
        if case .lastModified = self, stored.facts.flags.contains(.weakDate) { return nil }
    }

    /// The value for If-Range (RFC 9110 §13.1.5).
    package var fieldValue: String {
        switch self {
        case .entityTag(let tag): tag.description
        case .lastModified(let date): date.description
        }
    }

    /// Whether the If-Range of a request matches a stored response, so that its Range applies (RFC 9110 §13.1.5).
    ///
    /// An entity tag is compared strongly. A date must equal the stored Last-Modified to the second, and that one must be strong.
    /// True without the field; false if the field is repeated or cannot be parsed.
    ///
    /// - Parameters:
    ///   - fields: the request's fields.
    ///   - stored: the response that would answer it.
    package static func ifRangeHolds(_ fields: HeaderFields, for stored: StoredResponse) -> Bool {
        let values = fields.values(of: .ifRange)
        guard let value = values.first else { return true }
        guard values.count == 1, !stored.contentDecoded else { return false }
        if let tag = EntityTag(value) { return stored.entityTag?.strongMatches(tag) ?? false }
        guard let date = HTTPDate(value, receivedAt: stored.responseTime) else { return false }
        return strongDate(stored) == date
    }

    /// The Last-Modified of a stored response, if it is strong and no update has changed it.
    static func strongDate(_ stored: StoredResponse) -> HTTPDate? {
        stored.facts.flags.contains(.weakDate) ? nil : strongDate(stored.head, receivedAt: stored.responseTime)
    }

    /// A Last-Modified at least one second before the Date of the same response: both are the origin's, so the
    /// representation cannot have changed again within that second (RFC 9110 §8.8.2.2).
    private static func strongDate(_ head: ResponseHead, receivedAt: Timestamp) -> HTTPDate? {
        guard let modified = head.lastModified(receivedAt: receivedAt), let date = head.date(receivedAt: receivedAt),
            modified < date
        else { return nil }
        return modified
    }
}

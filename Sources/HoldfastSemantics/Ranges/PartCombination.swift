// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// A stored response of which some bytes may be missing, joined with a further part (RFC 9111 §3.4).
public struct PartCombination: Sendable, Hashable {
    /// The stored response with the fields of the newest part.
    public let response: StoredResponse

    /// What is stored of its content, the new part included.
    public let ranges: StoredRanges

    /// Where the new part's bytes go.
    public let interval: Range<Int64>

    /// Joins a part to what is stored.
    ///
    /// Both must have the same strong validator (RFC 9110 §15.3.7.3), no two content codings, and lengths that agree.
    /// The part's fields replace the stored ones as a 304's do, those of its own bytes excepted; Content-Length becomes
    /// that of the whole, and the age is counted from the new part.
    ///
    /// - Parameters:
    ///   - part: the part; before its content came, to know whether to take it, and once more as it ended.
    ///   - head: the head of the 206 it came in.
    ///   - stored: the stored response.
    ///   - storedRanges: what is stored of its content.
    ///   - asked: the interval that the cache itself asked for with Range, where it did: the part must begin there and
    ///     not reach beyond it. Nil for a caller's own request.
    ///   - requestTime: when the request was sent.
    ///   - responseTime: when the 206 came.
    ///   - mode: for whom the cache stores.
    ///   - ignoredCookies: cookies that are never stored; none by default.
    /// - Returns: nil when they do not belong together: then the part may replace what is stored but not join it, and a
    ///   request that was made into a partial one must be sent again as it came.
    public init?(
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
        var combined = freshened.head
        combined.fields.removeAll(.contentRange)
        combined.fields[.contentLength] = ranges.completeLength.map { String($0) }
        response = StoredResponse(
            target: freshened.target,
            method: freshened.method,
            nominated: freshened.nominated,
            head: combined,
            requestTime: requestTime,
            responseTime: responseTime,
            givenLifetime: freshened.givenLifetime,
            targetedFields: freshened.targetedFields
        )
        self.ranges = ranges
        interval = part.interval
    }

    /// The joined response as it is stored: without ranges once nothing is missing.
    public var joined: StoredResponse {
        var joined = response
        joined.ranges = ranges.isComplete ? nil : ranges
        return joined
    }

    /// Whether the bytes of both have the same content coding.
    ///
    /// A strong entity tag names the bytes of one coding, and a 206 to If-Range need not repeat which (RFC 9110 §15.3.7). A date
    /// names the resource in all its codings, so there the field must say the same in both.
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

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// How the body of one response is resumed after its connection broke: what to request, how often, and after which waits.
///
/// A value that is told what happens. Bytes of two representations are never mixed: there is a plan only for a 200 with a strong
/// entity tag, and ``verdict(on:contentDecoded:)`` accepts only the rest of the same representation.
package struct ResumePlan: Sendable, Hashable {
    /// The most resumes of one body, whatever the caller asks for.
    package static let mostResumes = 100

    /// The entity tag of the representation.
    let tag: EntityTag
    /// The content coding that was returned without decoding.
    let coding: String?
    /// The length of the whole, once a head has given it.
    var completeLength: Int64?

    /// How many bytes were received so far.
    package internal(set) var offset: Int64 = 0

    /// How many resumes were begun.
    package internal(set) var resumes = 0

    private let maxResumes: Int
    private var backoff = BackoffState()

    /// A plan for a response; nil if its body cannot be resumed.
    ///
    /// This requires a GET without a range of its own, and a 200 with one strong ETag (RFC 9110 §8.8.1, §13.1.5) whose content
    /// coding was not decoded, whose Content-Length is readable if present, and whose server does not refuse ranges (Accept-Ranges:
    /// none, RFC 9110 §14.3).
    ///
    /// - Parameters:
    ///   - response: the head as received.
    ///   - method: the method of its request.
    ///   - fields: the fields of that request, including those of the transport.
    ///   - contentDecoded: whether the transport decoded a content coding.
    ///   - maxResumes: the most resumes in total, 0 to 100; progress does not raise it.
    package init?(
        _ response: ResponseHead,
        method: RequestMethod,
        fields: HeaderFields,
        contentDecoded: Bool,
        maxResumes: Int
    ) {
        guard response.status == .ok, method == .get, !fields.contains(.range), !contentDecoded, maxResumes > 0,
            let tag = response.entityTag, !tag.isWeak, !response.refusesRanges
        else { return nil }
        let length = response.contentLength.map { Int64($0) }
        // An unreadable length leaves open what the bytes would be a part of.
        guard length.map({ $0 <= ByteRange.limit }) ?? !response.fields.contains(.contentLength) else { return nil }
        self.tag = tag
        coding = response.fields[.contentEncoding]
        completeLength = length
        self.maxResumes = min(maxResumes, ResumePlan.mostResumes)
    }

    /// The fields that request the rest: Range and If-Range (RFC 9110 §14.2, §13.1.5).
    ///
    /// From the first byte if none was received, so that even the whole is sent only if it is unchanged.
    package var fields: HeaderFields {
        var fields = HeaderFields()
        fields[.range] = "bytes=\(offset)-"
        fields[.ifRange] = tag.description
        return fields
    }

    /// Records received bytes.
    package mutating func received(_ count: Int) {
        offset = min(offset.addingClamped(Int64(clamping: max(0, count))), ByteRange.limit)
    }

    /// The wait before the next resume, which counts as begun; nil if there is none.
    ///
    /// - Parameters:
    ///   - rules: the backoff of retries.
    ///   - generator: the source of its jitter.
    package mutating func nextResume(_ rules: Backoff, using generator: inout some RandomNumberGenerator) -> Duration? {
        guard resumes < maxResumes, completeLength.map({ offset < $0 }) ?? (offset < ByteRange.limit) else {
            return nil
        }
        defer { resumes += 1 }
        return rules.delay(retry: resumes, using: &generator, state: &backoff)
    }

    /// What an answer to a resume means; closed.
    package enum Verdict: Sendable, Hashable {
        /// It is the rest: this many bytes, at least one, to append to those received.
        case rest(count: Int64)
        /// The server has a temporary problem: another resume may succeed.
        case passing
        /// The rest is not available: the representation changed, or the server did not do what was asked.
        case final
    }

    /// The failures after which the rest may still be available: the connection broke, or none could be made.
    private static let passingKinds: Set<AttemptFailure.Kind> = [
        .connectionLost, .timeout, .tls, .offline, .connect, .resolve, .refused,
    ]

    /// Whether a resume may help after a failure of the body or of a resume.
    ///
    /// It does not after cancellation, a limit on this side, or an answer that is not HTTP.
    package static func cures(_ failure: AttemptFailure) -> Bool {
        passingKinds.contains(failure.kind)
    }

    /// Evaluates the head of the answer to a resume, and learns the length of the whole from it.
    ///
    /// Only a 206 is the rest, with the same strong ETag and no other content coding, whose Content-Range begins where the bytes
    /// broke off, reaches the end, and gives the same length as the first head (RFC 9110 §14.4, §15.3.7.3). A 200 means that the
    /// representation changed. A 500, 502, 503 or 504 is temporary unless its Retry-After asks for a pause.
    ///
    /// - Parameters:
    ///   - response: the head as received.
    ///   - contentDecoded: whether the transport decoded a content coding.
    package mutating func verdict(on response: ResponseHead, contentDecoded: Bool) -> Verdict {
        switch response.status {
        case .internalServerError, .badGateway, .serviceUnavailable, .gatewayTimeout:
            return response.fields.contains(.retryAfter) ? .final : .passing
        case .partialContent:
            guard let part = rest(in: response, contentDecoded: contentDecoded) else { return .final }
            completeLength = part.upperBound
            return .rest(count: part.upperBound - part.lowerBound)
        default:
            return .final
        }
    }

    private func rest(in response: ResponseHead, contentDecoded: Bool) -> Range<Int64>? {
        guard !contentDecoded, !MultipartByteRanges.isContent(of: response.fields),
            let other = response.entityTag, tag.strongMatches(other),
            // The tag is of one coding, and a 206 to If-Range need not repeat which (RFC 9110 §15.3.7).
            response.fields[.contentEncoding] ?? coding == coding,
            let range = ContentRange(response.fields), let interval = range.interval, let length = range.completeLength,
            interval.lowerBound == offset, interval.upperBound == length,
            completeLength.map({ $0 == length }) ?? true
        else { return nil }
        // Two different lengths leave open where the bytes belong.
        let agrees =
            response.contentLength.map { Int64($0) == length - offset } ?? !response.fields.contains(.contentLength)
        return agrees ? interval : nil
    }
}

extension ResponseHead {
    fileprivate var refusesRanges: Bool {
        fields.values(of: .acceptRanges).contains { $0.loweringASCII() == "none" }
    }
}

extension Int64 {
    fileprivate func addingClamped(_ other: Int64) -> Int64 {
        let (sum, overflow) = addingReportingOverflow(other)
        return overflow ? .max : sum
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// How the body of one response goes on after its connection broke: what is asked for, how often, and after which waits.
///
/// A value that is told what happens. Bytes of two representations are never mixed: there is a plan only for a 200 with a
/// strong entity tag, and ``verdict(on:contentDecoded:)`` accepts only the rest of that very representation.
public struct ResumePlan: Sendable, Hashable {
    /// The most resumes of one body, whatever is asked for.
    public static let mostResumes = 100

    /// The entity tag that the representation is known by.
    let tag: EntityTag
    /// The content coding that was handed up as it came.
    let coding: String?
    /// The length of the whole, once a head has told it.
    var completeLength: Int64?

    /// How many bytes came so far.
    public internal(set) var offset: Int64 = 0

    /// How many resumes were begun.
    public internal(set) var resumes = 0

    private let maxResumes: Int
    private var backoff = BackoffState()

    /// A plan for a response; nil where its body can never be resumed.
    ///
    /// It takes a GET that asks for no range itself, and a 200 with one strong ETag (RFC 9110 §8.8.1, §13.1.5) whose content
    /// coding was not undone, whose Content-Length can be read if there is one, and whose server does not refuse ranges
    /// (Accept-Ranges: none, RFC 9110 §14.3).
    ///
    /// - Parameters:
    ///   - response: the head as it came.
    ///   - method: the method of the request it answers.
    ///   - fields: the fields of that request, those of the transport included.
    ///   - contentDecoded: whether the transport undid a content coding.
    ///   - maxResumes: the most resumes in all, 0 to 100; progress does not raise it.
    public init?(
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
        // A length that cannot be read leaves open what the bytes would be a part of.
        guard length.map({ $0 <= ByteRange.limit }) ?? !response.fields.contains(.contentLength) else { return nil }
        self.tag = tag
        coding = response.fields[.contentEncoding]
        completeLength = length
        self.maxResumes = min(maxResumes, ResumePlan.mostResumes)
    }

    /// The fields that ask for the rest: Range and If-Range (RFC 9110 §14.2, §13.1.5).
    ///
    /// From the first byte on where none came, so that the whole too is sent only if it is still the same.
    public var fields: HeaderFields {
        var fields = HeaderFields()
        fields[.range] = "bytes=\(offset)-"
        fields[.ifRange] = tag.description
        return fields
    }

    /// Takes note of bytes that came.
    public mutating func received(_ count: Int) {
        offset = min(offset.addingClamped(Int64(clamping: max(0, count))), ByteRange.limit)
    }

    /// The wait before the next resume, which counts as begun; nil when there is none.
    ///
    /// - Parameters:
    ///   - rules: the backoff of retries.
    ///   - generator: the source of its jitter.
    public mutating func nextResume(_ rules: Backoff, using generator: inout some RandomNumberGenerator) -> Duration? {
        guard resumes < maxResumes, completeLength.map({ offset < $0 }) ?? (offset < ByteRange.limit) else {
            return nil
        }
        defer { resumes += 1 }
        return rules.delay(retry: resumes, using: &generator, state: &backoff)
    }

    /// What the answer to a resume is good for; closed.
    public enum Verdict: Sendable, Hashable {
        /// It is the rest: so many bytes, which belong behind those that came; at least one.
        case rest(count: Int64)
        /// The server is in passing trouble: another resume may do better.
        case passing
        /// The rest cannot be had: the representation changed, or the server does otherwise than asked.
        case final
    }

    /// The failures after which the rest may still be had: the connection broke, or none could be made.
    private static let passingKinds: Set<AttemptFailure.Kind> = [
        .connectionLost, .timeout, .tls, .offline, .connect, .resolve, .refused,
    ]

    /// Whether a failure of the body, or of a resume, is one that a resume may cure.
    ///
    /// Cancellation, a limit of this side and an answer that is not HTTP are none.
    public static func cures(_ failure: AttemptFailure) -> Bool {
        passingKinds.contains(failure.kind)
    }

    /// Judges the head that answers a resume, and learns the length of the whole from it.
    ///
    /// The rest is only a 206 with the same strong ETag and the same content coding, whose Content-Range begins where the
    /// bytes broke off, reaches the end, and gives the length that the first head gave (RFC 9110 §14.4, §15.3.7.3). A 200
    /// says that the representation changed. A 500, 502, 503 or 504 passes unless its Retry-After asks for a pause.
    ///
    /// - Parameters:
    ///   - response: the head as it came.
    ///   - contentDecoded: whether the transport undid a content coding.
    public mutating func verdict(on response: ResponseHead, contentDecoded: Bool) -> Verdict {
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
            response.fields[.contentEncoding] == coding,
            let range = ContentRange(response.fields), let interval = range.interval, let length = range.completeLength,
            interval.lowerBound == offset, interval.upperBound == length,
            completeLength.map({ $0 == length }) ?? true
        else { return nil }
        // Two lengths that differ leave open where the bytes belong.
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

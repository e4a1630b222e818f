// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

extension ResumePlan {
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

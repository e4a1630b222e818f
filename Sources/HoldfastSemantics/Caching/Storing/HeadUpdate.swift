// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What the response to a HEAD means for a stored response to a GET (RFC 9111 §4.3.5).
public enum HeadUpdate: Sendable, Hashable {
    /// It says nothing of the stored response.
    case keep
    /// It describes the same content: the stored response with its fields.
    case update(StoredResponse)
    /// The content has changed, so the stored response no longer holds.
    case invalidate

    /// Judges a stored response that could have been chosen for a HEAD request.
    ///
    /// Only a 200 says anything. It describes the stored content where every validator it bears is the stored one, and its
    /// Content-Length, if any, the stored length. What may not be stored updates nothing, as if it were the GET's response.
    ///
    /// - Parameters:
    ///   - stored: the stored response to a GET; it must match the request (``NominatedFields/matches(_:secret:)``).
    ///   - bodyLength: its length in bytes; not compared where a content coding was undone.
    ///   - request: the HEAD request as it was sent.
    ///   - response: its response.
    ///   - requestTime: when the request was sent.
    ///   - responseTime: when the response came.
    ///   - directive: what the call asks.
    ///   - options: the cache's rules.
    public static func judge(
        _ stored: StoredResponse,
        bodyLength: Int,
        request: RequestHead,
        response: ResponseHead,
        requestTime: Timestamp,
        responseTime: Timestamp,
        directive: CacheDirective,
        options: CacheOptions
    ) -> HeadUpdate {
        guard request.method == .head, stored.method == .get, response.status == .ok else { return .keep }
        let asGet = RequestHead(method: .get, target: request.target, fields: request.fields)
        guard
            case .store = Storability.judge(
                request: asGet,
                response: response,
                directive: directive,
                options: options
            )
        else { return .keep }
        guard stored.head.status == .ok, describesContent(of: stored, bodyLength, response, responseTime) else {
            return .invalidate
        }
        // A lifetime of the cache's own counts from the receipt of the content, of which this is none.
        if options.fixedLifetime != nil { return .keep }
        let updated = stored.freshened(
            by: response,
            requestTime: requestTime,
            responseTime: responseTime,
            mode: options.mode,
            ignoredCookies: options.ignored
        )
        // The fields agree, which is less than the confirmation that a person asked for.
        return .update(stored.needsConfirmation ? updated.needingConfirmation : updated)
    }

    private static func describesContent(
        of stored: StoredResponse,
        _ bodyLength: Int,
        _ response: ResponseHead,
        _ responseTime: Timestamp
    ) -> Bool {
        if response.fields.contains(.eTag) {
            guard let tag = response.entityTag, let known = stored.head.entityTag, tag.weakMatches(known) else {
                return false
            }
        }
        if response.fields.contains(.lastModified) {
            guard let date = response.lastModified(receivedAt: responseTime), date == stored.lastModified else {
                return false
            }
        }
        guard !stored.contentDecoded, response.fields.contains(.contentLength) else { return true }
        // Of content that is stored in part, the length of the whole is what a HEAD speaks of, where it is known.
        guard let ranges = stored.ranges else { return response.contentLength == bodyLength }
        return ranges.completeLength.map { $0 == response.contentLength.map { Int64($0) } } ?? true
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What happens to fields on their way into the store, on freshening, and out again (RFC 9111 §3.1, §3.2).
public enum FieldUpdate {
    /// A response head as it may be stored (RFC 9111 §3.1).
    ///
    /// Gone are the fields of one connection, those that Connection nominates (but for the ones a cache goes by), proxy
    /// authentication, and the fields a qualified `no-cache` names, which then need no validation; in a shared cache also
    /// those a qualified `private` names; and the Set-Cookie lines of ignored cookies.
    ///
    /// - Parameters:
    ///   - head: the head as it came.
    ///   - contentDecoded: whether a content coding was undone; then Content-Encoding, Content-Length and digests go too.
    ///   - mode: for whom the cache stores.
    ///   - targetedFields: the cache's target list (RFC 9213 §2.2); empty by default.
    ///   - ignoredCookies: cookies that are never stored; none by default.
    public static func storable(
        _ head: ResponseHead,
        contentDecoded: Bool,
        mode: CacheOptions.Mode,
        targetedFields: [FieldName] = [],
        ignoredCookies: IgnoredCookies = .none
    ) -> ResponseHead {
        var dropped: [FieldName] = []
        for value in head.fields.values(of: .connection) {
            dropped += FieldScanner.members(of: value).compactMap { FieldName($0) }
        }
        // These are for every recipient (RFC 9110 §7.6.1): without them a response would be reused as no one allowed.
        dropped.removeAll { ruling.contains($0) || targetedFields.contains($0) }
        let cacheControl = RulingCacheControl(head.fields, targets: targetedFields).cacheControl
        if case .fields(let names) = cacheControl.noCache { dropped += names }
        if mode == .shared, case .fields(let names) = cacheControl.private { dropped += names }
        if contentDecoded { dropped += digests.union([.contentEncoding, .contentLength]) }
        var stripped = head
        stripped.fields.removeAll { connectionBound.contains($0.name) || dropped.contains($0.name) }
        stripped.fields = ignoredCookies.withoutSetCookies(stripped.fields)
        return stripped
    }

    /// What a stored response is judged by; no connection option can name it.
    private static let ruling: Set<FieldName> = [.age, .cacheControl, .date, .expires, .vary]

    private static let connectionBound: Set<FieldName> = [
        .connection, .keepAlive, .proxyConnection, .te, .trailer, .transferEncoding, .upgrade,
        .proxyAuthenticate, .proxyAuthenticationInfo, .proxyAuthorization,
    ]

    /// What describes the stored bytes rather than the resource; a 304 has none of those bytes (RFC 9111 §3.2).
    fileprivate static let contentBound: Set<FieldName> = [
        .contentEncoding, .contentLength, .contentRange, .contentType, "Content-Digest", "Repr-Digest", "Digest",
    ]

    /// A digest of the representation, in whatever coding it came (RFC 1864).
    fileprivate static let contentMD5: FieldName = "Content-MD5"

    /// Digests of the bytes that came, or of the representation in the coding it came in (RFC 9530 §2, §3; RFC 3230; RFC 1864).
    private static let digests: Set<FieldName> = ["Content-Digest", "Repr-Digest", "Digest", contentMD5]
}

extension StoredResponse {
    /// This response with the fields of a 304 that selected it, and its age counted anew (RFC 9111 §3.2, §4.3.4).
    ///
    /// Every field of the 304 replaces the stored one of its name, but for those bound to a connection and those that
    /// describe the stored bytes: Content-Encoding, Content-Length, Content-Range, Content-Type, and digests
    /// (Content-MD5 unless an equal strong entity tag says that it is of the stored bytes). The old Age goes; a 304
    /// without Date gets the time of its receipt (RFC 9110 §6.6.1). Stored fields that the 304 is the first to name in a
    /// qualified `no-cache` or `private` go as they would have gone before storing (RFC 9111 §5.2.2.4, §5.2.2.7). A weak entity
    /// tag stays weak.
    ///
    /// - Parameters:
    ///   - notModified: the 304's head.
    ///   - requestTime: when the validating request was sent.
    ///   - responseTime: when the 304 came.
    ///   - mode: for whom the cache stores.
    ///   - givenLifetime: the lifetime in seconds that the validating call gives it; nil keeps the one it has.
    ///   - ignoredCookies: cookies that are never stored; none by default.
    /// - Returns: the freshened response; body, status and nominated fields stay. It needs confirmation no more.
    public func freshened(
        by notModified: ResponseHead,
        requestTime: Timestamp,
        responseTime: Timestamp,
        mode: CacheOptions.Mode,
        givenLifetime: Int64? = nil,
        ignoredCookies: IgnoredCookies = .none
    ) -> StoredResponse {
        var update = FieldUpdate.storable(
            notModified,
            contentDecoded: contentDecoded,
            mode: mode,
            targetedFields: targetedFields,
            ignoredCookies: ignoredCookies
        ).fields
        update.removeAll { FieldUpdate.contentBound.contains($0.name) }
        // Only an equal strong tag says that the digest is of the very bytes that are stored.
        let namesSameBytes = notModified.entityTag.flatMap { head.entityTag?.strongMatches($0) } ?? false
        if !namesSameBytes { update.removeAll(FieldUpdate.contentMD5) }
        // A weak tag was given to bytes that may differ from those its strong form names (RFC 9110 §8.8.1).
        if let known = head.entityTag, let told = notModified.entityTag, known.isWeak, known.weakMatches(told) {
            update.removeAll(.eTag)
        }
        if notModified.date(receivedAt: responseTime) == nil {
            update[.date] = HTTPDate(responseTime).description
        }
        var fields = head.fields
        fields.removeAll(.age)
        let merged = FieldUpdate.storable(
            ResponseHead(status: head.status, fields: fields.merging(update)),
            contentDecoded: contentDecoded,
            mode: mode,
            targetedFields: targetedFields,
            ignoredCookies: ignoredCookies
        )
        var freshened = StoredResponse(
            target: target,
            method: method,
            nominated: nominated,
            head: merged,
            requestTime: requestTime,
            responseTime: responseTime,
            contentDecoded: contentDecoded,
            givenLifetime: givenLifetime ?? self.givenLifetime,
            targetedFields: targetedFields
        )
        freshened.ranges = ranges
        return freshened
    }

    /// The head to answer with: the stored fields and one Age with the current age (RFC 9111 §4, §5.1).
    ///
    /// A Retry-After in seconds is less that age, since it counts from the making of the response (RFC 9110 §10.2.3); one
    /// with a date stays as it is. A response that came without Date bears the time of its receipt (RFC 9110 §6.6.1).
    ///
    /// - Parameter now: the time of the answer.
    public func responseHead(now: Timestamp) -> ResponseHead {
        var answer = head
        if !answer.fields.contains(.date) { answer.fields.append(.date, HTTPDate(date).description) }
        let age = currentAge(now: now)
        let waits = head.fields.values(of: .retryAfter)
        if waits.count == 1, let wait = waits.first,
            let seconds = FieldScanner.number(wait.utf8, limit: CacheControl.maximumDeltaSeconds)
        {
            answer.fields[.retryAfter] = String(max(0, seconds - min(age, seconds)))
        }
        answer.fields[.age] = String(min(age, CacheControl.maximumDeltaSeconds))
        return answer
    }
}

extension ResponseHead {
    /// The head with a Retry-After as it came from the origin, for those who take the Age off themselves.
    ///
    /// Of use to heads that ``StoredResponse/responseHead(now:)`` made, which have been relieved of it once.
    package var withAgeInRetryAfter: ResponseHead {
        let waits = fields.values(of: .retryAfter)
        guard let age, waits.count == 1, let wait = waits.first,
            let seconds = FieldScanner.number(wait.utf8, limit: CacheControl.maximumDeltaSeconds)
        else { return self }
        var head = self
        head.fields[.retryAfter] = String(seconds + min(age, CacheControl.maximumDeltaSeconds))
        return head
    }
}

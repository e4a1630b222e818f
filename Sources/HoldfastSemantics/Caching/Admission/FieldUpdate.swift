// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// How fields change when a response is stored, freshened, and served (RFC 9111 §3.1, §3.2).
package enum FieldUpdate {
    /// A response head as it may be stored (RFC 9111 §3.1).
    ///
    /// This removes the connection's fields, those that Connection nominates, proxy authentication, and the fields that a
    /// qualified `no-cache` names, so that the rest needs no validation. In a shared cache it also removes those that a qualified
    /// `private` names. The fields that a cache needs stay, whatever names them. Set-Cookie lines of ignored cookies are removed
    /// too.
    ///
    /// - Parameters:
    ///   - head: the head as received.
    ///   - contentDecoded: whether a content coding was decoded; then Content-Encoding, Content-Length and digests are removed too.
    ///   - mode: for whom the cache stores.
    ///   - targetedFields: the cache's target list (RFC 9213 §2.2); empty by default.
    ///   - ignoredCookies: cookies that are never stored; none by default.
    package static func storable(
        _ head: ResponseHead,
        contentDecoded: Bool,
        mode: CacheOptions.Mode,
        targetedFields: [FieldName] = [],
        ignoredCookies: IgnoredCookies = .none
    ) -> ResponseHead {
        var dropped: Set<FieldName> = []
        for value in head.fields.values(of: .connection) {
            dropped.formUnion(FieldScanner.members(of: value).compactMap { FieldName($0) })
        }
        let cacheControl = RulingCacheControl(head.fields, targets: targetedFields).cacheControl
        if case .fields(let names) = cacheControl.noCache { dropped.formUnion(names) }
        if mode == .shared, case .fields(let names) = cacheControl.private { dropped.formUnion(names) }
        dropped = droppable(dropped, targetedFields: targetedFields)
        if contentDecoded { dropped.formUnion(digests.union([.contentEncoding, .contentLength])) }
        var stripped = head
        stripped.fields.removeAll { connectionBound.contains($0.name) || dropped.contains($0.name) }
        stripped.fields = ignoredCookies.withoutSetCookies(stripped.fields)
        return stripped
    }

    /// Which of the named fields may be left out. The others are for every recipient (RFC 9110 §7.6.1): without them a response would
    /// be reused in ways that nobody allowed.
    static func droppable(_ names: some Sequence<FieldName>, targetedFields: [FieldName]) -> Set<FieldName> {
        Set(names.filter { !ruling.contains($0) && !targetedFields.contains($0) })
    }

    /// The fields that decide how a stored response is used; neither Connection nor a qualified directive removes them.
    static let ruling: Set<FieldName> = [.age, .cacheControl, .date, .expires, .vary]

    private static let connectionBound: Set<FieldName> = [
        .connection, .keepAlive, .proxyConnection, .te, .trailer, .transferEncoding, .upgrade,
        .proxyAuthenticate, .proxyAuthenticationInfo, .proxyAuthorization,
    ]

    /// Fields that describe the stored bytes, not the resource; a 304 has none of those bytes (RFC 9111 §3.2).
    fileprivate static let contentBound: Set<FieldName> = [
        .contentEncoding, .contentLength, .contentRange, .contentType, "Content-Digest", "Repr-Digest", "Digest",
    ]

    /// A digest of the representation, in whatever coding it was sent (RFC 1864).
    fileprivate static let contentMD5: FieldName = "Content-MD5"

    /// Digests of the bytes sent, or of the representation in the coding it was sent in (RFC 9530 §2, §3; RFC 3230; RFC 1864).
    private static let digests: Set<FieldName> = ["Content-Digest", "Repr-Digest", "Digest", contentMD5]
}

extension StoredResponse {
    /// This response with the fields of a 304 that selected it, and a new age (RFC 9111 §3.2, §4.3.4).
    ///
    /// Every field of the 304 replaces the stored field of the same name, except for fields bound to a connection and those that
    /// describe the stored bytes: Content-Encoding, Content-Length, Content-Range, Content-Type, and digests (Content-MD5 unless an
    /// equal strong entity tag says that it describes the stored bytes). The old Age is removed; a 304 without Date gets the time
    /// of its receipt (RFC 9110 §6.6.1). If the 304 is the first to name a stored field in a qualified `no-cache` or `private`,
    /// that field is removed, as it would have been before storing (RFC 9111 §5.2.2.4, §5.2.2.7). A weak validator stays weak,
    /// since the Date of an update does not say when the stored bytes were sent (RFC 9110 §8.8.2.2).
    ///
    /// - Parameters:
    ///   - notModified: the 304's head.
    ///   - requestTime: when the validating request was sent.
    ///   - responseTime: when the 304 arrived.
    ///   - mode: for whom the cache stores.
    ///   - givenLifetime: the lifetime in seconds that the validating call gives it; nil keeps the existing one.
    ///   - ignoredCookies: cookies that are never stored; none by default.
    /// - Returns: the freshened response; body, status and nominated fields stay. It no longer needs confirmation.
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
        // Only an equal strong tag shows that the digest is of exactly the stored bytes.
        let namesSameBytes = notModified.entityTag.flatMap { head.entityTag?.strongMatches($0) } ?? false
        if !namesSameBytes { update.removeAll(FieldUpdate.contentMD5) }
        // A weak tag may be given to bytes that differ from those of the strong tag (RFC 9110 §8.8.1).
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
        let updated = ResponseFacts(
            merged,
            requestTime: requestTime,
            responseTime: responseTime,
            contentDecoded: contentDecoded,
            givenLifetime: givenLifetime ?? self.givenLifetime,
            targetedFields: targetedFields,
            hasWeakDate: merged.lastModified(receivedAt: responseTime) != StrongValidator.strongDate(self)
        )
        var freshened = StoredResponse(
            updated,
            target: target,
            method: method,
            nominated: nominated,
            fields: merged.fields,
            needsConfirmation: false,
            targetedFields: targetedFields
        )
        freshened.ranges = ranges
        return freshened
    }

    /// The head of the answer: the stored fields, and one Age field with the current age (RFC 9111 §4, §5.1).
    ///
    /// A Retry-After in seconds is reduced by that age, since it counts from the creation of the response (RFC 9110 §10.2.3); one
    /// with a date stays as it is. A response that arrived without Date gets the time of its receipt (RFC 9110 §6.6.1).
    ///
    /// - Parameter now: the time of the answer.
    public func responseHead(now: Timestamp) -> ResponseHead {
        var answer = head
        facts.writeAge(into: &answer.fields, now: now)
        return answer
    }
}

extension ResponseFacts {
    /// ``StoredResponse/responseHead(now:)``.
    ///
    /// - Parameter fields: the stored fields, which become those of the answer.
    package func writeAge(into fields: inout HeaderFields, now: Timestamp) {
        let age = currentAge(now: now)
        if flags.contains(.age) { fields.removeAll(.age) }
        fields.appendAge(min(age, CacheControl.maximumDeltaSeconds))
        if !flags.contains(.date) { fields.append(.date, HTTPDate(date).description) }
        guard flags.contains(.retryAfter) else { return }
        let waits = fields.values(of: .retryAfter)
        if waits.count == 1, let wait = waits.first,
            let seconds = FieldScanner.number(wait.utf8, limit: CacheControl.maximumDeltaSeconds)
        {
            fields.removeAll(.retryAfter)
            fields.append(.retryAfter, String(max(0, seconds - min(age, seconds))))
        }
    }
}

extension ResponseHead {
    /// The head with a Retry-After as the origin sent it, for code that subtracts the Age itself.
    ///
    /// For heads from ``StoredResponse/responseHead(now:)``, from which it has already been subtracted.
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

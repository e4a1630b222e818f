// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

extension StoredResponse {
    /// Whether this response to a request without credentials may answer one whose only credential is a Cookie, although
    /// each principal of a private cache has entries of its own.
    ///
    /// RFC 9111 §4 lets it, since a Cookie selects nothing unless Vary says so. It must be fresh, because what the origin
    /// tells of it to a user is that user's, and neither `private` nor a part, which the user's request would complete. Never
    /// where the cache gives lifetimes of its own: it then keeps what no server has called fit for that.
    ///
    /// - Parameters:
    ///   - now: the time of the request.
    ///   - options: the cache's rules.
    public func mayAnswerCookies(now: Timestamp, options: CacheOptions) -> Bool {
        options.fixedLifetime == nil && cacheControl.private == .absent && ranges == nil
            && isFresh(now: now, options: options)
    }
}

extension CachePrincipal {
    /// Whether a request is told from anonymous ones by nothing but a Cookie field.
    ///
    /// - Parameters:
    ///   - fields: the request's fields, those included that the transport adds.
    ///   - userinfo: the userinfo of the target URI.
    ///   - explicit: a name the caller gives for the principal; with one the answer is no.
    ///   - credentialFields: further fields that hold a credential; with one of them the answer is no. None by default.
    public static func isCookieOnly(
        _ fields: HeaderFields,
        userinfo: String?,
        explicit: String?,
        credentialFields: [FieldName] = []
    ) -> Bool {
        explicit == nil && userinfo?.isEmpty ?? true && !fields.contains(.authorization) && fields.contains(.cookie)
            && !credentialFields.contains { fields.contains($0) }
    }
}

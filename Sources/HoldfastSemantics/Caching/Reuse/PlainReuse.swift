// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// A stored response that answers plain requests while it is fresh, with everything this depends on computed once.
///
/// A plain request is a GET without any field in ``ReuseFields``, and without a directive of the caller. For such a request
/// ``ReuseJudgement`` says "fresh" exactly while ``standing(now:)`` does, and looks at nothing else of the response.
package struct PlainReuse: Sendable, Hashable {
    private let responseTime: Timestamp
    private let initialAge: Int64
    private let lifetime: Int64
    private let fixed: Int64?

    /// Nil if even a plain request must ask the origin: the response must be confirmed, says `no-cache`, or lacks a part of its
    /// content.
    package init?(_ stored: StoredResponse, options: CacheOptions) {
        if let ruled = options.ruled(for: stored) {
            self.init(stored, options: ruled)
            return
        }
        guard stored.confirmationReason == nil, stored.ranges == nil, stored.method == .get, !options.neverStores,
            options.fixedLifetime != nil
                || stored.cacheControl.noCache != .unqualified && !stored.isAgainstItsWord
        else { return nil }
        self.init(
            responseTime: stored.responseTime,
            initialAge: stored.initialAgeMilliseconds,
            lifetime: stored.freshnessLifetime(options).seconds,
            fixed: options.fixedMilliseconds
        )
    }

    private init(responseTime: Timestamp, initialAge: Int64, lifetime: Int64, fixed: Int64?) {
        self.responseTime = responseTime
        self.initialAge = initialAge
        self.lifetime = lifetime
        self.fixed = fixed
    }

    /// The response's age and lifetime, as ``StoredResponse/standing(now:options:)``.
    package func standing(now: Timestamp) -> FreshnessStanding {
        let resident = max(0, responseTime.millisecondsUntil(now))
        if let fixed { return FreshnessStanding(age: resident / 1000, lifetime: lifetime, isStale: resident > fixed) }
        let (sum, overflow) = initialAge.addingReportingOverflow(resident)
        let age = (overflow ? .max : sum) / 1000
        return FreshnessStanding(age: age, lifetime: lifetime, isStale: lifetime <= age)
    }
}

extension StoredResponse {
    /// Whether this response to a request without credentials may answer one whose only credential is a Cookie, although
    /// each principal of a private cache has entries of its own.
    ///
    /// RFC 9111 §4 allows this, since a Cookie selects nothing unless Vary says so. The response must be fresh, because what the
    /// origin says about it to a user is for that user. It must be neither `private` nor a part, which the user's request would
    /// complete. Never if the cache fixes lifetimes itself: it then keeps responses that no server has declared suitable.
    ///
    /// - Parameters:
    ///   - now: the time of the request.
    ///   - options: the cache's rules.
    public func mayAnswerCookies(now: Timestamp, options: CacheOptions) -> Bool {
        if let ruled = options.ruled(for: self) { return mayAnswerCookies(now: now, options: ruled) }
        return options.fixedLifetime == nil && cacheControl.private == .absent && ranges == nil
            && isFresh(now: now, options: options)
    }
}

extension CachePrincipal {
    /// Whether only a Cookie field distinguishes a request from anonymous ones.
    ///
    /// - Parameters:
    ///   - fields: the request's fields, including those that the transport adds.
    ///   - userinfo: the userinfo of the target URI.
    ///   - explicit: a name that the caller gives the principal; with one the result is false.
    ///   - credentialFields: further fields that contain a credential; with one of them the result is false. None by default.
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

/// The request fields that affect whether a stored response may answer, whatever its Vary nominates: directives, conditions,
/// ranges, credentials, and the host.
package enum ReuseFields {
    /// Their names in lower case.
    package static let names: [String] = [
        "host", "range", "cookie", "pragma", "if-match", "if-range", "cache-control", "authorization", "if-none-match",
        "if-modified-since", "if-unmodified-since",
    ]
}

/// Finds field names by their length first, since most names have none of the lengths in question.
package struct FieldNameFinder: Sendable {
    private struct Name: Sendable {
        let bytes: [UInt8]
        let number: Int
    }

    private let lengths: UInt64
    private let names: [Name]

    /// - Parameter names: in lower case; a name of 64 bytes or more is found too, but more slowly.
    package init(_ names: [String]) {
        self.names = names.enumerated().map { Name(bytes: Array($1.utf8), number: $0) }
        lengths = self.names.reduce(0) { $0 | 1 << UInt64(min($1.bytes.count, 63)) }
    }

    /// Which of the names this is, ignoring case (RFC 9110 §5.1); nil if it is none of them. Does not allocate.
    @inline(__always)
    package func number(of name: String) -> Int? {
        let count = name.utf8.count
        guard lengths >> UInt64(min(count, 63)) & 1 == 1 else { return nil }
        return compared(name, count: count)
    }

    private func compared(_ name: String, count: Int) -> Int? {
        var name = name
        return name.withUTF8 { bytes in
            for known in names where known.bytes.count == count {
                var index = 0
                while index < count, bytes[index].lowerCased == known.bytes[index] { index += 1 }
                if index == count { return known.number }
            }
            return nil
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

extension CachePrincipal {
    /// Whether only a Cookie field distinguishes a request from anonymous ones.
    ///
    /// - Parameters:
    ///   - fields: the request's fields, including those that the transport adds.
    ///   - userinfo: the userinfo of the target URI.
    ///   - explicit: a name that the caller gives the principal; with one the result is false.
    ///   - credentialFields: further fields that contain a credential; with one of them the result is false. None by default.
    package static func isCookieOnly(
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
    /// Those that a plain request may have: credentials determine its partition, and directives whether a response is fresh enough.
    package static let ofPlainRequests: [String] = ["authorization", "cookie", "cache-control"]

    /// All names in lower case, those of plain requests first.
    package static let names: [String] =
        ofPlainRequests + [
            "host", "range", "pragma", "if-match", "if-range", "if-none-match", "if-modified-since",
            "if-unmodified-since",
        ]
}

/// What a request says in the fields that affect reuse, found in one pass without allocation.
package struct PlainRequestFields: Sendable, Hashable {
    /// The value of Authorization.
    package private(set) var authorization: String?
    /// The value of Cookie.
    package private(set) var cookie: String?
    /// The value of Cache-Control.
    package private(set) var cacheControl: String?
    /// Whether there is none of the other fields in ``ReuseFields``.
    package private(set) var arePlain = true

    private static let finder = FieldNameFinder(ReuseFields.names)

    /// Nil if one of the fields of plain requests occurs in several spellings, whose values only count together.
    ///
    /// - Parameters:
    ///   - fields: those of the request.
    ///   - implicit: those that the transport adds if the request lacks them.
    package init?(_ fields: [String: String], implicit: HeaderFields = HeaderFields()) {
        let finder = Self.finder
        for (name, value) in fields {
            if let number = finder.number(of: name), !set(value, number) { return nil }
        }
        guard !implicit.isEmpty else { return }
        var added = PlainRequestFields()
        for line in implicit {
            if let number = Self.finder.number(of: line.name.rawName), !added.set(line.value, number) { return nil }
        }
        authorization = authorization ?? added.authorization
        cookie = cookie ?? added.cookie
        cacheControl = cacheControl ?? added.cacheControl
        arePlain = arePlain && added.arePlain
    }

    private init() {}

    /// - Returns: false if the field has a value already.
    private mutating func set(_ value: String, _ number: Int) -> Bool {
        switch number {
        case 0:
            guard authorization == nil else { return false }
            authorization = value
        case 1:
            guard cookie == nil else { return false }
            cookie = value
        case 2:
            guard cacheControl == nil else { return false }
            // As all rules see it (RFC 9110 §5.5).
            cacheControl = HeaderFields.cleaned(value)
        default: arePlain = false
        }
        return true
    }
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
        return compared(name)
    }

    private func compared(_ name: String) -> Int? {
        var name = name
        return name.withUTF8 { bytes in
            let text = UnsafeRawBufferPointer(bytes)
            for known in names where known.bytes.withUnsafeBytes({ $0.isLowerCase(of: text) }) { return known.number }
            return nil
        }
    }
}

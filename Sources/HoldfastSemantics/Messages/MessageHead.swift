// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What the rules need to know of a request: everything but its content.
public struct RequestHead: Sendable, Hashable {
    /// The method.
    public var method: RequestMethod

    /// The target URI in canonical form, with its userinfo separate.
    public var target: TargetURI

    /// The header fields as they will be sent, including those that the transport adds, if they are known.
    public var fields: HeaderFields

    /// Creates a head from its parts.
    ///
    /// - Parameters:
    ///   - method: `GET` by default.
    ///   - target: the target URI.
    ///   - fields: none by default.
    public init(method: RequestMethod = .get, target: TargetURI, fields: HeaderFields = HeaderFields()) {
        self.method = method
        self.target = target
        self.fields = fields
    }

    /// Whether the caller asks for a part or sends a condition (RFC 9110 §13.1, §14.2).
    ///
    /// Costs one pass over the field lines.
    package var isConditionalOrPartial: Bool {
        fields.contains { line in
            // Five of the six names begin alike, so most lines are excluded without hashing.
            let name = line.name.canonicalName.utf8
            return name.starts(with: "if-".utf8)
                ? RequestHead.conditionalNames.contains(line.name) : line.name == .range
        }
    }

    /// Whether the caller sends a condition that only the origin can evaluate (RFC 9111 §4.3.2).
    package var asksOrigin: Bool { fields.contains(.ifMatch) || fields.contains(.ifUnmodifiedSince) }

    /// Whether the caller sends a condition with a method whose stored response answers it completely, such as an opted-in POST:
    /// for such a method only the origin knows what the condition means (RFC 9110 §13.1.2, §13.1.3).
    package var statesUnfitCondition: Bool {
        guard method != .get, method != .head, method != .query else { return false }
        return fields.contains(.ifNoneMatch) || fields.contains(.ifModifiedSince)
    }

    /// Whether a Host field names another authority than the URI, so that the URI does not identify what was requested (RFC 9110
    /// §7.2).
    package var namesOtherHost: Bool {
        guard fields.contains(.host) else { return false }
        let named = fields.values(of: .host)
        guard named.count == 1, let name = named.first,
            let asked = TargetURI(scheme: target.scheme, authority: name)
        else { return true }
        return asked.origin != target.origin
    }

    /// The fields that make a request conditional (RFC 9110 §13.1).
    package static let conditionalNames: Set<FieldName> = [
        .ifMatch, .ifNoneMatch, .ifModifiedSince, .ifUnmodifiedSince, .ifRange,
    ]
}

/// The method of a request: a case-sensitive token (RFC 9110 §9.1).
public struct RequestMethod: RawRepresentable, Sendable, Hashable, ExpressibleByStringLiteral,
    CustomStringConvertible
{
    /// The method's text exactly as sent.
    public let rawValue: String

    /// Accepts any text, valid or not; for methods from outside use ``init(validating:)``.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// Creates a method from a literal.
    public init(stringLiteral value: String) { rawValue = value }

    /// Creates a method from text in a message.
    ///
    /// - Parameter text: the token. Nil if it is not one (RFC 9110 §9.1).
    public init?(validating text: String) {
        guard !text.isEmpty, text.utf8.allSatisfy(\.isTokenCharacter) else { return nil }
        rawValue = text
    }

    /// The method's text.
    public var description: String { rawValue }

    /// `GET`.
    public static let get: RequestMethod = "GET"
    /// `HEAD`.
    public static let head: RequestMethod = "HEAD"
    /// `POST`.
    public static let post: RequestMethod = "POST"
    /// `PUT`.
    public static let put: RequestMethod = "PUT"
    /// `DELETE`.
    public static let delete: RequestMethod = "DELETE"
    /// `PATCH`.
    public static let patch: RequestMethod = "PATCH"
    /// `OPTIONS`.
    public static let options: RequestMethod = "OPTIONS"
    /// `TRACE`.
    public static let trace: RequestMethod = "TRACE"
    /// `CONNECT`.
    public static let connect: RequestMethod = "CONNECT"
    /// `QUERY`: a safe request whose content is the query (RFC 10008).
    public static let query: RequestMethod = "QUERY"

    /// Whether the method requests no change; unknown methods count as unsafe (RFC 9110 §9.2.1, RFC 9111 §4.4).
    ///
    /// In addition to HTTP's own methods, the registry lists QUERY, PROPFIND (RFC 4918), REPORT (RFC 3253) and SEARCH (RFC 5323) as
    /// safe.
    public var isSafe: Bool {
        switch rawValue {
        case "GET", "HEAD", "OPTIONS", "TRACE", "QUERY", "PROPFIND", "REPORT", "SEARCH": true
        default: false
        }
    }

    /// Whether sending it twice has the same effect as once; unknown methods count as not idempotent (RFC 9110 §9.2.2).
    public var isIdempotent: Bool {
        isSafe || rawValue == "PUT" || rawValue == "DELETE"
    }
}

/// What the rules need to know of a response: everything but its content.
public struct ResponseHead: Sendable, Hashable {
    /// The status code.
    public var status: StatusCode

    /// The header fields in order, without trailers.
    public var fields: HeaderFields

    /// Creates a head from its parts.
    ///
    /// - Parameters:
    ///   - status: any number.
    ///   - fields: none by default.
    public init(status: StatusCode, fields: HeaderFields = HeaderFields()) {
        self.status = status
        self.fields = fields
    }

    /// When the origin created the response, by its Date field (RFC 9110 §6.6.1).
    ///
    /// A missing, repeated or malformed field gives nil; then use the time of receipt.
    ///
    /// - Parameter receivedAt: when the response arrived, for two-digit years.
    /// - Returns: the date, or nil.
    public func date(receivedAt: Timestamp) -> HTTPDate? {
        ResponseHead.date(of: .date, in: fields, receivedAt: receivedAt)
    }

    /// The length of its content by Content-Length; nil if missing, malformed or contradictory (RFC 9110 §8.6).
    public var contentLength: Int? {
        let lines = Set(fields.values(of: .contentLength))
        guard lines.count == 1, let line = lines.first else { return nil }
        return FieldScanner.number(line.utf8, limit: Int64(Int.max)).flatMap { Int(exactly: $0) }
    }

    /// The Age field in seconds (RFC 9111 §5.1).
    ///
    /// Only the first member of the first line counts; anything but digits counts as no field.
    public var age: Int64? {
        guard let line = fields.first(where: { $0.name == .age }) else { return nil }
        var scanner = FieldScanner(line.value)
        let member = scanner.text(upTo: UInt8(ascii: ","))
        return FieldScanner.number(member.utf8, limit: CacheControl.maximumDeltaSeconds)
    }

    /// The date in a field that must not be repeated; nil if it is missing, malformed or repeated.
    package static func date(of name: FieldName, in fields: HeaderFields, receivedAt: Timestamp) -> HTTPDate? {
        var found: String?
        for line in fields where line.name == name {
            guard found == nil else { return nil }
            found = line.value
        }
        return found.flatMap { HTTPDate($0, receivedAt: receivedAt) }
    }
}

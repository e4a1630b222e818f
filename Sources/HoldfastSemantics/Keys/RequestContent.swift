// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// How request content is normalized before it becomes part of a cache key.
///
/// The request itself is sent as it is. Normalizing is opt-in for each origin, because a server may give meaning to what it
/// removes.
public struct ContentNormalizer: RawRepresentable, Sendable, Hashable {
    /// The stable name.
    public let rawValue: String

    /// Creates a normalizer from a stable name; an unknown one works like ``raw``.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// The bytes as sent; the default everywhere.
    public static let raw = ContentNormalizer(rawValue: "raw")

    /// JSON without regard to whitespace, member order and escapes (RFC 8785).
    ///
    /// For `application/json` and types that end in `+json`. Content for which this could merge different values keeps its bytes:
    /// invalid JSON, duplicate members, integers beyond 2^53.
    public static let json = ContentNormalizer(rawValue: "json")

    /// Like ``json``; in addition, a GraphQL request's `operationName`, `variables` and `extensions` count as absent if they are
    /// null. The query document is compared as text.
    public static let graphQL = ContentNormalizer(rawValue: "graphql")

    /// - Returns: nil if the bytes are used as they are.
    package func normalized(_ content: [UInt8]) -> [UInt8]? {
        switch self {
        case .json: CanonicalJSON.bytes(of: content)
        case .graphQL:
            CanonicalJSON.bytes(of: content, leavingOutNull: ["operationName", "variables", "extensions"])
        default: nil
        }
    }
}

/// What the content of a QUERY or of an opted-in POST adds to a cache key (RFC 10008: the content and its metadata).
///
/// Pass both texts to ``CacheKey/init(partition:method:target:contentType:contentDigest:)``.
package struct RequestContent: Sendable {
    /// The canonical media type; "" if the request has none. Content codings and languages follow if the request has them, since
    /// they change the meaning of the same bytes.
    package let contentType: String

    /// The SHA-256 of the normalized content as 64 hexadecimal digits.
    package let digest: String

    /// Describes content for a key; linear time, plus the sorting of JSON members.
    ///
    /// - Parameters:
    ///   - content: the bytes as they are sent; may be empty.
    ///   - fields: the request's fields; Content-Type, Content-Encoding and Content-Language count.
    ///   - normalizer: ``ContentNormalizer/raw`` by default. It does not change encoded content or other types.
    package init(_ content: [UInt8], fields: HeaderFields, normalizer: ContentNormalizer = .raw) {
        let type = fields[.contentType].map { CanonicalContentType($0) }
        var metadata = type?.text ?? ""
        for name in [FieldName.contentEncoding, .contentLanguage] {
            guard let value = fields[name] else { continue }
            // No field value contains a line feed, so nothing else has this form.
            metadata += "\n\(name.canonicalName):\(value.loweringASCII())"
        }
        contentType = metadata
        let isPlainJSON = type?.isJSON == true && !fields.contains(.contentEncoding)
        let bytes = isPlainJSON ? normalizer.normalized(content) : nil
        digest = SHA256Digest(hashing: bytes ?? content).hex
    }
}

/// A media type in canonical form (RFC 9110 §8.3.1), for the keys of requests with content.
///
/// Type, subtype, parameter names and the value of `charset` are lowercased; whitespace and the quotes around a token are removed.
/// Other values keep their case, and parameters their order, because both have a meaning for some types.
package struct CanonicalContentType: Sendable {
    /// The canonical text; a value that does not parse is only trimmed.
    package let text: String

    /// Type and subtype, such as `application/json`; "" if the value does not parse.
    package let essence: String

    /// The value of the first `charset` in lower case; nil if there is none.
    package let charset: String?

    /// Parses a field value; linear time.
    package init(_ value: String) {
        let cleaned = HeaderFields.Line(name: .contentType, value: value).value
        guard let parsed = CanonicalContentType(parsing: cleaned) else {
            text = cleaned
            essence = ""
            charset = nil
            return
        }
        self = parsed
    }

    /// nil for what is not a media type, including a missing `/` or a parameter without a value.
    package init?(parsing value: String) {
        var scanner = FieldScanner(value)
        scanner.skipWhitespace()
        guard let type = scanner.token(), scanner.consume(UInt8(ascii: "/")), let subtype = scanner.token() else {
            return nil
        }
        let essence = "\(type)/\(subtype)".loweringASCII()
        var text = essence
        var charset: String?
        scanner.skipWhitespace()
        while !scanner.isAtEnd {
            guard scanner.consume(UInt8(ascii: ";")) else { return nil }
            scanner.skipWhitespace()
            // RFC 9110 §5.6.6 allows an empty parameter after a semicolon.
            guard let name = scanner.token()?.loweringASCII() else { continue }
            guard scanner.consume(UInt8(ascii: "=")), var value = scanner.token() ?? scanner.quotedString() else {
                return nil
            }
            if name == "charset" {
                value = value.loweringASCII()
                charset = charset ?? value
            }
            text += ";\(name)=\(CanonicalContentType.quotedWhereNeeded(value))"
            scanner.skipWhitespace()
        }
        self.text = text
        self.essence = essence
        self.charset = charset
    }

    /// Whether the content is JSON in UTF-8: `application/json`, or any type with the suffix `+json` (RFC 6839 §3.1).
    package var isJSON: Bool {
        guard essence == "application/json" || essence.hasSuffix("+json") else { return false }
        return charset == nil || charset == "utf-8" || charset == "us-ascii"
    }

    private static func quotedWhereNeeded(_ value: String) -> String {
        if !value.isEmpty, value.utf8.allSatisfy(\.isTokenCharacter) { return value }
        var bytes: [UInt8] = [UInt8(ascii: "\"")]
        for byte in value.utf8 {
            if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { bytes.append(UInt8(ascii: "\\")) }
            bytes.append(byte)
        }
        bytes.append(UInt8(ascii: "\""))
        return String(decoding: bytes, as: UTF8.self)
    }
}

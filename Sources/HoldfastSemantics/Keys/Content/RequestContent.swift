// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// How request content is brought into one spelling before it becomes part of a cache key.
///
/// The request itself is sent as it is. Normalizing is opt-in per origin, because a server may give meaning to what it
/// takes away.
public struct ContentNormalizer: RawRepresentable, Sendable, Hashable {
    /// The stable name.
    public let rawValue: String

    /// Takes a stable name; an unknown one works as ``raw``.
    public init(rawValue: String) {
        self.rawValue = rawValue
    }

    /// The bytes as sent; the default everywhere.
    public static let raw = ContentNormalizer(rawValue: "raw")

    /// JSON without regard to white space, member order and escapes (RFC 8785).
    ///
    /// For `application/json` and types that end in `+json`. Content where that could merge different values keeps its
    /// bytes: what is no JSON, duplicate members, integers beyond 2^53.
    public static let json = ContentNormalizer(rawValue: "json")

    /// As ``json``, and a GraphQL request's `operationName`, `variables` and `extensions` count as absent when they are
    /// null. The query document is compared as text.
    public static let graphQL = ContentNormalizer(rawValue: "graphql")

    /// - Returns: nil where the bytes count as they are.
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
public struct RequestContent: Sendable {
    /// The canonical media type; "" where the request names none. Content codings and languages follow where the request
    /// has them, since the same bytes mean something else then.
    public let contentType: String

    /// The SHA-256 of the normalized content as 64 hexadecimal digits.
    public let digest: String

    /// Describes content for a key; linear time, plus the sorting of JSON members.
    ///
    /// - Parameters:
    ///   - content: the bytes as they are sent; may be empty.
    ///   - fields: the request's fields, of which Content-Type, Content-Encoding and Content-Language count.
    ///   - normalizer: ``ContentNormalizer/raw`` by default. It does nothing to encoded content and to other types.
    public init(_ content: [UInt8], fields: HeaderFields, normalizer: ContentNormalizer = .raw) {
        let type = fields[.contentType].map { CanonicalContentType($0) }
        var metadata = type?.text ?? ""
        for name in [FieldName.contentEncoding, .contentLanguage] {
            guard let value = fields[name] else { continue }
            // A line feed stands in no field value, so nothing else can spell this.
            metadata += "\n\(name.canonicalName):\(value.loweringASCII())"
        }
        contentType = metadata
        let isPlainJSON = type?.isJSON == true && !fields.contains(.contentEncoding)
        let bytes = isPlainJSON ? normalizer.normalized(content) : nil
        digest = SHA256Digest(hashing: bytes ?? content).hex
    }
}

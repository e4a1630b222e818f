// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// A validator that changes whenever a byte of the representation does; only such a one lets parts be combined
/// (RFC 9110 §8.8.1, §15.3.7.3).
public enum StrongValidator: Sendable, Hashable {
    /// A strong entity tag.
    case entityTag(EntityTag)
    /// A Last-Modified that is known to be strong (RFC 9110 §8.8.2.2).
    case lastModified(HTTPDate)

    /// The strong validator of a response, if it has one.
    ///
    /// A response with an ETag is known by that alone: where it is weak or cannot be read there is none. Content whose
    /// coding was undone has none either, for its bytes are not those the origin speaks of.
    ///
    /// - Parameters:
    ///   - head: status and fields as they came or as they are stored.
    ///   - receivedAt: when the response came, for two-digit years.
    ///   - contentDecoded: whether a content coding was undone.
    public init?(_ head: ResponseHead, receivedAt: Timestamp, contentDecoded: Bool) {
        guard !contentDecoded else { return nil }
        if head.fields.contains(.eTag) {
            guard let tag = head.entityTag, !tag.isWeak else { return nil }
            self = .entityTag(tag)
            return
        }
        guard let date = StrongValidator.strongDate(head, receivedAt: receivedAt) else { return nil }
        self = .lastModified(date)
    }

    /// The strong validator of a stored response, if it has one.
    public init?(_ stored: StoredResponse) {
        self.init(stored.head, receivedAt: stored.responseTime, contentDecoded: stored.contentDecoded)
    }

    /// The value for If-Range (RFC 9110 §13.1.5).
    public var fieldValue: String {
        switch self {
        case .entityTag(let tag): tag.description
        case .lastModified(let date): date.description
        }
    }

    /// Whether the If-Range of a request holds for a stored response, so that its Range counts (RFC 9110 §13.1.5).
    ///
    /// An entity tag is compared strongly; a date must be the stored Last-Modified to the second, and that one strong.
    /// True without the field; false when it stands twice or cannot be read.
    ///
    /// - Parameters:
    ///   - fields: the request's fields.
    ///   - stored: the response it would be answered from.
    public static func ifRangeHolds(_ fields: HeaderFields, for stored: StoredResponse) -> Bool {
        let values = fields.values(of: .ifRange)
        guard let value = values.first else { return true }
        guard values.count == 1, !stored.contentDecoded else { return false }
        if let tag = EntityTag(value) { return stored.entityTag?.strongMatches(tag) ?? false }
        guard let date = HTTPDate(value, receivedAt: stored.responseTime) else { return false }
        return strongDate(stored.head, receivedAt: stored.responseTime) == date
    }

    /// A Last-Modified at least one second before the Date of the same response: both are the origin's, so the
    /// representation cannot have changed again within that second (RFC 9110 §8.8.2.2).
    private static func strongDate(_ head: ResponseHead, receivedAt: Timestamp) -> HTTPDate? {
        guard let modified = head.lastModified(receivedAt: receivedAt), let date = head.date(receivedAt: receivedAt),
            modified < date
        else { return nil }
        return modified
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The primary key of stored responses: whose, which method group, which URI, which request content.
///
/// Length-framed, never joined by a delimiter. HEAD looks up in the group of GET (RFC 9111 §4); nothing else shares.
public struct CacheKey: Sendable, Hashable, CustomStringConvertible {
    /// Whose responses these are; "" for everyone's.
    public let partition: String

    /// The method under which the response is stored.
    public let methodGroup: RequestMethod

    /// The canonical target URI.
    public let target: TargetURI

    /// The canonical content type of the request, and what its key fields add (``CacheRule/keyFields``); "" where neither is part of
    /// the key.
    public let contentType: String

    /// The SHA-256 of the request content in hexadecimal; "" where the content is no part of the key.
    public let contentDigest: String

    /// The key as bytes: six frames, the first of them the format's name.
    public let framed: [UInt8]

    /// Creates a key from its parts.
    ///
    /// - Parameters:
    ///   - partition: "" by default.
    ///   - method: the request's method; HEAD counts as GET.
    ///   - target: the target URI.
    ///   - contentType: "" by default.
    ///   - contentDigest: "" by default.
    public init(
        partition: String = "",
        method: RequestMethod,
        target: TargetURI,
        contentType: String = "",
        contentDigest: String = ""
    ) {
        self.partition = partition
        methodGroup = method == .head ? .get : method
        self.target = target
        self.contentType = contentType
        self.contentDigest = contentDigest
        // Room for six counts, the format's name and a method of usual length beside the parts that vary.
        var frames = FramedBytes(
            capacity: 40 + partition.utf8.count + target.canonical.utf8.count + contentType.utf8.count
                + contentDigest.utf8.count
        )
        frames.append(CacheKey.formatName)
        frames.append(partition)
        frames.append(methodGroup.rawValue)
        frames.append(target.canonical)
        frames.append(contentType)
        frames.append(contentDigest)
        framed = frames.bytes
    }

    /// What a framed key says, for those who have nothing but its bytes.
    package struct Parts: Sendable {
        /// Whose responses these are.
        package let partition: String
        /// The method group.
        package let methodGroup: String
        /// The canonical URI.
        package let target: String
        /// The canonical content type, and what key fields add.
        package let contentType: String

        /// Reads the first frames of a key; nil where they are not those of a key.
        package init?(framed: [UInt8]) {
            var reader = FramedBytes.Reader(framed)
            guard reader.nextString() == CacheKey.formatName, let partition = reader.nextString(),
                let methodGroup = reader.nextString(), let target = reader.nextString(),
                let contentType = reader.nextString()
            else { return nil }
            (self.partition, self.methodGroup, self.target) = (partition, methodGroup, target)
            self.contentType = contentType
        }
    }

    /// The bytes with which the keys of a method group and URI begin, whatever the content.
    package static func prefix(partition: String, methodGroup: RequestMethod, target: TargetURI) -> [UInt8] {
        var frames = FramedBytes()
        frames.append(CacheKey.formatName)
        frames.append(partition)
        frames.append(methodGroup.rawValue)
        frames.append(target.canonical)
        return frames.bytes
    }

    /// The SHA-256 of ``framed`` in hexadecimal: the same on every system, for stores that are shared.
    ///
    /// Computed at each reading, about a microsecond for a key of usual length.
    public var digestHex: String { SHA256Digest(hashing: framed).hex }

    /// Method group and URI, for logs; the partition is left out.
    public var description: String { "\(methodGroup) \(target)" }

    /// Whether both keys have the same frames.
    public static func == (left: CacheKey, right: CacheKey) -> Bool {
        left.framed == right.framed
    }

    /// Feeds the frames to the hasher.
    public func hash(into hasher: inout Hasher) {
        // An array feeds its elements one by one; the frames are long enough to feel it.
        framed.withUnsafeBytes { hasher.combine(bytes: $0) }
    }

    private static let formatName = "hck1"
}

/// Whose response it is, as a keyed digest: the partition that keeps one user's entries from another's.
///
/// No credential is kept: without the secret the digest says nothing about it.
public enum CachePrincipal {
    /// The digest of who asks.
    ///
    /// Authorization, Cookie, the userinfo of the URI and the fields that the caller names count. Proxy-Authorization does not: it names the user to a
    /// proxy and selects no response.
    ///
    /// - Parameters:
    ///   - fields: the request's fields, those included that the transport adds.
    ///   - userinfo: the userinfo of the target URI.
    ///   - explicit: a name the caller gives for the principal; it replaces all credentials. An empty name is a name too
    ///     and never falls together with anonymous requests.
    ///   - credentialFields: further fields that hold a credential; none by default. In any order, repeated or not, they name the
    ///     same principal, and one that the request lacks names none.
    ///   - secret: the key of the digest; the same secret gives the same partition.
    /// - Returns: "" for an anonymous request, else 32 hexadecimal digits.
    public static func digest(
        of fields: HeaderFields,
        userinfo: String?,
        explicit: String? = nil,
        credentialFields: [FieldName] = [],
        secret: [UInt8]
    ) -> String {
        var frames = FramedBytes()
        if let explicit {
            frames.append("explicit")
            frames.append(explicit)
        } else {
            for line in fields
            where line.name == .authorization || line.name == .cookie || credentialFields.contains(line.name) {
                frames.append(line.name.canonicalName)
                frames.append(line.value)
            }
            if let userinfo, !userinfo.isEmpty {
                frames.append("userinfo")
                frames.append(userinfo)
            }
        }
        guard !frames.bytes.isEmpty else { return "" }
        return SHA256Digest.hex(SHA256Digest(authenticating: frames.bytes, key: secret).bytes.prefix(16))
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The primary key of stored responses: partition, method group, URI and request content.
///
/// Its parts are length-framed, not joined by a delimiter. HEAD uses the group of GET (RFC 9111 §4); no other methods share one.
public struct CacheKey: Sendable, Hashable, CustomStringConvertible {
    /// The partition of these responses; "" if they are for everyone.
    public let partition: String

    /// The method under which the response is stored.
    package let methodGroup: RequestMethod

    /// The canonical target URI.
    public let target: TargetURI

    /// The canonical content type of the request, and what its key fields add (``CacheRule/keyFields``); "" if neither is part of
    /// the key.
    public let contentType: String

    /// The SHA-256 of the request content in hexadecimal; "" if the content is not part of the key.
    package let contentDigest: String

    /// The key as bytes: six frames, the first of which is the format's name.
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
        framed = CacheKey.framed(
            partition: partition,
            method: methodGroup.rawValue,
            target: target.canonical,
            contentType: contentType,
            contentDigest: contentDigest
        )
    }

    /// The key of a GET without content, for a target in canonical form.
    ///
    /// Another text gives bytes that no key has, since the targets of keys are canonical.
    package static func framed(partition: String, ofGet target: String, contentType: String = "") -> [UInt8] {
        framed(partition: partition, method: "GET", target: target, contentType: contentType, contentDigest: "")
    }

    private static func framed(
        partition: String,
        method: String,
        target: String,
        contentType: String,
        contentDigest: String
    ) -> [UInt8] {
        // Six counts and the format's name.
        let count =
            28 + partition.utf8.count + method.utf8.count + target.utf8.count + contentType.utf8.count
            + contentDigest.utf8.count
        // Made with zeros: an array without them is made by code of the standard library that is not specialized.
        var framed = [UInt8](repeating: 0, count: count)
        framed.withUnsafeMutableBytes { framed in
            var bytes = framed
            CacheKey.append(formatName, to: &bytes)
            CacheKey.append(partition, to: &bytes)
            CacheKey.append(method, to: &bytes)
            CacheKey.append(target, to: &bytes)
            CacheKey.append(contentType, to: &bytes)
            CacheKey.append(contentDigest, to: &bytes)
        }
        return framed
    }

    /// Writes a frame, and moves the beginning of the buffer behind it.
    @inline(__always)
    private static func append(_ part: String, to bytes: inout UnsafeMutableRawBufferPointer) {
        var part = part
        part.withUTF8 { part in
            bytes.storeBytes(of: UInt32(clamping: part.count).bigEndian, as: UInt32.self)
            UnsafeMutableRawBufferPointer(rebasing: bytes[4...]).copyMemory(from: UnsafeRawBufferPointer(part))
            bytes = UnsafeMutableRawBufferPointer(rebasing: bytes[(4 + part.count)...])
        }
    }

    /// The parts of a framed key, for code that has only its bytes.
    package struct Parts: Sendable {
        /// The partition.
        package let partition: String
        /// The method group.
        package let methodGroup: String
        /// The canonical URI.
        package let target: String
        /// The canonical content type, and what key fields add.
        package let contentType: String

        /// Reads the first frames of a key; nil if they are not those of a key.
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

    /// The first bytes of all keys of a method group and URI, whatever the content.
    package static func prefix(partition: String, methodGroup: RequestMethod, target: TargetURI) -> [UInt8] {
        var frames = FramedBytes()
        frames.append(CacheKey.formatName)
        frames.append(partition)
        frames.append(methodGroup.rawValue)
        frames.append(target.canonical)
        return frames.bytes
    }

    /// How many of a key's first bytes are its ``prefix(partition:methodGroup:target:)``; nil for bytes that do not begin with one.
    package static func targetPrefixLength(of framed: [UInt8]) -> Int? {
        framed.withUnsafeBytes { bytes in
            var walk = FrameWalk(bytes)
            for _ in 0..<4 where walk.next() == nil { return nil }
            return walk.position
        }
    }

    /// The SHA-256 of ``framed`` in hexadecimal, equal on every system, for shared stores.
    ///
    /// Computed on each access; takes about a microsecond for a typical key.
    package var digestHex: String { SHA256Digest(hashing: framed).hex }

    /// Method group and URI, for logs; without the partition.
    public var description: String { "\(methodGroup) \(target)" }

    /// Whether both keys have the same frames.
    public static func == (left: CacheKey, right: CacheKey) -> Bool {
        left.framed == right.framed
    }

    /// Feeds the frames to the hasher.
    public func hash(into hasher: inout Hasher) {
        // An array feeds its elements one by one, which is slow for long frames.
        framed.withUnsafeBytes { hasher.combine(bytes: $0) }
    }

    private static let formatName = "hck1"
}

/// The principal of a response as a keyed digest: the partition that separates the entries of different users.
///
/// No credential is stored: without the secret the digest reveals nothing about it.
package enum CachePrincipal {
    /// The digest of the requester.
    ///
    /// Authorization, Cookie, the userinfo of the URI and the fields that the caller names count. Proxy-Authorization does not: it
    /// identifies the user to a proxy and selects no response.
    ///
    /// - Parameters:
    ///   - fields: the request's fields, including those that the transport adds.
    ///   - userinfo: the userinfo of the target URI.
    ///   - explicit: a name that the caller gives the principal; it replaces all credentials. An empty name is a name too and never
    ///     equals anonymous requests.
    ///   - credentialFields: further fields that contain a credential; none by default. Order and repetition do not matter, and a
    ///     field that the request lacks adds nothing.
    ///   - secret: the key of the digest; the same secret gives the same partition.
    /// - Returns: "" for an anonymous request, otherwise 32 hexadecimal digits.
    package static func digest(
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
            // In an order of their own: that of the lines depends on who added them.
            let others = Set(credentialFields).subtracting([.authorization, .cookie])
            let names = [.authorization, .cookie] + others.sorted { $0.canonicalName < $1.canonicalName }
            for name in names {
                for value in fields.values(of: name) {
                    frames.append(name.canonicalName)
                    frames.append(value)
                }
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

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

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

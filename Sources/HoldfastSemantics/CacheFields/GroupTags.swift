// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The groups of a stored response as words a store can keep with it (RFC 9875).
///
/// A word is a keyed digest of origin and name, so it is short whatever the name, says nothing to a reader of the store, and
/// cannot be met by a word that a caller chose. Where a response has more groups than words are left, one more word stands
/// for "any group of the origin": it is then invalidated too often rather than too rarely.
public struct GroupTags: Sendable {
    private let secret: [UInt8]
    private let origin: String

    /// Words for the groups of one origin.
    ///
    /// - Parameters:
    ///   - target: any URI of the origin: groups of different origins are different groups (RFC 9875 §2.1).
    ///   - secret: the store's secret.
    public init(of target: TargetURI, secret: [UInt8]) {
        origin = target.origin
        self.secret = secret
    }

    /// The words for a response.
    ///
    /// - Parameters:
    ///   - groups: its groups.
    ///   - room: how many words may be given at most; with no room for one, none is.
    public func words(for groups: CacheGroups, room: Int) -> Set<String> {
        guard !groups.isEmpty, room > 0 else { return [] }
        guard groups.names.count > room else { return Set(groups.names.map(word)) }
        return Set(groups.names.prefix(room - 1).map(word)).union([anyWord])
    }

    /// The words of which a response bears one if it is to be invalidated together with these groups.
    public func words(invalidating groups: CacheGroups) -> Set<String> {
        groups.isEmpty ? [] : Set(groups.names.map(word)).union([anyWord])
    }

    private func word(_ name: String) -> String { digest(["group", origin, name]) }

    private var anyWord: String { digest(["any group", origin]) }

    private func digest(_ parts: [String]) -> String {
        var frames = FramedBytes()
        for part in parts { frames.append(part) }
        return "group " + SHA256Digest(authenticating: frames.bytes, key: secret).hex
    }
}

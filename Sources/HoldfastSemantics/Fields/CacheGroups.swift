// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Names of groups of stored responses: what Cache-Groups and Cache-Group-Invalidation carry (RFC 9875).
///
/// A group belongs to one origin: responses share it only where their target URIs have the same scheme, host and port
/// and the names are equal, letter case included (RFC 9875 §2.1). The origin is the caller's to compare.
public struct CacheGroups: Sendable, Hashable {
    /// The names in order, each once.
    public let names: [String]

    /// How many groups of one field are kept; RFC 9875 §2 asks for 32 at least.
    public static let maximumCount = 128

    /// How many characters a kept name has at most; RFC 9875 §2 asks for 32 at least.
    public static let maximumLength = 128

    /// The groups a response belongs to (RFC 9875 §2).
    ///
    /// - Parameter fields: the response's fields. Cache-Groups must be a List of Strings, else it counts as absent;
    ///   parameters are ignored; names beyond ``maximumCount`` or ``maximumLength`` are dropped. Linear time.
    public init(_ fields: HeaderFields) {
        names = CacheGroups.names(in: fields, .cacheGroups)
    }

    /// The groups that a response makes invalid (RFC 9875 §3).
    ///
    /// The caller invalidates what it has stored for the same origin and any of these groups, and no more: a response
    /// that goes this way takes none of its other groups along (RFC 9875 §2.2).
    ///
    /// - Parameters:
    ///   - request: the request that was sent; a safe one invalidates nothing, whatever its response says.
    ///   - response: its final response, read as ``init(_:)`` reads Cache-Groups; an error invalidates nothing, as in RFC
    ///     9111 §4.4.
    /// - Returns: the groups; empty when nothing is to be done.
    public static func invalidated(request: RequestHead, response: ResponseHead) -> CacheGroups {
        guard Invalidation.applies(request: request, response: response) else { return CacheGroups(names: []) }
        return CacheGroups(names: names(in: response.fields, .cacheGroupInvalidation))
    }

    /// Whether there is no group.
    public var isEmpty: Bool { names.isEmpty }

    /// Whether both name a group in common; the origins must be compared besides.
    public func intersects(_ other: CacheGroups) -> Bool {
        guard !isEmpty, !other.isEmpty else { return false }
        return !Set(names).isDisjoint(with: other.names)
    }

    private init(names: [String]) {
        self.names = names
    }

    private static func names(in fields: HeaderFields, _ field: FieldName) -> [String] {
        guard let value = fields[field], let list = try? StructuredList(parsing: value) else { return [] }
        var names: [String] = []
        var known: Set<String> = []
        for member in list.members {
            guard case .string(let name) = member.item?.value else { return [] }
            guard name.utf8.count <= maximumLength, names.count < maximumCount, known.insert(name).inserted else {
                continue
            }
            names.append(name)
        }
        return names
    }
}

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

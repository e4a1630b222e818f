// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Names of groups of stored responses: the content of Cache-Groups and Cache-Group-Invalidation (RFC 9875).
///
/// A group belongs to one origin: responses share it only if their target URIs have the same scheme, host and port, and the names
/// are equal, including case (RFC 9875 §2.1). The caller compares the origins.
package struct CacheGroups: Sendable, Hashable {
    /// The names in order, each once.
    package let names: [String]

    /// The most groups of one field that are kept; RFC 9875 §2 requires at least 32.
    package static let maximumCount = 128

    /// The most characters of a kept name; RFC 9875 §2 requires at least 32.
    package static let maximumLength = 128

    /// The groups that a response belongs to (RFC 9875 §2).
    ///
    /// - Parameter fields: the response's fields. Cache-Groups must be a List of Strings, otherwise it counts as absent. Parameters
    ///   are ignored; names beyond ``maximumCount`` or ``maximumLength`` are dropped. Linear time.
    package init(_ fields: HeaderFields) { names = CacheGroups.names(in: fields, .cacheGroups) }

    /// The groups that a response invalidates (RFC 9875 §3).
    ///
    /// The caller invalidates what it has stored for the same origin and any of these groups, and nothing else: other groups of a
    /// response invalidated this way are not affected (RFC 9875 §2.2).
    ///
    /// - Parameters:
    ///   - request: the request that was sent; a safe one invalidates nothing, whatever its response says.
    ///   - response: its final response, read as ``init(_:)`` reads Cache-Groups; an error invalidates nothing, as in RFC 9111
    ///     §4.4.
    /// - Returns: the groups; empty if there is nothing to do.
    package static func invalidated(request: RequestHead, response: ResponseHead) -> CacheGroups {
        guard Invalidation.applies(request: request, response: response) else { return CacheGroups(names: []) }
        return CacheGroups(names: names(in: response.fields, .cacheGroupInvalidation))
    }

    /// Whether there are no groups.
    package var isEmpty: Bool { names.isEmpty }

    private init(names: [String]) { self.names = names }

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

/// The groups of a stored response as words that a store can keep with it (RFC 9875).
///
/// A word is a keyed digest of origin and name. So it is short whatever the name, tells a reader of the store nothing, and cannot
/// equal a word that a caller chose. If a response has more groups than there is room for words, one more word means "any group of
/// the origin": the response is then invalidated too often rather than too rarely.
package struct GroupTags: Sendable {
    private let secret: [UInt8]
    private let origin: String

    /// Words for the groups of one origin.
    ///
    /// - Parameters:
    ///   - target: any URI of the origin: groups of different origins are different groups (RFC 9875 §2.1).
    ///   - secret: the store's secret.
    package init(of target: TargetURI, secret: [UInt8]) {
        origin = target.origin
        self.secret = secret
    }

    /// The words for a response.
    ///
    /// - Parameters:
    ///   - groups: its groups.
    ///   - room: the most words to return; if there is no room for one, there are none.
    package func words(for groups: CacheGroups, room: Int) -> Set<String> {
        guard !groups.isEmpty, room > 0 else { return [] }
        guard groups.names.count > room else { return Set(groups.names.map(word)) }
        return Set(groups.names.prefix(room - 1).map(word)).union([anyWord])
    }

    /// The words to look for when these groups are invalidated: an affected response has at least one of them.
    package func words(invalidating groups: CacheGroups) -> Set<String> {
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

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The `No-Vary-Search` field of a response: which query parameters matter, and whether their order does.
///
/// Follows the draft "The No-Vary-Search HTTP Response Header Field" (draft-ietf-httpbis-no-vary-search). A cache uses it only
/// after a lookup by the exact URI has found nothing. A field that does not parse, or that has a value of the wrong type, has no
/// effect: then every difference of the query matters. Unknown members and parameters are ignored.
package struct NoVarySearch: Sendable, Hashable {
    private enum Selection: Sendable, Hashable {
        case all
        case allBut(Set<[UInt8]>)
        case only(Set<[UInt8]>)
    }

    private let selection: Selection
    private let keepsOrder: Bool

    /// The variance of a response without the field: queries are compared as text.
    package static let none = NoVarySearch(selection: .all, keepsOrder: true)

    /// Whether the field has no effect.
    package var isNone: Bool { self == NoVarySearch.none }

    /// Reads the field from a response.
    ///
    /// - Parameter fields: the response's fields; several lines count as one (RFC 9651 §4.2).
    package init(_ fields: HeaderFields) { self.init(fieldValue: fields[.noVarySearch]) }

    /// Reads the combined field value.
    ///
    /// - Parameter fieldValue: nil if the response has no such field.
    package init(fieldValue: String?) {
        guard let fieldValue, let members = try? StructuredDictionary(parsing: fieldValue),
            let read = NoVarySearch(members: members)
        else {
            self = .none
            return
        }
        self = read
    }

    private init(selection: Selection, keepsOrder: Bool) {
        self.selection = selection
        self.keepsOrder = keepsOrder
    }

    /// nil for members of the wrong kind.
    private init?(members: StructuredDictionary) {
        switch members["key-order"].map(Value.init) {
        case nil: keepsOrder = true
        case .boolean(let ignoresOrder): keepsOrder = !ignoresOrder
        case .names, .other: return nil
        }
        let parameters = members["params"].map(Value.init)
        guard let except = members["except"].map(Value.init) else {
            switch parameters {
            case nil, .boolean(false): selection = .all
            case .boolean(true): selection = .only([])
            case .names(let names): selection = names.isEmpty ? .all : .allBut(names)
            case .other: return nil
            }
            return
        }
        guard case .boolean(true) = parameters, case .names(let names) = except else { return nil }
        selection = .only(names)
    }

    /// A member, as far as its type is known here; parameters are ignored.
    private enum Value {
        case boolean(Bool)
        case names(Set<[UInt8]>)
        case other

        init(_ member: StructuredMember) {
            switch member {
            case .item(let item):
                if case .boolean(let isTrue) = item.value { self = .boolean(isTrue) } else { self = .other }
            case .innerList(let list):
                var names: Set<[UInt8]> = []
                for item in list.items {
                    guard case .string(let name) = item.value else {
                        self = .other
                        return
                    }
                    // Names are written in the form of a query, so they are decoded like one.
                    names.insert(QueryPiece.decoded(name.utf8))
                }
                self = .names(names)
            }
        }
    }

    /// Whether a response with this variance, stored for one URI, may answer a request for another.
    ///
    /// Scheme, authority and path must be equal; userinfo is handled by the partition. The relation is symmetric and transitive.
    package func isEquivalent(_ one: TargetURI, to other: TargetURI) -> Bool {
        if one == other { return true }
        guard !isNone, one.isSameOrigin(as: other), one.path == other.path else { return false }
        return canonicalQuery(of: one) == canonicalQuery(of: other)
    }

    /// The part of a query that matters, in a normalized form, as an index for a store.
    ///
    /// Two URIs of one origin and path are equivalent exactly if these texts are equal. Without effect it is the query after its
    /// "?", or "" if there is none; otherwise the form-decoded pairs, encoded again. Takes as long as sorting.
    package func canonicalQuery(of target: TargetURI) -> String {
        guard !isNone else { return target.query.map { "?" + $0 } ?? "" }
        guard let query = target.query else { return "" }
        var pieces = QueryPiece.pieces(of: query).filter { !$0.text.isEmpty && matters($0.name) }
        if !keepsOrder { pieces = QueryPiece.sorted(pieces) }
        var bytes: [UInt8] = []
        for piece in pieces {
            if !bytes.isEmpty { bytes.append(UInt8(ascii: "&")) }
            NoVarySearch.append(piece.name, to: &bytes)
            bytes.append(UInt8(ascii: "="))
            NoVarySearch.append(piece.value, to: &bytes)
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private func matters(_ name: [UInt8]) -> Bool {
        switch selection {
        case .all: true
        case .allBut(let names): !names.contains(name)
        case .only(let names): names.contains(name)
        }
    }

    private static func append(_ part: [UInt8], to bytes: inout [UInt8]) {
        let digits = Array("0123456789ABCDEF".utf8)
        for byte in part {
            if URICharacters.unreserved.contains(byte) {
                bytes.append(byte)
            } else {
                bytes += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
    }
}

/// The keys under which a store records which queries of one path are equivalent (No-Vary-Search).
///
/// Two kinds of small entries lead from a query to the URI that was stored: one for a path, whose variants are the field values
/// seen there; and one for each field value and query that matters, which contains the URI. Both are ordinary entries, so they are
/// bounded, evicted, kept over a restart and separated by principal like all others.
package struct SearchVarianceKeys: Sendable {
    /// Longer field values are not recorded; they are valid and only cost hits.
    package static let longestValue = 1_024

    private let key: CacheKey
    private let path: TargetURI

    /// The keys for a request's key; nil if that key includes content, or if its method is not GET.
    package init?(_ key: CacheKey) {
        guard key.methodGroup == .get, key.contentDigest.isEmpty,
            let path = try? TargetURI(key.target.origin + key.target.path)
        else { return nil }
        self.key = key
        self.path = path
    }

    /// The key of the path's field values.
    package var ofPath: CacheKey { made(digest: "") }

    /// The key that leads to the URI stored with this field value for an equivalent query.
    package func ofQuery(_ fieldValue: String) -> CacheKey {
        var frames = FramedBytes()
        frames.append(fieldValue)
        frames.append(NoVarySearch(fieldValue: fieldValue).canonicalQuery(of: key.target))
        return made(digest: SHA256Digest(hashing: frames.bytes).hex)
    }

    /// The key of another URI in the same partition, with the same key fields; nil if the text is not a URI.
    package func ofURI(_ text: String) -> CacheKey? {
        (try? TargetURI(text)).map {
            CacheKey(partition: key.partition, method: .get, target: $0, contentType: key.contentType)
        }
    }

    /// Whether framed bytes are a key of this kind, and so not the key of a response.
    package static func isOne(_ framed: [UInt8]) -> Bool {
        var reader = FramedBytes.Reader(framed)
        for _ in 0..<4 { guard reader.next() != nil else { return false } }
        return reader.nextString() == kind
    }

    /// In place of a content type; GET has none in its keys, so no other key has this form.
    private static let kind = "no-vary-search"

    private func made(digest: String) -> CacheKey {
        CacheKey(
            partition: key.partition,
            method: .get,
            target: path,
            contentType: SearchVarianceKeys.kind,
            contentDigest: digest
        )
    }
}

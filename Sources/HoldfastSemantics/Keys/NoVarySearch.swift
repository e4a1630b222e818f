// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What a response says about its query with `No-Vary-Search`: which parameters, and whether their order, matter.
///
/// After the draft "The No-Vary-Search HTTP Response Header Field" (draft-ietf-httpbis-no-vary-search). A store asks it
/// only after the look-up by the exact URI found nothing. A field that does not parse, or that holds a value of the
/// wrong kind, has no effect: every difference of the query matters then. Unknown members and parameters are ignored.
public struct NoVarySearch: Sendable, Hashable {
    private enum Selection: Sendable, Hashable {
        case all
        case allBut(Set<[UInt8]>)
        case only(Set<[UInt8]>)
    }

    private let selection: Selection
    private let keepsOrder: Bool

    /// The variance of a response without the field: queries are compared as text.
    public static let none = NoVarySearch(selection: .all, keepsOrder: true)

    /// Whether the field has no effect.
    public var isNone: Bool { self == NoVarySearch.none }

    /// Reads the field from a response.
    ///
    /// - Parameter fields: the response's fields; several lines count as one (RFC 9651 §4.2).
    public init(_ fields: HeaderFields) {
        self.init(fieldValue: fields[.noVarySearch])
    }

    /// Reads the combined field value.
    ///
    /// - Parameter fieldValue: nil where the response has no such field.
    public init(fieldValue: String?) {
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

    /// A member as far as it can mean anything here; parameters are ignored.
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
                    // Names are listed in the spelling of a query, so they are decoded as one.
                    names.insert(QueryPiece.decoded(name.utf8))
                }
                self = .names(names)
            }
        }
    }

    /// Whether a response with this variance, stored for one URI, may answer a request for another.
    ///
    /// Scheme, authority and path must be equal; userinfo is the partition's affair. The relation is symmetric and
    /// transitive.
    public func isEquivalent(_ one: TargetURI, to other: TargetURI) -> Bool {
        if one == other { return true }
        guard !isNone, one.isSameOrigin(as: other), one.path == other.path else { return false }
        return canonicalQuery(of: one) == canonicalQuery(of: other)
    }

    /// The part of a query that matters, in one spelling, for a store to index by.
    ///
    /// Two URIs of one origin and path are equivalent exactly when these texts are equal. Without effect it is the query
    /// behind its "?", or "" where there is none; else the form-decoded pairs, encoded anew. The time is that of a sort.
    public func canonicalQuery(of target: TargetURI) -> String {
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

/// The keys under which a store remembers which queries of one path are equivalent (No-Vary-Search).
///
/// Two kinds of small entries lead from a query to the URI that was stored: one a path, whose variants are the field values
/// seen there; and one for each field value and query that matters, which names the URI. Both are plain entries, so they are
/// bounded, evicted, kept over a restart and parted by principal as all others are.
package struct SearchVarianceKeys: Sendable {
    /// Longer field values are not remembered; they are valid and only cost hits.
    package static let longestValue = 1_024

    private let key: CacheKey
    private let path: TargetURI

    /// The keys for a request's key; nil where its content is in the key too, or its method is not GET.
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

    /// The key of another URI in the same partition, with the same key fields; nil where the text is no URI.
    package func ofURI(_ text: String) -> CacheKey? {
        (try? TargetURI(text)).map {
            CacheKey(partition: key.partition, method: .get, target: $0, contentType: key.contentType)
        }
    }

    /// Whether framed bytes are a key of this kind, and so no key of a response.
    package static func isOne(_ framed: [UInt8]) -> Bool {
        var reader = FramedBytes.Reader(framed)
        for _ in 0..<4 { guard reader.next() != nil else { return false } }
        return reader.nextString() == kind
    }

    /// Stands where a content type would; GET has none in its keys, so nothing else looks like this.
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

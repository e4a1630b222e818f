// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Which differences between queries a cache key ignores: the order of names, tracking parameters and the like.
///
/// All are off by default, because they merge URIs that RFC 3986 distinguishes, and only the origin's owner knows that they mean
/// the same: set them for an origin or a path. Only the key changes; the request is sent as it is. Pieces are split only at "&".
/// Names are compared after form decoding ("+" is a space, escapes are decoded as UTF-8); the remaining pieces keep their spelling.
public struct QueryOptions: Sendable, Hashable {
    /// Whether the pieces are sorted by name; pieces with the same name keep their order. False by default.
    public var sortsNames: Bool

    /// Names that are not part of the key, in decoded form; one that ends in `*` matches all names with that prefix. Empty by
    /// default.
    public var ignoredNames: [String]

    /// The only names that are part of the key, in the same form as ``ignoredNames``; nil, the default, allows all. An empty list
    /// drops the whole query.
    public var allowedNames: [String]?

    /// Creates options.
    ///
    /// - Parameters:
    ///   - sortsNames: false by default.
    ///   - ignoredNames: empty by default; takes precedence over the allowed names.
    ///   - allowedNames: nil by default.
    public init(sortsNames: Bool = false, ignoredNames: [String] = [], allowedNames: [String]? = nil) {
        self.sortsNames = sortsNames
        self.ignoredNames = ignoredNames
        self.allowedNames = allowedNames
    }

    /// Whether the options change nothing, as by default.
    public var isEmpty: Bool { !sortsNames && ignoredNames.isEmpty && allowedNames == nil }

    /// The URI in the key for a target URI.
    ///
    /// An empty query loses its "?". Pure; takes as long as sorting, times the number of names in these options.
    ///
    /// - Parameter target: the target URI of the request.
    /// - Returns: the same URI if the options change nothing; its userinfo is kept.
    public func applied(to target: TargetURI) -> TargetURI {
        guard !isEmpty, let query = target.query else { return target }
        let ignored = ignoredNames.map(NamePattern.init)
        let allowed = allowedNames?.map(NamePattern.init)
        var pieces = QueryPiece.pieces(of: query).filter { piece in
            !ignored.contains { $0.matches(piece.name) } && allowed?.contains { $0.matches(piece.name) } != false
        }
        if sortsNames { pieces = QueryPiece.sorted(pieces) }
        let kept = pieces.map(\.text).joined(separator: "&")
        let userinfo = target.userinfo.map { $0 + "@" } ?? ""
        let rest = target.origin.dropFirst(target.scheme.utf8.count + 3) + target.path
        let text = "\(target.scheme)://\(userinfo)\(rest)" + (kept.isEmpty ? "" : "?" + kept)
        // A part of a canonical URI is canonical, so parsing never fails.
        return (try? TargetURI(text)) ?? target
    }

    private struct NamePattern {
        private let bytes: [UInt8]
        private let isPrefix: Bool

        init(_ text: String) {
            isPrefix = text.utf8.last == UInt8(ascii: "*")
            bytes = Array(isPrefix ? text.utf8.dropLast() : text.utf8[...])
        }

        func matches(_ name: [UInt8]) -> Bool {
            isPrefix ? name.starts(with: bytes) : name == bytes
        }
    }
}

/// One piece of a query between two "&", with form-decoded name and value (application/x-www-form-urlencoded).
///
/// Names and values are UTF-8 bytes, not strings, because strings compare by Unicode equivalence.
struct QueryPiece: Sendable {
    let text: String
    let name: [UInt8]
    let value: [UInt8]

    init(_ text: Substring) {
        self.text = String(text)
        let equals = text.utf8.firstIndex(of: UInt8(ascii: "="))
        name = QueryPiece.decoded(text.utf8[..<(equals ?? text.utf8.endIndex)])
        value = equals.map { QueryPiece.decoded(text.utf8[$0...].dropFirst()) } ?? []
    }

    /// All pieces, including empty ones.
    static func pieces(of query: String) -> [QueryPiece] {
        query.split(separator: "&", omittingEmptySubsequences: false).map(QueryPiece.init)
    }

    /// Sorts by the decoded name; pieces of one name stay in order.
    static func sorted(_ pieces: [QueryPiece]) -> [QueryPiece] {
        pieces.enumerated().sorted { left, right in
            if left.element.name == right.element.name { return left.offset < right.offset }
            return left.element.name.lexicographicallyPrecedes(right.element.name)
        }.map(\.element)
    }

    /// Turns "+" into a space and decodes escapes; invalid UTF-8 becomes U+FFFD, and a lone "%" stays.
    static func decoded(_ text: some Collection<UInt8>) -> [UInt8] {
        let bytes = Array(text)
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count)
        var isASCII = true
        var index = 0
        while index < bytes.count {
            var byte = bytes[index]
            index += 1
            if byte == UInt8(ascii: "+") {
                byte = UInt8(ascii: " ")
            } else if byte == UInt8(ascii: "%"), index + 1 < bytes.count, let high = bytes[index].hexValue,
                let low = bytes[index + 1].hexValue
            {
                byte = high << 4 | low
                index += 2
            }
            isASCII = isASCII && byte < 0x80
            result.append(byte)
        }
        return isASCII ? result : Array(String(decoding: result, as: UTF8.self).utf8)
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// A URI reference split into its five parts and nothing else done to it (RFC 3986 Appendix B).
struct URIReference {
    private(set) var scheme: ArraySlice<UInt8>?
    private(set) var authority: ArraySlice<UInt8>?
    private(set) var path: ArraySlice<UInt8>
    private(set) var query: ArraySlice<UInt8>?
    private(set) var fragment: ArraySlice<UInt8>?

    init(_ text: String) {
        self.init(bytes: Array(text.utf8))
    }

    init(bytes: [UInt8]) {
        var rest = bytes[...]
        if let hash = rest.firstIndex(of: UInt8(ascii: "#")) {
            fragment = rest[(hash + 1)...]
            rest = rest[..<hash]
        }
        if let mark = rest.firstIndex(of: UInt8(ascii: "?")) {
            query = rest[(mark + 1)...]
            rest = rest[..<mark]
        }
        let end = rest.firstIndex { $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: "/") }
        if let end, rest[end] == UInt8(ascii: ":"), end > rest.startIndex {
            scheme = rest[..<end]
            rest = rest[(end + 1)...]
        }
        if rest.starts(with: "//".utf8) {
            rest = rest.dropFirst(2)
            let slash = rest.firstIndex(of: UInt8(ascii: "/")) ?? rest.endIndex
            authority = rest[..<slash]
            rest = rest[slash...]
        }
        path = rest
    }

    /// The text this reference means at a base URI (RFC 3986 §5.2.2), without its fragment and userinfo.
    func resolved(against base: TargetURI) -> String {
        if let scheme {
            return URIReference.text(scheme: scheme, authority: authority, path: path, query: query)
        }
        let baseScheme = Array(base.scheme.utf8)[...]
        if let authority {
            return URIReference.text(scheme: baseScheme, authority: authority, path: path, query: query)
        }
        let baseAuthority = Array(base.origin.utf8).dropFirst(baseScheme.count + 3)
        let basePath = Array(base.path.utf8)[...]
        var mergedPath = path
        var mergedQuery = query
        if path.isEmpty {
            mergedPath = basePath
            mergedQuery = query ?? base.query.map { Array($0.utf8)[...] }
        } else if path.first != UInt8(ascii: "/") {
            let directory = basePath.lastIndex(of: UInt8(ascii: "/")).map { basePath[...$0] } ?? []
            mergedPath = directory + path
        }
        return URIReference.text(
            scheme: baseScheme,
            authority: baseAuthority,
            path: mergedPath,
            query: mergedQuery
        )
    }

    /// Percent-encodes what no URI may hold (RFC 3987 §3.1 step 2); the authority keeps its ASCII as it is, since an
    /// encoded backslash or space there could change which host is meant.
    static func mapped(_ text: String) -> String {
        let bytes = Array(text.utf8)
        let authority = URIReference(bytes: bytes).authority ?? []
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count)
        for (index, byte) in bytes.enumerated() {
            let isInAuthority = authority.indices.contains(index)
            if byte >= 0x80 || (!isInAuthority && URICharacters.mappable.contains(byte)) {
                result += "%".utf8
                let hex = String(byte, radix: 16, uppercase: true)
                result += (hex.utf8.count == 1 ? "0" + hex : hex).utf8
            } else {
                result.append(byte)
            }
        }
        return String(decoding: result, as: UTF8.self)
    }

    private static func text(
        scheme: ArraySlice<UInt8>,
        authority: ArraySlice<UInt8>?,
        path: ArraySlice<UInt8>,
        query: ArraySlice<UInt8>?
    ) -> String {
        var bytes = Array(scheme) + ":".utf8
        if let authority {
            let host = authority.lastIndex(of: UInt8(ascii: "@")).map { authority[($0 + 1)...] } ?? authority
            bytes += "//".utf8
            bytes += host
        }
        let pathStart = bytes.count
        bytes += path
        if path.first == UInt8(ascii: "/") { bytes.removeDotSegments(from: pathStart) }
        if let query {
            bytes += "?".utf8
            bytes += query
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}

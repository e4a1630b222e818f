// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// An absolute http or https URI in canonical form, so that equal targets have equal text.
///
/// Only what RFC 3986 §6.2.2, §6.2.3 and RFC 9110 §4.2 call equivalent is merged. Scheme and host are lowercased; the default port,
/// the fragment and dot segments are removed; unreserved characters are decoded once; other escapes get upper-case hex digits. The
/// order and spelling of a query do not change. Text outside the URI grammar is refused, not repaired. Equality and hashing use
/// only ``canonical``.
public struct TargetURI: Sendable, Hashable, CustomStringConvertible {
    /// The canonical text, without userinfo and fragment; ASCII.
    public let canonical: String

    /// The userinfo in its original spelling; nil if absent or empty. Never part of ``canonical`` (RFC 9110 §4.2.4).
    public let userinfo: String?

    private let layout: Layout

    /// Where the parts of the canonical text end, in bytes.
    struct Layout: Sendable {
        var schemeEnd: Int
        var hostEnd: Int
        var authorityEnd: Int
        var pathEnd: Int
        var port: Int?
    }

    /// Parses and canonicalizes a URI; linear time.
    ///
    /// - Parameter text: an absolute URI.
    /// - Throws: ``Rejection`` for anything outside the grammar or the two schemes.
    public init(_ text: String) throws(Rejection) {
        if let known = text.utf8.withContiguousStorageIfAvailable({ CanonicalForm.layout(ofCanonical: $0) }),
            let known
        {
            canonical = text
            userinfo = nil
            layout = known
            return
        }
        let parsed = try CanonicalForm.make(Array(text.utf8))
        canonical = String(decoding: parsed.bytes, as: UTF8.self)
        userinfo = parsed.userinfo
        layout = parsed.layout
    }

    /// The root of an authority without userinfo, as in a Host field; nil if the text is anything else (RFC 3986 §3.2).
    init?(scheme: String, authority: some StringProtocol) {
        guard !authority.utf8.contains(where: { "/?#@".utf8.contains($0) }),
            let root = try? TargetURI("\(scheme)://\(authority)/")
        else { return nil }
        self = root
    }

    /// Maps an IRI, or text typed by a person, to a URI and parses that (RFC 3987 §3.1 step 2).
    ///
    /// Characters outside ASCII become percent-encoded UTF-8 without Unicode normalization. After the authority, printable ASCII
    /// characters that are not allowed in a URI (space, quotes, angle brackets, `\`, `^`, backquote, braces, `|`) are encoded as
    /// well; in the authority they are refused.
    ///
    /// - Parameter text: an absolute IRI.
    /// - Throws: ``Rejection`` as ``init(_:)`` does.
    public init(mapping text: String) throws(Rejection) { try self.init(URIReference.mapped(text)) }

    /// Parses what a client sent or a person typed, and tolerates anything after the authority: like ``init(mapping:)``, and there
    /// it also percent-encodes brackets and a "%" without two hexadecimal digits, as browsers accept them.
    ///
    /// - Parameter text: an absolute URI, or a text that resembles one.
    /// - Throws: ``Rejection`` for errors in scheme and authority, and for control characters.
    package init(tolerating text: String) throws(Rejection) {
        try self.init(URIReference.mapped(text, isTolerant: true))
    }

    /// The canonical text.
    public var description: String { canonical }

    /// `http` or `https`.
    public var scheme: String { text(from: 0, to: layout.schemeEnd) }

    /// The host in lower case, with brackets if it is an IP literal.
    public var host: String { text(from: layout.schemeEnd + 3, to: layout.hostEnd) }

    /// The port if it is not the scheme's default, else nil.
    public var port: Int? { layout.port }

    /// The path; at least "/".
    public var path: String { text(from: layout.authorityEnd, to: layout.pathEnd) }

    /// The query without its "?"; empty differs from absent (RFC 3986 §6.2.3).
    public var query: String? {
        let end = canonical.utf8.count
        return layout.pathEnd < end ? text(from: layout.pathEnd + 1, to: end) : nil
    }

    /// Scheme, host and port, such as `https://example.com:8443`; without the default port (RFC 9110 §4.3.1).
    public var origin: String { text(from: 0, to: layout.authorityEnd) }

    /// The length of ``origin`` in bytes, which ``canonical`` begins with.
    package var originLength: Int { layout.authorityEnd }

    /// The length of the origin with which a text in canonical form begins.
    package static func originLength(ofCanonical text: String) -> Int {
        var text = text
        return text.withUTF8 { bytes in
            var slashes = 0
            for (index, byte) in bytes.enumerated() where byte == UInt8(ascii: "/") {
                slashes += 1
                if slashes == 3 { return index }
            }
            return bytes.count
        }
    }

    /// Whether both URIs share scheme, host and port (RFC 9110 §4.3.1).
    public func isSameOrigin(as other: TargetURI) -> Bool {
        guard layout.authorityEnd == other.layout.authorityEnd else { return false }
        return canonical.utf8.prefix(layout.authorityEnd).elementsEqual(
            other.canonical.utf8.prefix(layout.authorityEnd)
        )
    }

    /// The URI that a reference in Location or Content-Location means relative to this one (RFC 3986 §5.2).
    ///
    /// - Parameter reference: absolute or relative; "" means this URI.
    /// - Returns: nil if the result is not a valid http or https URI.
    public func resolving(_ reference: String) -> TargetURI? {
        try? TargetURI(URIReference(reference).resolved(against: self))
    }

    /// Whether a text that this URI was parsed from has its path and query byte for byte; an empty path is sent as "/" anyway (RFC
    /// 9110 §7.1).
    package func isSpelled(in text: String) -> Bool {
        let parts = URIReference(text)
        let path = canonical.utf8.dropFirst(layout.authorityEnd).prefix(layout.pathEnd - layout.authorityEnd)
        guard parts.path.elementsEqual(path) || parts.path.isEmpty && path.count == 1 else { return false }
        guard let query = parts.query else { return self.query == nil }
        return canonical.utf8.count > layout.pathEnd
            && query.elementsEqual(canonical.utf8.dropFirst(layout.pathEnd + 1))
    }

    /// Whether two URIs have the same canonical text.
    public static func == (left: TargetURI, right: TargetURI) -> Bool {
        left.canonical == right.canonical
    }

    /// Feeds the canonical text to the hasher.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(canonical)
    }

    private func text(from start: Int, to end: Int) -> String {
        let bytes = canonical.utf8
        let low = bytes.index(bytes.startIndex, offsetBy: start)
        return String(canonical[low..<bytes.index(low, offsetBy: end - start)])
    }

    /// Why a text is not a target URI.
    public struct Rejection: Error, Sendable, Hashable, CustomStringConvertible {
        /// The kind of error; its raw value is stable and suitable for metric labels.
        public struct Reason: RawRepresentable, Sendable, Hashable {
            /// The stable text.
            public let rawValue: String

            /// Creates a reason from its stable text.
            public init(rawValue: String) { self.rawValue = rawValue }

            /// There is no scheme.
            public static let notAbsolute = Reason(rawValue: "not-absolute")
            /// The scheme is neither http nor https.
            public static let scheme = Reason(rawValue: "scheme")
            /// No "//" follows the scheme.
            public static let noAuthority = Reason(rawValue: "no-authority")
            /// The host is empty (RFC 9110 §4.2.1).
            public static let emptyHost = Reason(rawValue: "empty-host")
            /// The port is not a number, or is above 65535.
            public static let port = Reason(rawValue: "port")
            /// A "%" without two hexadecimal digits (RFC 3986 §2.1).
            public static let percent = Reason(rawValue: "percent")
            /// A character that the grammar does not allow there (RFC 3986 Appendix A).
            public static let character = Reason(rawValue: "character")
        }

        /// The kind of error.
        public let reason: Reason

        /// What is wrong and what to do about it, for people.
        public let message: String

        /// The message with its reason.
        public var description: String { "\(message) [\(reason.rawValue)]" }

        init(_ reason: Reason, message: String) {
            self.reason = reason
            self.message = message
        }
    }

    /// Whether another canonical URI is this one or below it: it begins with this text, and one of its parts ends there.
    ///
    /// - Parameter other: a URI in canonical form, like ``canonical``.
    package func isPrefix(of other: String) -> Bool {
        let prefix = canonical.utf8
        let text = other.utf8
        guard text.starts(with: prefix) else { return false }
        guard let next = text.dropFirst(prefix.count).first else { return true }
        if query != nil { return next == UInt8(ascii: "&") }
        return prefix.last == UInt8(ascii: "/") || next == UInt8(ascii: "/") || next == UInt8(ascii: "?")
    }
}

/// A URI reference split into its five parts, without other changes (RFC 3986 Appendix B).
struct URIReference {
    private(set) var scheme: ArraySlice<UInt8>?
    private(set) var authority: ArraySlice<UInt8>?
    private(set) var path: ArraySlice<UInt8>
    private(set) var query: ArraySlice<UInt8>?
    private(set) var fragment: ArraySlice<UInt8>?

    init(_ text: String) { self.init(bytes: Array(text.utf8)) }

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

    /// The text that this reference means relative to a base URI (RFC 3986 §5.2.2), without fragment and userinfo.
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

    /// Percent-encodes what is not allowed in a URI (RFC 3987 §3.1 step 2). The authority keeps its ASCII characters, since an
    /// encoded backslash or space there could change the host.
    ///
    /// - Parameter isTolerant: whether brackets and a "%" that begins no escape are encoded as well.
    static func mapped(_ text: String, isTolerant: Bool = false) -> String {
        let bytes = Array(text.utf8)
        let authority = URIReference(bytes: bytes).authority ?? []
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count)
        for (index, byte) in bytes.enumerated() {
            let isInAuthority = authority.indices.contains(index)
            let isStray =
                switch byte {
                case UInt8(ascii: "["), UInt8(ascii: "]"): isTolerant
                case UInt8(ascii: "%"): isTolerant && !isEscape(bytes[index...])
                default: URICharacters.mappable.contains(byte)
                }
            if byte >= 0x80 || !isInAuthority && isStray {
                result += "%".utf8
                let hex = String(byte, radix: 16, uppercase: true)
                result += (hex.utf8.count == 1 ? "0" + hex : hex).utf8
            } else {
                result.append(byte)
            }
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// Whether the bytes begin with "%" and two hexadecimal digits.
    static func isEscape(_ bytes: ArraySlice<UInt8>) -> Bool {
        let digits = bytes.dropFirst().prefix(2)
        return digits.count == 2 && digits.allSatisfy { $0.hexValue != nil }
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

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// A text in which `*` matches any bytes, including none.
///
/// There are no character classes and no alternatives, so there is no other backtracking. Matching takes at most the product of
/// both lengths, and no memory.
struct WildcardPattern: Sendable, Hashable {
    private let bytes: [UInt8]

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    func matches(_ text: String) -> Bool {
        var text = text
        return text.withUTF8 { matches($0) }
    }

    /// Backtracks only to the last `*`: an earlier one could only match bytes that the last one can match too.
    private func matches(_ text: UnsafeBufferPointer<UInt8>) -> Bool {
        var place = 0
        var index = 0
        var star: (place: Int, index: Int)?
        while index < text.count {
            if place < bytes.count, bytes[place] == UInt8(ascii: "*") {
                star = (place, index)
                place += 1
            } else if place < bytes.count, bytes[place] == text[index] {
                place += 1
                index += 1
            } else if let last = star {
                star = (last.place, last.index + 1)
                place = last.place + 1
                index = last.index + 1
            } else {
                return false
            }
        }
        return bytes[place...].allSatisfy { $0 == UInt8(ascii: "*") }
    }
}

/// The pattern of a host: exact, `*.` and a domain for everything below that domain, or `*`; with a scheme and a port if given.
struct HostPattern: Sendable, Hashable {
    private enum Name: Sendable, Hashable {
        case any
        case exact(String)
        /// Including its dot.
        case suffix(String)
    }

    private let name: Name
    private let scheme: String?
    private let port: Int?

    init?(_ text: String) {
        var rest = text.loweringASCII()[...]
        var scheme: String?
        for known in ["https", "http"] where rest.hasPrefix(known + "://") {
            rest = rest.dropFirst(known.count + 3)
            scheme = known
            break
        }
        var port: Int?
        let afterLiteral = rest.lastIndex(of: "]") ?? rest.startIndex
        if let colon = rest[afterLiteral...].lastIndex(of: ":") {
            let digits = rest[rest.index(after: colon)...]
            guard !digits.isEmpty, digits.utf8.allSatisfy(\.isDigit), let number = Int(digits), number <= 65_535 else {
                return nil
            }
            port = number
            rest = rest[..<colon]
        }
        self.scheme = scheme
        // Without a port, an origin has the default port of its scheme (RFC 6454 §4).
        self.port = port ?? scheme.map { $0 == "https" ? 443 : 80 }
        if rest == "*" {
            name = .any
            return
        }
        let isSuffix = rest.hasPrefix("*.")
        if isSuffix { rest = rest.dropFirst(2) }
        // An asterisk is valid in the host of a URI.
        guard !rest.utf8.contains(UInt8(ascii: "*")), rest.utf8.last != UInt8(ascii: "."),
            !(isSuffix && rest.utf8.first == UInt8(ascii: "[")),
            let target = TargetURI(scheme: "http", authority: rest), target.port == nil
        else { return nil }
        name = isSuffix ? .suffix("." + target.host) : .exact(target.host)
    }

    func matches(_ route: Route) -> Bool {
        if let scheme, scheme != route.scheme { return false }
        if let port, port != route.port { return false }
        return switch name {
        case .any: true
        case .exact(let name): route.host == name
        case .suffix(let suffix): route.host.utf8.count > suffix.utf8.count && route.host.hasSuffix(suffix)
        }
    }
}

/// The parts of a target that patterns are compared with, extracted once for all rules.
struct Route {
    let scheme: String
    let port: Int
    let host: String
    let path: String

    init(_ target: TargetURI) {
        scheme = target.scheme
        port = target.port ?? (scheme == "https" ? 443 : 80)
        var host = target.host
        // A trailing dot is the fully qualified form of the same host name.
        if host.utf8.last == UInt8(ascii: ".") { host.removeLast() }
        self.host = host
        path = target.path
    }
}

/// The pattern of a path, in the same form as the paths in keys.
enum PathPattern {
    /// - Returns: nil if no canonical path could match it.
    static func canonical(_ text: String) -> WildcardPattern? {
        let given = Array(text.utf8)
        guard given.first == UInt8(ascii: "/") || given.first == UInt8(ascii: "*") else { return nil }
        var bytes: [UInt8] = []
        var index = 0
        while index < given.count {
            let byte = given[index]
            index += 1
            switch byte {
            case UInt8(ascii: "?"), UInt8(ascii: "#"), 0..<0x20, 0x7F: return nil
            case UInt8(ascii: "%"):
                guard index + 1 < given.count, let high = given[index].hexValue, let low = given[index + 1].hexValue
                else { return nil }
                index += 2
                append(high << 4 | low, isEscaped: true, to: &bytes)
            default: append(byte, isEscaped: false, to: &bytes)
            }
        }
        // A canonical path has no dot segments.
        let segments = bytes.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        guard !segments.contains(where: { $0.elementsEqual(".".utf8) || $0.elementsEqual("..".utf8) }) else {
            return nil
        }
        return WildcardPattern(bytes)
    }

    private static func append(_ byte: UInt8, isEscaped: Bool, to bytes: inout [UInt8]) {
        let stays =
            isEscaped
            ? URICharacters.unreserved.contains(byte)
            : URICharacters.pathCharacters.contains(byte)
        if stays {
            bytes.append(byte)
        } else {
            bytes += "%\(SHA256Digest.hex([byte]).uppercased())".utf8
        }
    }
}

/// The pattern of a media type without its parameters.
enum ContentTypePattern {
    /// - Returns: nil if no media type could match it.
    static func canonical(_ text: String) -> WildcardPattern? {
        let parts = text.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        guard parts.count == 2, parts.allSatisfy({ !$0.isEmpty && $0.allSatisfy(\.isTokenCharacter) }) else {
            return nil
        }
        return WildcardPattern(Array(text.loweringASCII().utf8))
    }
}

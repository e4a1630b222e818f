// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
internal import Holdfast

/// Puts the URL of a request together.
enum ServiceURL {
    /// The URL of a route below a base, with the base's query and then these arguments.
    ///
    /// The base's fragment is dropped, as none is ever sent. Its user, port and trailing slash stay. Dots in its path stay too: they
    /// are the service's own.
    ///
    /// - Parameters:
    ///   - base: such as `api.example.com/v2?key=1`, `https://[::1]:8080` or `//host`.
    ///   - isSecure: whether the scheme is https, whatever the base says; nil: as the base says.
    ///   - isSecureByDefault: whether it is https where the base names neither http nor https (nor ws and wss).
    /// - Throws: ``ServiceError`` `.badRequest`, which shows neither user nor query: they may bear credentials.
    static func make(
        base: String,
        isSecure: Bool?,
        isSecureByDefault: Bool,
        route: HttpRoute,
        query: HttpQuery
    ) throws -> URL {
        let isSecure = isSecure ?? isSecured(base) ?? isSecureByDefault
        // By scalars: an accent behind a "?" makes one Character of both.
        let afterScheme = withoutScheme(base)
        let rest = Substring(afterScheme.unicodeScalars.prefix { $0 != "#" })
        let place = Substring(rest.unicodeScalars.prefix { $0 != "?" })
        var queries = [PercentCoding.repair(rest[place.endIndex...].utf8.dropFirst())]
        let authority = Substring(place.unicodeScalars.prefix { $0 != "/" })
        var path = PercentCoding.repair(place[authority.endIndex...].utf8)
        let segments = try route.encodedSegments
        if !segments.isEmpty {
            if path.hasSuffix("/") { path.removeLast() }
            path += "/" + segments.joined(separator: "/")
        }
        queries.append(try query.encoded)
        queries.removeAll { $0.isEmpty }
        var text = "\(isSecure ? "https" : "http")://\(authority)\(path)"
        if !queries.isEmpty { text += "?" + queries.joined(separator: "&") }
        guard let url = URL(string: text), isUnambiguous(url, authority: authority) else {
            let at = afterScheme.unicodeScalars.lastIndex(of: "@")
            // If it stands further on, nobody knows where a user ends that is not percent-encoded.
            let isInAuthority = at.map { $0 < authority.endIndex } ?? true
            let start = at.map { afterScheme.unicodeScalars.index(after: $0) } ?? place.startIndex
            let shown = base[..<afterScheme.startIndex] + (isInAuthority ? place[start...] : "…")
            throw ServiceError.badRequest(
                "\(String(reflecting: String(shown))) names no host as in api.example.com/v2; correct the service's apiUrl "
                    + "or the request's url."
            )
        }
        return url
    }

    /// Whether the scheme of a text is one of those with TLS; nil where it names none that is known.
    private static func isSecured(_ base: String) -> Bool? {
        let scheme = base.prefix { $0 != ":" }
        guard base[scheme.endIndex...].hasPrefix("://") else { return nil }
        return switch scheme.lowercased() {
        case "https", "wss": true
        case "http", "ws": false
        default: nil
        }
    }

    private static func withoutScheme(_ base: String) -> Substring {
        let scheme = base.prefix { $0.isASCII && ($0.isLetter || $0.isNumber || "+-.".contains($0)) }
        let rest = base[scheme.endIndex...]
        if rest.hasPrefix("://") { return rest.dropFirst(3) }
        return base.hasPrefix("//") ? base.dropFirst(2) : base[...]
    }

    /// Whether all parsers see one host here: some take a backslash for a slash, and some decode what is encoded.
    private static func isUnambiguous(_ url: URL, authority: Substring) -> Bool {
        let isClean = !authority.unicodeScalars.contains { scalar in
            scalar == "\\" || scalar.value < 0x21 || scalar.value == 0x7F || scalar.properties.isWhitespace
        }
        guard isClean, let scheme = url.scheme else { return false }
        // The grammar of the place is the same for all schemes that come here.
        guard let target = try? TargetURI("https" + url.absoluteString.dropFirst(scheme.count)) else { return false }
        let host = authority[(authority.lastIndex(of: "@") ?? authority.startIndex)...]
        return !target.host.isEmpty && !target.host.contains("%") && !host.contains("%")
    }
}

/// A value that gives a URL: a URL, or text that may lack the scheme.
public protocol UrlConvertible: Sendable {
    /// The URL's text; the scheme may be missing, and special characters must be percent-encoded.
    var urlText: String { get }
}

extension String: UrlConvertible {
    public var urlText: String { self }
}

extension Substring: UrlConvertible {
    public var urlText: String { String(self) }
}

extension URL: UrlConvertible {
    public var urlText: String { absoluteString }
}

extension URLComponents: UrlConvertible {
    /// The URL of the components; empty if they do not make one, which makes building a request fail.
    public var urlText: String { string ?? "" }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Holdfast

/// Puts the URL of a request together.
enum ServiceURL {
    /// The URL of a route below a base, with the base's query and then these arguments.
    ///
    /// The base's scheme gives way to `scheme`, and its fragment is dropped, as none is ever sent. Its user, port and
    /// trailing slash stay. Dots in its path stay too: they are the service's own.
    ///
    /// - Parameters:
    ///   - base: such as `api.example.com/v2?key=1`, `https://[::1]:8080` or `//host`.
    ///   - scheme: without a colon.
    /// - Throws: ``ServiceError`` `.badRequest`, without the text, which may bear credentials.
    static func make(base: String, scheme: String, route: HttpRoute, query: HttpQuery) throws -> URL {
        let rest = withoutScheme(base).prefix { $0 != "#" }
        let place = rest.prefix { $0 != "?" }
        var queries = [PercentCoding.repair(rest[place.endIndex...].dropFirst())]
        let authority = place.prefix { $0 != "/" }
        var path = PercentCoding.repair(place[authority.endIndex...])
        let segments = try route.encodedSegments
        if !segments.isEmpty {
            if path.hasSuffix("/") { path.removeLast() }
            path += "/" + segments.joined(separator: "/")
        }
        queries.append(try query.encoded)
        queries.removeAll { $0.isEmpty }
        var text = "\(scheme)://\(authority)\(path)"
        if !queries.isEmpty { text += "?" + queries.joined(separator: "&") }
        guard isPlain(authority), let url = URL(string: text), url.host?.isEmpty == false else {
            throw ServiceError(
                .badRequest,
                "No host is named; mend the service's apiUrl or the request's url, such as api.example.com/v2.",
                progress: .notSent
            )
        }
        return url
    }

    private static func withoutScheme(_ base: String) -> Substring {
        let scheme = base.prefix { $0.isASCII && ($0.isLetter || $0.isNumber || "+-.".contains($0)) }
        let rest = base[scheme.endIndex...]
        if rest.hasPrefix("://") { return rest.dropFirst(3) }
        return base.hasPrefix("//") ? base.dropFirst(2) : base[...]
    }

    /// Whether all parsers see one host here: some take a backslash for a slash.
    private static func isPlain(_ authority: Substring) -> Bool {
        !authority.unicodeScalars.contains {
            $0 == "\\" || $0.properties.isWhitespace || $0.value < 0x21 || $0.value == 0x7F
        }
    }
}

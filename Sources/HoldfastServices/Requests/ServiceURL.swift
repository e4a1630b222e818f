// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Holdfast
internal import HoldfastSemantics

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
    /// - Throws: ``ServiceError`` `.badRequest`, which shows neither user nor query: they may bear credentials.
    static func make(base: String, scheme: String, route: HttpRoute, query: HttpQuery) throws -> URL {
        // By scalars: an accent behind a "?" makes one Character of both.
        let rest = Substring(withoutScheme(base).unicodeScalars.prefix { $0 != "#" })
        let place = Substring(rest.unicodeScalars.prefix { $0 != "?" })
        var queries = [PercentCoding.repair(Substring(rest[place.endIndex...].unicodeScalars.dropFirst()))]
        let authority = Substring(place.unicodeScalars.prefix { $0 != "/" })
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
        guard let url = URL(string: text), isUnambiguous(url, authority: authority) else {
            let shown = place[(authority.lastIndex(of: "@").map { authority.index(after: $0) } ?? place.startIndex)...]
            throw ServiceError(
                .badRequest,
                "\(String(reflecting: String(shown))) names no host as in api.example.com/v2; mend the service's apiUrl or "
                    + "the request's url.",
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

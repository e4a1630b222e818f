// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
internal import HoldfastSemantics

/// A URL that can be printed: without the user, the fragment, the parameters of path segments and the values of its query.
///
/// Scheme, host, port, path and the names of the query's arguments stay. The path is shown as it is, so if it contains a token,
/// leave it out when you print the URL. The URL is parsed only when a part of it is read.
public struct RedactedURL: Sendable, Hashable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable
{
    /// The text that replaces what was taken out.
    public static let placeholder = "REDACTED"

    /// The URL as it is, including credentials: for redacting by your own rules, never for a log.
    public let unredacted: URL

    /// The printable form of `url`.
    public init(_ url: URL) { unredacted = url }

    /// Host and scheme in lower case; nil if the URL has none.
    public var scheme: String? { unredacted.scheme?.lowercased() }
    public var host: String? {
        unredacted.host.flatMap { $0.isEmpty ? nil : $0.lowercased() }
    }
    /// The port in the URL, or else the scheme's default; nil if there is neither.
    public var port: Int? {
        if let port = unredacted.port { return port }
        return switch scheme {
        case "http", "ws": 80
        case "https", "wss": 443
        default: nil
        }
    }
    /// The path as it is sent, without the parameters of its segments.
    public var path: String { RedactedURL.parts(of: unredacted.absoluteString)?.path ?? "" }

    /// The whole redacted URL, at most 2,048 characters.
    public var description: String { text() }
    public var debugDescription: String { text() }
    public var customMirror: Mirror { Mirror(self, children: ["text": text()]) }

    /// The whole redacted URL, with the values of the given arguments.
    ///
    /// - Parameter shown: names of arguments whose values hold no credential, as written in the URL.
    public func text(showing shown: Set<String> = []) -> String {
        let absolute = unredacted.absoluteString
        guard let parts = RedactedURL.parts(of: absolute) else {
            // In `data:` and similar URLs, everything may be secret.
            return unredacted.scheme.map { "\($0):\(RedactedURL.placeholder)" } ?? RedactedURL.placeholder
        }
        var text = parts.origin + parts.path
        if let query = parts.query { text += "?" + RedactedURL.redacted(query, showing: shown) }
        return text.utf8.count > 2048 ? String(text.prefix(2048)) : text
    }

    private static func redacted(_ query: Substring, showing shown: Set<String>) -> String {
        let arguments = query.split(separator: "&", maxSplits: 63, omittingEmptySubsequences: false)
        let texts = arguments.map { argument -> String in
            // Without a name, it is unknown what it is.
            guard let sign = argument.firstIndex(of: "="), sign != argument.startIndex else {
                return argument.isEmpty ? "" : placeholder
            }
            let name = argument[..<sign]
            // The last one contains all that were not split, the first of which may have no name.
            guard !name.contains("&") else { return placeholder }
            let value = argument[argument.index(after: sign)...]
            // A server may read further arguments in it.
            if shown.contains(String(name)), let plain = value.removingPercentEncoding,
                !plain.contains(where: { $0 == "&" || $0 == ";" })
            {
                return "\(name)=\(value)"
            }
            return "\(name.prefix(64))=\(placeholder)"
        }
        return texts.joined(separator: "&")
    }

    private static func parts(of text: String) -> (origin: String, path: String, query: Substring?)? {
        guard let mark = text.range(of: "://") else {
            // A relative URL: it has no authority that could contain a user.
            guard !text.contains(":"), !text.hasPrefix("//") else { return nil }
            let (path, query) = pathAndQuery(text[...])
            return ("", path, query)
        }
        guard text[..<mark.lowerBound].utf8.allSatisfy(\.isSchemeCharacter) else { return nil }
        let rest = text[mark.upperBound...]
        let end = rest.firstIndex { $0 == "/" || $0 == "?" || $0 == "#" || $0 == "\\" } ?? rest.endIndex
        var authority = rest[..<end]
        if let at = authority.lastIndex(of: "@") { authority = authority[authority.index(after: at)...] }
        let (path, query) = pathAndQuery(rest[end...])
        return ("\(text[..<mark.lowerBound])://\(authority)", path, query)
    }

    private static func pathAndQuery(_ text: Substring) -> (path: String, query: Substring?) {
        let text = text.prefix { $0 != "#" }
        guard let mark = text.firstIndex(of: "?") else { return (withoutParameters(text), nil) }
        return (withoutParameters(text[..<mark]), text[text.index(after: mark)...])
    }

    /// Parameters of a segment may contain sessions, such as `;jsessionid=` (RFC 3986 §3.3).
    private static func withoutParameters(_ path: Substring) -> String {
        guard path.contains(";") else { return String(path) }
        return path.split(separator: "/", omittingEmptySubsequences: false)
            .map { segment in
                segment.firstIndex(of: ";").map { "\(segment[..<$0]);\(placeholder)" } ?? String(segment)
            }
            .joined(separator: "/")
    }
}

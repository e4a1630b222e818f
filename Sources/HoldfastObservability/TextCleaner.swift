// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Observability
    internal import Foundation
    internal import Holdfast

    /// Removes credentials from texts of others, such as the message of an error.
    ///
    /// Secrets of the call's URL are removed wherever they occur; so are the URLs within the text, the values of `name=value`,
    /// what follows the name of an authentication scheme or of a field that holds a credential, and words that look like
    /// tokens. Control characters become spaces, and long texts are cut, so that a record stays one line.
    struct TextCleaner: Sendable {
        let shownArguments: Set<String>
        static let limit = 256

        func clean(_ text: String, of url: RedactedURL?) -> String {
            var text = String(text.prefix(4 * TextCleaner.limit).map { $0.isControl ? " " : $0 })
            if let url {
                for secret in secrets(of: url) { text = text.replacing(secret, with: RedactedURL.placeholder) }
            }
            var cleaned: [String] = []
            var hidesNext = false
            for word in text.split(separator: " ") {
                let bare = word.lowercased().trimmingCharacters(in: .punctuationCharacters)
                if hidesNext {
                    cleaned.append(RedactedURL.placeholder)
                    hidesNext = false
                    continue
                }
                if TextCleaner.holders.contains(where: { bare.hasPrefix($0) }), word.contains(":") || word.contains("=")
                {
                    // Its value may extend to the end.
                    cleaned.append("\(word.prefix { $0 != ":" && $0 != "=" }): \(RedactedURL.placeholder)")
                    break
                }
                hidesNext = TextCleaner.schemes.contains(bare)
                cleaned.append(clean(word: word))
            }
            let joined = cleaned.joined(separator: " ")
            return joined.count > TextCleaner.limit ? joined.prefix(TextCleaner.limit) + "…" : joined
        }

        private static let schemes: Set<String> = ["bearer", "basic", "digest", "negotiate", "token", "hawk", "aws4"]
        private static let holders = [
            "authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key", "api-key", "apikey",
            "password",
            "passwd", "secret", "token", "access_token", "refresh_token", "x-auth",
        ]

        private func clean(word: Substring) -> String {
            if let mark = word.range(of: "://") {
                let scheme = word[..<mark.lowerBound].reversed().prefix { $0.isLetter || $0.isNumber }.reversed()
                let rest = word[mark.upperBound...].prefix { !"\"'<>)}]".contains($0) }
                // Only the host is useful; everything else may be private.
                guard let host = URL(string: String(scheme) + "://" + rest).flatMap({ RedactedURL($0).host }) else {
                    return RedactedURL.placeholder
                }
                return "\(String(scheme))://\(host)"
            }
            if let sign = word.firstIndex(of: "=") {
                // A word may have several pairs, also with encoded delimiters.
                let isShown = word.removingPercentEncoding?.split { "&;,".contains($0) }.allSatisfy { pair in
                    pair.contains("=") && shownArguments.contains(String(pair.prefix { $0 != "=" }))
                }
                return isShown == true ? String(word) : "\(word[..<sign])=\(RedactedURL.placeholder)"
            }
            return TextCleaner.looksLikeToken(word) ? RedactedURL.placeholder : String(word)
        }

        private static func looksLikeToken(_ word: Substring) -> Bool {
            if word.hasPrefix("eyJ") { return true }
            return word.utf8.count >= 24 && word.contains(where: \.isNumber) && word.contains(where: \.isLetter)
        }

        /// The private parts of a URL, the longest first.
        private func secrets(of url: RedactedURL) -> [String] {
            let url = url.unredacted
            let text = url.absoluteString
            var found: Set<String> = []
            for part in [url.user, url.password, url.fragment] { if let part { found.insert(part) } }
            if let mark = text.firstIndex(of: "?") {
                for argument in text[text.index(after: mark)...].split(whereSeparator: { "&#;".contains($0) }) {
                    guard let sign = argument.firstIndex(of: "=") else {
                        found.insert(String(argument))
                        continue
                    }
                    if shownArguments.contains(String(argument[..<sign])) { continue }
                    found.insert(String(argument[argument.index(after: sign)...]))
                }
            }
            for segment in url.path.split(separator: "/") where segment.contains(";") {
                for parameter in segment.split(separator: ";").dropFirst() {
                    found.insert(String(parameter.split(separator: "=").last ?? parameter))
                }
            }
            for part in found {
                found.insert(part.removingPercentEncoding ?? part)
                found.insert(part.replacing("+", with: " ").removingPercentEncoding ?? part)
            }
            // Shorter ones would break words that have nothing to do with them.
            return found.filter { $0.count >= 4 }.sorted { $0.count > $1.count }
        }
    }

    extension Character {
        fileprivate var isControl: Bool {
            isNewline || unicodeScalars.contains { $0.properties.generalCategory == .control }
        }
    }
#endif

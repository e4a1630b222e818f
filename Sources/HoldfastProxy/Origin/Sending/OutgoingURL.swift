// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import HoldfastSemantics

    /// The parts of a URL that a request is made of, verbatim: nothing is decoded, normalised or sorted.
    struct OutgoingURL: Sendable, Hashable {
        let key: OriginKey
        /// What stands in Host: without userinfo, and without a port that is the scheme's own.
        let authority: String
        /// Path and query.
        let target: String

        /// The parts of an absolute http or https URL; nil for anything else.
        init?(_ url: String) {
            let text = url.utf8
            guard let colon = text.firstIndex(of: UInt8(ascii: ":")) else { return nil }
            let isSecure: Bool
            switch String(url[..<colon]).loweringASCII() {
            case "http": isSecure = false
            case "https": isSecure = true
            default: return nil
            }
            var rest = text[text.index(after: colon)...]
            guard rest.starts(with: "//".utf8) else { return nil }
            rest = rest.dropFirst(2)
            let authorityEnd = rest.firstIndex { "/?#".utf8.contains($0) } ?? rest.endIndex
            var authority = rest[..<authorityEnd]
            if let at = authority.lastIndex(of: UInt8(ascii: "@")) {
                authority = authority[authority.index(after: at)...]
            }
            guard authority.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "\\") }) else { return nil }
            let usual = isSecure ? 443 : 80
            guard let (host, port) = OutgoingURL.split(authority) else { return nil }
            let name = host.first == UInt8(ascii: "[") ? host.dropFirst().dropLast() : host
            guard !name.isEmpty else { return nil }
            key = OriginKey(isSecure: isSecure, host: String(Substring(name)).loweringASCII(), port: port ?? usual)
            let isUsual = port == nil || port == usual
            self.authority = isUsual ? String(Substring(host)) : "\(Substring(host)):\(port ?? usual)"
            let target = rest[authorityEnd...].prefix { $0 != UInt8(ascii: "#") }
            self.target =
                target.first == UInt8(ascii: "/") ? String(Substring(target)) : "/" + String(Substring(target))
        }

        /// Host, with its brackets where it has any, and port.
        private static func split(_ authority: Substring.UTF8View) -> (host: Substring.UTF8View, port: Int?)? {
            let hostEnd: Substring.UTF8View.Index
            if authority.first == UInt8(ascii: "[") {
                guard let bracket = authority.firstIndex(of: UInt8(ascii: "]")) else { return nil }
                hostEnd = authority.index(after: bracket)
            } else {
                hostEnd = authority.firstIndex(of: UInt8(ascii: ":")) ?? authority.endIndex
            }
            let rest = authority[hostEnd...]
            guard !rest.isEmpty else { return (authority, nil) }
            let digits = rest.dropFirst()
            guard rest.first == UInt8(ascii: ":"), digits.allSatisfy(\.isDigit) else { return nil }
            // An empty port is the scheme's own (RFC 3986 §6.2.3).
            guard !digits.isEmpty else { return (authority[..<hostEnd], nil) }
            guard digits.count <= 5, let port = Int(Substring(digits)), port <= 65_535 else { return nil }
            return (authority[..<hostEnd], port)
        }
    }
#endif

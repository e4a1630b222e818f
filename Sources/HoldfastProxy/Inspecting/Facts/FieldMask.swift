// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Foundation
    internal import Holdfast
    internal import HoldfastSemantics

    /// Takes credentials out of the header fields that a page shows.
    enum FieldMask {
        /// How much of a value is shown.
        static let longestValue = 4096

        /// What is shown of a field's value; nil where nothing is.
        static func shown(_ value: String, of name: FieldName) -> String? {
            let name = name.canonicalName
            if hidden.contains(name) || suspicious.contains(where: { name.contains($0) }) { return nil }
            if addresses.contains(name) {
                guard let url = URL(string: value) else { return nil }
                return RedactedURL(url).description
            }
            // Addresses with something behind them that may be anybody's.
            if holdersOfAddresses.contains(name), value.contains("?") || value.contains("@") { return nil }
            return value.utf8.count > longestValue ? String(value.prefix(longestValue)) + "…" : value
        }

        private static let hidden: Set<String> = [
            "authorization", "proxy-authorization", "authentication-info", "proxy-authentication-info", "cookie",
            "set-cookie",
            "set-cookie2",
        ]
        private static let suspicious = [
            "token", "secret", "password", "passwd", "api-key", "apikey", "credential", "signature", "session",
        ]
        private static let addresses: Set<String> = ["location", "content-location", "referer", "sourcemap"]
        private static let holdersOfAddresses: Set<String> = ["link", "refresh"]
    }
#endif

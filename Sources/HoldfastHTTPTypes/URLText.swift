// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if HTTPTypes
    internal import Foundation

    /// A URL split into its parts, each spelled as in the URL: nothing is decoded or encoded.
    struct URLText {
        /// The text before the first colon; empty if there is none.
        let scheme: String
        /// Name and password; nil without an "@".
        let userinfo: String?
        /// Host and port; nil if no "//" follows the scheme.
        let authority: String?
        /// The text between the authority and the query.
        let path: String
        /// The text between the first "?" and the fragment; nil without one.
        let query: String?

        /// Splits the absolute text of `url`.
        init(_ url: URL) {
            var rest = url.absoluteURL.absoluteString[...]
            rest = rest.prefix { $0 != "#" }
            if let colon = rest.firstIndex(of: ":") {
                scheme = String(rest[..<colon])
                rest = rest[rest.index(after: colon)...]
            } else {
                scheme = ""
            }
            if rest.hasPrefix("//") {
                rest = rest.dropFirst(2)
                var authority = rest.prefix { $0 != "/" && $0 != "?" }
                rest = rest[authority.endIndex...]
                if let at = authority.lastIndex(of: "@") {
                    userinfo = String(authority[..<at])
                    authority = authority[authority.index(after: at)...]
                } else {
                    userinfo = nil
                }
                self.authority = String(authority)
            } else {
                userinfo = nil
                authority = nil
            }
            let path = rest.prefix { $0 != "?" }
            self.path = String(path)
            query = path.endIndex < rest.endIndex ? String(rest[rest.index(after: path.endIndex)...]) : nil
        }
    }
#endif

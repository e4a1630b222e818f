// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if HTTPTypes
    public import Foundation
    public import HTTPTypes
    public import Holdfast
    internal import HoldfastSemantics

    #if canImport(FoundationNetworking)
        // On Linux, Foundation has URLRequest in a separate module.
        public import FoundationNetworking
    #endif

    extension HTTPRequest {
        /// Creates a request from a URLRequest, without its content.
        ///
        /// Scheme, host, port, path and query stay as written in the URL; an empty path becomes "/". User information and
        /// fragment are left out, because neither is sent as part of the target (RFC 9110 §4.2.4, §7.1). The fields are sorted
        /// by name, because Foundation's dictionary has no order, and invalid names are left out.
        ///
        /// - Throws: `ServiceError` `.badRequest` for a request without a URL with a host, or with an invalid method.
        public init(_ request: URLRequest) throws(ServiceError) {
            guard let method = HTTPRequest.Method(request.httpMethod ?? "GET") else {
                throw ServiceError(
                    .badRequest,
                    "The request's method is invalid. Use letters, digits and hyphens.",
                    progress: .notSent
                )
            }
            guard let url = request.url else {
                throw ServiceError(.badRequest, "The request has no URL. Set one.", progress: .notSent)
            }
            let parts = URLText(url)
            guard !parts.scheme.isEmpty, let authority = parts.authority, !authority.isEmpty else {
                throw ServiceError(
                    .badRequest,
                    "The request's URL has no host. Use the form https://host/path.",
                    progress: .notSent
                )
            }
            let path = (parts.path.isEmpty ? "/" : parts.path) + (parts.query.map { "?" + $0 } ?? "")
            self.init(
                method: method,
                scheme: parts.scheme,
                authority: authority,
                path: path,
                headerFields: HTTPFields(HeaderFields(request.allHTTPHeaderFields ?? [:]))
            )
        }
    }

    extension URLRequest {
        /// Creates a URLRequest, as URLSession and `Pipeline` take it.
        ///
        /// The URL consists of scheme, authority and path. Escapes in the path are kept; characters that URLs cannot contain
        /// are percent-encoded; an empty path becomes "/". The method may be any token, although Foundation changes `get` and
        /// similar ones to capitals. The fields become a dictionary, so lines with the same name are joined with ", ", and
        /// those of Cookie with "; " (RFC 9110 §5.3, RFC 9113 §8.2.3).
        ///
        /// - Parameters:
        ///   - request: the request to send.
        ///   - baseURL: the server's API URL. Its scheme, user information and authority are used, and the request's path is
        ///     appended to its path, which may end with a slash. Its query and fragment are left out. nil, the default: the
        ///     request has its own scheme and authority.
        /// - Throws: `ServiceError` `.badRequest` if there is no URL for the request: no scheme or authority, a path that does
        ///   not begin with a slash, has a fragment or a "%" that is not part of an escape, an authority with user information
        ///   (RFC 9110 §4.2.4), CONNECT, and `OPTIONS *`.
        public init(_ request: HTTPRequest, baseURL: URL? = nil) throws(ServiceError) {
            guard request.method != .connect else {
                throw URLRequest.refusal(
                    "CONNECT requests a tunnel, which has no URL. Open it with a client of your own."
                )
            }
            let path = try URLRequest.path(of: request)
            let root: String
            if let baseURL {
                root = try URLRequest.root(of: baseURL)
            } else {
                root = try URLRequest.origin(of: request)
            }
            // If another character needs encoding, Foundation would also encode the "%" of existing escapes.
            let encoded = String(decoding: path.utf8.flatMap(\.percentEncoded), as: UTF8.self)
            guard let url = URL(string: root + encoded, encodingInvalidCharacters: false) else {
                guard URL(string: root + "/", encodingInvalidCharacters: false) != nil else {
                    throw URLRequest.refusal(
                        "The request's authority is not a host and port. Use the form example.com:8080."
                    )
                }
                throw URLRequest.refusal(
                    "The request's path has a percent sign that is not part of an escape. Write it as %25."
                )
            }
            self.init(url: url)
            httpMethod = request.method.rawValue
            let fields = HeaderFields(request.headerFields)
            var isSet: Set<FieldName> = []
            for line in fields where isSet.insert(line.name).inserted {
                let joined =
                    line.name == .setCookie ? fields.values(of: .setCookie).joined(separator: ", ") : fields[line.name]
                setValue(joined, forHTTPHeaderField: line.name.rawName)
            }
        }

        /// Path and query, beginning with the slash.
        private static func path(of request: HTTPRequest) throws(ServiceError) -> String {
            guard let path = request.path else {
                throw refusal("The request has no path. Set one, at least \"/\".")
            }
            guard !path.isEmpty else { return "/" }
            guard path.hasPrefix("/") else {
                throw refusal("The request's path does not begin with a slash, so it has no URL. Add one.")
            }
            guard !path.utf8.contains(UInt8(ascii: "#")) else {
                throw refusal(
                    "The request's path contains a fragment, which is never sent. Write # itself as %23."
                )
            }
            return path
        }

        private static func origin(of request: HTTPRequest) throws(ServiceError) -> String {
            guard let scheme = request.scheme, scheme.first?.isLetter == true,
                scheme.utf8.allSatisfy(\.isSchemeCharacter)
            else {
                throw refusal("The request has no scheme. Set it to \"https\", or give a base URL.")
            }
            guard let authority = request.authority, !authority.isEmpty else {
                throw refusal("The request has no authority. Set it to the host, or give a base URL.")
            }
            // Any of these would move the end of the authority, and the request to another server or path.
            guard !authority.utf8.contains(where: { "/?#\\ ".utf8.contains($0) }) else {
                throw refusal("The request's authority is not a host and port. Put the path into the path property.")
            }
            guard !authority.utf8.contains(UInt8(ascii: "@")) else {
                throw refusal("The request's authority contains user information. Put credentials into Authorization.")
            }
            return scheme + "://" + authority
        }

        private static func root(of baseURL: URL) throws(ServiceError) -> String {
            let parts = URLText(baseURL)
            guard let authority = parts.authority, !authority.isEmpty else {
                throw refusal("The base URL has no host. Use the form https://host/path.")
            }
            let userinfo = parts.userinfo.map { $0 + "@" } ?? ""
            var path = parts.path
            if path.hasSuffix("/") { path.removeLast() }
            return parts.scheme + "://" + userinfo + authority + path
        }

        private static func refusal(_ message: String) -> ServiceError {
            ServiceError(.badRequest, message, progress: .notSent)
        }
    }

    extension UInt8 {
        /// The byte itself if it is allowed in a path or query or begins an escape, otherwise its escape (RFC 3986 §2.1).
        fileprivate var percentEncoded: [UInt8] {
            isPathCharacter
                ? [self] : Array("%".utf8) + [UInt8.hexDigits[Int(self >> 4)], UInt8.hexDigits[Int(self & 15)]]
        }

        private static let hexDigits = Array("0123456789ABCDEF".utf8)
        private static let marks = Set("-._~!$&'()*+,;=:@/?%".utf8)

        private var isPathCharacter: Bool { isLetter || isDigit || UInt8.marks.contains(self) }
    }

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

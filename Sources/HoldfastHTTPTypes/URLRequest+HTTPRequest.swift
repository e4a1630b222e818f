// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if HTTPTypes
    public import HTTPTypes
    public import Holdfast
    internal import HoldfastSemantics

    #if canImport(FoundationNetworking)
        // Foundation on Linux keeps URLRequest in a module of its own.
        public import Foundation
        public import FoundationNetworking
    #else
        public import Foundation
    #endif

    extension URLRequest {
        /// The request as URLSession and `Pipeline` take it.
        ///
        /// The URL is made of scheme, authority and path. Escapes in the path stay as they are; characters that no URL may hold
        /// are percent-encoded. The method may be any token, although Foundation turns `get` and its like into capitals. Its fields
        /// are a dictionary, so lines of one name are joined with ", ", those of Cookie with "; " (RFC 9110 §5.3, RFC 9113
        /// §8.2.3).
        ///
        /// - Parameters:
        ///   - request: what to send.
        ///   - baseURL: where the server's API lies: its scheme and authority are used, and the request's path is appended to its
        ///     path, which may end with a slash or not. Its query and fragment are left out. nil, the default: the request
        ///     names scheme and authority itself.
        /// - Throws: `ServiceError` `.badRequest` for what has no URL: no scheme or authority, a path that does not begin with a
        ///   slash, has a fragment or a "%" that begins no escape, an authority with user information (RFC 9110 §4.2.4), CONNECT, and `OPTIONS *`.
        public init(_ request: HTTPRequest, baseURL: URL? = nil) throws(ServiceError) {
            guard request.method != .connect else {
                throw URLRequest.refusal(
                    "CONNECT asks for a tunnel, which has no URL; open it with a client of your own."
                )
            }
            let path = try URLRequest.path(of: request)
            let root: String
            if let baseURL {
                root = try URLRequest.root(of: baseURL)
            } else {
                root = try URLRequest.origin(of: request)
            }
            // Foundation would encode the "%" of an escape again where another character needs encoding.
            let encoded = String(decoding: path.utf8.flatMap(\.percentEncoded), as: UTF8.self)
            guard let url = URL(string: root + encoded, encodingInvalidCharacters: false) else {
                throw URLRequest.refusal("Scheme, authority and path make no URL; write a percent sign as %25.")
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

        /// Path and query, from the slash on.
        private static func path(of request: HTTPRequest) throws(ServiceError) -> String {
            guard let path = request.path else {
                throw refusal("The request has no path; give it one, \"/\" at least.")
            }
            guard !path.isEmpty else { return "/" }
            guard path.hasPrefix("/") else {
                throw refusal("The request's path does not begin with a slash, so it has no URL; put one before it.")
            }
            guard !path.utf8.contains(UInt8(ascii: "#")) else {
                throw refusal(
                    "The request's path holds a fragment, which is never sent; write %23 for the sign itself."
                )
            }
            return path
        }

        private static func origin(of request: HTTPRequest) throws(ServiceError) -> String {
            guard let scheme = request.scheme, !scheme.isEmpty, scheme.utf8.allSatisfy(\.isSchemeCharacter) else {
                throw refusal("The request has no scheme; set it to \"https\", or give a base URL.")
            }
            guard let authority = request.authority, !authority.isEmpty else {
                throw refusal("The request has no authority; set it to the host, or give a base URL.")
            }
            // Any of these would move the end of the authority, and the request to another server or path.
            guard !authority.utf8.contains(where: { "/?#\\ ".utf8.contains($0) }) else {
                throw refusal("The request's authority is no host and port; put the path into the path.")
            }
            guard !authority.utf8.contains(UInt8(ascii: "@")) else {
                throw refusal("The request's authority bears user information; put credentials into Authorization.")
            }
            return scheme + "://" + authority
        }

        private static func root(of baseURL: URL) throws(ServiceError) -> String {
            let parts = URLText(baseURL)
            guard let authority = parts.authority, !authority.isEmpty else {
                throw refusal("The base URL has no host; write it as https://host/path.")
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
        /// The byte itself where it may stand in a path or query or begins an escape, else its escape (RFC 3986 §2.1).
        fileprivate var percentEncoded: [UInt8] {
            isPathCharacter
                ? [self] : Array("%".utf8) + [UInt8.hexDigits[Int(self >> 4)], UInt8.hexDigits[Int(self & 15)]]
        }

        private static let hexDigits = Array("0123456789ABCDEF".utf8)
        private static let marks = Set("-._~!$&'()*+,;=:@/?%".utf8)

        private var isPathCharacter: Bool {
            switch self {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"):
                true
            default: UInt8.marks.contains(self)
            }
        }

        /// A character of a scheme (RFC 3986 §3.1).
        fileprivate var isSchemeCharacter: Bool {
            switch self {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."):
                true
            default: false
            }
        }
    }
#endif

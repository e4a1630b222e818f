// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if HTTPTypes
    public import HTTPTypes
    public import Holdfast
    internal import HoldfastSemantics

    #if canImport(FoundationNetworking)
        // Foundation on Linux keeps URLRequest in a module of its own.
        internal import Foundation
        public import FoundationNetworking
    #else
        public import Foundation
    #endif

    extension HTTPRequest {
        /// The request of a URLRequest, without its content.
        ///
        /// Scheme, host, port, path and query stand as spelled in the URL; an empty path becomes "/". User information and
        /// fragment are left out, since neither is sent as a part of the target (RFC 9110 §4.2.4, §7.1). The fields are sorted by
        /// name, for Foundation's dictionary has no order, and a name that is no token is left out.
        ///
        /// - Throws: `ServiceError` `.badRequest` for a request without a URL that names a host, or a method that is no token.
        public init(_ request: URLRequest) throws(ServiceError) {
            guard let method = HTTPRequest.Method(request.httpMethod ?? "GET") else {
                throw ServiceError(
                    .badRequest,
                    "The method of the request is no token; use letters, digits and hyphens.",
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
                    "The request's URL names no host; write it as https://host/path.",
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
#endif

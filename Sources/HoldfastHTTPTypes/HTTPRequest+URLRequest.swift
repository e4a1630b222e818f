// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if HTTPTypes
    public import HTTPTypes
    public import Holdfast
    internal import HoldfastSemantics

    #if canImport(FoundationNetworking)
        // On Linux, Foundation has URLRequest in a separate module.
        internal import Foundation
        public import FoundationNetworking
    #else
        public import Foundation
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
#endif

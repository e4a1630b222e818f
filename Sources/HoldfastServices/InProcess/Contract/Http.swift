// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import Foundation
    public import FoundationNetworking
#else
    public import Foundation
#endif

/// The HTTP names that a ``ServiceProtocol`` uses.
public enum Http {
    /// The HTTP version in responses of services.
    public static let version = "HTTP/1.1"
    /// The default scheme of a router's URLs.
    public static let scheme = "http"

    /// The method of a request, as services distinguish them; closed, because ``unknown`` stands for all others.
    public enum Method: String, Sendable, Hashable, CaseIterable {
        case get = "GET"
        case post = "POST"
        case put = "PUT"
        case delete = "DELETE"
        /// Any other method; `RequestMethod` says which.
        case unknown = ""

        /// The method of a request; case-sensitive (RFC 9110 §9.1).
        public init(_ request: URLRequest) {
            self = Method(rawValue: request.httpMethod ?? "GET") ?? .unknown
        }

        /// The same method for requests; nil for ``unknown``.
        public var requestMethod: RequestMethod? { self == .unknown ? nil : RequestMethod(rawValue: rawValue) }
    }

    /// The status code of a service's response (RFC 9110 §15); any number can be one: `Http.StatusCode(rawValue: 429)`.
    public struct StatusCode: RawRepresentable, Sendable, Hashable, ExpressibleByIntegerLiteral,
        CustomStringConvertible
    {
        /// The number.
        public let rawValue: Int

        /// Takes any number; a response takes those from 200 to 599.
        public init(rawValue: Int) {
            self.rawValue = rawValue
        }

        /// Takes any number.
        public init(integerLiteral value: Int) {
            rawValue = value
        }

        /// Converts the library's type.
        public init(_ status: HoldfastSemantics.StatusCode) {
            rawValue = status.rawValue
        }

        /// The same code as the library's type.
        public var statusCode: HoldfastSemantics.StatusCode { HoldfastSemantics.StatusCode(rawValue) }

        public var description: String { String(rawValue) }

        /// 200.
        public static let ok: StatusCode = 200
        /// 201.
        public static let created: StatusCode = 201
        /// 302.
        public static let found: StatusCode = 302
        /// 307.
        public static let temporaryRedirect: StatusCode = 307
        /// 400.
        public static let badRequest: StatusCode = 400
        /// 401.
        public static let unauthorized: StatusCode = 401
        /// 403.
        public static let forbidden: StatusCode = 403
        /// 404.
        public static let notFound: StatusCode = 404
        /// 405; its response must list the allowed methods in a field Allow (RFC 9110 §15.5.6).
        public static let methodNotAllowed: StatusCode = 405
        /// 409.
        public static let conflict: StatusCode = 409
        /// 500.
        public static let internalServerError: StatusCode = 500
        /// 501.
        public static let notImplemented: StatusCode = 501
        /// 504.
        public static let gatewayTimeout: StatusCode = 504
        /// 505: the version of HTTP is not supported.
        public static let notSupported: StatusCode = 505
    }
}

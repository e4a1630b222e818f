// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
public import Holdfast

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

/// A request made from values instead of its own type, for calls that are made in only one place.
public struct AnyRequest<Result: Sendable>: Request {
    public var url: (any UrlConvertible)?
    public var usesSecureProtocol: Bool?
    public var method: HttpMethod
    public var routes: HttpRoute
    public var query: HttpQuery
    public var header: HttpHeader
    public var body: HttpBody
    public var authorizationRequirement = AuthorizationRequirement.optional
    public var acceptedStatusCodes: ClosedRange<Int> = 200...299
    public var priority = RequestPriority.userInitiated
    public var timeout: Duration?
    public var options = CallOptions()
    public var contentLimit = 64 << 20
    /// Makes the final changes to the request: ``prepare(_:)``.
    public var preparing: @Sendable (URLRequest) async throws -> URLRequest = { $0 }
    /// Makes the result from the content: ``decode(_:)``.
    public var decoding: @Sendable (Data) throws -> Result

    /// A request.
    ///
    /// - Parameters:
    ///   - method: GET by default.
    ///   - url: replaces the service's.
    ///   - routes: the path below the service's URL.
    ///   - query: the query arguments.
    ///   - header: fields of this request.
    ///   - body: the content.
    ///   - decode: makes the result from the content.
    public init(
        _ method: HttpMethod = .get,
        url: (any UrlConvertible)? = nil,
        routes: HttpRoute = HttpRoute(),
        query: HttpQuery = HttpQuery(),
        header: HttpHeader = HttpHeader(),
        body: HttpBody = .empty,
        decode: @escaping @Sendable (Data) throws -> Result
    ) {
        self.method = method
        self.url = url
        self.routes = routes
        self.query = query
        self.header = header
        self.body = body
        decoding = decode
    }

    public func prepare(_ request: URLRequest) async throws -> URLRequest { try await preparing(request) }

    public func decode(_ data: Data) throws -> Result { try decoding(data) }
}

extension AnyRequest where Result == Data {
    /// A request whose result is the unchanged content of its response.
    public init(
        _ method: HttpMethod = .get,
        url: (any UrlConvertible)? = nil,
        routes: HttpRoute = HttpRoute(),
        query: HttpQuery = HttpQuery(),
        header: HttpHeader = HttpHeader(),
        body: HttpBody = .empty
    ) {
        self.init(method, url: url, routes: routes, query: query, header: header, body: body) { $0 }
    }
}

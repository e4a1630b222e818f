// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Holdfast
internal import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import Foundation
    internal import FoundationNetworking
#else
    internal import Foundation
#endif

/// A typed request as it is to be sent.
struct BuiltRequest: Sendable {
    var urlRequest: URLRequest
    var body: RequestBody
    /// Fields that hold a credential beside Authorization and Cookie.
    var credentialFields: [FieldName] = []
}

extension ServiceClient {
    /// Builds a request: URL, scheme, method, route, query, header, body, and `prepare` at the end.
    func build<R: Request>(_ request: R) async throws -> BuiltRequest {
        var urlRequest = URLRequest(url: try url(of: request))
        urlRequest.httpMethod = request.method.rawValue
        urlRequest.networkServiceType = request.priority.networkServiceType
        let authorization = try await authorization(for: request)
        var header = service.header + (try await service.asyncHeader)
        if request.authorizationRequirement == .none { header[.authorization] = nil }
        if let line = authorization.line { header[line.name] = line.value }
        header = header + (try request.header)
        if request.authorizationRequirement == .required, authorization.line == nil, header[.authorization] == nil,
            pipeline.configuration.authorization == nil
        {
            throw ServiceError(
                .authorizationFailed,
                "This request needs a credential and the service has none: log in first.",
                progress: .notSent
            )
        }
        let encoded: HttpBody.Encoded
        do {
            encoded = try request.body.encode()
        } catch let error as ServiceError {
            throw error
        } catch {
            throw ServiceError(
                .encodingFailed,
                "The content of \(R.self) cannot be encoded; see the cause.",
                cause: error,
                progress: .notSent
            )
        }
        if let type = encoded.contentType, !header.contains(.contentType) { header[.contentType] = type }
        var fields: [String: String] = [:]
        for line in header { fields[line.name.rawName] = header[line.name] }
        urlRequest.allHTTPHeaderFields = fields
        urlRequest = try await request.prepare(urlRequest)
        if !encoded.content.isNone, ["GET", "HEAD"].contains(urlRequest.httpMethod ?? "GET") {
            throw ServiceError(
                .badRequest,
                "A GET or HEAD request has no content (RFC 9110 §9.3.1); send it by POST, or as query arguments.",
                progress: .notSent
            )
        }
        let own = authorization.line.map(\.name)
        return BuiltRequest(
            urlRequest: urlRequest,
            body: encoded.content,
            credentialFields: own.map { $0 == .authorization ? [] : [$0] } ?? []
        )
    }

    private func authorization<R: Request>(for request: R) async throws -> Authorization {
        request.authorizationRequirement == .none ? .none : try await service.authorization
    }

    private func url<R: Request>(of request: R) throws -> URL {
        let isSecure = request.usesSecureProtocol ?? service.usesSecureProtocol
        return try ServiceURL.make(
            base: (request.url ?? service.apiUrl).urlText,
            scheme: isSecure ? "https" : "http",
            route: try request.routes,
            query: try request.query
        )
    }
}

extension RequestPriority {
    /// What tells the platform; Foundation on Linux has no word for urgent requests.
    fileprivate var networkServiceType: URLRequest.NetworkServiceType {
        switch self {
        case .utility: .background
        case .default: .default
        case .userInitiated:
            #if canImport(Darwin)
                .responsiveData
            #else
                .default
            #endif
        }
    }
}

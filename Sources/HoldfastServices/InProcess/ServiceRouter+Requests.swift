// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Holdfast
public import HoldfastSemantics

#if canImport(FoundationNetworking)
    public import Foundation
    public import FoundationNetworking
#else
    public import Foundation
#endif

extension ServiceRouter {
    /// Sends a request to a service.
    ///
    /// - Parameters:
    ///   - request: its URL names the service; its content is in `httpBody`.
    ///   - pipeline: a pipeline whose transport is this router, so that its cache, retrier and hooks take part; nil, the
    ///     default: the request goes straight to the service.
    /// - Throws: any error of the service, `ServiceError` or `CancellationError`; a status is never an error.
    public func processRequest(_ request: URLRequest, through pipeline: Pipeline? = nil) async throws -> Response {
        if let pipeline { return try await pipeline.send(request) }
        return try await send(request, body: .carried(by: request), context: CallContext())
    }

    /// Sends a GET request to a service.
    public func processRequest(serviceId: String, through pipeline: Pipeline? = nil) async throws -> Response {
        try await processRequest(try request(serviceId, extraPath: nil), through: pipeline)
    }

    /// Sends a GET request to a service.
    ///
    /// - Parameters:
    ///   - serviceId: the identifier that the service is registered under.
    ///   - extraPath: what follows the identifier, as URL text: several segments, a query. A leading slash is not needed.
    ///   - pipeline: sends the request; nil, the default: it goes straight to the service.
    public func processRequest(
        serviceId: String,
        extraPath: String?,
        through pipeline: Pipeline? = nil
    ) async throws -> Response {
        try await processRequest(try request(serviceId, extraPath: extraPath), through: pipeline)
    }

    /// Sends a request to a service.
    ///
    /// - Parameters:
    ///   - serviceId: the identifier that the service is registered under.
    ///   - extraPath: what follows the identifier, as URL text: several segments, a query. A leading slash is not needed.
    ///   - method: such as `.put`.
    ///   - data: the content.
    ///   - pipeline: sends the request; nil, the default: it goes straight to the service.
    public func processRequest(
        serviceId: String,
        extraPath: String?,
        method: HttpMethod,
        data: Data?,
        through pipeline: Pipeline? = nil
    ) async throws -> Response {
        var request = try request(serviceId, extraPath: extraPath)
        request.httpMethod = method.rawValue
        request.httpBody = data
        return try await processRequest(request, through: pipeline)
    }

    private func request(_ serviceIdentifier: String, extraPath: String?) throws -> URLRequest {
        let allowed = CharacterSet.urlPathAllowed.subtracting(CharacterSet(charactersIn: "/"))
        let segment = serviceIdentifier.addingPercentEncoding(withAllowedCharacters: allowed) ?? ""
        let extra = (extraPath ?? "").drop { $0 == "/" }
        let slash = extra.isEmpty || extra.hasPrefix("?") ? "" : "/"
        guard !segment.isEmpty, let url = URL(string: "\(scheme)://\(apiHostname)/\(segment)\(slash)\(extra)") else {
            throw ServiceError(
                .badRequest,
                "The service's identifier and this path do not form a valid URL. Correct whichever of them is invalid.",
                progress: .notSent
            )
        }
        return URLRequest(url: url)
    }
}

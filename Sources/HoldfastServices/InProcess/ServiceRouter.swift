// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Holdfast
public import HoldfastSemantics
private import HoldfastStorage
private import Synchronization

#if canImport(FoundationNetworking)
    internal import Foundation
    public import FoundationNetworking
#else
    public import Foundation
#endif

/// A transport that hands requests to services in this process: an embedded server, a mock, an offline fall-back.
///
/// A request to the router's host goes to the service whose identifier is the first non-empty component of the request's
/// decoded path; one for which no service is registered is answered with 404. A request to another host goes to the next
/// transport. Since a router is a transport, it stands beneath the whole pipeline, so tests exercise the real path.
public final class ServiceRouter: Transport {
    /// The host whose requests the router answers; compared without regard to case.
    public let host: String
    private let next: (any Transport)?
    private let services = Mutex<[String: any InProcessService]>([:])

    /// A router for `host`.
    ///
    /// - Parameters:
    ///   - host: `pmapi` by default.
    ///   - services: registered at once; of two with one identifier the first stays.
    ///   - next: takes requests to other hosts; without it they fail with `.resolve`.
    public init(host: String = "pmapi", services: [any InProcessService] = [], next: (any Transport)? = nil) {
        self.host = host.lowercased()
        self.next = next
        for service in services { register(service) }
    }

    /// Registers a service.
    ///
    /// - Returns: false when the identifier is taken; the service that has it stays.
    @discardableResult
    public func register(_ service: any InProcessService) -> Bool {
        services.withLock { services in
            guard services[service.serviceIdentifier] == nil else { return false }
            services[service.serviceIdentifier] = service
            return true
        }
    }

    /// Unregisters the service of an identifier; a call in flight finishes. No effect where there is none.
    public func unregister(_ serviceIdentifier: String) {
        services.withLock { _ = $0.removeValue(forKey: serviceIdentifier) }
    }

    public func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
        guard let url = request.url, url.host?.lowercased() == host else {
            guard let next else {
                throw ServiceError(
                    .resolve,
                    "This router answers for \(host) only and has no next transport; give it one or mend the URL.",
                    progress: .notSent
                )
            }
            return try await next.send(request, body: body, context: context)
        }
        let identifier = url.pathComponents.first { $0 != "/" } ?? ""
        guard let service = services.withLock({ $0[identifier] }) else {
            return Response(
                status: .notFound,
                fields: ["Content-Type": "text/plain; charset=utf-8"],
                body: ResponseBody(ByteChunk(copying: "No service is registered as \(identifier).".utf8)),
                url: url,
                source: .inProcess
            )
        }
        var response = try await service.respond(to: request, body: body)
        if response.url == nil { response.url = url }
        if case .network = response.source { response.source = .inProcess }
        return response
    }

    public func implicitFields(for request: URLRequest) -> HeaderFields {
        guard let next, request.url?.host?.lowercased() != host else { return HeaderFields() }
        return next.implicitFields(for: request)
    }
}

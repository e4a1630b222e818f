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
/// transport. Scheme and port do not count. Since a router is a transport, it stands beneath the whole pipeline, so tests
/// exercise the real path. There is no shared router: make as many as there are parts that must not see each other.
public final class ServiceRouter: Transport {
    /// Limits, and who is told what happens; everything has a default.
    public struct Configuration: Sendable {
        /// The most bytes that a ``ServiceProtocol`` may return ahead of their reader, 64 MiB by default; beyond it the body
        /// fails with `.bodyTooLarge`, since the closures of a service cannot be made to wait.
        public var unreadLimit = 64 << 20
        /// The most bytes of content that are read into the `httpBody` of a request to a ``ServiceProtocol``, 64 MiB by default;
        /// beyond it the call fails with `.bodyTooLarge`.
        public var requestContentLimit = 64 << 20
        /// How many calls of ``ServiceProtocol`` services may run, or block, at once; 1,024 by default. Each has a thread of its own.
        /// Further ones wait in line until one of them returns from its `performRequest`.
        public var blockingCalls = 1_024
        /// Is told of each call to the router's host when it is over; from any thread. Must be quick.
        public var onMetrics: (@Sendable (ServiceMetrics) -> Void)?
        /// Is told of each breach of a service's contract, on the thread that broke it. Must be quick.
        public var onContractViolation: (@Sendable (ServiceContractViolation) -> Void)?

        /// The defaults.
        public init() {}
    }

    /// The host whose requests the router answers; compared without regard to case.
    public let apiHostname: String
    /// The scheme of the URLs that ``processRequest(serviceId:extraPath:method:data:through:)`` makes.
    public let scheme: String
    /// Limits, and who is told what happens.
    public let configuration: Configuration
    private let next: (any Transport)?
    private let threads: ServiceThreads
    private let registry = Mutex(ServiceRegistry())

    /// A router for one host.
    ///
    /// - Parameters:
    ///   - apiHostname: `pmapi` by default.
    ///   - scheme: of the URLs the router makes.
    ///   - services: registered at once; of two with one identifier the first stays.
    ///   - types: services without instances, registered after `services`.
    ///   - next: takes requests to other hosts; without it they fail with `.resolve`.
    ///   - configuration: bounds of what services may do.
    public init(
        apiHostname: String = "pmapi",
        scheme: String = Http.scheme,
        services: [any InProcessService] = [],
        types: [any ServiceProtocol.Type] = [],
        next: (any Transport)? = nil,
        configuration: Configuration = Configuration()
    ) {
        self.apiHostname = apiHostname.lowercased()
        self.scheme = scheme
        self.next = next
        self.configuration = configuration
        threads = ServiceThreads(limit: configuration.blockingCalls)
        for service in services { register(service) }
        for type in types { register(type) }
    }

    // MARK: Registering

    /// Registers a service.
    ///
    /// Callbacks of services are made one at a time, in the order of the changes, outside of any lock; a request may come before
    /// them.
    ///
    /// - Returns: false when the identifier is taken, and then the service that has it stays; or when it is empty or has a slash,
    ///   so that no request could find it.
    @discardableResult
    public func register(_ service: any InProcessService) -> Bool {
        register(.instance(service))
    }

    /// Registers a service without instances; as ``register(_:)-(InProcessService)`` otherwise.
    @discardableResult
    public func register(_ type: any ServiceProtocol.Type) -> Bool {
        register(.type(type))
    }

    /// Registers a service without instances: the same as ``register(_:)-(ServiceProtocol.Type)``, by its older name.
    @discardableResult
    public func registerService(_ type: any ServiceProtocol.Type) -> Bool {
        register(.type(type))
    }

    /// Unregisters the service of an identifier; a call in flight finishes. No effect where there is none.
    public func unregister(_ serviceIdentifier: String) {
        unregister(serviceIdentifier) { _ in true }
    }

    /// Unregisters a service without instances; no effect where that very type is not registered.
    public func unregisterService(_ type: any ServiceProtocol.Type) {
        unregister(type.serviceIdentifier) { $0.isType(type) }
    }

    /// Unregisters the service of an identifier: the same as ``unregister(_:)``, by its older name.
    public func unregisterService(byIdentifier serviceIdentifier: String) {
        unregister(serviceIdentifier)
    }

    private func register(_ entry: ServiceRegistry.Entry) -> Bool {
        let serviceIdentifier = entry.serviceIdentifier
        let isNew = registry.withLock { $0.register(entry, as: serviceIdentifier) }
        notify()
        return isNew
    }

    private func unregister(_ serviceIdentifier: String, where isMeant: (ServiceRegistry.Entry) -> Bool) {
        registry.withLock { $0.unregister(serviceIdentifier, where: isMeant) }
        notify()
    }

    private func notify() {
        guard registry.withLock({ $0.beginNotifying() }) else { return }
        while let notices = registry.withLock({ $0.takeNotices() }) {
            for notice in notices {
                switch notice {
                case .registered(let entry): entry.registered()
                case .unregistered(let entry): entry.unregistered()
                }
            }
        }
    }

    // MARK: Transport

    public func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
        guard let url = request.url, url.host?.lowercased() == apiHostname else {
            guard let next else {
                throw ServiceError(
                    .resolve,
                    "This router only answers for \(apiHostname) and has no next transport. Correct the URL, or give the router a next transport.",
                    progress: .notSent
                )
            }
            return try await next.send(request, body: body, context: context)
        }
        let identifier = url.pathComponents.first { $0 != "/" } ?? ""
        guard configuration.onMetrics != nil || context.isObserved else {
            return try await answer(request, url: url, identifier: identifier, body: body, context: context)
        }
        let metrics = ServiceMetrics(request, url: url, body: body, serviceIdentifier: identifier)
        let meter = ServiceMeter(metrics, context: context, tell: configuration.onMetrics)
        do {
            return meter.following(
                try await answer(request, url: url, identifier: identifier, body: body, context: context)
            )
        } catch {
            meter.end(error)
            throw error
        }
    }

    private func answer(
        _ request: URLRequest,
        url: URL,
        identifier: String,
        body: RequestBody,
        context: CallContext
    ) async throws -> Response {
        switch registry.withLock({ $0[identifier] }) {
        case .instance(let service):
            var response = try await service.respond(to: request, body: body)
            if response.url == nil { response.url = url }
            if case .network = response.source { response.source = .inProcess }
            return response
        case .type(let type):
            return try await StaticServiceCall(type, configuration: configuration, on: threads).response(
                to: request,
                url: url,
                body: body,
                context: context
            )
        case nil:
            return Response(
                status: .notFound,
                fields: ["Content-Type": "text/plain; charset=utf-8"],
                body: ResponseBody(ByteChunk(copying: "No service is registered as \(identifier).".utf8)),
                url: url,
                source: .inProcess
            )
        }
    }

    public func implicitFields(for request: URLRequest) -> HeaderFields {
        guard let next, request.url?.host?.lowercased() != apiHostname else { return HeaderFields() }
        return next.implicitFields(for: request)
    }

    public func implicitFields(for request: URLRequest, context: CallContext) -> HeaderFields {
        guard let next, request.url?.host?.lowercased() != apiHostname else { return HeaderFields() }
        return next.implicitFields(for: request, context: context)
    }
}

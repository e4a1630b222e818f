// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
public import Holdfast
private import Synchronization

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

/// A transport that sends requests to services in this process: an embedded server, a mock, an offline fallback.
///
/// A request to the router's host goes to the service whose identifier is the first non-empty component of the request's
/// decoded path; if no service is registered for it, the response is a 404. A request to another host goes to the next
/// transport. Scheme and port are ignored. A router is a transport, below the whole pipeline, so tests exercise the real path.
/// There is no shared router: create one for each part that must not see the others.
public final class ServiceRouter: Transport {
    /// Limits and callbacks; everything has a default.
    public struct Configuration: Sendable {
        /// The most bytes that a ``ServiceProtocol`` may return before they are read, 64 MiB by default; beyond it the body
        /// fails with `.bodyTooLarge`, because the closures of a service cannot be made to wait.
        public var unreadLimit = 64 << 20
        /// The most bytes of content that are read into the `httpBody` of a request to a ``ServiceProtocol``, 64 MiB by default;
        /// beyond it the call fails with `.bodyTooLarge`.
        public var requestContentLimit = 64 << 20
        /// How many calls of ``ServiceProtocol`` services may run, or block, at once; 1,024 by default. Each has its own
        /// thread. Further calls wait in line until one returns from its `performRequest`.
        public var blockingCalls = 1_024
        /// Called for each call to the router's host when it is over; from any thread. Must be quick.
        public var onMetrics: (@Sendable (ServiceMetrics) -> Void)?
        /// Called for each violation of a service's contract, on the thread that caused it. Must be quick.
        public var onContractViolation: (@Sendable (ServiceContractViolation) -> Void)?

        /// The defaults.
        public init() {}
    }

    /// The host whose requests the router answers; not case-sensitive.
    public let apiHostname: String
    /// The scheme of the URLs that ``processRequest(serviceId:extraPath:method:data:through:)`` makes.
    public let scheme: String
    /// Limits and callbacks.
    public let configuration: Configuration
    private let next: (any Transport)?
    private let threads: ServiceThreads
    private let registry = Mutex(ServiceRegistry())

    /// Creates a router for one host.
    ///
    /// - Parameters:
    ///   - apiHostname: `pmapi` by default.
    ///   - scheme: the scheme of the URLs that the router makes.
    ///   - services: registered at once; of two with the same identifier, the first one stays.
    ///   - types: services without instances, registered after `services`.
    ///   - next: takes requests to other hosts; without it they fail with `.resolve`.
    ///   - configuration: limits and callbacks.
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
    /// The callbacks of services are called one at a time, in the order of the changes, outside any lock; a request may come
    /// before them.
    ///
    /// - Returns: false if the identifier is taken, in which case the registered service stays; or if it is empty or contains a
    ///   slash, so that no request could find it.
    @discardableResult
    public func register(_ service: any InProcessService) -> Bool { register(.instance(service)) }

    /// Registers a service without instances; otherwise like ``register(_:)-(InProcessService)``.
    @discardableResult
    public func register(_ type: any ServiceProtocol.Type) -> Bool { register(.type(type)) }

    /// Registers a service without instances: the older name of ``register(_:)-(ServiceProtocol.Type)``.
    @discardableResult
    public func registerService(_ type: any ServiceProtocol.Type) -> Bool { register(.type(type)) }

    /// Unregisters the service with an identifier; a call in progress finishes. Does nothing if there is none.
    public func unregister(_ serviceIdentifier: String) { unregister(serviceIdentifier) { _ in true } }

    /// Unregisters a service without instances; does nothing if that type is not registered.
    public func unregisterService(_ type: any ServiceProtocol.Type) {
        unregister(type.serviceIdentifier) { $0.isType(type) }
    }

    /// Unregisters the service with an identifier: the older name of ``unregister(_:)``.
    public func unregisterService(byIdentifier serviceIdentifier: String) { unregister(serviceIdentifier) }

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
            for notice in notices { notice.entry.notify(isRegistered: notice.isRegistered) }
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
            return try await StaticServiceCall(type: type, configuration: configuration, threads: threads).response(
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

    /// Sends a request to a service.
    ///
    /// - Parameters:
    ///   - serviceId: the identifier that the service is registered under.
    ///   - extraPath: what follows the identifier, as URL text: several segments, a query. A leading slash is not needed.
    ///   - method: such as `.put`; GET by default.
    ///   - data: the content; none by default.
    ///   - pipeline: sends the request; nil, the default: it goes straight to the service.
    public func processRequest(
        serviceId: String,
        extraPath: String? = nil,
        method: HttpMethod = .get,
        data: Data? = nil,
        through pipeline: Pipeline? = nil
    ) async throws -> Response {
        let segment = PercentCoding.encode(serviceId, allowing: .pathSegment)
        let extra = (extraPath ?? "").drop { $0 == "/" }
        let slash = extra.isEmpty || extra.hasPrefix("?") ? "" : "/"
        guard !segment.isEmpty, let url = URL(string: "\(scheme)://\(apiHostname)/\(segment)\(slash)\(extra)") else {
            throw ServiceError.badRequest(
                "The service's identifier and this path do not form a valid URL. Correct whichever of them is invalid."
            )
        }
        var request = URLRequest(url: url)
        request.httpMethod = method.rawValue
        request.httpBody = data
        return try await processRequest(request, through: pipeline)
    }
}

/// The services that a router knows, and the callbacks it still has to make: a value without effects.
struct ServiceRegistry {
    /// A service of either kind.
    enum Entry: Sendable {
        case instance(any InProcessService)
        case type(any ServiceProtocol.Type)

        var serviceIdentifier: String {
            switch self {
            case .instance(let service): service.serviceIdentifier
            case .type(let type): type.serviceIdentifier
            }
        }

        func notify(isRegistered: Bool) {
            switch (self, isRegistered) {
            case (.instance(let service), true): service.registered()
            case (.instance(let service), false): service.unregistered()
            case (.type(let type), true): type.registered()
            case (.type(let type), false): type.unregistered()
            }
        }

        /// Whether this is that type.
        func isType(_ other: any ServiceProtocol.Type) -> Bool {
            if case .type(let type) = self { ObjectIdentifier(type) == ObjectIdentifier(other) } else { false }
        }
    }

    /// A callback that is due.
    typealias Notice = (entry: Entry, isRegistered: Bool)

    private var entries: [String: Entry] = [:]
    private var notices: [Notice] = []
    private var isNotifying = false

    subscript(serviceIdentifier: String) -> Entry? { entries[serviceIdentifier] }

    /// False if the identifier is taken, or cannot be a path component.
    mutating func register(_ entry: Entry, as serviceIdentifier: String) -> Bool {
        guard entries[serviceIdentifier] == nil, !serviceIdentifier.isEmpty, !serviceIdentifier.contains("/") else {
            return false
        }
        entries[serviceIdentifier] = entry
        notices.append((entry, isRegistered: true))
        return true
    }

    mutating func unregister(_ serviceIdentifier: String, where isMeant: (Entry) -> Bool) {
        guard let entry = entries[serviceIdentifier], isMeant(entry) else { return }
        entries[serviceIdentifier] = nil
        notices.append((entry, isRegistered: false))
    }

    /// Whether callbacks are due and nobody is making them; if true, the caller makes them all.
    mutating func beginNotifying() -> Bool {
        guard !isNotifying, !notices.isEmpty else { return false }
        isNotifying = true
        return true
    }

    /// The next callbacks; nil, and the end of notifying, if there are none.
    mutating func takeNotices() -> [Notice]? {
        guard !notices.isEmpty else {
            isNotifying = false
            return nil
        }
        defer { notices = [] }
        return notices
    }
}

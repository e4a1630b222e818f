// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Foundation
    public import Holdfast
    public import HoldfastSemantics
    public import HoldfastStorage
    internal import NIOCore
    internal import NIOPosix
    private import Synchronization

    /// A caching, retrying HTTP proxy: a server in front, a `Pipeline` in the middle, an ``OriginTransport`` behind.
    ///
    ///     var configuration = ProxyConfiguration(.reverse(try ProxyOrigin("http://127.0.0.1:3000")))
    ///     configuration.port = 8080
    ///     let server = try await ProxyServer.start(configuration)
    ///     // … until it is to end:
    ///     await server.drain(within: .seconds(10))
    ///
    /// It has no caching or retry rules of its own: between the two sides it does what RFC 9110 §7.6 requires of an
    /// intermediary. Every failure is a response: 400 and 501 for requests that it cannot forward, 403 for hosts that a
    /// forward proxy may not send to, 502 if the origin could not be reached or its response was not HTTP, 503 if
    /// nothing is sent to the origin for a while, 504 if it took too long, 508 for a loop; each with a line of plain
    /// text.
    public final class ProxyServer: Sendable {
        /// Counts of a proxy's connections and requests so far.
        public struct Statistics: Sendable, Hashable {
            /// Client connections: open now, served so far, refused because there were too many.
            public let connectionsOpen: Int
            public let connectionsAccepted: Int
            public let connectionsRefused: Int
            /// Requests: begun so far, and not completely answered yet.
            public let requestsBegun: Int
            public let requestsUnderWay: Int
            /// Connections to origins.
            public let origin: OriginTransport.ConnectionCounts
        }

        /// The pipeline for requests that begin now.
        public var pipeline: Pipeline { serving.current.pipeline }
        /// The port; for a socket in the file system, the configured one.
        public let port: Int
        /// The port of the admin listener; nil if there is none, or it listens on a socket in the file system.
        public var adminPort: Int? { admin.withLock { $0 }?.port }

        private let serving: ServingPipeline
        /// Shows the state of the cache; nil if it is not shown.
        private let model: InspectorModel?
        /// The last replacement of rules; the next one waits for it.
        private let replacement = Mutex<Task<Result<Int?, StoreError>, Never>?>(nil)
        private let server: HTTPServer
        private let transport: OriginTransport
        private let origins: OriginGroup?
        private let tls: ServerTLS?
        private let clock: any HoldfastClock
        private let admin = Mutex<HTTPServer?>(nil)
        /// Checks the origins; nil if no check is configured.
        private let checking = Mutex<Task<Void, Never>?>(nil)
        private let areOriginsChecked: Bool
        private let isDraining = Atomic(false)

        deinit { checking.withLock { $0 }?.cancel() }

        private init(
            _ server: HTTPServer,
            port: Int,
            serving: ServingPipeline,
            model: InspectorModel?,
            transport: OriginTransport,
            origins: OriginGroup?,
            areOriginsChecked: Bool,
            tls: ServerTLS?
        ) {
            self.areOriginsChecked = areOriginsChecked
            self.tls = tls
            self.model = model
            self.server = server
            self.port = port
            self.serving = serving
            self.transport = transport
            self.origins = origins
            clock = serving.current.pipeline.configuration.clock
        }

        /// Starts listening and serving.
        ///
        /// - Throws: ``ProxyConfigurationError``, or ``ProxyListenError`` if it cannot listen.
        public static func start(_ configuration: ProxyConfiguration) async throws -> ProxyServer {
            try configuration.validate()
            var configuration = configuration
            let metrics = configuration.admin.map { _ in ProxyMetrics() }
            if let metrics {
                let (onAnswer, onFailure) = (configuration.onAnswer, configuration.onFailure)
                configuration.observers.append(metrics)
                configuration.onAnswer = { record in
                    metrics.note(record)
                    onAnswer?(record)
                }
                configuration.onFailure = { failure in
                    metrics.note(failure)
                    onFailure?(failure)
                }
            }
            var model: InspectorModel?
            if configuration.admin != nil, let cache = configuration.cache {
                let new = InspectorModel(cache: cache, clock: configuration.clock)
                configuration.observers.append(new)
                model = new
            }
            let origins = configuration.originGroup
            // Clients of a forward proxy send absolute URLs, which HTTP/2 cannot express.
            let offersHTTP2 = !configuration.role.isForward
            let tls = try configuration.certificate.map { files throws(ProxyConfigurationError) in
                try ServerTLS(files, offersHTTP2: offersHTTP2)
            }
            let transport = OriginTransport(configuration: transportConfiguration(configuration, origins: origins))
            let pipeline = pipeline(configuration, transport: transport)
            let port = BoundPort(configuration.port)
            let handler = handler(
                configuration,
                pipeline: pipeline,
                transport: transport,
                port: port,
                origins: origins
            )
            let proxy: ProxyServer
            do {
                let server = try await HTTPServer.start(
                    at: HTTPServer.Address(host: configuration.host, port: configuration.port),
                    configuration: serverConfiguration(configuration),
                    tls: tls,
                    handler: handler
                )
                port.number = server.port ?? configuration.port
                proxy = ProxyServer(
                    server,
                    port: port.number,
                    serving: handler.serving,
                    model: model,
                    transport: transport,
                    origins: origins,
                    areOriginsChecked: configuration.check != nil,
                    tls: tls
                )
            } catch {
                await transport.shutdown()
                throw ProxyListenError(host: configuration.host, port: configuration.port, cause: error)
            }
            proxy.checkOrigins(configuration)
            guard let admin = configuration.admin, let metrics else { return proxy }
            do {
                try await proxy.open(admin, metrics: metrics, of: configuration)
            } catch {
                await proxy.close()
                throw ProxyListenError(host: admin.host, port: admin.port, cause: error)
            }
            return proxy
        }

        private func checkOrigins(_ configuration: ProxyConfiguration) {
            guard let check = configuration.check, let origins else { return }
            let checker = OriginChecker(
                check: check,
                group: origins,
                clock: clock,
                probe: { [transport] member in
                    await transport.check(member, path: check.path, within: check.timeout)
                },
                onFailure: configuration.onFailure
            )
            checking.withLock { $0 = Task { await checker.run() } }
        }

        private func open(
            _ admin: AdminConfiguration,
            metrics: ProxyMetrics,
            of configuration: ProxyConfiguration
        ) async throws {
            let governor = configuration.retrierFactory.governor
            var origin: ProxyOrigin?
            if case .reverse(let own) = configuration.role.kind { origin = own }
            let address = HTTPServer.Address(host: admin.host, port: admin.port)
            let started = try await AdminServer.start(at: address) { [weak self, origin, model, serving] port in
                let isOpen = admin.token != nil || admin.host.hasPrefix("unix:")
                let guarding = InspectorGuard(host: admin.host, port: port ?? admin.port, isOpen: isOpen)
                let desk = AdminDesk(
                    cache: { [serving] in serving.current.pipeline.cache },
                    metrics: metrics,
                    token: admin.token,
                    instance: admin.instance,
                    guarding: guarding,
                    inspector: model.map { InspectorResponder(model: $0, governor: governor, guarding: guarding) },
                    origin: origin,
                    unready: { [weak self] in self?.unreadiness },
                    connections: { [weak self] in self?.connections }
                )
                return { await desk.answer($0) }
            }
            self.admin.withLock { $0 = started }
        }

        /// Why requests should go elsewhere; nil while it is ready.
        private var unreadiness: String? {
            if isDraining.load(ordering: .relaxed) { return "The proxy is draining." }
            let standings = origins?.standings(at: clock.now) ?? []
            return standings.isEmpty || standings.contains(where: \.isUp) ? nil : "Every origin is failing."
        }

        private var connections: ProxyMetrics.Connections {
            ProxyMetrics.Connections(
                server: statistics,
                origins: origins?.standings(at: clock.now) ?? [],
                areChecked: areOriginsChecked
            )
        }

        private static func pipeline(_ configuration: ProxyConfiguration, transport: OriginTransport) -> Pipeline {
            var settings = PipelineConfiguration()
            settings.clock = configuration.clock
            // The handler limits the whole call, and long uploads must be possible.
            settings.attemptTimeout = nil
            settings.redirects = .returnToCaller
            settings.observers = configuration.observers
            if let onFailure = configuration.onFailure { settings.observers.append(StoreFailures(tell: onFailure)) }
            return Pipeline(
                transport: transport,
                cache: configuration.cache,
                retrierFactory: configuration.retrierFactory,
                configuration: settings
            )
        }

        private static func handler(
            _ configuration: ProxyConfiguration,
            pipeline: Pipeline,
            transport: OriginTransport,
            port: BoundPort,
            origins: OriginGroup?
        ) -> ProxyHandler {
            let asksByHost = configuration.keepsHost || configuration.clientAddressFields != .none
            var handler = ProxyHandler(
                pipeline: pipeline,
                targets: TargetRules(
                    role: configuration.role,
                    ownHost: configuration.host,
                    ownPort: port,
                    asksByHost: origins != nil && asksByHost
                )
            )
            handler.via = configuration.via
            handler.clientAddress = configuration.clientAddressFields
            handler.answerTimeout = configuration.answerTimeout
            handler.onAnswer = configuration.onAnswer
            handler.onFailure = configuration.onFailure
            handler.transport = transport
            handler.clientScheme = configuration.clientScheme ?? (configuration.certificate == nil ? "http" : "https")
            if let origins, !origins.keepsHost { handler.hiddenOrigins = origins.members.map(\.origin) }
            return handler
        }

        /// Reloads the certificate and its key, for connections from now on.
        ///
        /// - Throws: ``ProxyConfigurationError`` if the files are wrong; the previous ones then stay in use.
        public func reloadCertificate() throws(ProxyConfigurationError) {
            try tls?.reload()
        }

        /// Replaces the rules of the cache for requests that begin from now on; active requests keep the previous
        /// rules.
        ///
        /// Counters, budgets and stored responses are kept. If the rules change the keys of some routes (`keyFields`,
        /// `query`, `ignoredCookies`, `content`, `cachesPost`), a stored response could match the wrong request. All
        /// responses for these routes are then removed. Until that is done these routes do not use the store, and
        /// responses to active requests are not stored.
        ///
        /// - Returns: the number of removed responses; nil if all keys are unchanged, or if there is no cache.
        /// - Throws: `StoreError` if the store could not remove them. The rules apply nevertheless, and these routes do
        ///   not use the store until the rules are replaced again.
        @discardableResult
        public func replaceRules(with rules: CacheRules) async throws(StoreError) -> Int? {
            let task = replacement.withLock { last in
                let task = Task { [last, serving, model, clock] () -> Result<Int?, StoreError> in
                    _ = await last?.value
                    let former = serving.current.pipeline
                    guard let cache = former.cache else { return .success(nil) }
                    do throws(StoreError) {
                        return .success(
                            try await cache.replaceRules(with: rules, now: clock.timestamp) { new in
                                serving.replace(with: Pipeline(succeeding: former, cache: new))
                                model?.follow(new)
                            }
                        )
                    } catch {
                        return .failure(error)
                    }
                }
                last = task
                return task
            }
            return try await task.value.get()
        }

        /// Counts of its connections and requests so far.
        public var statistics: Statistics {
            let counts = server.statistics
            return Statistics(
                connectionsOpen: counts.connectionsOpen,
                connectionsAccepted: counts.connectionsAccepted,
                connectionsRefused: counts.connectionsRefused,
                requestsBegun: counts.requestsBegun,
                requestsUnderWay: counts.requestsUnderWay,
                origin: transport.connections
            )
        }

        /// Accepts no more connections, lets current requests and background work finish, and closes the rest when the
        /// time is up or the waiting task is cancelled.
        public func drain(within limit: Duration) async {
            isDraining.store(true, ordering: .relaxed)
            checking.withLock { $0 }?.cancel()
            let end = ContinuousClock.now + limit
            await server.drain(within: limit.timeAmount)
            await withTaskGroup { group in
                group.addTask { [serving] in await serving.current.pipeline.drain() }
                group.addTask { [transport] in
                    try? await ContinuousClock().sleep(until: end)
                    await transport.shutdown()
                }
                await group.next()
                group.cancelAll()
            }
            await admin.withLock { $0 }?.close()
        }

        /// Closes everything and returns when it has ended. Idempotent.
        public func close() async {
            checking.withLock { $0 }?.cancel()
            await server.close()
            await transport.shutdown()
            await pipeline.drain()
            await admin.withLock { $0 }?.close()
        }

        /// The system's error number for a failure to listen, such as `EADDRINUSE`, or `EEXIST` if there is something other than a
        /// socket at the path of one; nil for other errors.
        public static func systemErrorNumber(_ error: any Error) -> Int32? {
            if let error = error as? ProxyListenError { return systemErrorNumber(error.cause) }
            return (error as? IOError)?.errnoCode
        }

        private static func transportConfiguration(
            _ proxy: ProxyConfiguration,
            origins: OriginGroup?
        ) -> OriginTransport.Configuration {
            var configuration = proxy.transport
            configuration.origins = origins
            // Retriers resend after a stale connection by their own rules; both together would send more often than these allow.
            if proxy.retrierFactory.governor != nil { configuration.resendsAfterStaleConnection = false }
            if case .forward(let rules) = proxy.role.kind, rules.deniesPrivate {
                configuration.admission = { try rules.admit($0, port: $1, address: $2) }
            }
            return configuration
        }

        private static func serverConfiguration(_ proxy: ProxyConfiguration) -> ServerConfiguration {
            let limits = proxy.limits
            var configuration = ServerConfiguration()
            configuration.onFailure = proxy.onFailure
            if let onAnswer = proxy.onAnswer {
                configuration.onRefusal = { [clock = proxy.clock] refused in
                    onAnswer(ProxyRecord(refused, start: clock.timestamp))
                }
            }
            configuration.headLimits = HeadLimits(
                bytes: limits.headBytes,
                fieldLines: limits.headLines,
                target: min(limits.headBytes, 64 << 10)
            )
            configuration.maximumConnections = max(limits.connections, 1)
            configuration.headTimeout = limits.headTimeout.timeAmount
            configuration.idleTimeout = limits.idleTimeout.timeAmount
            configuration.bodyStall = limits.stallTimeout.timeAmount
            configuration.writeStall = limits.stallTimeout.timeAmount
            return configuration
        }
    }

    /// A proxy, or its admin listener, cannot listen at its address.
    public struct ProxyListenError: Error, Sendable {
        /// The address.
        public let host: String
        public let port: Int
        /// The system's error; see ``ProxyServer/systemErrorNumber(_:)``.
        public let cause: any Error
    }

    /// Reports a failing store, which does not affect the response to a client.
    private struct StoreFailures: EventObserver {
        let tell: @Sendable (ProxyFailure) -> Void
        let observedEvents: Set<ServiceEvent.Name>? = [.storeFailed]

        func observe(_ event: ServiceEvent) {
            let what = event.error.map { "\($0)" } ?? event.detail ?? ""
            tell(ProxyFailure(.store, text: "the store failed, so the origin is used instead: \(what)"))
        }
    }

    /// The port that a server listens on, known once it does.
    final class BoundPort: Sendable {
        private let bound: Atomic<Int>

        init(_ number: Int) {
            bound = Atomic(number)
        }

        var number: Int {
            get { bound.load(ordering: .relaxed) }
            set { bound.store(newValue, ordering: .relaxed) }
        }
    }
#endif

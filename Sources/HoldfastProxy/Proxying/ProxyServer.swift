// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    public import Holdfast
    internal import NIOCore
    internal import NIOPosix
    private import Synchronization

    /// A caching, retrying HTTP/1.1 proxy: a server in front, a `Pipeline` in the middle, an ``OriginTransport`` behind.
    ///
    ///     var configuration = ProxyConfiguration(.reverse(try ProxyOrigin("http://127.0.0.1:3000")))
    ///     configuration.port = 8080
    ///     let server = try await ProxyServer.start(configuration)
    ///     // … until it is to end:
    ///     await server.drain(within: .seconds(10))
    ///
    /// It has no rule of caching or retrying of its own: what it does between the two sides is what RFC 9110 §7.6 asks of an
    /// intermediary. Every failure is an answer: 400 and 501 for what it cannot pass on, 403 for whom a forward proxy may not ask,
    /// 502 where the origin could not be reached or answered no HTTP, 503 where it is left alone, 504 where it took too long, 508 for a
    /// loop; each with a line of plain text.
    public final class ProxyServer: Sendable {
        /// What a proxy's connections have come to so far.
        public struct Statistics: Sendable, Hashable {
            /// Client connections: open now, served so far, refused because there were too many.
            public let connectionsOpen: Int
            public let connectionsAccepted: Int
            public let connectionsRefused: Int
            /// Requests: begun so far, and not answered whole yet.
            public let requestsBegun: Int
            public let requestsUnderWay: Int
            /// Connections to origins.
            public let origin: OriginTransport.ConnectionCounts
        }

        /// What answers the requests.
        public let pipeline: Pipeline
        /// The port it listens on; of a socket in the file system the configured one.
        public let port: Int
        /// The port of the admin listener; nil where there is none, or it listens on a socket in the file system.
        public var adminPort: Int? { admin.withLock { $0 }?.port }

        private let server: HTTPServer
        private let transport: OriginTransport
        private let origins: OriginGroup?
        private let tls: ServerTLS?
        private let clock: any HoldfastClock
        private let admin = Mutex<AdminServer?>(nil)
        private let isDraining = Atomic(false)

        private init(
            _ server: HTTPServer,
            port: Int,
            pipeline: Pipeline,
            transport: OriginTransport,
            origins: OriginGroup?,
            tls: ServerTLS?
        ) {
            self.tls = tls
            self.server = server
            self.port = port
            self.pipeline = pipeline
            self.transport = transport
            self.origins = origins
            clock = pipeline.configuration.clock
        }

        /// Begins to listen and to serve.
        ///
        /// - Throws: ``ProxyConfigurationError``, or ``ProxyListenError`` where it cannot listen.
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
            let tls = try configuration.certificate.map { files throws(ProxyConfigurationError) in try ServerTLS(files)
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
                    pipeline: pipeline,
                    transport: transport,
                    origins: origins,
                    tls: tls
                )
            } catch {
                await transport.shutdown()
                throw ProxyListenError(host: configuration.host, port: configuration.port, cause: error)
            }
            guard let admin = configuration.admin, let metrics else { return proxy }
            do {
                try await proxy.open(admin, metrics: metrics, model: model, of: configuration)
            } catch {
                await proxy.close()
                throw ProxyListenError(host: admin.host, port: admin.port, cause: error)
            }
            return proxy
        }

        private func open(
            _ admin: AdminConfiguration,
            metrics: ProxyMetrics,
            model: InspectorModel?,
            of configuration: ProxyConfiguration
        ) async throws {
            let governor = configuration.retrierFactory.governor
            var origin: ProxyOrigin?
            if case .reverse(let own) = configuration.role.kind { origin = own }
            let started = try await AdminServer.start(admin) { [weak self, origin] port in
                let isOpen = admin.token != nil || admin.host.hasPrefix("unix:")
                let guarding = InspectorGuard(port: port, isOpen: isOpen)
                return AdminDesk(
                    cache: configuration.cache,
                    metrics: metrics,
                    token: admin.token,
                    guarding: guarding,
                    inspector: model.map { InspectorResponder(model: $0, governor: governor, guarding: guarding) },
                    origin: origin,
                    unready: { [weak self] in self?.unreadiness },
                    connections: { [weak self] in self?.connections }
                )
            }
            self.admin.withLock { $0 = started }
        }

        /// Why requests should go elsewhere; nil while it is ready for them.
        private var unreadiness: String? {
            if isDraining.load(ordering: .relaxed) { return "The proxy is draining." }
            let standings = origins?.standings(at: clock.now) ?? []
            return standings.isEmpty || standings.contains(where: \.isUp) ? nil : "Every origin fails."
        }

        private var connections: ProxyMetrics.Connections {
            ProxyMetrics.Connections(server: statistics, origins: origins?.standings(at: clock.now) ?? [])
        }

        private static func pipeline(_ configuration: ProxyConfiguration, transport: OriginTransport) -> Pipeline {
            var settings = PipelineConfiguration()
            settings.clock = configuration.clock
            // The handler limits the whole of a call, and long uploads have to be possible.
            settings.attemptTimeout = nil
            settings.redirects = .handUp
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
                ),
                via: configuration.via,
                clientAddress: configuration.clientAddressFields,
                answerTimeout: configuration.answerTimeout,
                onAnswer: configuration.onAnswer,
                onFailure: configuration.onFailure
            )
            handler.transport = transport
            handler.clientScheme = configuration.clientScheme ?? (configuration.certificate == nil ? "http" : "https")
            if let origins, !origins.keepsHost { handler.hiddenOrigins = origins.members.map(\.origin) }
            return handler
        }

        /// Reads the certificate and its key anew, for connections from now on.
        ///
        /// - Throws: ``ProxyConfigurationError`` where the files are wrong; those that were read last then stay in force.
        public func reloadCertificate() throws(ProxyConfigurationError) {
            try tls?.reload()
        }

        /// What its connections have come to so far.
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

        /// Takes no more connections, lets the requests under way and the work in the background end, and cuts what is left when
        /// the time is up or the waiting task is cancelled.
        public func drain(within limit: Duration) async {
            isDraining.store(true, ordering: .relaxed)
            let end = ContinuousClock.now + limit
            await server.drain(within: limit.timeAmount)
            await withTaskGroup { group in
                group.addTask { [pipeline] in await pipeline.drain() }
                group.addTask { [transport] in
                    try? await ContinuousClock().sleep(until: end)
                    await transport.shutdown()
                }
                await group.next()
                group.cancelAll()
            }
            await admin.withLock { $0 }?.close()
        }

        /// Cuts everything and returns when it has ended. Idempotent.
        public func close() async {
            await server.close()
            await transport.shutdown()
            await pipeline.drain()
            await admin.withLock { $0 }?.close()
        }

        /// The number by which the system says why it could not listen, such as `EADDRINUSE`; nil for other errors.
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
            // Retriers make a stale connection good by rules of their own; both together would send more often than these say.
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

    /// A proxy, or its admin listener, cannot listen where it was told to.
    public struct ProxyListenError: Error, Sendable {
        /// Where.
        public let host: String
        public let port: Int
        /// What the system said; see ``ProxyServer/systemErrorNumber(_:)``.
        public let cause: any Error
    }

    /// Tells of a store that fails, which costs no client its answer.
    private struct StoreFailures: EventObserver {
        let tell: @Sendable (ProxyFailure) -> Void

        func observe(_ event: ServiceEvent) {
            guard event.name == .storeFailed else { return }
            let what = event.error.map { "\($0)" } ?? event.detail ?? ""
            tell(ProxyFailure(.store, text: "the store failed, and the origin is asked instead: \(what)"))
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

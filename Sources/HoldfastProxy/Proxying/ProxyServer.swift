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
        /// The port it listens on.
        public let port: Int

        private let server: HTTPServer
        private let transport: OriginTransport

        private init(_ server: HTTPServer, port: Int, pipeline: Pipeline, transport: OriginTransport) {
            self.server = server
            self.port = port
            self.pipeline = pipeline
            self.transport = transport
        }

        /// Begins to listen and to serve.
        ///
        /// - Throws: ``ProxyConfigurationError``, or what the system says when it cannot listen there; see
        ///   ``systemErrorNumber(_:)``.
        public static func start(_ configuration: ProxyConfiguration) async throws -> ProxyServer {
            try configuration.validate()
            let transport = OriginTransport(configuration: transportConfiguration(configuration))
            var settings = PipelineConfiguration()
            settings.clock = configuration.clock
            // The handler limits the whole of a call, and long uploads have to be possible.
            settings.attemptTimeout = nil
            settings.redirects = .handUp
            settings.observers = configuration.observers
            let pipeline = Pipeline(
                transport: transport,
                cache: configuration.cache,
                retrierFactory: configuration.retrierFactory,
                configuration: settings
            )
            let port = BoundPort(configuration.port)
            let handler = ProxyHandler(
                pipeline: pipeline,
                targets: TargetRules(role: configuration.role, ownHost: configuration.host, ownPort: port),
                via: configuration.via,
                clientAddress: configuration.clientAddressFields,
                answerTimeout: configuration.answerTimeout,
                onAnswer: configuration.onAnswer
            )
            do {
                let server = try await HTTPServer.start(
                    at: .host(configuration.host, port: configuration.port),
                    configuration: serverConfiguration(configuration.limits),
                    handler: handler
                )
                port.number = server.port ?? configuration.port
                return ProxyServer(server, port: port.number, pipeline: pipeline, transport: transport)
            } catch {
                await transport.shutdown()
                throw error
            }
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
        }

        /// Cuts everything and returns when it has ended. Idempotent.
        public func close() async {
            await server.close()
            await transport.shutdown()
            await pipeline.drain()
        }

        /// The number by which the system says why it could not listen, such as `EADDRINUSE`; nil for other errors.
        public static func systemErrorNumber(_ error: any Error) -> Int32? {
            (error as? IOError)?.errnoCode
        }

        private static func transportConfiguration(_ proxy: ProxyConfiguration) -> OriginTransport.Configuration {
            var configuration = proxy.transport
            // Retriers make a stale connection good by rules of their own; both together would send more often than these say.
            if proxy.retrierFactory.governor != nil { configuration.resendsAfterStaleConnection = false }
            if case .forward(let rules) = proxy.role.kind, rules.deniesPrivate {
                configuration.admission = { try rules.admit($0, port: $1, address: $2) }
            }
            return configuration
        }

        private static func serverConfiguration(_ limits: ProxyConfiguration.Limits) -> ServerConfiguration {
            var configuration = ServerConfiguration()
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

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    public import Holdfast
    internal import HoldfastSemantics
    internal import NIOCore
    private import Synchronization

    /// Serves a page on this machine that shows what a cache does: hit rate and traffic, entries, calls, origins, and buttons that
    /// purge.
    ///
    ///     let model = InspectorModel(cache: cache)
    ///     configuration.observers.append(model)
    ///     // … make the pipeline with `cache`, `configuration` and a retrier factory …
    ///     let inspector = Inspector(model: model, governor: retrierFactory.governor)
    ///     let port = try await inspector.start(port: 9090)
    ///     // … until the proxy ends:
    ///     await inspector.stop()
    ///
    /// It listens on 127.0.0.1 alone, answers no request of another machine, of another site's page, under another name or by way
    /// of a proxy that says so, and shows no credential. Nothing of it counts as a request to the cache.
    ///
    /// Whoever forwards requests to any host must not forward those to its port: they would come from this machine.
    public final class Inspector: Sendable {
        /// How many connections it serves at a time.
        static let maximumConnections = 64

        private let model: InspectorModel
        private let governor: RetryGovernor?
        private let server = Mutex<HTTPServer?>(nil)

        /// An inspector that listens nowhere yet.
        ///
        /// - Parameters:
        ///   - model: what has been remembered; list it among the observers of the pipeline.
        ///   - governor: whose budgets are shown, that of the pipeline's retrier factory; nil, the default: none are.
        public init(model: InspectorModel, governor: RetryGovernor? = nil) {
            self.model = model
            self.governor = governor
        }

        /// The port it listens on; nil before the start and after the end.
        public var port: Int? { server.withLock { $0 }?.port }

        /// Begins to listen on 127.0.0.1; a server from an earlier start ends first.
        ///
        /// - Parameter port: 0 takes any that is free.
        /// - Returns: the port.
        /// - Throws: what the system says where the port is taken.
        @discardableResult
        public func start(port: Int) async throws -> Int {
            await stop()
            var configuration = ServerConfiguration()
            configuration.maximumConnections = Inspector.maximumConnections
            let reception = Reception()
            let server = try await HTTPServer.start(
                at: .host("127.0.0.1", port: port),
                configuration: configuration,
                handler: reception
            )
            let own = server.port ?? port
            reception.open(InspectorDesk(model: model, governor: governor, guarding: InspectorGuard(port: own)))
            self.server.withLock { $0 = server }
            return own
        }

        /// Ends the server and its connections.
        public func stop() async {
            let ended = server.withLock { server in
                defer { server = nil }
                return server
            }
            await ended?.close()
        }
    }

    /// Hands the requests of a server to the desk, once there is one: which port is free is known only when the server listens.
    private final class Reception: ClientHandler {
        private let desk = Mutex<InspectorDesk?>(nil)

        func open(_ desk: InspectorDesk) {
            self.desk.withLock { $0 = desk }
        }

        func answer(_ request: ClientRequest) async -> Response {
            guard let desk = desk.withLock({ $0 }) else { return Response(status: 503, source: .synthesized) }
            return await desk.answer(
                InspectorRequest(
                    method: request.method,
                    target: request.target.text,
                    fields: request.fields,
                    body: request.body,
                    remoteAddress: request.remoteAddress?.ipAddress
                )
            )
        }
    }
#endif

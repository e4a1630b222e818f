// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    package import NIOCore
    internal import NIOPosix
    private import Synchronization

    /// A server of HTTP/1.1 and HTTP/1.0 (RFC 9112) in front of a ``ClientHandler``.
    ///
    /// Each connection has one task, which runs on the connection's event loop. Everything is bounded by ``ServerConfiguration``.
    package final class HTTPServer: Sendable {
        /// What a server has done so far.
        package struct Statistics: Sendable, Hashable {
            /// How many connections are open, those that are being refused included.
            package var connectionsOpen: Int
            /// How many connections were served.
            package var connectionsAccepted: Int
            /// How many were one too many.
            package var connectionsRefused: Int
            /// How many requests reached the handler.
            package var requestsBegun: Int
            /// How many of them are not answered whole.
            package var requestsUnderWay: Int
        }

        /// Where a server listens.
        package enum Address: Sendable, Hashable {
            /// A name or an address, and a port; 0 for one that is free.
            case host(String, port: Int)
            /// A socket in the file system; one that is there already is replaced.
            case unixSocket(String)
        }

        private let listener: any Channel
        private let core: Core

        private init(_ listener: any Channel, core: Core) {
            self.listener = listener
            self.core = core
        }

        /// Listens, and serves what comes, until ``drain(within:)`` or ``close()``.
        ///
        /// - Parameters:
        ///   - group: the event loops; by default those that the process shares, one for each core.
        /// - Throws: what the system says when it cannot listen there.
        package static func start(
            at address: Address,
            configuration: ServerConfiguration = ServerConfiguration(),
            group: any EventLoopGroup = MultiThreadedEventLoopGroup.singleton,
            handler: any ClientHandler
        ) async throws -> HTTPServer {
            let core = Core(configuration: configuration, group: group, handler: handler)
            let bootstrap = ServerBootstrap(group: group)
                .serverChannelOption(.backlog, value: 1024)
                .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
                .childChannelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture { try core.accept(channel) }
                }
            let listener: any Channel
            switch address {
            case .host(let host, let port):
                listener = try await bootstrap.childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
                    .bind(host: host, port: port).get()
            case .unixSocket(let path):
                listener = try await bootstrap.bind(unixDomainSocketPath: path, cleanupExistingSocketFile: true).get()
            }
            return HTTPServer(listener, core: core)
        }

        /// Where the server really listens.
        package var localAddress: SocketAddress? { listener.localAddress }

        /// The port it listens on; nil for a socket in the file system.
        package var port: Int? { listener.localAddress?.port }

        /// What it has done so far.
        package var statistics: Statistics { core.statistics }

        /// Takes no more connections, closes the idle ones, lets those at work end with the answer in hand, and cuts what is left
        /// when the time is up, or when the waiting task is cancelled.
        package func drain(within limit: TimeAmount) async {
            listener.close(promise: nil)
            let timer = listener.eventLoop.scheduleTask(in: limit) { [core] in core.cut() }
            core.drain()
            await withTaskCancellationHandler {
                await core.waitUntilEmpty()
            } onCancel: {
                core.cut()
            }
            timer.cancel()
        }

        /// Takes no more connections, cuts those that are open, and waits until they are closed.
        package func close() async {
            listener.close(promise: nil)
            core.cut()
            await core.waitUntilEmpty()
        }

        /// What the connections need of their server.
        private final class Core: Sendable {
            let configuration: ServerConfiguration
            let handler: any ClientHandler
            let counters = ServerCounters()
            let executors: [ObjectIdentifier: EventLoopExecutor]
            let registry: Mutex<ConnectionRegistry>

            init(configuration: ServerConfiguration, group: any EventLoopGroup, handler: any ClientHandler) {
                self.configuration = configuration
                self.handler = handler
                registry = Mutex(ConnectionRegistry(limit: configuration.maximumConnections))
                var executors: [ObjectIdentifier: EventLoopExecutor] = [:]
                for loop in group.makeIterator() { executors[ObjectIdentifier(loop)] = EventLoopExecutor(loop) }
                self.executors = executors
            }

            func accept(_ channel: any Channel) throws {
                let bytes = try ByteChannel.attach(to: channel)
                let connection = ClientConnection(
                    bytes,
                    configuration: configuration,
                    handler: handler,
                    counters: counters
                )
                let admission = registry.withLock { $0.admit(connection) }
                bytes.closeFuture.whenComplete { [self] _ in
                    for waiter in registry.withLock({ $0.remove(bytes) }) { waiter.resume() }
                }
                switch admission {
                case .served:
                    let loop = channel.eventLoop
                    connection.start(on: executors[ObjectIdentifier(loop)] ?? EventLoopExecutor(loop))
                case .refused: connection.refuse(on: EventLoopExecutor(channel.eventLoop))
                case .dropped: bytes.close()
                }
            }

            func drain() {
                counters.isDraining.store(true, ordering: .relaxed)
                for connection in registry.withLock({ $0.close() }).served { connection.closeIfIdle() }
            }

            func cut() {
                let open = registry.withLock { $0.close() }
                for connection in open.served { connection.cut() }
                for channel in open.refused { channel.close() }
            }

            func waitUntilEmpty() async {
                await withCheckedContinuation { continuation in
                    if !registry.withLock({ $0.wait(continuation) }) { continuation.resume() }
                }
            }

            var statistics: Statistics {
                registry.withLock { registry in
                    Statistics(
                        connectionsOpen: registry.openCount,
                        connectionsAccepted: registry.acceptedCount,
                        connectionsRefused: registry.refusedCount,
                        requestsBegun: counters.requestsBegun,
                        requestsUnderWay: counters.requestsUnderWay
                    )
                }
            }
        }
    }
#endif

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    #if canImport(Darwin)
        private import Darwin
    #elseif canImport(Glibc)
        private import Glibc
    #elseif canImport(Musl)
        private import Musl
    #endif
    package import NIOCore
    internal import NIOPosix
    internal import NIOSSL
    internal import Synchronization

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
            /// A descriptor on which whoever started this process listens already.
            case descriptor(Int32)

            /// An address as a configuration spells it: `unix:` and a path, `fd:` and a number, or a host.
            init(host: String, port: Int) {
                if host.hasPrefix("unix:") {
                    self = .unixSocket(String(host.dropFirst(5)))
                } else if host.hasPrefix("fd:"), let number = Int32(host.dropFirst(3)) {
                    self = .descriptor(number)
                } else {
                    self = .host(host, port: port)
                }
            }
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
            tls: ServerTLS? = nil,
            group: any EventLoopGroup = MultiThreadedEventLoopGroup.singleton,
            handler: any ClientHandler
        ) async throws -> HTTPServer {
            let core = Core(configuration: configuration, group: group, handler: handler)
            let bootstrap = ServerBootstrap(group: group)
                .serverChannelOption(.backlog, value: 1024)
                .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
                .serverChannelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        // An accept that fails for want of descriptors would be tried again at once, and for ever.
                        try channel.pipeline.syncOperations.addHandlers(
                            AcceptBackoffHandler(shouldForwardIOErrorCaught: true),
                            AcceptFailures(tell: configuration.onFailure)
                        )
                    }
                }
                .childChannelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        if let tls {
                            try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: tls.context))
                        }
                        try core.accept(channel)
                    }
                }
            let listener: any Channel
            switch address {
            case .host(let host, let port):
                listener = try await bootstrap.childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
                    .bind(host: host, port: port).get()
            case .unixSocket(let path):
                listener = try await bootstrap.bind(unixDomainSocketPath: path, cleanupExistingSocketFile: true).get()
            case .descriptor(let number):
                listener = try await bootstrap.withBoundSocket(number).get()
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
                if admission != .served {
                    let limit = configuration.maximumConnections
                    configuration.onFailure?(
                        ProxyFailure(
                            .connection,
                            text: "a connection was refused: \(limit) are open (--max-connections)",
                            clientAddress: channel.remoteAddress?.ipAddress
                        )
                    )
                }
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

    /// Tells of connections that could not be taken, and keeps what can be waited out from the end of the pipeline.
    private final class AcceptFailures: ChannelInboundHandler {
        typealias InboundIn = any Channel

        private let tell: (@Sendable (ProxyFailure) -> Void)?

        init(tell: (@Sendable (ProxyFailure) -> Void)?) {
            self.tell = tell
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) {
            guard let error = error as? IOError else { return context.fireErrorCaught(error) }
            let isOut = error.errnoCode == EMFILE || error.errnoCode == ENFILE
            let what =
                isOut ? "no file descriptors are left for a connection (ulimit -n)" : "a connection could not be taken"
            tell?(ProxyFailure(.connection, text: "\(what); trying again in a second: \(error)"))
        }
    }

    /// Bounds and times of an ``HTTPServer``.
    package struct ServerConfiguration: Sendable {
        /// How much of a request's head is read.
        package var headLimits = HeadLimits()
        /// How many connections are served at a time; 10,000 by default.
        ///
        /// Further ones are answered 503 with Retry-After, 64 of them at a time; what comes beyond those is closed unanswered.
        package var maximumConnections = 10_000
        /// How many seconds Retry-After names there; 5 by default.
        package var retryAfter = 5
        /// The time for a request's head from its first byte, and for the first byte from the start of a connection; then 408 and,
        /// where no byte came, silence. 30 s by default.
        package var headTimeout: TimeAmount = .seconds(30)
        /// How long a connection may lie idle between requests; then it is closed without a word. 75 s by default.
        package var idleTimeout: TimeAmount = .seconds(75)
        /// How long no byte of a request's content may come while it is being read; then 408. 60 s by default.
        package var bodyStall: TimeAmount = .seconds(60)
        /// How long a client may take nothing of an answer; then the connection is closed. 60 s by default.
        package var writeStall: TimeAmount = .seconds(60)
        /// How long a connection that is closed after an answer waits for the client to close its side, so that what the client
        /// still sends does not turn into a reset that overtakes the answer. 5 s by default.
        package var lingerTimeout: TimeAmount = .seconds(5)
        /// How much content that the handler left unread is read and dropped to keep a connection; 64 KiB by default.
        package var unreadLimit = 64 << 10
        /// How many bytes a body in memory has at most to be sent in one buffer with its head, and the size of the slices of a
        /// larger one; 64 KiB by default.
        package var sliceSize = 64 << 10
        /// Is told of requests and connections that are refused; on an event loop.
        var onFailure: (@Sendable (ProxyFailure) -> Void)?

        /// The defaults.
        package init() {}
    }

    /// What a server and its connections count together.
    final class ServerCounters: Sendable {
        let isDraining = Atomic(false)
        private let begun = Atomic(0)
        private let underWay = Atomic(0)

        func begin() {
            begun.add(1, ordering: .relaxed)
            underWay.add(1, ordering: .relaxed)
        }

        func end() {
            underWay.subtract(1, ordering: .relaxed)
        }

        var requestsBegun: Int { begun.load(ordering: .relaxed) }
        var requestsUnderWay: Int { underWay.load(ordering: .relaxed) }
    }

    /// The open connections of a server and who waits for their end; a value that judges without effects.
    struct ConnectionRegistry {
        /// What becomes of a new connection.
        enum Admission: Sendable, Hashable {
            case served
            /// It is told that there are too many.
            case refused
            /// It is closed without a word.
            case dropped
        }

        typealias Waiter = CheckedContinuation<Void, Never>

        static let refusalLimit = 64

        private let limit: Int
        private var served: [ObjectIdentifier: ClientConnection] = [:]
        private var refused: [ObjectIdentifier: ByteChannel] = [:]
        private var waiters: [Waiter] = []
        private(set) var acceptedCount = 0
        private(set) var refusedCount = 0
        private var isClosed = false

        init(limit: Int) {
            self.limit = max(limit, 1)
        }

        var openCount: Int { served.count + refused.count }

        /// Takes a connection in; nothing is taken in once the registry is closed.
        mutating func admit(_ connection: ClientConnection) -> Admission {
            guard !isClosed else { return .dropped }
            guard served.count >= limit else {
                acceptedCount += 1
                served[ObjectIdentifier(connection.channel)] = connection
                return .served
            }
            refusedCount += 1
            guard refused.count < ConnectionRegistry.refusalLimit else { return .dropped }
            refused[ObjectIdentifier(connection.channel)] = connection.channel
            return .refused
        }

        /// A connection has closed; answers those to resume, when it was the last one.
        mutating func remove(_ channel: ByteChannel) -> [Waiter] {
            served[ObjectIdentifier(channel)] = nil
            refused[ObjectIdentifier(channel)] = nil
            return openCount == 0 ? takeWaiters() : []
        }

        /// Closes the registry to new connections; the connections that are left.
        mutating func close() -> (served: [ClientConnection], refused: [ByteChannel]) {
            isClosed = true
            return (Array(served.values), Array(refused.values))
        }

        /// Lets a waiter wait for the last connection; false when there is none.
        mutating func wait(_ waiter: Waiter) -> Bool {
            guard openCount > 0 else { return false }
            waiters.append(waiter)
            return true
        }

        private mutating func takeWaiters() -> [Waiter] {
            defer { waiters = [] }
            return waiters
        }
    }
#endif

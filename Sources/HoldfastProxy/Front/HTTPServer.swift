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
    internal import Holdfast
    internal import HoldfastSemantics
    internal import HoldfastStorage
    package import NIOCore
    internal import NIOPosix
    internal import NIOSSL
    internal import NIOTLS
    internal import Synchronization

    /// A server for HTTP/1.1 and HTTP/1.0 (RFC 9112), and for HTTP/2 (RFC 9113) over TLS, that passes requests to a
    /// ``ClientHandler``.
    ///
    /// Each connection, and each HTTP/2 stream, has one task, which runs on the event loop of the connection.
    /// ``ServerConfiguration`` limits everything.
    package final class HTTPServer: Sendable {
        /// What a server has done so far.
        package struct Statistics: Sendable, Hashable {
            /// How many connections are open, including those being refused.
            package var connectionsOpen: Int
            /// How many connections were served.
            package var connectionsAccepted: Int
            /// How many were refused because of the limit.
            package var connectionsRefused: Int
            /// How many requests reached the handler.
            package var requestsBegun: Int
            /// How many of them have not been completely answered.
            package var requestsUnderWay: Int
        }

        /// The address to listen on.
        package enum Address: Sendable, Hashable {
            /// A name or an address, and a port; 0 for a free one.
            case host(String, port: Int)
            /// A socket in the file system; an existing one is replaced.
            case unixSocket(String)
            /// A descriptor on which the parent process is already listening.
            case descriptor(Int32)

            /// An address as in a configuration: `unix:` and a path, `fd:` and a number, or a host.
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
        /// The socket in the file system that is listened on, if it is one.
        private let file: SocketFile?
        private let core: Core

        private init(_ listener: any Channel, file: SocketFile?, core: Core) {
            self.listener = listener
            self.file = file
            self.core = core
        }

        /// Listens, and serves requests until ``drain(within:)`` or ``close()``.
        ///
        /// - Parameters:
        ///   - socketPermissions: of a socket in the file system, from the moment that it has its name; nil: by the process's umask.
        ///   - group: the event loops; by default those that the process shares, one for each core.
        /// - Throws: the system's error if it cannot listen there.
        package static func start(
            at address: Address,
            configuration: ServerConfiguration = ServerConfiguration(),
            tls: ServerTLS? = nil,
            socketPermissions: UInt16? = nil,
            group: any EventLoopGroup = MultiThreadedEventLoopGroup.singleton,
            handler: any ClientHandler
        ) async throws -> HTTPServer {
            let core = Core(configuration: configuration, group: group, handler: handler)
            let bootstrap = ServerBootstrap(group: group)
                .serverChannelOption(.backlog, value: 1_024)
                .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
                .serverChannelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.addHandler(AcceptFailures(tell: configuration.onFailure))
                    }
                }
                .childChannelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        guard let tls else { return try core.accept(channel) }
                        try channel.pipeline.syncOperations.addHandler(PromptClose())
                        try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: tls.context))
                        try core.negotiate(channel)
                    }
                }
            let listener: any Channel
            var file: SocketFile?
            switch address {
            case .host(let host, let port):
                listener = try await bootstrap.childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
                    .bind(host: host, port: port).get()
            case .unixSocket(let path):
                let name = SocketFile.firstName(for: path)
                listener = try await bootstrap.bind(unixDomainSocketPath: name).get()
                do {
                    file = try SocketFile(path, renaming: name, permissions: socketPermissions)
                } catch {
                    listener.close(promise: nil)
                    throw error
                }
            case .descriptor(let number):
                listener = try await bootstrap.withBoundSocket(number).get()
                // SwiftNIO has shortened the line of those that wait.
                _ = listen(number, SOMAXCONN)
            }
            return HTTPServer(listener, file: file, core: core)
        }

        /// The actual address of the server.
        package var localAddress: SocketAddress? { file?.address ?? listener.localAddress }

        /// The port; nil for a socket in the file system.
        package var port: Int? { listener.localAddress?.port }

        /// What it has done so far.
        package var statistics: Statistics { core.statistics }

        /// Accepts no more connections, closes the idle ones, lets the others finish their current response, and closes
        /// the rest when the time is up or the waiting task is cancelled.
        package func drain(within limit: TimeAmount) async {
            stopListening()
            let timer = listener.eventLoop.scheduleTask(in: limit) { [core] in core.cut() }
            core.drain()
            await withTaskCancellationHandler {
                await core.waitUntilEmpty()
            } onCancel: {
                core.cut()
            }
            timer.cancel()
        }

        /// Accepts no more connections, closes the open ones, and waits until they are closed.
        package func close() async {
            stopListening()
            core.cut()
            await core.waitUntilEmpty()
        }

        private func stopListening() {
            listener.close(promise: nil)
            file?.remove()
        }

        /// What the connections need from their server.
        private final class Core: Sendable {
            let configuration: ServerConfiguration
            let handler: any ClientHandler
            let counters = ServerCounters()
            let executors: [ObjectIdentifier: EventLoopExecutor]
            let registry: Mutex<ConnectionRegistry>

            init(configuration: ServerConfiguration, group: any EventLoopGroup, handler: any ClientHandler) {
                self.configuration = configuration
                self.handler = handler
                registry = Mutex(
                    ConnectionRegistry(
                        limit: configuration.maximumConnections,
                        makesRoom: configuration.closesWaitingConnections
                    )
                )
                var executors: [ObjectIdentifier: EventLoopExecutor] = [:]
                for loop in group.makeIterator() { executors[ObjectIdentifier(loop)] = EventLoopExecutor(loop) }
                self.executors = executors
            }

            func accept(_ channel: any Channel) throws {
                let connection = try http1(channel)
                begin(connection, as: admit(connection, channel: channel))
            }

            private func http1(_ channel: any Channel) throws -> ClientConnection {
                ClientConnection(
                    try ByteChannel.attach(to: channel),
                    configuration: configuration,
                    handler: handler,
                    counters: counters
                )
            }

            private func begin(_ connection: ClientConnection, as admission: ConnectionRegistry.Admission) {
                let executor = executor(of: connection.channel.eventLoop)
                switch admission {
                case .served: connection.start(on: executor)
                case .refused: connection.refuse(on: executor)
                case .dropped, .closed: connection.channel.close()
                }
            }

            private func executor(of loop: any EventLoop) -> EventLoopExecutor {
                executors[ObjectIdentifier(loop)] ?? EventLoopExecutor(loop)
            }

            /// Waits for the HTTP version that a TLS client selects, and serves the connection with it.
            func negotiate(_ channel: any Channel) throws {
                let connection = SecureConnection(channel, timeout: configuration.headTimeout)
                let admission = admit(connection, channel: channel)
                guard admission == .served || admission == .refused else { return channel.close(promise: nil) }
                let negotiation = ApplicationProtocolNegotiationHandler { [self] (result, channel) in
                    channel.eventLoop.makeCompletedFuture {
                        if case .negotiated("h2") = result {
                            guard admission == .served else { return channel.close(promise: nil) }
                            let http2 = HTTP2Connection(channel, counters: counters)
                            try http2.serve(configuration, handler: handler, on: executor(of: channel.eventLoop))
                            return connection.become(http2)
                        }
                        let http1 = try http1(channel)
                        begin(http1, as: admission)
                        connection.become(http1)
                    }
                }
                try channel.pipeline.syncOperations.addHandler(negotiation)
            }

            private func admit(
                _ connection: any ServedConnection,
                channel: any Channel
            ) -> ConnectionRegistry.Admission {
                let (admission, displaced) = registry.withLock { $0.admit(connection) }
                displaced?.cut()
                if admission == .refused || admission == .dropped {
                    let limit = configuration.maximumConnections
                    configuration.onFailure?(
                        ProxyFailure(
                            .connection,
                            text: "a connection was refused, because \(limit) are open (--max-connections)",
                            clientAddress: channel.remoteAddress?.ipAddress
                        )
                    )
                }
                channel.closeFuture.whenComplete { [self] _ in
                    for waiter in registry.withLock({ $0.remove(connection) }) { waiter.resume() }
                }
                return admission
            }

            func drain() {
                counters.isDraining.store(true, ordering: .relaxed)
                for connection in registry.withLock({ $0.close() }).served { connection.closeIfIdle() }
            }

            func cut() {
                let open = registry.withLock { $0.close() }
                for connection in open.served { connection.cut() }
                for connection in open.refused { connection.cut() }
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

    /// The name of a socket in the file system.
    ///
    /// SwiftNIO removes, as it closes, whatever stands at the path that a socket was bound to. So it is bound to a name that nobody
    /// else has and then renamed, and a process that has taken its place keeps its own socket.
    private struct SocketFile: Sendable {
        let address: SocketAddress
        private let path: String
        private let device: dev_t
        private let number: ino_t

        /// A name beside `path`, not much longer, since both are limited to about a hundred bytes.
        static func firstName(for path: String) -> String {
            let folder = path.lastIndex(of: "/").map { path[...$0] } ?? ""
            return folder + ".h" + String(UInt32.random(in: .min ... .max), radix: 36)
        }

        /// Renames a socket to `path`, in the place of one that is there.
        ///
        /// - Throws: `EEXIST` if something else is.
        init(_ path: String, renaming name: String, permissions: UInt16?) throws {
            address = try SocketAddress(unixDomainSocketPath: path)
            self.path = path
            var status = stat()
            if lstat(path, &status) == 0, status.st_mode & S_IFMT != S_IFSOCK {
                throw IOError(errnoCode: EEXIST, reason: "bind")
            }
            // Nobody knows the first name yet.
            if let permissions, chmod(name, mode_t(permissions)) != 0 {
                throw IOError(errnoCode: errno, reason: "chmod")
            }
            guard lstat(name, &status) == 0, rename(name, path) == 0 else {
                throw IOError(errnoCode: errno, reason: "rename")
            }
            (device, number) = (status.st_dev, status.st_ino)
        }

        /// Removes the socket, unless another one has taken its place.
        func remove() {
            var status = stat()
            if lstat(path, &status) == 0, status.st_dev == device, status.st_ino == number { unlink(path) }
        }
    }

    /// Reports connections that cannot be accepted, and then accepts none for a second.
    private final class AcceptFailures: ChannelInboundHandler {
        typealias InboundIn = any Channel

        private let tell: (@Sendable (ProxyFailure) -> Void)?
        private var isPausing = false

        init(tell: (@Sendable (ProxyFailure) -> Void)?) {
            self.tell = tell
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            // Here and not on the connection's own event loop, which may be busy: many could be accepted before it looks.
            guard SpareDescriptors.areNext else { return context.fireChannelRead(data) }
            unwrapInboundIn(data).close(promise: nil)
            pause(context.channel, because: Self.withoutDescriptors)
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) {
            guard let error = error as? IOError else { return context.fireErrorCaught(error) }
            let isOut = error.errnoCode == EMFILE || error.errnoCode == ENFILE
            pause(
                context.channel,
                because: "\(isOut ? Self.withoutDescriptors : "a connection could not be accepted"): \(error)"
            )
        }

        private static let withoutDescriptors = "no file descriptors are left for a connection (ulimit -n)"

        /// Accepts nothing for a second.
        ///
        /// A socket whose accept failed stays readable, so it is tried again at once for as long as reads are wanted.
        private func pause(_ listener: any Channel, because reason: String) {
            guard !isPausing else { return }
            isPausing = true
            tell?(ProxyFailure(.connection, text: "\(reason); trying again in a second"))
            let handler = NIOLoopBound(self, eventLoop: listener.eventLoop)
            listener.setOption(.autoRead, value: false).whenComplete { _ in
                listener.eventLoop.scheduleTask(in: .seconds(1)) {
                    handler.value.isPausing = false
                    _ = listener.setOption(.autoRead, value: true)
                }
            }
        }
    }

    /// Limits and times of an ``HTTPServer``.
    package struct ServerConfiguration: Sendable {
        /// The limits of a request's head.
        package var headLimits = HeadLimits()
        /// The most connections at a time; 10,000 by default.
        ///
        /// Further ones get a 503 with Retry-After: 5, 64 of them at a time; any beyond that are closed without a
        /// response.
        package var maximumConnections = 10_000
        /// Whether a further connection is served in the place of the oldest one that waits for its client: before or
        /// within the head of a request, within content that nobody reads, or after the last response; false by default.
        package var closesWaitingConnections = false
        /// The time for a request's head from its first byte, and for the first byte from the start of a connection;
        /// then 408 or, if no byte arrived, no response. 30 s by default.
        package var headTimeout: TimeAmount = .seconds(30)
        /// How long a connection may be idle between requests; then it is closed without a response. 75 s by default.
        package var idleTimeout: TimeAmount = .seconds(75)
        /// How long no byte of a request's content may arrive while it is being read; then 408. 60 s by default.
        package var bodyStall: TimeAmount = .seconds(60)
        /// How long a client may read nothing of a response; then the connection is closed. 60 s by default.
        package var writeStall: TimeAmount = .seconds(60)
        /// How long a connection that is closed after a response waits for the client to close its side, so that what
        /// the client still sends does not cause a reset that overtakes the response. 5 s by default.
        package var lingerTimeout: TimeAmount = .seconds(5)
        /// How much content that the handler did not read is read and dropped to keep a connection; 64 KiB by default.
        package var unreadLimit = 64 << 10
        /// The most concurrent requests on an HTTP/2 connection; 100 by default.
        package var maximumStreams = 100
        /// The largest body in memory to send in one buffer with its head, and the size of the slices of a larger one;
        /// 64 KiB by default.
        package var sliceSize = 64 << 10
        /// Called for requests and connections that are refused; on an event loop.
        var onFailure: (@Sendable (ProxyFailure) -> Void)?
        /// Called for responses to requests that the handler does not get; on an event loop.
        var onRefusal: (@Sendable (RefusedRequest) -> Void)?

        /// Creates the default configuration.
        package init() {}
    }

    /// A request that a server refuses itself, with as much as is known of it.
    struct RefusedRequest: Sendable {
        /// The status of the response.
        let status: StatusCode
        /// Why, in one sentence that repeats nothing of the request.
        let reason: String
        /// How many bytes the body of the response has.
        let bodyBytes: Int
        /// Nil if they could not be read.
        var method: RequestMethod?
        var target: String?
        /// The HTTP version, such as `1.1`; `1.1` if it could not be read.
        var version = "1.1"
        /// The address of the client, without its port.
        let clientAddress: String?

        /// - Parameter response: what the client gets.
        init(_ response: Response, reason: String, from address: SocketAddress?) {
            status = response.status
            self.reason = reason
            bodyBytes = response.body.length ?? 0
            clientAddress = address?.ipAddress
        }
    }

    /// Counts that a server and its connections share.
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

    /// The open connections of a server, and the waiters for their end; a value without effects.
    struct ConnectionRegistry {
        /// What happens to a new connection.
        enum Admission: Sendable, Hashable {
            case served
            /// It is told that there are too many.
            case refused
            /// It is closed without a response, because there are too many.
            case dropped
            /// It is closed without a response, because the server is about to end.
            case closed
        }

        typealias Waiter = CheckedContinuation<Void, Never>

        static let refusalLimit = 64

        private struct Served {
            let connection: any ServedConnection
            /// Its number in the order of arrival.
            let number: Int
        }

        private let limit: Int
        private let makesRoom: Bool
        private var served: [ObjectIdentifier: Served] = [:]
        private var refused: [ObjectIdentifier: any ServedConnection] = [:]
        private var waiters: [Waiter] = []
        private(set) var acceptedCount = 0
        private(set) var refusedCount = 0
        private var isClosed = false

        /// - Parameter makesRoom: whether a further connection displaces the oldest one that waits for its client.
        init(limit: Int, makesRoom: Bool = false) {
            self.limit = max(limit, 1)
            self.makesRoom = makesRoom
        }

        var openCount: Int { served.count + refused.count }

        /// Adds a connection; none is added once the registry is closed.
        ///
        /// - Returns: what happens to it, and the connection to close for it.
        mutating func admit(_ connection: any ServedConnection) -> (Admission, displaced: (any ServedConnection)?) {
            guard !isClosed else { return (.closed, nil) }
            let displaced = served.count >= limit && makesRoom ? displaceOldest() : nil
            guard served.count >= limit else {
                acceptedCount += 1
                served[ObjectIdentifier(connection)] = Served(connection: connection, number: acceptedCount)
                return (.served, displaced)
            }
            refusedCount += 1
            guard refused.count < ConnectionRegistry.refusalLimit else { return (.dropped, nil) }
            refused[ObjectIdentifier(connection)] = connection
            return (.refused, nil)
        }

        /// Takes the oldest connection that waits for its client out of the served ones; it is open until it is removed.
        private mutating func displaceOldest() -> (any ServedConnection)? {
            let waiting = served.values.filter { $0.connection.isWaiting }
            guard let oldest = waiting.min(by: { $0.number < $1.number })?.connection else { return nil }
            served[ObjectIdentifier(oldest)] = nil
            refused[ObjectIdentifier(oldest)] = oldest
            return oldest
        }

        /// Removes a closed connection; returns the waiters to resume if it was the last one.
        mutating func remove(_ connection: any ServedConnection) -> [Waiter] {
            served[ObjectIdentifier(connection)] = nil
            refused[ObjectIdentifier(connection)] = nil
            guard openCount == 0 else { return [] }
            defer { waiters = [] }
            return waiters
        }

        /// Closes the registry to new connections; returns the remaining ones.
        mutating func close() -> (served: [any ServedConnection], refused: [any ServedConnection]) {
            isClosed = true
            return (served.values.map(\.connection), Array(refused.values))
        }

        /// Adds a waiter for the last connection; false if there is none.
        mutating func wait(_ waiter: Waiter) -> Bool {
            guard openCount > 0 else { return false }
            waiters.append(waiter)
            return true
        }
    }
#endif

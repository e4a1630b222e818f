// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    public import Holdfast
    internal import HoldfastSemantics
    public import NIOCore
    public import NIOPosix
    public import NIOSSL
    private import Synchronization

    #if canImport(FoundationNetworking)
        internal import Foundation
        public import FoundationNetworking
    #else
        public import Foundation
    #endif

    /// Sends requests over HTTP/1.1, with or without TLS, byte for byte as they are; the transport of a proxy.
    ///
    /// Method, target and fields are sent as given, those of `CallOptions.exactHead` instead of the URLRequest's own;
    /// only Host and the framing of the content are added. Field values are ISO 8859-1 both ways. Responses are
    /// returned unchanged when their head arrives: no redirect is followed, no content decoded, no cookie kept, no
    /// challenge answered, and interim (1xx) responses except 100 go to `CallContext.report(interim:)`. Both bodies are
    /// streamed with back-pressure.
    ///
    /// Connections are kept and reused. The transport prefers the event loop that it is called on, so that a call from
    /// there needs no change of threads. It ends attempts at their deadline itself, and supports
    /// `CallContext.wantsNewConnection`.
    ///
    /// A transport that is released closes its unused connections; ``shutdown()`` closes all.
    public final class OriginTransport: Transport {
        private let configuration: Configuration
        private let group: any EventLoopGroup
        private let loops: Set<ObjectIdentifier>
        private let pool: OriginPool

        /// Creates a transport.
        ///
        /// - Parameters:
        ///   - configuration: timeouts, limits and TLS.
        ///   - group: the event loops for its connections; those of the process by default. They are not shut down with
        ///     the transport.
        public init(
            configuration: Configuration = Configuration(),
            eventLoopGroup group: any EventLoopGroup = MultiThreadedEventLoopGroup.singleton
        ) {
            self.configuration = configuration
            self.group = group
            loops = Set(group.makeIterator().map { ObjectIdentifier($0) })
            let tls = LazyTLS(configuration.tls ?? .makeClientConfiguration())
            let timeout = configuration.connectTimeout.timeAmount
            pool = OriginPool(limits: configuration.poolLimits, loops: group) { key, loop, end in
                let context = key.isSecure ? try await tls.context() : nil
                let made = try await OriginConnector.connect(key, on: loop, tls: context, timeout: timeout, end: end)
                do {
                    try configuration.admission?(key.host, key.port, made.channel.remoteAddress?.ipAddress)
                } catch {
                    made.close()
                    throw error
                }
                return made
            }
        }

        deinit { pool.letGo() }

        /// How many connections there are, and were.
        public var connections: ConnectionCounts { pool.counts }

        /// Closes every connection, also those in use, whose exchanges end with `.connectionLost`; returns when they
        /// are closed.
        ///
        /// Later calls fail with `.unsupported`. Idempotent.
        public func shutdown() async {
            for closed in pool.shutDown() { try? await closed.get() }
        }

        public var enforcesDeadline: Bool { true }

        public func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
            try Task.checkCancellation()
            var outgoing = try OutgoingRequest(request, exact: context.exactHead(for: request))
            guard let group = configuration.origins else {
                return try await send(outgoing, request: request, body: body, context: context)
            }
            let turn = group.next(at: context.clock.now, for: context.callID)
            outgoing.aim(at: group.members[turn], keepingHost: group.keepsHost)
            do {
                let response = try await send(outgoing, request: request, body: body, context: context)
                group.note(turn, status: response.status, at: context.clock.now, for: context.callID)
                return response
            } catch {
                group.note(turn, error: error, at: context.clock.now, for: context.callID)
                throw error
            }
        }

        private func send(
            _ outgoing: OutgoingRequest,
            request: URLRequest,
            body: RequestBody,
            context: CallContext
        ) async throws -> Response {
            let end = AttemptEnd()
            guard let deadline = context.attemptDeadline else {
                return try await attempt(outgoing, request: request, body: body, context: context, end: end)
            }
            let left = context.clock.now.duration(to: deadline)
            guard left > .zero else { throw OriginFailure.timeout(progress: .notSent, connectionReused: false) }
            if context.clock is SystemClock {
                let timer = (currentLoop ?? group.next()).scheduleTask(in: left.timeAmount) { end.end(.deadline) }
                defer { timer.cancel() }
                return try await attempt(outgoing, request: request, body: body, context: context, end: end)
            }
            let clock = context.clock
            let timer = Task {
                guard (try? await clock.sleep(until: deadline)) != nil else { return }
                end.end(.deadline)
            }
            defer { timer.cancel() }
            return try await attempt(outgoing, request: request, body: body, context: context, end: end)
        }

        /// A connection for arbitrary bytes, which the caller closes; the pool does not know it.
        ///
        /// - Throws: ``ServiceError``, or `CancellationError`.
        func tunnel(to key: OriginKey) async throws -> ByteChannel {
            let end = AttemptEnd()
            return try await withTaskCancellationHandler {
                do {
                    return try await pool.open(key, currentLoop ?? group.next(), end)
                } catch {
                    if Task.isCancelled { throw CancellationError() }
                    throw OriginFailure.opening(error)
                }
            } onCancel: {
                end.end(.cancelled)
            }
        }

        /// Requests another protocol over a connection of its own, which the caller closes; of the next server too, if the
        /// first cannot be reached.
        ///
        /// - Parameter limit: how long a server may take to respond; nil: no limit.
        /// - Returns: also the head of the response; nil if the server closed the connection without one.
        /// - Throws: ``ServiceError``, or `CancellationError`.
        func upgrade(
            _ request: OutgoingRequest,
            within limit: Duration?,
            clock: any HoldfastClock
        ) async throws -> (channel: ByteChannel, head: ResponseHead?) {
            guard let group = configuration.origins else { return try await begin(request, within: limit) }
            var request = request
            var failed: (turn: Int, error: any Error)?
            while true {
                let turn = group.next(at: clock.now)
                if let failed, failed.turn == turn { throw failed.error }
                request.aim(at: group.members[turn], keepingHost: group.keepsHost)
                do {
                    let answer = try await begin(request, within: limit)
                    group.note(turn, status: answer.head?.status, at: clock.now)
                    return answer
                } catch {
                    group.note(turn, error: error, at: clock.now)
                    guard failed == nil, (error as? ServiceError)?.progress == .notSent else { throw error }
                    failed = (turn, error)
                }
            }
        }

        private func begin(
            _ request: OutgoingRequest,
            within limit: Duration?
        ) async throws -> (channel: ByteChannel, head: ResponseHead?) {
            let channel = try await tunnel(to: request.key)
            do {
                try await channel.write(request.head(.none, allocator: channel.channel.allocator))
                var parser = ResponseHeadParser()
                let deadline = limit.map { NIODeadline.now() + $0.timeAmount }
                var head = try await channel.readHead(&parser, by: deadline)
                // Others may come before the one that was asked for (RFC 9110 §15.2).
                var interims = 0
                while let status = head?.status, status.isInformational, status.rawValue != 101,
                    interims < configuration.interimResponses
                {
                    interims += 1
                    head = try await channel.readHead(&parser, by: deadline)
                }
                return (channel, head)
            } catch {
                channel.close()
                throw OriginFailure.serviceError(for: error, progress: .headSent, connectionReused: false)
            }
        }

        /// The caller's event loop, if it is one of the transport's.
        private var currentLoop: (any EventLoop)? {
            guard let loop = MultiThreadedEventLoopGroup.currentEventLoop, loops.contains(ObjectIdentifier(loop)) else {
                return nil
            }
            return loop
        }

        /// Opens the content, but no longer than until the attempt's deadline: making a stream may take any time.
        private func openContent(
            of body: RequestBody,
            for request: URLRequest,
            context: CallContext
        ) async throws -> OutgoingContent {
            switch body.form {
            case .none, .bytes, .oneShot, .requestStream:
                return try await OutgoingContent.open(body, of: request)
            case .file, .factory:
                guard let deadline = context.attemptDeadline else {
                    return try await OutgoingContent.open(body, of: request)
                }
                return try await withDeadline(
                    deadline,
                    on: context.clock,
                    failure: OriginFailure.timeout(progress: .notSent, connectionReused: false),
                    discard: { $0.cancel() }
                ) {
                    try await OutgoingContent.open(body, of: request)
                }
            }
        }

        private func attempt(
            _ outgoing: OutgoingRequest,
            request: URLRequest,
            body: RequestBody,
            context: CallContext,
            end: AttemptEnd
        ) async throws -> Response {
            try await withTaskCancellationHandler {
                let isRepeatable = context.options.isIdempotent ?? outgoing.method.isIdempotent
                var mayResend = configuration.resendsAfterStaleConnection
                var wantsNew = context.wantsNewConnection
                while true {
                    let content = try await openContent(of: body, for: request, context: context)
                    let connection: OriginConnection
                    do {
                        connection = try await pool.connection(
                            to: outgoing.key,
                            on: currentLoop,
                            wantsNew: wantsNew,
                            end: end
                        )
                    } catch {
                        content.cancel()
                        throw reason(
                            end,
                            orTimeout: { OriginFailure.timeout(progress: .notSent, connectionReused: false) }
                        )
                            ?? OriginFailure.opening(error)
                    }
                    let exchange = Exchange(on: connection, of: pool, rules: configuration.rules)
                    end.whenEnded { connection.channel.close() }
                    do {
                        try await exchange.send(outgoing, content: content)
                        return try await exchange.response(to: outgoing.method, url: request.url, end: end) {
                            context.report(interim: $0)
                        }
                    } catch {
                        content.cancel()
                        exchange.finish(reusable: false)
                        if let reason = reason(end, orTimeout: { exchange.timeout() }) { throw reason }
                        let doesNoHarm = isRepeatable || exchange.progress == .notSent
                        guard mayResend, doesNoHarm, body.isReplayable, exchange.isStale(error) else {
                            throw exchange.failure(error)
                        }
                        (mayResend, wantsNew) = (false, true)
                    }
                }
            } onCancel: {
                end.end(.cancelled)
            }
        }

        /// The error to throw if the attempt was ended from outside.
        private func reason(_ end: AttemptEnd, orTimeout timeout: () -> ServiceError) -> (any Error)? {
            switch end.reason {
            case .cancelled: CancellationError()
            case .deadline: timeout()
            case nil: Task.isCancelled ? CancellationError() : nil
            }
        }

        /// Timeouts and limits of a transport; everything has a default.
        public struct Configuration: Sendable {
            /// How long opening a connection may take, name resolution and TLS included; 5 s by default. Never longer
            /// than the attempt's deadline.
            public var connectTimeout: Duration = .seconds(5)
            /// How long a body may stall, in either direction; 60 s by default.
            public var stallTimeout: Duration = .seconds(60)
            /// How long an unused connection is kept; 4 s by default, less than the 5 s of servers on Node.js.
            public var idleTimeout: Duration = .seconds(4)
            /// The most connections to one origin; further requests wait in line. 256 by default.
            public var connectionsPerOrigin = 256
            /// The most connections in total; 2048 by default.
            public var connections = 2048
            /// The most unused connections to keep for one origin; 64 by default.
            public var idleConnectionsPerOrigin = 64
            /// The most unused connections to keep in total; 256 by default.
            public var idleConnections = 256
            /// The most requests that may wait for a connection; further ones fail with `.tooManyInFlight`. 16,384 by
            /// default.
            public var waitingRequests = 16_384
            /// The most bytes of a response's header; 256 KiB by default. A longer one is a `.protocolError`, as with
            /// the limits below.
            public var headBytes = 256 << 10
            /// The most lines of a response's header; 256 by default.
            public var headLines = 256
            /// The most interim responses to one request; 32 by default.
            public var interimResponses = 32
            /// Whether a request is sent once more, over a new connection, if its used connection broke before any byte
            /// of a response and sending it twice does no harm (RFC 9112 §9.3.1): its method is idempotent, or nothing
            /// of it had been sent. True by default.
            public var resendsAfterStaleConnection = true
            /// The TLS settings; nil, the default: TLS 1.2 or later, the system's roots, host names verified.
            public var tls: TLSConfiguration?

            /// Throws if a new connection must not be used, judging by the IP address of the host; nil, the default:
            /// none is rejected.
            var admission: (@Sendable (_ host: String, _ port: Int, _ address: String?) throws -> Void)?

            /// The servers that all requests go to; nil, the default: each request's own server.
            var origins: OriginGroup?

            /// Creates the default configuration.
            public init() {}

            var poolLimits: PoolState.Limits {
                PoolState.Limits(
                    perOrigin: max(connectionsPerOrigin, 1),
                    total: max(connections, 1),
                    idlePerOrigin: max(idleConnectionsPerOrigin, 0),
                    idleTotal: max(idleConnections, 0),
                    idleTime: idleTimeout.timeAmount,
                    waiting: max(waitingRequests, 0)
                )
            }

            var rules: Exchange.Rules {
                Exchange.Rules(
                    headLimits: HeadLimits(bytes: headBytes, fieldLines: headLines),
                    interimLimit: max(interimResponses, 0),
                    stall: stallTimeout.timeAmount
                )
            }
        }

        /// How many connections a transport has and had.
        public struct ConnectionCounts: Sendable, Hashable {
            /// Open connections, idle ones included.
            public internal(set) var open = 0
            /// Connections that are not in use.
            public internal(set) var idle = 0
            /// Requests that wait for a connection.
            public internal(set) var waiting = 0
            /// How many were opened so far.
            public internal(set) var opened = 0
            /// How many exchanges used a connection that had carried another one.
            public internal(set) var reused = 0
        }
    }

    /// The TLS context of a transport, made when it is first needed, because reading the system's roots takes a while.
    private final class LazyTLS: Sendable {
        private let configuration: TLSConfiguration
        private let made = Mutex<NIOSSLContext?>(nil)

        init(_ configuration: TLSConfiguration) {
            self.configuration = configuration
        }

        func context() async throws -> NIOSSLContext {
            if let context = made.withLock({ $0 }) { return context }
            let configuration = configuration
            let context = try await BlockingWork.run { try NIOSSLContext(configuration: configuration) }
            return made.withLock { made in
                let first = made ?? context
                made = first
                return first
            }
        }
    }

    extension Duration {
        /// The same time for NIO, limited to what its deadlines allow.
        var timeAmount: TimeAmount {
            let century = Duration.seconds(100 * 365 * 86_400)
            let (seconds, attoseconds) = max(min(self, century), .zero).components
            return .nanoseconds(seconds * 1_000_000_000 + attoseconds / 1_000_000_000)
        }
    }
#endif

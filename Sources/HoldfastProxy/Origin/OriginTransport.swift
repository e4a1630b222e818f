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

    /// Sends requests over HTTP/1.1, with TLS or without, byte for byte as they are: the transport beneath a proxy.
    ///
    /// Method, target and fields go out as given, `CallOptions.exactHead` before the URLRequest's own; nothing is added but Host and
    /// the framing of the content. Field values are ISO 8859-1 both ways. Responses are handed up at their head as they came: no
    /// redirect is followed, no content coding undone, no cookie kept, no challenge answered, and interim (1xx) responses but 100 go to
    /// `CallContext.report(interim:)`. Both bodies are streamed with back-pressure.
    ///
    /// Connections are kept and used again. The transport prefers the event loop it is called on, so that a call from there costs no
    /// change of threads. It ends attempts at their deadline itself, and heeds `CallContext.wantsNewConnection`.
    ///
    /// A transport that is dropped closes its unused connections; ``shutdown()`` closes all.
    public final class OriginTransport: Transport {
        private let configuration: Configuration
        private let group: any EventLoopGroup
        private let loops: Set<ObjectIdentifier>
        private let pool: OriginPool

        /// A transport.
        ///
        /// - Parameters:
        ///   - configuration: timeouts, limits and TLS.
        ///   - group: where its connections live; that of the process by default. It is not shut down with the transport.
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

        /// Closes every connection, also those under way, whose exchanges end with `.connectionLost`; returns when they are closed.
        ///
        /// Calls afterwards fail with `.unsupported`. Idempotent.
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
            let turn = group.next(at: context.clock.now)
            outgoing.aim(at: group.members[turn], keepingHost: group.keepsHost)
            do {
                let response = try await send(outgoing, request: request, body: body, context: context)
                let hasFailed = [502, 503, 504].contains(response.status.rawValue)
                group.note(turn, hasFailed: hasFailed, at: context.clock.now)
                return response
            } catch {
                // What the caller broke off, or sent wrong, says nothing of the server.
                if let error = error as? ServiceError, error.code != .badRequest, error.code != .unsupported {
                    group.note(turn, hasFailed: true, at: context.clock.now)
                }
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

        /// A connection for bytes of any kind, which the caller closes; the pool knows nothing of it.
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

        /// The server whose turn it is, of several; nil where each request names its own.
        func nextOrigin(at now: MonotonicInstant) -> (member: OriginGroup.Member, keepsHost: Bool)? {
            configuration.origins.map { ($0.members[$0.next(at: now)], $0.keepsHost) }
        }

        /// The loop the caller runs on, where it is one of the transport's.
        private var currentLoop: (any EventLoop)? {
            guard let loop = MultiThreadedEventLoopGroup.currentEventLoop, loops.contains(ObjectIdentifier(loop)) else {
                return nil
            }
            return loop
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
                    let content = try await OutgoingContent.open(body, of: request)
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

        /// What to throw where the attempt was ended from outside.
        private func reason(_ end: AttemptEnd, orTimeout timeout: () -> ServiceError) -> (any Error)? {
            switch end.reason {
            case .cancelled: CancellationError()
            case .deadline: timeout()
            case nil: Task.isCancelled ? CancellationError() : nil
            }
        }

        /// Timeouts and limits of a transport; everything has a default.
        public struct Configuration: Sendable {
            /// How long a connection may take to come about, name resolution and TLS included; 5 s by default. It never goes beyond the
            /// attempt's deadline.
            public var connectTimeout: Duration = .seconds(5)
            /// How long a body may stand still, on its way up or down; 60 s by default.
            public var stallTimeout: Duration = .seconds(60)
            /// How long a connection is kept that nobody uses; 4 s by default, less than the 5 s of servers on Node.js.
            public var idleTimeout: Duration = .seconds(4)
            /// How many connections there may be to one origin; further requests wait in line. 256 by default.
            public var connectionsPerOrigin = 256
            /// How many connections there may be in all; 2048 by default.
            public var connections = 2048
            /// How many unused connections are kept to one origin; 64 by default.
            public var idleConnectionsPerOrigin = 64
            /// How many unused connections are kept in all; 256 by default.
            public var idleConnections = 256
            /// How many requests may wait for a connection; further ones fail with `.tooManyInFlight`. 16,384 by default.
            public var waitingRequests = 16_384
            /// The most bytes of a response's header; 256 KiB by default. A longer one is a `.protocolError`, and so are those below.
            public var headBytes = 256 << 10
            /// The most lines of a response's header; 256 by default.
            public var headLines = 256
            /// The most interim responses to one request; 32 by default.
            public var interimResponses = 32
            /// Whether a request is sent once more, over a connection of its own, when the used connection it went out on broke before any
            /// byte of an answer, and sending it twice does no harm (RFC 9112 §9.3.1): its method is idempotent, or nothing of it had
            /// left. True by default.
            public var resendsAfterStaleConnection = true
            /// How TLS is spoken; nil, the default: TLS 1.2 or later, the system's roots, host names verified.
            public var tls: TLSConfiguration?

            /// Throws where a connection that was made must not be used, by the IP address that a host led to; nil, the default: none
            /// is refused.
            var admission: (@Sendable (_ host: String, _ port: Int, _ address: String?) throws -> Void)?

            /// The servers that requests go to, whatever host they name; nil, the default: the one that each names.
            var origins: OriginGroup?

            /// All defaults.
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
            /// Those that stand, idle ones included.
            public internal(set) var open = 0
            /// Those that nobody uses at present.
            public internal(set) var idle = 0
            /// The requests in line for one.
            public internal(set) var waiting = 0
            /// How many were opened so far.
            public internal(set) var opened = 0
            /// How many exchanges went over a connection that had carried another one.
            public internal(set) var reused = 0
        }
    }

    /// The TLS context of a transport, made when it is first needed: reading the system's roots takes a while.
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
        /// The same time for NIO, cut to what its deadlines can bear.
        var timeAmount: TimeAmount {
            let century = Duration.seconds(100 * 365 * 86_400)
            let (seconds, attoseconds) = max(min(self, century), .zero).components
            return .nanoseconds(seconds * 1_000_000_000 + attoseconds / 1_000_000_000)
        }
    }
#endif

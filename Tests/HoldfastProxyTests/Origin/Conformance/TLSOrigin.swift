// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import Foundation
    import HoldfastTestKit
    import HoldfastTesting
    import NIOCore
    import NIOPosix
    import NIOSSL
    import NIOTLS

    /// A ``LoopbackServer`` behind TLS on 127.0.0.1: bytes go through as they come, and so do the ends of connections.
    final class TLSOrigin: LoopbackOrigin {
        let server: LoopbackServer
        private let listener: any Channel

        private init(_ server: LoopbackServer, _ listener: any Channel) {
            self.server = server
            self.listener = listener
        }

        /// Starts a server on a port that the system picks.
        static func start(_ script: LoopbackScript) async throws -> TLSOrigin {
            let server = try LoopbackServer.start(script: script)
            let tls = try NIOSSLContext(configuration: LoopbackCertificate.servingConfiguration())
            let port = Int(server.port)
            let listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
                .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
                // A server without TLS has no second pair of sockets in which a body could lie.
                .childChannelOption(.socketOption(.so_rcvbuf), value: 1 << 18)
                .childChannelOption(.autoRead, value: false)
                .childChannelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        let breaker = ConnectionBreaker()
                        let pipeline = channel.pipeline.syncOperations
                        try pipeline.addHandler(breaker)
                        try pipeline.addHandler(NIOSSLServerHandler(context: tls))
                        try pipeline.addHandler(BytePump(.front(backend: port), breaker))
                    }
                }
                .bind(host: "127.0.0.1", port: 0)
                .get()
            return TLSOrigin(server, listener)
        }

        func url(_ target: String) -> URL {
            let text = "https://127.0.0.1:\(listener.localAddress?.port ?? 0)\(target)"
            guard let url = URL(string: text) else { preconditionFailure("not a URL: \(text)") }
            return url
        }

        var requests: [LoopbackRequest] { server.requests }
        var exchangeEnds: [LoopbackExchangeEnd] { server.exchangeEnds }

        func requests(atLeast count: Int) async throws -> [LoopbackRequest] {
            try await server.requests(atLeast: count)
        }

        func heads(atLeast count: Int) async throws -> [LoopbackRequest] {
            try await server.heads(atLeast: count)
        }

        func exchangeEnds(atLeast count: Int) async throws -> [LoopbackExchangeEnd] {
            try await server.exchangeEnds(atLeast: count)
        }

        func stop() async {
            try? await listener.close()
            server.stop()
        }
    }

    extension OriginFactory {
        /// ``TLSOrigin``: HTTP/1.1 with TLS.
        static let https1 = OriginFactory("HTTP/1.1 over TLS") { try await TLSOrigin.start($0) }
    }

    /// Ends a connection below TLS, by a reset and without a word.
    private final class ConnectionBreaker: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer

        private var context: ChannelHandlerContext?

        func handlerAdded(context: ChannelHandlerContext) {
            self.context = context
        }

        func handlerRemoved(context: ChannelHandlerContext) {
            self.context = nil
        }

        func channelActive(context: ChannelHandlerContext) {
            context.fireChannelActive()
            // Reading is not automatic, and TLS begins with the client's hello.
            context.read()
        }

        func breakConnection() {
            guard let context else { return }
            _ = (context.channel as? any SocketOptionProvider)?.setSoLinger(linger(l_onoff: 1, l_linger: 0))
            context.close(promise: nil)
        }
    }

    /// Takes the bytes of one connection to another one, a read at a time; both live on one loop.
    private final class BytePump: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer

        enum Side {
            case front(backend: Int)
            case back
        }

        private let side: Side
        private let breaker: ConnectionBreaker
        private var partner: (any Channel)?
        private var early: [ByteBuffer] = []
        private var hasEnded = false

        init(_ side: Side, _ breaker: ConnectionBreaker, partner: (any Channel)? = nil) {
            self.side = side
            self.breaker = breaker
            self.partner = partner
        }

        func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
            if case .handshakeCompleted = event as? TLSUserEvent { connect(context) }
            guard case .inputClosed = event as? ChannelEvent else { return }
            // The server's last word, once all before it has left.
            hasEnded = true
            let ended = context.channel
            partner?.writeAndFlush(ByteBuffer()).whenComplete { [partner] _ in
                partner?.close(promise: nil)
                ended.close(promise: nil)
            }
        }

        private func connect(_ context: ChannelHandlerContext) {
            guard case .front(let port) = side else { return }
            let front = context.channel
            let breaker = NIOLoopBound(breaker, eventLoop: context.eventLoop)
            ClientBootstrap(group: context.eventLoop)
                .channelOption(.tcpOption(.tcp_nodelay), value: 1)
                .channelOption(.socketOption(.so_sndbuf), value: 1 << 18)
                .channelOption(.autoRead, value: false)
                .channelOption(.allowRemoteHalfClosure, value: true)
                .channelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.addHandler(BytePump(.back, breaker.value, partner: front))
                    }
                }
                .connect(host: "127.0.0.1", port: port)
                .assumeIsolated()
                .whenComplete { result in
                    guard case .success(let back) = result else { return breaker.value.breakConnection() }
                    self.partner = back
                    for bytes in self.early { back.writeAndFlush(bytes, promise: nil) }
                    self.early = []
                    guard front.isActive else { return back.close(promise: nil) }
                    front.read()
                    back.read()
                }
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let bytes = unwrapInboundIn(data)
            guard let partner else { return early.append(bytes) }
            let channel = context.channel
            partner.writeAndFlush(bytes).whenSuccess { channel.read() }
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) {
            if case .back = side { breaker.breakConnection() }
            context.close(promise: nil)
        }

        func channelInactive(context: ChannelHandlerContext) {
            switch side {
            case .front: partner?.close(promise: nil)
            // Where it is a write that finds the server gone, nothing else tells so.
            case .back: if !hasEnded { breaker.breakConnection() }
            }
            context.fireChannelInactive()
        }
    }
#endif

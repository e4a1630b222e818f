// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if AsyncHTTPClient
    import Foundation
    import HoldfastTestKit
    import HoldfastTesting
    import NIOCore
    import NIOHTTP2
    import NIOPosix
    import NIOSSL

    /// A server that plays ``LoopbackScript`` over HTTP/2 and TLS on 127.0.0.1.
    ///
    /// Each exchange is a stream; where a script ends the connection it resets the stream.
    final class HTTP2Origin: LoopbackOrigin {
        typealias Stream = NIOAsyncChannel<HTTP2Frame.FramePayload, HTTP2Frame.FramePayload>
        typealias Connection = (channel: any Channel, streams: NIOHTTP2Handler.AsyncStreamMultiplexer<Stream>)

        /// How an exchange is broken off that the script breaks off.
        enum Breaking: Sendable {
            /// By RST_STREAM with this code.
            case reset(HTTP2ErrorCode)
            /// By a GOAWAY that leaves the stream out.
            case goAway
        }

        let record = OriginRecord()
        private let port: Int
        private let server: Task<Void, any Error>

        private init(_ listener: NIOAsyncChannel<Connection, Never>, _ script: HTTP2Script) {
            port = listener.channel.localAddress?.port ?? 0
            let record = record
            server = Task {
                try await listener.executeThenClose { connections in
                    try await withThrowingDiscardingTaskGroup { group in
                        for try await connection in connections {
                            group.addTask { await HTTP2Origin.serve(connection, script, record) }
                        }
                    }
                }
            }
        }

        deinit { server.cancel() }

        /// Starts a server on a port that the system picks.
        ///
        /// - Parameters:
        ///   - asksCertificate: whether clients must show the loopback certificate.
        ///   - breaking: how exchanges are broken off, by their target; by a reset with INTERNAL_ERROR unless said.
        static func start(
            _ script: LoopbackScript,
            asksCertificate: Bool = false,
            breaking: @escaping @Sendable (_ target: String) -> Breaking = { _ in .reset(.internalError) }
        ) async throws -> HTTP2Origin {
            var configuration = try LoopbackCertificate.servingConfiguration(protocols: ["h2"])
            if asksCertificate {
                configuration.trustRoots = .certificates([try LoopbackCertificate.certificate()])
                configuration.certificateVerification = .noHostnameVerification
            }
            let tls = try NIOSSLContext(configuration: configuration)
            let listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
                .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
                .bind(host: "127.0.0.1", port: 0) { channel -> EventLoopFuture<Connection> in
                    channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: tls))
                        let streams = try channel.pipeline.syncOperations.configureAsyncHTTP2Pipeline(mode: .server) {
                            stream in
                            stream.eventLoop.makeCompletedFuture { try Stream(wrappingChannelSynchronously: stream) }
                        }
                        return (channel: channel, streams: streams)
                    }
                }
            return HTTP2Origin(listener, HTTP2Script(script: script, breaking: breaking))
        }

        func url(_ target: String) -> URL {
            let text = "https://localhost:\(port)\(target)"
            guard let url = URL(string: text) else { preconditionFailure("not a URL: \(text)") }
            return url
        }

        var requests: [LoopbackRequest] { record.requests }
        var exchangeEnds: [LoopbackExchangeEnd] { record.ends }

        func requests(atLeast count: Int) async throws -> [LoopbackRequest] {
            try await record.received.wait(for: count)
            return record.requests
        }

        func heads(atLeast count: Int) async throws -> [LoopbackRequest] {
            try await record.begun.wait(for: count)
            return record.heads
        }

        func exchangeEnds(atLeast count: Int) async throws -> [LoopbackExchangeEnd] {
            try await record.ended.wait(for: count)
            return record.ends
        }

        func stop() async {
            server.cancel()
            _ = await server.result
        }

        private static func serve(_ connection: Connection, _ script: HTTP2Script, _ record: OriginRecord) async {
            let number = record.connected()
            await withTaskCancellationHandler {
                await withDiscardingTaskGroup { group in
                    do {
                        for try await stream in connection.streams.inbound {
                            group.addTask {
                                await HTTP2Exchange(number, connection.channel, script, record).serve(stream)
                            }
                        }
                    } catch {
                        // The connection broke, and its streams with it.
                    }
                    group.cancelAll()
                }
            } onCancel: {
                connection.channel.close(mode: .all, promise: nil)
            }
            connection.channel.close(mode: .all, promise: nil)
        }
    }

    /// What an HTTP/2 server does.
    struct HTTP2Script: Sendable {
        let script: LoopbackScript
        let breaking: @Sendable (_ target: String) -> HTTP2Origin.Breaking
    }

    extension OriginFactory {
        /// ``HTTP2Origin``.
        static let http2 = OriginFactory("HTTP/2", version: .http2) { try await HTTP2Origin.start($0) }
    }
#endif

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if AsyncHTTPClient
    import AsyncHTTPClient
    import Foundation
    import Holdfast
    import HoldfastAsyncHTTPClient
    import NIOCore
    import NIOHTTP1
    import NIOPosix
    import Testing

    @Suite("URLs of unix-domain sockets", .timeLimit(.minutes(20)))
    struct UnixSocketTests {
        private var path: String {
            FileManager.default.temporaryDirectory.appendingPathComponent("hf-\(UUID().uuidString.prefix(8))").path
        }

        @Test("They pass through a pipeline with a cache")
        func exchange() async throws {
            let path = path
            let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .childChannelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.configureHTTPServerPipeline()
                        try channel.pipeline.syncOperations.addHandler(TargetHandler())
                    }
                }
                .bind(unixDomainSocketPath: path)
                .get()
            let url = try #require(URL(httpURLWithSocketPath: path, uri: "/a?b"))
            let client = HTTPClient.shared.holdfast(cache: .inMemory())
            let response = try await client.execute(HTTPClientRequest(url: url.absoluteString), timeout: .minutes(5))
            #expect(try await response.body.collect(upTo: 100) == ByteBuffer(string: "/a?b"))
            try await server.close()
        }

        @Test("Without a server, the call fails with .connect, and nothing was sent")
        func refused() async throws {
            let transport = AsyncHTTPClientTransport()
            let url = try #require(URL(httpURLWithSocketPath: path))
            let client = HoldfastHTTPClient(Pipeline(transport: transport))
            let error = await #expect(throws: ServiceError.self) {
                try await client.respond(to: HTTPClientRequest(url: url.absoluteString))
            }
            #expect(error?.code == .connect)
            #expect(error?.progress == .notSent)
            try await transport.shutdown()
        }
    }

    /// Answers with the request's target.
    private final class TargetHandler: ChannelInboundHandler {
        typealias InboundIn = HTTPServerRequestPart
        typealias OutboundOut = HTTPServerResponsePart

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            guard case .head(let head) = unwrapInboundIn(data) else { return }
            let headers: HTTPHeaders = ["Content-Length": "\(head.uri.utf8.count)"]
            context.write(wrapOutboundOut(.head(.init(version: .http1_1, status: .ok, headers: headers))), promise: nil)
            context.write(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(string: head.uri)))), promise: nil)
            context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
        }
    }
#endif

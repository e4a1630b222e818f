// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import Foundation
    import Holdfast
    import HoldfastSemantics
    import HoldfastTestKit
    import HoldfastTesting
    import NIOCore
    import NIOPosix
    import NIOSSL
    import Testing

    @testable import HoldfastProxy

    #if canImport(FoundationNetworking)
        import FoundationNetworking
    #endif

    /// TLS towards clients: requests, long bodies, and a certificate that is read anew.
    @Suite("TLS towards clients", .timeLimit(.minutes(20)))
    struct FrontTLSTests {
        private static func files() throws -> (folder: URL, files: ProxyCertificate) {
            let folder = FileManager.default.temporaryDirectory.appending(path: "holdfast-tls-\(UUID().uuidString)")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            let (certificate, key) = (folder.appending(path: "cert.pem"), folder.appending(path: "key.pem"))
            try Data(LoopbackCertificate.pem.utf8).write(to: certificate)
            try Data(LoopbackCertificate.keyPEM.utf8).write(to: key)
            return (folder, ProxyCertificate(certificatePath: certificate.path, keyPath: key.path))
        }

        @Test(
            "Requests, kept connections and long bodies work over TLS, the origin sees https, and certificates can be reloaded"
        )
        func serving() async throws {
            let (folder, files) = try Self.files()
            defer { try? FileManager.default.removeItem(at: folder) }
            let long = String(repeating: "0123456789", count: 200_000)
            let adjust: (inout ProxyConfiguration) -> Void = { configuration in
                configuration.certificate = files
                configuration.clientAddressFields = .xForwardedFor
            }
            try await ProxyBench.with(adjust: adjust) { bench in
                var client = OriginTransport.Configuration()
                client.tls = try LoopbackCertificate.trustingConfiguration()
                let transport = OriginTransport(configuration: client)
                let pipeline = Pipeline(transport: transport)
                let path = bench.lay(LoopbackReply(fields: [("Cache-Control", "max-age=60")], body: long))
                let url = try #require(URL(string: "https://127.0.0.1:\(bench.proxy.port)\(path)"))
                for _ in 1...3 { #expect(try await pipeline.data(from: url).0 == Data(long.utf8)) }
                #expect(bench.seen(path).map { $0.values(of: "X-Forwarded-Proto") } == [["https"]])
                #expect(transport.connections.opened == 1)

                try Data("no certificate".utf8).write(to: URL(filePath: files.certificatePath))
                #expect(throws: ProxyConfigurationError.self) { try bench.proxy.reloadCertificate() }
                let other = OriginTransport(configuration: client)
                #expect(try await Pipeline(transport: other).data(from: url).0.count == long.utf8.count)
                try Data(LoopbackCertificate.pem.utf8).write(to: URL(filePath: files.certificatePath))
                try bench.proxy.reloadCertificate()
                // Whoever speaks without TLS gets nothing, and harms nobody.
                let plain = try? await bench.ask(path)
                #expect(plain == nil)
                #expect(try await pipeline.data(from: url).0.count == long.utf8.count)
                await other.shutdown()
                await transport.shutdown()
            }
        }

        @Test("An invalid certificate is refused before any port is opened")
        func refused() async throws {
            var configuration = ProxyConfiguration(.reverse(try ProxyOrigin("http://origin.example")))
            configuration.port = 0
            configuration.certificate = ProxyCertificate(certificatePath: "/no/cert", keyPath: "/no/key")
            await #expect(throws: ProxyConfigurationError.self) { try await ProxyServer.start(configuration) }
        }

        private struct Broken: Error {}

        private static func client(of server: HTTPServer) async throws -> RawClient {
            let context = try NIOSSLContext(configuration: LoopbackCertificate.trustingConfiguration())
            let address = try #require(server.localAddress)
            let bytes = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .connect(to: address) { channel in
                    channel.eventLoop.makeCompletedFuture {
                        let tls = try NIOSSLClientHandler(context: context, serverHostname: nil)
                        try channel.pipeline.syncOperations.addHandler(tls)
                        return try ByteChannel.attach(to: channel)
                    }
                }
            return RawClient(bytes)
        }

        @Test("Over TLS, too, a cut response that is delimited by the close does not end properly")
        func cutResponse() async throws {
            let (folder, files) = try Self.files()
            defer { try? FileManager.default.removeItem(at: folder) }
            let handler = ClosureHandler { _ in
                Response(status: 200, body: ResponseBody(CountingSource(chunk: 3, limit: 1, error: Broken())))
            }
            let server = try await HTTPServer.start(
                at: .host("127.0.0.1", port: 0),
                tls: try ServerTLS(files),
                handler: handler
            )
            let client = try await Self.client(of: server)
            try await client.send("GET / HTTP/1.0\r\n\r\n")
            await #expect(throws: ChannelFault.self) { _ = try await client.rest() }
            client.bytes.close()
            await server.close()
        }

        @Test("A server over TLS that closes does not wait for its clients to confirm it")
        func promptClose() async throws {
            let (folder, files) = try Self.files()
            defer { try? FileManager.default.removeItem(at: folder) }
            let server = try await HTTPServer.start(
                at: .host("127.0.0.1", port: 0),
                tls: try ServerTLS(files),
                handler: ClosureHandler { _ in .text("a") }
            )
            let client = try await Self.client(of: server)
            try await client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            #expect(try await client.answer().hasSuffix("a"))
            let begun = ContinuousClock.now
            await server.close()
            #expect(begun.duration(to: .now) < .seconds(4), "TLS gives up after five seconds")
            client.bytes.close()
        }

        @Test("Nor does it wait after its last response, whose end it has already sent")
        func promptCloseAfterLinger() async throws {
            let (folder, files) = try Self.files()
            defer { try? FileManager.default.removeItem(at: folder) }
            let server = try await HTTPServer.start(
                at: .host("127.0.0.1", port: 0),
                tls: try ServerTLS(files),
                handler: ClosureHandler { _ in .text("a") }
            )
            let client = try await Self.client(of: server)
            try await client.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            // The end has come, so the server lingers.
            #expect(try await client.rest().hasSuffix("a"))
            let begun = ContinuousClock.now
            await server.close()
            #expect(begun.duration(to: .now) < .seconds(4), "TLS gives up after five seconds")
            client.bytes.close()
        }
    }
#endif

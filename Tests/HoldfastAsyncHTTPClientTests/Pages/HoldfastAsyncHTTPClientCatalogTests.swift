// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if AsyncHTTPClient
    import AsyncHTTPClient
    import Foundation
    import Holdfast
    import HoldfastAsyncHTTPClient
    import HoldfastTesting
    import NIOCore
    import NIOHTTP1
    import Testing

    #if canImport(FoundationNetworking)
        import FoundationNetworking
    #endif

    /// The code of `HoldfastAsyncHTTPClient.docc`: article, and the steps from first to last.
    @Suite("Catalog: HoldfastAsyncHTTPClient", .timeLimit(.minutes(20)))
    struct HoldfastAsyncHTTPClientCatalogTests {
        struct Prices: Sendable {
            let client = HTTPClient.shared.holdfast(cache: .default, retrierFactory: .default)

            func load(_ url: String) async throws -> ByteBuffer {
                let response = try await client.execute(HTTPClientRequest(url: url), timeout: .seconds(30))
                return try await response.body.collect(upTo: 1 << 20)
            }

            func source(_ url: String) async throws -> ResponseSource {
                let response = try await client.respond(to: HTTPClientRequest(url: url))
                response.body.discard()
                return response.source
            }

            func end() async {
                await client.pipeline.drain()
            }
        }

        private func server() throws -> LoopbackServer {
            try LoopbackServer.start { _ in LoopbackReply(fields: [("Cache-Control", "max-age=60")], body: "hello") }
        }

        @Test("The client's own shape")
        func wrapped() async throws {
            let server = try server()
            let url = server.url().absoluteString
            let client = HTTPClient.shared.holdfast(cache: .default, retrierFactory: .default)
            let response = try await client.execute(HTTPClientRequest(url: url), timeout: .seconds(30))
            let body = try await response.body.collect(upTo: 1 << 20)
            #expect(String(buffer: body) == "hello")
            let answer = try await client.respond(to: HTTPClientRequest(url: url))
            print(answer.source, answer.cacheDecision?.description ?? "", answer.attempts.count)
            #expect(answer.source == .fresh)
            var options = CallOptions()
            options.cache = .reload
            let fresh = try await client.execute(HTTPClientRequest(url: url), timeout: .seconds(30), options: options)
            #expect(fresh.status == .ok)
            #expect(server.requests.count == 2)
        }

        @Test("Below a pipeline")
        func transport() async throws {
            let server = try server()
            let address = server.url()
            let transport = AsyncHTTPClientTransport()
            let pipeline = Pipeline(transport: transport, cache: .default, retrierFactory: .default)
            let (data, _) = try await pipeline.data(from: address)
            #expect(data == Data("hello".utf8))
            await pipeline.drain()
            try await transport.shutdown()
        }

        @Test("One line")
        func tutorial() async throws {
            let server = try server()
            let prices = Prices()
            let url = server.url().absoluteString
            #expect(String(buffer: try await prices.load(url)) == "hello")
            #expect(try await prices.source(url) == .fresh)
            await prices.end()
            #expect(server.requests.count == 1)
        }
    }
#endif

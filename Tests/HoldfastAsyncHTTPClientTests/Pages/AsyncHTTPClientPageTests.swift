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

    /// The code of `docs/clients/async-http-client.md`.
    @Suite("The page on AsyncHTTPClient", .timeLimit(.minutes(20)))
    struct AsyncHTTPClientPageTests {
        private func server() throws -> LoopbackServer {
            try LoopbackServer.start { request in
                request.method == "POST"
                    ? LoopbackReply(body: request.text)
                    : LoopbackReply(fields: [("Cache-Control", "max-age=60")], body: "hello")
            }
        }

        @Test("One line makes the client, and call sites stay as they are")
        func oneLine() async throws {
            let server = try server()
            let url = server.url().absoluteString

            let client = HTTPClient.shared.holdfast(cache: .default, retrierFactory: .default)

            for _ in 1...2 {
                let request = HTTPClientRequest(url: url)
                let response = try await client.execute(request, timeout: .minutes(5))
                let body = try await response.body.collect(upTo: 1 << 20)

                #expect(String(buffer: body) == "hello")
            }
            #expect(server.requests.count == 1)
        }

        @Test("respond says where a response came from")
        func respond() async throws {
            let server = try server()
            let client = HTTPClient.shared.holdfast(cache: .default)
            let request = HTTPClientRequest(url: server.url().absoluteString)
            _ = try await client.respond(to: request).body.data()

            let response = try await client.respond(to: request)
            print(response.source, response.cacheDecision as Any, response.attempts.count)

            #expect(response.source == .fresh)
        }

        @Test("Options for one call")
        func options() async throws {
            let server = try server()
            let client = HTTPClient.shared.holdfast(cache: .default)
            let request = HTTPClientRequest(url: server.url().absoluteString)

            var options = CallOptions()
            options.cache.reload = true
            let response = try await client.execute(request, timeout: .minutes(5), options: options)

            #expect(response.status == .ok)
        }

        @Test("Errors that call sites already handle")
        func errors() async throws {
            let server = try LoopbackServer.start { _ in .never }
            let client = HTTPClient.shared.holdfast()
            let request = HTTPClientRequest(url: server.url().absoluteString)
            var caught = 0

            do {
                _ = try await client.execute(request, timeout: .milliseconds(100))
            } catch let error as HTTPClientError where error == .deadlineExceeded {
                caught += 1
            }

            #expect(caught == 1)
        }

        @Test("A transport with a client of its own")
        func ownClient() async throws {
            let server = try server()
            let url = server.url()

            var configuration = HTTPClient.Configuration()
            configuration.timeout.connect = .minutes(1)
            let transport = AsyncHTTPClientTransport(configuration: configuration)
            let pipeline = Pipeline(transport: transport, cache: .default, retrierFactory: .default)

            let response = try await pipeline.send(URLRequest(url: url))
            #expect(try await response.body.data() == Data("hello".utf8))

            await pipeline.drain()
            try await transport.shutdown()
        }

        @Test("A stream is sent as it is read")
        func streaming() async throws {
            let server = try server()
            let client = HTTPClient.shared.holdfast(retrierFactory: .default)
            let lines = AsyncStream<ByteBuffer> { continuation in
                for line in ["one\n", "two\n"] { continuation.yield(ByteBuffer(string: line)) }
                continuation.finish()
            }
            let url = server.url().absoluteString

            var request = HTTPClientRequest(url: url)
            request.method = .POST
            request.body = .stream(lines, length: .unknown)
            let response = try await client.execute(request, timeout: .minutes(5))
            for try await buffer in response.body {
                print(buffer.readableBytes)
            }

            #expect(server.requests.first?.text == "one\ntwo\n")
        }
    }
#endif

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if AsyncHTTPClient
    import AsyncHTTPClient
    import Foundation
    import Holdfast
    import HoldfastAsyncHTTPClient
    import HoldfastStorage
    import HoldfastTestKit
    import HoldfastTesting
    import InMemoryTracing
    import Testing
    import Tracing

    #if canImport(FoundationNetworking)
        import FoundationNetworking
    #endif

    @Suite("Exchanges over AsyncHTTPClient", .timeLimit(.minutes(20)))
    struct ExchangeTests {
        @Test(
            "A target is sent as the URL spells it",
            arguments: [
                "/", "/a%20b", "/a%2Fb", "/%C3%A9", "/a;b=c,d", "/?q", "/?", "/p?a=b&c=%26", "/p?x=a+b", "//double//",
                "/a/../b",
                "/p?q=/?:@", "/~tilde-._!$'()*",
            ]
        )
        func target(_ target: String) async throws {
            let server = try LoopbackServer.start { LoopbackReply(body: $0.target) }
            let url = try #require(URL(string: "http://127.0.0.1:\(server.port)\(target)#fragment"))
            let transport = AsyncHTTPClientTransport(client: .shared)
            let response = try await transport.send(URLRequest(url: url), body: .none, context: CallContext())
            #expect(String(decoding: try await response.body.collect(), as: UTF8.self) == target)
        }

        @Test("User information of a URL is not sent, so no credential is hidden from a cache")
        func userInformation() async throws {
            let server = try LoopbackServer.start { _ in LoopbackReply() }
            let url = try #require(URL(string: "http://user:secret@127.0.0.1:\(server.port)/"))
            let transport = AsyncHTTPClientTransport(client: .shared)
            _ = try await transport.send(URLRequest(url: url), body: .none, context: CallContext())
            let request = try #require(server.requests.first)
            #expect(request.values(of: "Authorization") == [])
            #expect(request.values(of: "Host") == ["127.0.0.1:\(server.port)"])
            #expect(request.values(of: "Cookie") == [])
        }

        @Test(
            "A status below 100 is an error and does not crash the process",
            arguments: ["000", "099"],
            ["own", "shared"]
        )
        func statusBelow100(_ status: String, _ whose: String) async throws {
            let server = try LoopbackServer.start { _ in
                LoopbackReply(
                    framing: .bare,
                    before: [.raw("HTTP/1.1 \(status) X\r\nContent-Length: 0\r\n\r\n"), .close]
                )
            }
            let url = try #require(URL(string: "http://127.0.0.1:\(server.port)/"))
            let transport = whose == "own" ? AsyncHTTPClientTransport() : AsyncHTTPClientTransport(client: .shared)
            let error = try await #require(throws: ServiceError.self) {
                try await transport.send(URLRequest(url: url), body: .none, context: CallContext())
            }
            #expect(error.code == .protocolError)
        }

        @Test(
            "Over HTTP/2, a status that no response has is an error and does not crash the process (RFC 9113 §8.6)",
            arguments: [
                LoopbackReply(99, body: "x"), LoopbackReply(0, body: "x"), LoopbackReply(-1, body: "x"),
                LoopbackReply(1000, body: "x"),
                LoopbackReply(before: [.interim(101)], steps: [.send("x")]),
                LoopbackReply(before: [.interim(1000)], steps: [.send("x")]),
            ]
        )
        func oddStatusOverHTTP2(_ reply: LoopbackReply) async throws {
            let origin = try await HTTP2Origin.start(LoopbackScript { _ in reply })
            var configuration = HTTPClient.Configuration()
            configuration.tlsConfiguration = try LoopbackCertificate.trustingConfiguration()
            let transport = AsyncHTTPClientTransport(configuration: configuration)
            let error = try await #require(throws: ServiceError.self) {
                try await transport.send(URLRequest(url: origin.url("/")), body: .none, context: CallContext())
            }
            #expect(error.code == .protocolError)
            try await transport.shutdown()
            await origin.stop()
        }

        @Test("A body can be read to its end after its transport was released")
        func bodyOutlivesTransport() async throws {
            let gate = LoopbackGate()
            let server = try LoopbackServer.start { _ in
                LoopbackReply(framing: .chunked, steps: [.send("first "), .pause(gate), .send("second")])
            }
            let url = try #require(URL(string: "http://127.0.0.1:\(server.port)/"))
            var transport: AsyncHTTPClientTransport? = AsyncHTTPClientTransport()
            let response = try await transport?.send(URLRequest(url: url), body: .none, context: CallContext())
            transport = nil
            var chunks = try #require(response?.body).makeAsyncIterator()
            var text = String(decoding: try await chunks.next() ?? ByteChunk(), as: UTF8.self)
            gate.open()
            while let chunk = try await chunks.next() { text += String(decoding: chunk, as: UTF8.self) }
            #expect(text == "first second")
        }

        @Test("If the client does tracing itself, each trace field is sent once, no matter who set it before")
        func traceFields() async throws {
            let server = try LoopbackServer.start { _ in LoopbackReply() }
            let url = try #require(URL(string: "http://127.0.0.1:\(server.port)/"))
            let tracer = InMemoryTracer()
            var configuration = HTTPClient.Configuration()
            configuration.tracing.tracer = tracer
            let transport = AsyncHTTPClientTransport(configuration: configuration)
            var request = URLRequest(url: url)
            request.setValue("above", forHTTPHeaderField: InMemoryTracer.spanIDKey)
            request.setValue("kept", forHTTPHeaderField: "X-Other")
            try await tracer.withSpan("above") { _ in
                _ = try await transport.send(request, body: .none, context: CallContext())
            }
            let sent = try #require(server.requests.first)
            let client = try #require(tracer.finishedSpans.first { $0.operationName == "GET" })
            #expect(sent.values(of: InMemoryTracer.spanIDKey) == [client.spanID])
            #expect(sent.values(of: "X-Other") == ["kept"])
            try await transport.shutdown()
        }

        @Test("An untrusted certificate is refused before anything is sent")
        func certificate() async throws {
            let origin = try await HTTP2Origin.start(LoopbackScript { _ in LoopbackReply() })
            let transport = AsyncHTTPClientTransport()
            let error = try await #require(throws: ServiceError.self) {
                _ = try await transport.send(URLRequest(url: origin.url("/")), body: .none, context: CallContext())
            }
            #expect(error.code == .certificate)
            #expect(error.progress == .notSent)
            #expect(origin.requests.isEmpty)
            try await transport.shutdown()
            await origin.stop()
        }

        @Test("A server that ends the handshake fails the call with .tls, and nothing was sent")
        func noTLS() async throws {
            let server = try LoopbackServer.start(
                opening: { _ in .breaking(afterBytes: 1, resetting: false) },
                handler: { _ in LoopbackReply() }
            )
            let transport = AsyncHTTPClientTransport()
            let url = try #require(URL(string: "https://127.0.0.1:\(server.port)/"))
            let error = try await #require(throws: ServiceError.self) {
                _ = try await transport.send(URLRequest(url: url), body: .none, context: CallContext())
            }
            #expect(error.code == .tls)
            #expect(error.progress == .notSent)
            try await transport.shutdown()
        }

        @Test("A deadline that passes while the request waits for a connection proves that nothing was sent")
        func poolWait() async throws {
            let server = try LoopbackServer.start { $0.path == "/ready" ? LoopbackReply(body: "") : .never }
            var configuration = HTTPClient.Configuration()
            configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = 1
            let transport = AsyncHTTPClientTransport(configuration: configuration)
            _ = try await transport.send(URLRequest(url: server.url("/ready")), body: .none, context: CallContext())
            let holder = Task {
                try await transport.send(URLRequest(url: server.url("/held")), body: .none, context: CallContext())
                    .status
            }
            try await server.requests(atLeast: 2)
            let clock = ManualClock()
            let context = CallContext(clock: clock, deadline: clock.now.advanced(by: .seconds(1)))
            let waiter = Task {
                try await transport.send(URLRequest(url: server.url("/waits")), body: .none, context: context).status
            }
            try await clock.waitForSleeps(1)
            clock.advance(by: .seconds(1))
            let error = try await #require(throws: ServiceError.self) { _ = try await waiter.value }
            #expect(error.code == .timeout)
            #expect(error.progress == .notSent)
            holder.cancel()
            _ = await holder.result
            #expect(server.requests.map(\.path) == ["/ready", "/held"])
            try await transport.shutdown()
        }

        @Test(
            "A transport that was shut down says so; a second shutdown does nothing, and a client passed in stays open"
        )
        func shutdown() async throws {
            let server = try LoopbackServer.start { _ in LoopbackReply(body: "here") }
            let own = AsyncHTTPClientTransport()
            try await own.shutdown()
            try await own.shutdown()
            let request = URLRequest(url: server.url())
            let error = try await #require(throws: ServiceError.self) {
                _ = try await own.send(request, body: .none, context: CallContext())
            }
            #expect(error.code == .unsupported)
            let foreign = AsyncHTTPClientTransport(client: .shared)
            try await foreign.shutdown()
            let response = try await foreign.send(request, body: .none, context: CallContext())
            #expect(try await response.body.data() == Data("here".utf8))
        }

        @Test("A request's own stream is sent as it is read")
        func requestStream() async throws {
            let server = try LoopbackServer.start { LoopbackReply(body: "\($0.bodyLength) \($0.isPattern)") }
            let bytes = (0..<4).flatMap { TransferPattern.bytes(50_000, at: $0 * 50_000).array }
            var request = URLRequest(url: server.url())
            request.httpMethod = "POST"
            request.httpBodyStream = InputStream(data: Data(bytes))
            let response = try await Pipeline(transport: AsyncHTTPClientTransport(client: .shared)).send(request)
            #expect(try await response.body.data() == Data("200000 true".utf8))
        }
    }
#endif

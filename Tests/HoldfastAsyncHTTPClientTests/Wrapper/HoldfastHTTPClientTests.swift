// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if AsyncHTTPClient
    import AsyncHTTPClient
    import Foundation
    import Holdfast
    import HoldfastAsyncHTTPClient
    import HoldfastTestKit
    import HoldfastTesting
    import Logging
    import NIOCore
    import NIOHTTP1
    import NIOSSL
    import Synchronization
    import Testing

    #if canImport(FoundationNetworking)
        import FoundationNetworking
    #endif

    @Suite("HoldfastHTTPClient has the same call shape as the client", .timeLimit(.minutes(20)))
    struct HoldfastHTTPClientTests {
        private static let fields = [("Cache-Control", "max-age=60"), ("X-Line", "a"), ("x-line", "b")]

        @Test(
            "Status, version, header lines, URL and body match what the client returns, from the network and the store"
        )
        func response() async throws {
            let server = try LoopbackServer.start { _ in LoopbackReply(fields: Self.fields, body: "hello") }
            let plain = try await HTTPClient.shared.execute(
                HTTPClientRequest(url: server.url("/a").absoluteString),
                timeout: .seconds(600)
            )
            let client = HTTPClient.shared.holdfast(cache: .inMemory())
            for _ in 1...2 {
                let request = HTTPClientRequest(url: server.url("/a").absoluteString)
                let response = try await client.execute(request, timeout: .seconds(600))
                #expect(response.status == plain.status)
                #expect(response.version == plain.version)
                #expect(response.url == plain.url)
                #expect(response.headers["x-line"] == ["a", "b"])
                #expect(response.headers.contains { $0.name == "x-line" && $0.value == "b" })
                #expect(try await response.body.collect(upTo: 5) == ByteBuffer(string: "hello"))
            }
            #expect(server.requests.count == 2)
        }

        @Test("A client certificate does not follow a redirect to another origin")
        func certificateStays() async throws {
            let other = try await HTTP2Origin.start(
                LoopbackScript { _ in LoopbackReply(body: "b") },
                asksCertificate: true
            )
            let target = other.url("/").absoluteString
            let first = try await HTTP2Origin.start(
                LoopbackScript { _ in LoopbackReply(302, fields: [("Location", target)]) },
                asksCertificate: true
            )
            var request = HTTPClientRequest(url: first.url("/").absoluteString)
            var tls = try LoopbackCertificate.trustingConfiguration()
            tls.certificateChain = [.certificate(try LoopbackCertificate.certificate())]
            tls.privateKey = .privateKey(try LoopbackCertificate.key())
            request.tlsConfiguration = tls
            _ = try? await HTTPClient.shared.holdfast().execute(request, timeout: .seconds(600))
            #expect(first.requests.count == 1)
            #expect(other.requests.isEmpty)
            await first.stop()
            await other.stop()
        }

        @Test("A body that is too long throws the client's error, and iterating yields the client's buffers")
        func body() async throws {
            let server = try LoopbackServer.start { _ in
                LoopbackReply(framing: .chunked, steps: [.send("one"), .send("two")])
            }
            let client = HTTPClient.shared.holdfast()
            let request = HTTPClientRequest(url: server.url().absoluteString)
            let first = try await client.execute(request, deadline: .distantFuture)
            await #expect(throws: NIOTooManyBytesError.self) { try await first.body.collect(upTo: 5) }
            var text = ""
            for try await buffer in try await client.execute(request, deadline: .distantFuture).body {
                text += String(buffer: buffer)
            }
            #expect(text == "onetwo")
        }

        @Test("Repeated request lines are joined, Cookie with semicolons (RFC 9110 §5.3, RFC 6265 §5.4)")
        func requestLines() async throws {
            let server = try LoopbackServer.start { _ in LoopbackReply() }
            var request = HTTPClientRequest(url: server.url().absoluteString)
            request.method = .RAW(value: "PURGE")
            request.headers = [
                "Accept": "a", "X": "1", "accept": "b", "Cookie": "c=1", "cookie": "d=2", "Content-Length": "9",
            ]
            _ = try await HTTPClient.shared.holdfast().execute(request, timeout: .seconds(600))
            let sent = try #require(server.requests.first)
            #expect(sent.method == "PURGE")
            #expect(sent.values(of: "Accept") == ["a, b"])
            #expect(sent.values(of: "Cookie") == ["c=1; d=2"])
            #expect(sent.values(of: "X") == ["1"])
            #expect(sent.values(of: "Content-Length").contains("9") == false)
        }

        /// A request body, how it is framed, and how often it may be sent.
        struct BodyCase: Sendable, CustomStringConvertible {
            let description: String
            let isKnown: Bool
            let sends: Int
            let body: HTTPClientRequest.Body
        }

        static let bodies: [BodyCase] = {
            let text = "hello"
            let stream = AsyncStream<ByteBuffer> { continuation in
                continuation.yield(ByteBuffer(string: "hel"))
                continuation.yield(ByteBuffer(string: "lo"))
                continuation.finish()
            }
            let other = AsyncStream<ByteBuffer> { continuation in
                continuation.yield(ByteBuffer(string: "hello"))
                continuation.finish()
            }
            return [
                BodyCase(description: "buffer", isKnown: true, sends: 2, body: .bytes(ByteBuffer(string: text))),
                BodyCase(description: "array", isKnown: true, sends: 2, body: .bytes(Array(text.utf8))),
                BodyCase(
                    description: "sequence",
                    isKnown: false,
                    sends: 1,
                    body: .bytes(Letters(rest: Array(text.utf8)), length: .unknown)
                ),
                BodyCase(
                    description: "stream",
                    isKnown: true,
                    sends: 1,
                    body: .stream(stream, length: .known(Int64(5)))
                ),
                BodyCase(description: "endless", isKnown: false, sends: 1, body: .stream(other, length: .unknown)),
            ]
        }()

        @Test("A body in memory is sent again, a stream is not, and each keeps its framing", arguments: bodies)
        func requestBody(_ form: BodyCase) async throws {
            let server = try LoopbackServer.start { _ in LoopbackReply(503, body: "no") }
            var configuration = PipelineConfiguration()
            configuration.clock = ManualClock(autoAdvances: true)
            configuration.attemptTimeout = nil
            let client = HTTPClient.shared.holdfast(
                retrierFactory: AnyRetrierFactory { _ in OneRetry() },
                configuration: configuration
            )
            var request = HTTPClientRequest(url: server.url().absoluteString)
            request.method = .PUT
            request.body = form.body
            let response = try await client.execute(request, deadline: .distantFuture)
            #expect(response.status == .serviceUnavailable)
            #expect(server.requests.count == form.sends)
            for sent in server.requests {
                #expect(sent.text == "hello")
                #expect(sent.values(of: "Content-Length") == (form.isKnown ? ["5"] : []))
            }
        }

        @Test("A request's own TLS configuration applies, and its responses bypass the cache")
        func tlsConfiguration() async throws {
            let origin = try await HTTP2Origin.start(
                LoopbackScript { _ in LoopbackReply(fields: [("Cache-Control", "max-age=60")], body: "secret") }
            )
            let client = HTTPClient.shared.holdfast(cache: .inMemory())
            var request = HTTPClientRequest(url: origin.url("/").absoluteString)
            request.tlsConfiguration = try LoopbackCertificate.trustingConfiguration()
            for _ in 1...2 {
                let response = try await client.execute(request, timeout: .seconds(600))
                #expect(response.version == .http2)
                #expect(try await response.body.collect(upTo: 100) == ByteBuffer(string: "secret"))
            }
            #expect(origin.requests.count == 2)
            var options = CallOptions()
            options.principal = "somebody"
            for _ in 1...2 {
                let response = try await client.respond(to: request, options: options)
                #expect(try await response.body.data() == Data("secret".utf8))
            }
            #expect(origin.requests.count == 3)
            await origin.stop()
        }

        @Test("A request's own TLS configuration does not apply to requests that a prepare step sends")
        func tlsConfigurationIsTheCallsOwn() async throws {
            let origin = try await HTTP2Origin.start(LoopbackScript { _ in LoopbackReply(body: "") })
            let transport = AsyncHTTPClientTransport()
            let tokenCode = Mutex<ServiceError.Code?>(nil)
            var configuration = PipelineConfiguration()
            configuration.prepare.append { _, _ in
                do {
                    _ = try await Pipeline(transport: transport).send(URLRequest(url: origin.url("/token")))
                } catch let error as ServiceError {
                    tokenCode.withLock { $0 = error.code }
                }
            }
            let client = HoldfastHTTPClient(Pipeline(transport: transport, configuration: configuration))
            var request = HTTPClientRequest(url: origin.url("/").absoluteString)
            request.tlsConfiguration = try LoopbackCertificate.trustingConfiguration()
            _ = try await client.execute(request, timeout: .seconds(600))
            #expect(tokenCode.withLock { $0 } == .certificate)
            #expect(origin.requests.count == 1)
            try await transport.shutdown()
            await origin.stop()
        }

        @Test("A pipeline that cannot pass on a TLS configuration refuses the request")
        func refusedTLSConfiguration() async throws {
            let transport = ScriptedTransport([.respond(200)])
            let client = HoldfastHTTPClient(Pipeline(transport: transport))
            var request = HTTPClientRequest(url: "https://localhost/")
            request.tlsConfiguration = .makeClientConfiguration()
            let error = await #expect(throws: ServiceError.self) {
                try await client.execute(request, timeout: .seconds(1))
            }
            #expect(error?.code == .unsupported)
            #expect(transport.sent.isEmpty)
        }

        @Test("Errors are the client's own where it has a matching one")
        func errors() async throws {
            let port = try LoopbackServer.refusingPort()
            let transport = AsyncHTTPClientTransport()
            let client = HoldfastHTTPClient(Pipeline(transport: transport))
            await #expect(throws: HTTPClientError.invalidURL) {
                try await client.execute(HTTPClientRequest(url: ""), timeout: .seconds(1))
            }
            await #expect(throws: HTTPClientError.unsupportedScheme("ftp")) {
                try await client.execute(HTTPClientRequest(url: "ftp://localhost/"), timeout: .seconds(1))
            }
            await #expect(throws: HTTPClientError.deadlineExceeded) {
                try await client.execute(HTTPClientRequest(url: "http://localhost/"), deadline: .now() - .seconds(1))
            }
            let refused = HTTPClientRequest(url: "http://127.0.0.1:\(port)/")
            do {
                _ = try await client.execute(refused, timeout: .seconds(600))
                Issue.record("nobody listens there")
            } catch {
                #expect(!(error is ServiceError))
            }
            let error = await #expect(throws: ServiceError.self) { try await client.respond(to: refused) }
            #expect(error?.code == .connect)
            try await transport.shutdown()
        }

        @Test(
            "A field that no request may have throws the client's error and is not dropped silently",
            arguments: ["X\r\nY", "", "X Y", "X"],
            ["1", "1\r\nZ: 2", "1\n", "\0"]
        )
        func badFields(_ name: String, _ value: String) async throws {
            let server = try LoopbackServer.start { _ in LoopbackReply() }
            var request = HTTPClientRequest(url: server.url("/").absoluteString)
            request.headers.add(name: name, value: value)
            let client = HTTPClient.shared.holdfast()
            guard name != "X" || value != "1" else { return }
            let error = await #expect(throws: HTTPClientError.self) {
                try await client.execute(request, timeout: .minutes(5))
            }
            #expect(error == (name == "X" ? .invalidHeaderFieldValues([value]) : .invalidHeaderFieldNames([name])))
            #expect(server.requests.isEmpty)
        }

        @Test("Without a matching client error a ServiceError is thrown; a redirect loop has a matching one")
        func otherErrors() async throws {
            let throttled = ScriptedTransport([.fail(ServiceError(.throttled, "later"))])
            let request = HTTPClientRequest(url: "http://localhost/")
            let error = await #expect(throws: ServiceError.self) {
                try await HoldfastHTTPClient(Pipeline(transport: throttled)).execute(request, timeout: .seconds(600))
            }
            #expect(error?.code == .throttled)
            let moving = ScriptedTransport([.respond(302, ["Location": "/"])], repeatsLastStep: true)
            await #expect(throws: HTTPClientError.redirectLimitReached) {
                try await HoldfastHTTPClient(Pipeline(transport: moving)).execute(request, timeout: .seconds(600))
            }
        }

        @Test("A cancelled call throws CancellationError")
        func cancellation() async throws {
            let server = try LoopbackServer.start { _ in .never }
            let client = HTTPClient.shared.holdfast()
            let call = Task {
                try await client.execute(HTTPClientRequest(url: server.url().absoluteString), deadline: .distantFuture)
                    .status
            }
            try await server.requests(atLeast: 1)
            call.cancel()
            await #expect(throws: CancellationError.self) { try await call.value }
        }

        @Test("The caller's logger receives what the client logs")
        func logger() async throws {
            let server = try LoopbackServer.start { _ in LoopbackReply() }
            let heard = CountWatch()
            var logger = Logger(label: "test") { _ in HearingLogHandler(heard: heard) }
            logger.logLevel = .debug
            let request = HTTPClientRequest(url: server.url().absoluteString)
            _ = try await HTTPClient.shared.holdfast().execute(request, timeout: .seconds(600), logger: logger)
            #expect(heard.count > 0)
        }
    }

    /// A sequence that is nothing more.
    private struct Letters: Sequence, IteratorProtocol, Sendable {
        var rest: [UInt8]

        mutating func next() -> UInt8? {
            rest.isEmpty ? nil : rest.removeFirst()
        }
    }

    /// Sends once more, whatever happened.
    private struct OneRetry: Retrier {
        func retry(
            _ request: URLRequest,
            after attempt: FailedAttempt,
            context: CallContext
        ) async -> RetryDecision { .retry(after: .zero) }
    }

    private struct HearingLogHandler: LogHandler {
        let heard: CountWatch
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.debug

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            heard.increment()
        }
    }
#endif

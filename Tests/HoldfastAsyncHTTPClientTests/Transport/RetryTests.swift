// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if AsyncHTTPClient
    import AsyncHTTPClient
    import Foundation
    import Holdfast
    import HoldfastAsyncHTTPClient
    import HoldfastTestKit
    import HoldfastTesting
    import NIOHTTP2
    import Synchronization
    import Testing

    #if canImport(FoundationNetworking)
        import FoundationNetworking
    #endif

    @Suite("Retries over AsyncHTTPClient", .timeLimit(.minutes(20)))
    struct RetryTests {
        private func pipeline(_ transport: AsyncHTTPClientTransport, _ cache: HTTPCache? = nil) -> Pipeline {
            var configuration = PipelineConfiguration()
            configuration.attemptTimeout = nil
            configuration.clock = ManualClock(autoAdvances: true)
            return Pipeline(transport: transport, cache: cache, retrierFactory: .default, configuration: configuration)
        }

        private func transport() throws -> AsyncHTTPClientTransport {
            var configuration = HTTPClient.Configuration()
            configuration.tlsConfiguration = try LoopbackCertificate.trustingConfiguration()
            return AsyncHTTPClientTransport(configuration: configuration)
        }

        private func post(_ url: URL) -> URLRequest {
            var request = URLRequest(url: url)
            request.httpMethod = "POST"
            return request
        }

        @Test(
            "A 503 with Retry-After is retried, and the response is cached",
            arguments: [OriginFactory.http1, .http2]
        )
        func throttled(_ factory: OriginFactory) async throws {
            let origin = try await factory.start(
                LoopbackScript { request in
                    request.number == 0
                        ? LoopbackReply(503, fields: [("Retry-After", "1")], body: "later")
                        : LoopbackReply(fields: [("Cache-Control", "max-age=60")], body: "now")
                }
            )
            let transport = try transport()
            let pipeline = pipeline(transport, .default)
            for source in [ResponseSource.network(attempts: 2), .fresh] {
                let response = try await pipeline.send(URLRequest(url: origin.url("/")))
                #expect(response.source == source)
                #expect(try await response.body.data() == Data("now".utf8))
            }
            #expect(origin.requests.count == 2)
            try await transport.shutdown()
            await origin.stop()
        }

        @Test("A POST that failed on a reused connection is sent once", arguments: [OriginFactory.http1, .http2])
        func brokenPost(_ factory: OriginFactory) async throws {
            let origin = try await factory.start(
                LoopbackScript { request in
                    request.path == "/first" ? LoopbackReply(body: "first") : LoopbackReply(before: [.reset])
                }
            )
            let transport = try transport()
            let pipeline = pipeline(transport)
            _ = try await pipeline.send(URLRequest(url: origin.url("/first"))).body.data()
            let error = try await #require(throws: ServiceError.self) {
                _ = try await pipeline.send(post(origin.url("/second")), body: .data(Data("x".utf8)))
            }
            #expect(error.code == .connectionLost)
            #expect(origin.requests.filter { $0.path == "/second" }.count == 1)
            try await transport.shutdown()
            await origin.stop()
        }

        @Test(
            "A POST on a refused stream is sent again, one on a cancelled stream is not (RFC 9113 §8.7)",
            arguments: [(HTTP2ErrorCode.refusedStream, 2), (.cancel, 1), (.internalError, 1)]
        )
        func streamReset(_ code: HTTP2ErrorCode, _ sends: Int) async throws {
            let script = LoopbackScript { request in
                request.number == 0 ? LoopbackReply(before: [.reset]) : LoopbackReply(body: "done")
            }
            let origin = try await HTTP2Origin.start(script) { _ in .reset(code) }
            let transport = try transport()
            let response = try? await pipeline(transport).send(post(origin.url("/")), body: .data(Data("x".utf8)))
            #expect((response != nil) == (sends == 2))
            #expect(origin.requests.count == sends)
            try await transport.shutdown()
            await origin.stop()
        }

        @Test(
            "A POST whose response had begun is never sent again, whatever code its stream is reset with",
            arguments: [HTTP2ErrorCode.refusedStream, .cancel],
            [true, false]
        )
        func resetAfterHead(_ code: HTTP2ErrorCode, _ checksAttempts: Bool) async throws {
            let script = LoopbackScript { _ in
                LoopbackReply(framing: .length(2_000), steps: [.pattern(1_000), .reset])
            }
            let origin = try await HTTP2Origin.start(script) { _ in .reset(code) }
            let transport = try transport()
            var options = CallOptions()
            var acceptance = Acceptance { response in
                response.body = ResponseBody(try await response.body.collect())
            }
            acceptance.checksAttempts = checksAttempts
            options.acceptance = acceptance
            let error = try await #require(throws: ServiceError.self) {
                let body = RequestBody.data(Data("x".utf8))
                let response = try await pipeline(transport).send(post(origin.url("/")), body: body, options: options)
                _ = try await response.body.data()
            }
            #expect(error.progress ?? .notSent >= .headReceived)
            #expect(origin.requests.count == 1)
            try await transport.shutdown()
            await origin.stop()
        }

        /// SwiftNIO tells of such a stream with the code CANCEL, which proves nothing.
        @Test(
            "A GET that a GOAWAY left unprocessed is sent again, a POST is not",
            arguments: [("GET", 2), ("POST", 1)]
        )
        func goAway(_ method: String, _ sends: Int) async throws {
            let script = LoopbackScript { request in
                request.number == 0 ? LoopbackReply(before: [.reset]) : LoopbackReply(body: "done")
            }
            let origin = try await HTTP2Origin.start(script) { _ in .goAway }
            let transport = try transport()
            var request = URLRequest(url: origin.url("/"))
            request.httpMethod = method
            let response = try? await pipeline(transport).send(request)
            #expect(try await response?.body.data() == (sends == 2 ? Data("done".utf8) : nil))
            #expect(origin.record.connectionCount == sends)
            #expect(origin.requests.count == sends)
            try await transport.shutdown()
            await origin.stop()
        }
    }
#endif

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if HTTPTypes
    import Foundation
    import HTTPTypes
    import Holdfast
    import HoldfastHTTPTypes
    import HoldfastSemantics
    import HoldfastTesting
    import Testing

    #if canImport(FoundationNetworking)
        import FoundationNetworking
    #endif

    @Suite("A pipeline called with HTTPRequest", .timeLimit(.minutes(20)))
    struct PipelineCallTests {
        static let request = HTTPRequest(
            method: .get,
            scheme: "https",
            authority: "example.com",
            path: "/a?b=c",
            headerFields: [.accept: "text/plain"]
        )

        @Test("The request arrives unchanged, and head and body come back")
        func call() async throws {
            let transport = ScriptedTransport([.stream(203, ["X-A": "1", "X-A": "2"], chunks: ["he", "llo"])])
            let (head, body) = try await Pipeline(transport: transport).send(Self.request)
            #expect(head.status.code == 203)
            #expect(head.headerFields[values: try #require(HTTPField.Name("X-A"))] == ["1", "2"])
            #expect(try await body.data() == Data("hello".utf8))
            let sent = try #require(transport.sent.first).request
            #expect(sent.url?.absoluteString == "https://example.com/a?b=c")
            #expect(sent.value(forHTTPHeaderField: "Accept") == "text/plain")
        }

        @Test("The cache answers the second call, and options reach the pipeline")
        func cached() async throws {
            let transport = ScriptedTransport([.respond(200, ["Cache-Control": "max-age=60"], body: "one")])
            let pipeline = Pipeline(transport: transport, cache: .inMemory())
            for _ in 0..<2 {
                let (data, head) = try await pipeline.data(for: Self.request)
                #expect(String(decoding: data, as: UTF8.self) == "one")
                #expect(head.status == .ok)
            }
            #expect(transport.sent.count == 1)
            var options = CallOptions()
            options.cache = .onlyIfCached
            let (_, body) = try await pipeline.send(Self.request, options: options)
            #expect(try await body.data() == Data("one".utf8))
        }

        @Test("The call's timeout covers the content too")
        func deadline() async throws {
            final class Endless: ByteSource {
                let reading: CountWatch
                init(_ reading: CountWatch) { self.reading = reading }
                func next() async throws -> ByteChunk? {
                    reading.increment()
                    try await CountWatch().wait(for: 1)
                    return nil
                }
                func cancel() {}
            }
            struct Silent: Transport {
                let reading = CountWatch()
                func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
                    Response(status: .ok, body: ResponseBody(Endless(reading)))
                }
            }
            let clock = ManualClock()
            var configuration = PipelineConfiguration()
            configuration.clock = clock
            configuration.attemptTimeout = nil
            let transport = Silent()
            let pipeline = Pipeline(transport: transport, configuration: configuration)
            var options = CallOptions()
            options.timeout = .seconds(5)
            let call = Task { [options] in try await pipeline.data(for: Self.request, options: options) }
            try await transport.reading.wait(for: 1)
            clock.advance(by: .seconds(5))
            let error = await #expect(throws: ServiceError.self) { try await call.value }
            #expect(error?.code == .deadlineExceeded)
        }

        @Test("upload sends its bytes or a file, and sends them again after a 503")
        func upload() async throws {
            let transport = ScriptedTransport([.respond(503), .respond(200, body: "a"), .respond(200, body: "b")])
            var configuration = PipelineConfiguration()
            configuration.clock = ManualClock(autoAdvances: true)
            let pipeline = Pipeline(transport: transport, retrierFactory: .default, configuration: configuration)
            var request = Self.request
            request.method = .put
            let (data, head) = try await pipeline.upload(for: request, from: Data("content".utf8))
            #expect(head.status == .ok)
            #expect(data == Data("a".utf8))
            let file = FileManager.default.temporaryDirectory.appendingPathComponent("holdfast-\(UUID().uuidString)")
            try Data("filed".utf8).write(to: file)
            defer { try? FileManager.default.removeItem(at: file) }
            _ = try await pipeline.upload(for: request, fromFile: file)
            let texts = transport.sent.map { String(decoding: $0.body?.array ?? [], as: UTF8.self) }
            #expect(texts == ["content", "content", "filed"])
        }

        @Test("A request that has no URL fails before anything is sent")
        func refused() async throws {
            let transport = ScriptedTransport([])
            let request = HTTPRequest(method: .get, scheme: nil, authority: nil, path: "/a")
            await #expect(throws: ServiceError.self) { try await Pipeline(transport: transport).data(for: request) }
            #expect(transport.sent.isEmpty)
        }

        @Test("A status of four digits fails the call")
        func status() async {
            let transport = ScriptedTransport([.respond(1_000)])
            let error = await #expect(throws: ServiceError.self) {
                try await Pipeline(transport: transport).data(for: Self.request)
            }
            #expect(error?.code == .protocolError)
        }

        @Test("Over sockets, a 304 renews the stored body and a 503 is retried")
        func loopback() async throws {
            let server = try LoopbackServer.start { request in
                switch request.number {
                case 0: LoopbackReply(503, fields: [("Retry-After", "0")])
                case 1: LoopbackReply(fields: [("ETag", "\"v\""), ("Cache-Control", "no-cache")], body: "weather")
                default: LoopbackReply(request.values(of: "If-None-Match") == ["\"v\""] ? 304 : 500)
                }
            }
            defer { server.stop() }
            let transport = URLSessionTransport()
            defer { transport.invalidate() }
            let pipeline = Pipeline(transport: transport, cache: .inMemory(), retrierFactory: .default)
            let base = try #require(URL(string: "http://127.0.0.1:\(server.port)/api/"))
            let request = HTTPRequest(method: .get, scheme: nil, authority: nil, path: "/odd%2Fpath/ä?x=%41")
            for _ in 0..<2 {
                let (head, body) = try await pipeline.send(request, baseURL: base)
                #expect(head.status == .ok)
                #expect(try await body.data() == Data("weather".utf8))
            }
            #expect(server.requests.map(\.target) == Array(repeating: "/api/odd%2Fpath/%C3%A4?x=A", count: 3))
        }
    }
#endif

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if HTTPTypes
    import Foundation
    import HTTPTypes
    import Holdfast
    import HoldfastHTTPTypes
    import HoldfastSemantics
    import HoldfastTesting
    import Synchronization
    import Testing

    #if canImport(FoundationNetworking)
        import FoundationNetworking
    #endif

    @testable import WeatherExample

    /// The calls among the blocks of docs/clients/http-types.md, as they stand there; the transport is that of the example.
    @Suite("docs/clients/http-types.md", .timeLimit(.minutes(20)))
    struct HTTPTypesPageTests {
        @Test("The call with HTTPRequest")
        func call() async throws {
            let transport = ScriptedTransport([.respond(body: "21 °C"), .respond(201), .respond(body: "streamed")])
            let pipeline = Pipeline(transport: transport, cache: .inMemory(), retrierFactory: .default)
            let request = HTTPRequest(method: .get, scheme: "https", authority: "api.example.com", path: "/weather")
            let (data, response) = try await pipeline.data(for: request)
            #expect(response.status == .ok)
            #expect(data == Data("21 °C".utf8))

            let report = Data("{}".utf8)
            var post = request
            post.method = .post
            let (_, created) = try await pipeline.upload(for: post, from: report)
            #expect(created.status == .created)

            var bytes: [UInt8] = []
            func consume(_ chunk: some Sequence<UInt8>) { bytes += chunk }
            let (head, body) = try await pipeline.send(request)
            for try await chunk in body { consume(chunk) }
            #expect(head.status == .ok)
            #expect(String(decoding: bytes, as: UTF8.self) == "streamed")
        }

        @Test("Conversions")
        func conversions() throws {
            let request = HTTPRequest(method: .get, scheme: nil, authority: nil, path: "/stations?near=52,13")
            let apiURL = try #require(URL(string: "https://api.example.com/v2"))
            let urlRequest = try URLRequest(request, baseURL: apiURL)  // https://api.example.com/v2/stations?near=52,13
            let again = try HTTPRequest(urlRequest)
            let fields = HeaderFields(request.headerFields)
            let httpFields = HTTPFields(fields)
            #expect(urlRequest.url?.absoluteString == "https://api.example.com/v2/stations?near=52,13")
            #expect(again.authority == "api.example.com")
            #expect(httpFields.isEmpty)
        }

        @Test("A generated client's calls go through the transport, stream both ways, are cached and are retried")
        func transport() async throws {
            let server = try LoopbackServer.start { request in
                switch (request.method, request.number) {
                case (_, 0): LoopbackReply(503, fields: [("Retry-After", "0")])
                case ("PUT", _): LoopbackReply(200, framing: .chunked, steps: [.send("got "), .send(request.text)])
                default: LoopbackReply(fields: [("Cache-Control", "max-age=60")], body: "list")
                }
            }
            defer { server.stop() }
            let session = URLSessionTransport()
            defer { session.invalidate() }
            let pipeline = Pipeline(transport: session, cache: .inMemory(), retrierFactory: .default)
            let client = PipelineTransport(pipeline: pipeline)
            let base = server.url("/api")
            let put = HTTPRequest(method: .put, scheme: nil, authority: nil, path: "/pets/1")
            let content = HTTPBody(Chunks(["cat", " and dog"]), length: .unknown, iterationBehavior: .multiple)
            let (head, body) = try await client.send(put, body: content, baseURL: base, operationID: "putPet")
            #expect(head.status == .ok)
            #expect(try await String(collecting: try #require(body)) == "got cat and dog")
            let get = HTTPRequest(method: .get, scheme: nil, authority: nil, path: "/pets")
            for _ in 0..<2 {
                let (_, list) = try await client.send(get, body: nil, baseURL: base, operationID: "listPets")
                #expect(try await String(collecting: try #require(list)) == "list")
            }
            #expect(server.requests.map(\.target) == ["/api/pets/1", "/api/pets/1", "/api/pets"])
            #expect(server.requests.map(\.text) == ["cat and dog", "cat and dog", ""])
        }

        @Test("Content that can be iterated once is sent once, and the operation's name reaches the pipeline")
        func single() async throws {
            let names = Mutex<[String?]>([])
            let transport = ScriptedTransport([.respond(503), .respond(200)])
            var configuration = PipelineConfiguration()
            configuration.clock = ManualClock(autoAdvances: true)
            configuration.prepare = [{ _, context in names.withLock { $0.append(context.options.operationName) } }]
            var rules = RetryRules.default
            rules.replayLimit = 0
            let pipeline = Pipeline(transport: transport, retrierFactory: .backoff(rules), configuration: configuration)
            let client = PipelineTransport(pipeline: pipeline)
            let put = HTTPRequest(method: .put, scheme: nil, authority: nil, path: "/pets/1")
            let base = try #require(URL(string: "https://h"))
            let content = HTTPBody(Chunks(["cat"]), length: .known(3), iterationBehavior: .single)
            let (head, _) = try await client.send(put, body: content, baseURL: base, operationID: "putPet")
            #expect(head.status.code == 503)
            #expect(transport.sent.count == 1)
            #expect(names.withLock { $0 } == ["putPet"])
        }
    }
#endif

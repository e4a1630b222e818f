// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import Foundation
    import HoldfastSemantics
    import Testing

    @testable import Holdfast
    @testable import HoldfastProxy

    #if canImport(FoundationNetworking)
        import FoundationNetworking
    #endif

    @Suite("The inspector's server", .timeLimit(.minutes(20)))
    struct InspectorTests {
        private static func request(_ port: Int, _ path: String, _ method: String = "GET") throws -> URLRequest {
            var request = URLRequest(url: try #require(URL(string: "http://127.0.0.1:\(port)\(path)")))
            request.httpMethod = method
            request.timeoutInterval = 900
            return request
        }

        private static func send(_ request: URLRequest) async throws -> (
            status: Int, fields: HTTPURLResponse, body: String
        ) {
            let session = URLSession(configuration: .ephemeral)
            defer { session.finishTasksAndInvalidate() }
            let (data, response) = try await session.data(for: request)
            let answer = try #require(response as? HTTPURLResponse)
            return (answer.statusCode, answer, String(decoding: data, as: UTF8.self))
        }

        @Test("The 30,000th answer costs what the first does", .timeLimit(.minutes(1)))
        func manyAnswers() async throws {
            let responder = DeferredResponder()
            let target = try Array("/healthz".utf8).withUnsafeBytes { try RequestTarget($0, method: .get) }
            let request = ClientRequest(method: .get, target: target, fields: HeaderFields())
            #expect(await responder.answer(request).status == .serviceUnavailable)
            responder.open { _ in Response(status: .ok) }
            for _ in 0..<30_000 { #expect(await responder.answer(request).status == .ok) }
        }

        @Test("It serves the page, and only a request with the page's token may change anything")
        func serving() async throws {
            let bench = InspectorBench()
            try await bench.load("http://origin.example/a")
            let inspector = Inspector(model: bench.model)
            let port = try await inspector.start(port: 0)
            #expect(inspector.port == port)
            let page = try await Self.send(try Self.request(port, "/"))
            #expect(page.status == 200)
            #expect(page.fields.value(forHTTPHeaderField: "Content-Type") == "text/html; charset=utf-8")
            #expect(page.fields.value(forHTTPHeaderField: "X-Frame-Options") == "DENY")
            let word = try #require(page.body.firstMatch(of: /holdfast-word" content="([0-9a-f]{64})"/)?.output.1)
            #expect(try await Self.send(try Self.request(port, "/api/entries")).body.contains("origin.example"))

            var order = try Self.request(port, "/api/purge", "POST")
            order.httpBody = Data(#"{"selection": "all", "soft": false}"#.utf8)
            order.setValue("application/json", forHTTPHeaderField: "Content-Type")
            #expect(try await Self.send(order).status == 403)
            order.setValue(String(word), forHTTPHeaderField: "X-Holdfast-Inspector")
            order.setValue("http://evil.example", forHTTPHeaderField: "Origin")
            #expect(try await Self.send(order).status == 403)
            #expect(bench.cache.store.statistics.entryCount == 1)
            order.setValue("http://127.0.0.1:\(port)", forHTTPHeaderField: "Origin")
            #expect(try await Self.send(order).status == 200)
            #expect(bench.cache.store.statistics.entryCount == 0)
            await inspector.stop()
            #expect(inspector.port == nil)
        }

        @Test("HEAD gets no body, but the length that it would have")
        func head() async throws {
            let inspector = Inspector(model: InspectorBench().model)
            let port = try await inspector.start(port: 0)
            let head = try await Self.send(try Self.request(port, "/", "HEAD"))
            #expect(head.status == 200)
            #expect(head.body.isEmpty)
            #expect((head.fields.value(forHTTPHeaderField: "Content-Length").flatMap { Int($0) } ?? 0) > 10_000)
            await inspector.stop()
        }

        @Test("Each start makes a new token; a taken port is an error, and stopping a server frees its port")
        func starts() async throws {
            let inspector = Inspector(model: InspectorBench().model)
            let port = try await inspector.start(port: 0)
            let other = Inspector(model: InspectorBench().model)
            await #expect(throws: (any Error).self) { try await other.start(port: port) }
            let first = try await Self.send(try Self.request(port, "/")).body
            await inspector.stop()
            await inspector.stop()
            let again = try await inspector.start(port: 0)
            #expect(try await Self.send(try Self.request(again, "/")).body != first)
            await inspector.stop()
            await #expect(throws: URLError.self) { try await Self.send(try Self.request(again, "/")) }
        }
    }
#endif

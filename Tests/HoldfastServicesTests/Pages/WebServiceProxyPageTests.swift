// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastServices
import HoldfastTesting
import Synchronization
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

private struct Item: Codable, Sendable, Equatable {
    var name: String
    var added: Date
}

/// The code of docs/services/web-service-proxy.md, block by block.
@Suite("The page on WebServiceProxy", .timeLimit(.minutes(20)))
struct WebServiceProxyPageTests {
    /// Answers the calls of the page; each path fails once before it succeeds.
    private func startServer() throws -> LoopbackServer {
        let asked = Mutex<Set<String>>([])
        return try LoopbackServer.start { request in
            let isFirst = asked.withLock { $0.insert(request.path).inserted }
            let json = [("Content-Type", "application/json"), ("Cache-Control", "max-age=60")]
            switch (request.method, request.path) {
            case ("GET", _) where isFirst: return LoopbackReply(503)
            case ("GET", "/test/fibonacci"): return LoopbackReply(fields: json, body: "[0, 1, 1, 2, 3, 5, 8, 13]")
            case ("GET", "/items"): return LoopbackReply(fields: json, body: #"[{"name":"hat","added":1700000000123}]"#)
            case ("DELETE", "/items/8"):
                return LoopbackReply(404, fields: [("Content-Type", "text/plain")], body: "no item 8")
            case ("POST", "/rows"):
                return LoopbackReply(fields: [("Content-Type", "text/csv; charset=utf-8")], body: "1;hat\n2;cap")
            case ("POST", "/items"): return LoopbackReply(201, fields: json, bytes: request.body)
            default: return LoopbackReply(204)
            }
        }
    }

    private func makeProxy(_ baseURL: URL) -> WebServiceProxy {
        let proxy = WebServiceProxy(session: .shared, baseURL: baseURL, cache: .default, retrierFactory: .default)
        return proxy
    }

    @Test("A first call")
    func firstCall() async throws {
        let server = try startServer()
        defer { server.stop() }
        let baseURL = server.url("/")
        var printed: [String] = []
        func print(_ value: Any) { printed.append("\(value)") }

        let webServiceProxy = WebServiceProxy(session: URLSession.shared, baseURL: baseURL, retrierFactory: .default)

        do {
            // GET test/fibonacci?count=8
            let response: [Int] = try await webServiceProxy.invoke(
                .get,
                path: "test/fibonacci",
                arguments: ["count": 8]
            )
            print(response)  // [0, 1, 1, 2, 3, 5, 8, 13]
        } catch {
            print(error.localizedDescription)
        }

        #expect(printed == ["[0, 1, 1, 2, 3, 5, 8, 13]"])
        #expect(server.requests.map(\.target) == ["/test/fibonacci?count=8", "/test/fibonacci?count=8"])
    }

    @Test("The five forms")
    func forms() async throws {
        let server = try startServer()
        defer { server.stop() }
        let proxy = makeProxy(server.url("/"))
        let item = Item(name: "cap", added: Date(timeIntervalSince1970: 1_700_000_000.123))
        let csv = Data("3;tie".utf8)
        let yesterday = Date(timeIntervalSince1970: 1_699_913_600)

        // Nothing comes back.
        try await proxy.invoke(.delete, path: "items/7")

        // A value goes out as JSON.
        try await proxy.invoke(.put, path: "items/7", body: item)

        // JSON comes back: GET items?since=1699913600000&tag=new&tag=blue
        let items: [Item] = try await proxy.invoke(
            .get,
            path: "items",
            arguments: ["tag": ["new", "blue"], "since": yesterday, "page": WebServiceProxy.undefined]
        )

        // JSON both ways.
        let created: Item = try await proxy.invoke(.post, path: "items", body: item)

        // Content of another kind, and decoding of one's own.
        let rows = try await proxy.invoke(.post, path: "rows", content: csv, contentType: "text/csv") { content, type in
            type == "text/csv" ? String(decoding: content, as: UTF8.self).split(separator: "\n").count : 0
        }

        #expect(items == [Item(name: "hat", added: Date(timeIntervalSince1970: 1_700_000_000.123))])
        #expect(created == item)
        #expect(rows == 2)
        #expect(server.requests[2].target == "/items?since=1699913600000&tag=new&tag=blue")
    }

    @Test("Headers and options")
    func headers() async throws {
        let server = try startServer()
        defer { server.stop() }
        let proxy = makeProxy(server.url("/"))
        let token = "t"

        var authorized = proxy.with(headers: ["Authorization": "Bearer \(token)"])
        authorized.timeout = .seconds(300)
        authorized.options.cache.reload = true
        let items: [Item] = try await authorized.invoke(.get, path: "items")

        #expect(items.count == 1)
        #expect(server.requests.last?.values(of: "Authorization") == ["Bearer t"])
        let again: [Item] = try await authorized.invoke(.get, path: "items")
        #expect(again == items)
        #expect(server.requests.map(\.method) == ["GET", "GET", "GET"])
        #expect(proxy.headers.isEmpty)
    }

    @Test("How a call went")
    func metadata() async throws {
        let server = try startServer()
        defer { server.stop() }
        let baseURL = server.url("/")

        let proxy = WebServiceProxy(session: .shared, baseURL: baseURL, cache: .default, retrierFactory: .default)
        let first: DecodedResponse<[Item]> = try await proxy.response(.get, path: "items")
        let second: DecodedResponse<[Item]> = try await proxy.response(.get, path: "items")
        // first.response.source is .network(attempts: 2), with each attempt in first.response.attempts;
        // second.response.source is .fresh, and second.response.cacheDecision says why.

        #expect(first.value == second.value)
        #expect(first.response.source == .network(attempts: 2))
        #expect(first.response.attempts.map(\.status) == [503, 200])
        #expect(second.response.source == .fresh)
        #expect(second.response.cacheDecision != nil)
    }

    @Test("Errors")
    func errors() async throws {
        let server = try startServer()
        defer { server.stop() }
        let proxy = makeProxy(server.url("/"))
        var printed: [String] = []
        func print(_ values: Any...) { printed.append(values.map { "\($0)" }.joined(separator: " ")) }

        do {
            try await proxy.invoke(.delete, path: "items/8")
        } catch let error as WebServiceError {
            print(error.statusCode, error.localizedDescription)  // 404 no item 8
        } catch let error as URLError where error.code == .timedOut {
            print("too slow, after", error.serviceError?.attempts.count ?? 0, "attempts")
        }

        #expect(printed == ["404 no item 8"])
    }

    @Test("A test without a network")
    func scripted() async throws {
        let baseURL = try url("https://api.example.com/v1")

        let transport = ScriptedTransport([.respond(200, body: "[1, 2]")])
        let proxy = WebServiceProxy(transport: transport, baseURL: baseURL)
        let numbers: [Int] = try await proxy.invoke(.get, path: "numbers")
        #expect(numbers == [1, 2])
        #expect(transport.sent.first?.request.url?.absoluteString == "https://api.example.com/v1/numbers")
    }
}

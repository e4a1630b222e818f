// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastTesting
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The programs of docs/recipes.md, each against a server that counts what arrives.
@Suite("Page: Recipes", .timeLimit(.minutes(20)))
struct RecipesPageTests {
    /// Answers every request with the same fields.
    private func server(_ fields: [(String, String)] = [("Cache-Control", "max-age=60")]) throws -> LoopbackServer {
        try LoopbackServer.start { _ in LoopbackReply(fields: fields, body: "hello") }
    }

    /// Answers `failures` requests with this status, and then as it should.
    private func server(failing failures: Int, with status: Int) throws -> LoopbackServer {
        try LoopbackServer.start { request in
            request.number < failures ? LoopbackReply(status) : LoopbackReply(body: "hello")
        }
    }

    @Test("Ten calls, one request")
    func wrapping() async throws {
        let server = try server()
        let request = URLRequest(url: server.url())
        let cache = HTTPCache.inMemory()
        let client = Pipeline(transport: URLSessionTransport(), cache: cache)
        for _ in 1...10 { _ = try await client.data(for: request) }
        print(cache.statistics.hits)  // 9
        #expect(cache.statistics.hits == 9)
        #expect(server.requests.count == 1)
    }

    @Test("Exponential backoff")
    func backoff() async throws {
        let server = try server(failing: 2, with: 503)
        let request = URLRequest(url: server.url())
        let client = Pipeline(
            transport: URLSessionTransport(),
            retrierFactory: .backoff(
                base: .milliseconds(50),
                cap: .seconds(2),
                attempts: 5,
                retry: [429, 503],
                methods: [.get, .head]
            )
        )
        let response = try await client.send(request)
        print(response.status, response.attempts.count)  // 200 3
        #expect(response.status == .ok && response.attempts.count == 3)
        #expect(server.requests.count == 3)
    }

    @Test("Twenty calls at once")
    func collapsing() async throws {
        let server = try server()
        let request = URLRequest(url: server.url())
        let client = Pipeline(transport: URLSessionTransport(), cache: .inMemory())
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 1...20 { group.addTask { _ = try await client.data(for: request) } }
            try await group.waitForAll()
        }
        #expect(server.requests.count == 1)
    }

    @Test("A cache that outlives the process")
    func disk() async throws {
        let server = try server()
        let request = URLRequest(url: server.url())
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("recipe-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: directory) }
        for _ in 1...2 {
            let cache = try await HTTPCache.onDisk(at: directory, capacity: 256 << 20)
            let client = Pipeline(transport: URLSessionTransport(), cache: cache)
            _ = try await client.data(for: request)
            await client.drain()
            await cache.close()
        }
        #expect(server.requests.count == 1)
    }

    @Test("A server that names no lifetime")
    func lifetime() async throws {
        let server = try server([])
        let request = URLRequest(url: server.url())
        let client = Pipeline(transport: URLSessionTransport(), cache: .inMemory())
        var options = CallOptions()
        options.cache = .lifetime(.seconds(300))
        for _ in 1...5 { _ = try await client.data(for: request, options: options) }
        #expect(server.requests.count == 1)
    }

    @Test("A server that forbids storing")
    func timeToLive() async throws {
        let server = try server([("Cache-Control", "no-store")])
        let request = URLRequest(url: server.url())
        let hook = CachingServiceHook(ttl: .seconds(600))
        let client = Pipeline(transport: URLSessionTransport(), hooks: [hook])
        for _ in 1...5 { _ = try await client.data(for: request) }
        print(hook.cache.statistics.hits)  // 4
        #expect(hook.cache.statistics.hits == 4)
        #expect(server.requests.count == 1)
    }

    @Test("The last good response while the server fails")
    func staleIfError() async throws {
        let server = try LoopbackServer.start { request in
            request.number < 1
                ? LoopbackReply(fields: [("Cache-Control", "max-age=0"), ("ETag", "\"1\"")], body: "hello")
                : LoopbackReply(500)
        }
        let request = URLRequest(url: server.url())
        var options = CacheOptions()
        options.staleIfError = .seconds(86_400)
        let cache = HTTPCache.inMemory(options: options)
        let client = Pipeline(transport: URLSessionTransport(), cache: cache, retrierFactory: .interactive)
        _ = try await client.data(for: request)  // the server is well
        let response = try await client.send(request)  // the server answers 500
        print(response.status, response.source)  // 200 stale
        #expect(response.status == .ok && response.source == .stale)
        #expect(server.requests.count == 4)
    }

    @Test("Pull to refresh")
    func reload() async throws {
        let server = try server()
        let request = URLRequest(url: server.url())
        let client = Pipeline(transport: URLSessionTransport(), cache: .inMemory())
        var reload = CallOptions()
        reload.cache = .reload
        _ = try await client.data(for: request)
        _ = try await client.data(for: request, options: reload)
        _ = try await client.data(for: request)
        #expect(server.requests.count == 2)
    }

    @Test("Only from the cache")
    func onlyIfCached() async throws {
        let server = try server()
        let request = URLRequest(url: server.url())
        let client = Pipeline(transport: URLSessionTransport(), cache: .inMemory())
        var offline = CallOptions()
        offline.cache = .onlyIfCached
        let response = try await client.send(request, options: offline)
        print(response.status)  // 504: nothing is stored yet
        #expect(response.status == .gatewayTimeout)
        #expect(server.requests.isEmpty)
    }

    @Test("Query parameters that do not matter")
    func ignoredParameters() async throws {
        let server = try server()
        var options = CacheOptions()
        options.query = QueryOptions(sortsNames: true, ignoredNames: ["utm_*"])
        let client = Pipeline(transport: URLSessionTransport(), cache: .inMemory(options: options))
        for target in ["/news?page=2&sort=new", "/news?sort=new&page=2", "/news?page=2&sort=new&utm_source=mail"] {
            _ = try await client.data(for: URLRequest(url: server.url(target)))
        }
        #expect(server.requests.count == 1)
    }

    @Test("Rules by route")
    func rules() async throws {
        let server = try LoopbackServer.start { request in
            let type = request.target.hasSuffix(".png") ? "image/png" : "application/json"
            return LoopbackReply(fields: [("Content-Type", type)], body: "hello")
        }
        let rules = """
            {
              "rules": [
                { "paths": ["/account/*"], "neverStore": true },
                { "contentTypes": ["image/*"], "lifetime": "7d" },
                { "paths": ["/api/*"], "lifetime": "5m", "keyFields": ["X-Tenant"] }
              ]
            }
            """
        var options = CacheOptions()
        options.rules = try CacheRules(json: rules.utf8)  // or CacheRules(contentsOf: file)
        let client = Pipeline(transport: URLSessionTransport(), cache: .inMemory(options: options))
        for _ in 0..<2 {
            for path in ["/account/me", "/logo.png"] {
                _ = try await client.data(for: URLRequest(url: server.url(path)))
            }
            for tenant in ["a", "b"] {
                var request = URLRequest(url: server.url("/api/list"))
                request.setValue(tenant, forHTTPHeaderField: "X-Tenant")
                _ = try await client.data(for: request)
            }
        }
        #expect(server.requests.count == 5)
    }

    struct APIKeyHook: SynchronousServiceHook {
        let key: String

        func scheduled(_ request: inout URLRequest, context: inout CallContext) throws -> Response? {
            try request.setField("X-API-Key", to: key)
            return nil
        }
    }

    @Test("A field on every request")
    func hook() async throws {
        let server = try server()
        let request = URLRequest(url: server.url())
        let cache = HTTPCache.inMemory()
        let anna = Pipeline(transport: URLSessionTransport(), cache: cache, hooks: [APIKeyHook(key: "anna")])
        let otto = Pipeline(transport: URLSessionTransport(), cache: cache, hooks: [APIKeyHook(key: "otto")])
        for client in [anna, otto, anna] { _ = try await client.data(for: request) }
        #expect(server.requests.map { $0.values(of: "X-API-Key") } == [["anna"], ["otto"]])
    }

    @Test("Your own response, in three closures")
    func closures() async throws {
        let server = try server()
        let request = URLRequest(url: server.url("/ping"))
        let client = Pipeline(
            transport: URLSessionTransport(),
            hooks: [
                .closures(
                    onSchedule: { request, _ in request.url?.path == "/ping" ? .text("pong") : nil },
                    onFailure: { error, _, _ in
                        print(error)
                        return nil
                    }
                )
            ]
        )
        let (data, _) = try await client.data(for: request)
        print(String(decoding: data, as: UTF8.self))  // pong
        #expect(data == Data("pong".utf8))
        #expect(server.requests.isEmpty)
    }

    @Test("Progress")
    func progress() async throws {
        let server = try server()
        let request = URLRequest(url: server.url())
        let client = Pipeline(transport: URLSessionTransport(), cache: .inMemory())
        let progress = TransferProgress()
        var options = CallOptions()
        options.progress = progress
        let download = Task { [options] in try await client.download(for: request, options: options) }
        for await update in progress.updates { print(update.completed, update.total ?? 0) }  // …, 5 5
        let (file, _) = try await download.value
        #expect(progress.current.completed == 5 && progress.current.total == 5)
        #expect(try Data(contentsOf: file) == Data("hello".utf8))
        try FileManager.default.removeItem(at: file)
        #expect(server.requests.count == 1)
    }

    @Test("Users, and logout")
    func users() async throws {
        let server = try server()
        let request = URLRequest(url: server.url())
        let cache = HTTPCache.inMemory()
        let client = Pipeline(transport: URLSessionTransport(), cache: cache)
        var options = CallOptions()
        options.principal = "user-17"
        _ = try await client.data(for: request, options: options)
        try await cache.remove(.principal("user-17"))
        _ = try await client.data(for: request, options: options)
        #expect(server.requests.count == 2)
    }

    @Test("A POST that may be sent again")
    func idempotentPost() async throws {
        let server = try server(failing: 1, with: 503)
        var request = URLRequest(url: server.url("/orders/17"))
        request.httpMethod = "POST"
        request.httpBody = Data("confirmed".utf8)
        let client = Pipeline(transport: URLSessionTransport(), retrierFactory: .default)
        var options = CallOptions()
        options.isIdempotent = true
        let response = try await client.send(request, options: options)
        print(response.attempts.map(\.status))  // 503, 200
        #expect(response.attempts.map(\.status) == [503, 200])
        #expect(server.requests.map(\.method) == ["POST", "POST"])
    }

    @Test("The hit rate of each origin")
    func hitRates() async throws {
        let server = try server()
        let cache = HTTPCache.inMemory()
        let client = Pipeline(transport: URLSessionTransport(), cache: cache)
        for _ in 1...4 { _ = try await client.data(for: URLRequest(url: server.url())) }
        for origin in cache.originStatistics {
            print(origin.origin ?? "others", origin.statistics.hitRatio, origin.statistics.bytesSaved)
        }
        print(cache.statistics.reasons)
        #expect(cache.originStatistics.first?.statistics.hitRatio == 0.75)
        #expect(cache.statistics.reasons == [.notStored: 1])
    }

    @Test("Code that calls a client, tested without a network")
    func scripted() async throws {
        let request = URLRequest(url: try #require(URL(string: "https://api.example.com/products/7")))
        let transport = ScriptedTransport([.respond(503), .respond(200, ["Cache-Control": "max-age=60"], body: "hat")])
        let clock = ManualClock(autoAdvances: true)
        var configuration = PipelineConfiguration()
        configuration.clock = clock
        let client = Pipeline(
            transport: transport,
            cache: .inMemory(),
            retrierFactory: .default,
            configuration: configuration
        )
        for _ in 1...2 { _ = try await client.data(for: request) }
        print(transport.sent.count)  // 2: the 503 and its retry; the second call is a hit
        #expect(transport.sent.count == 2)
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastTesting
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The code of docs/caching.md, block by block.
@Suite("Page: Caching", .timeLimit(.minutes(20)))
struct CachingPageTests {
    private let request = URLRequest.get("http://origin.example/news/a")
    private let step = ScriptedTransport.Step.respond(200, ["Cache-Control": "max-age=60"], body: "hello")

    /// A cache over an origin that gives one answer for ever.
    private func bench(_ step: ScriptedTransport.Step) -> CacheBench {
        CacheBench(ScriptedTransport([step], repeatsLastStep: true))
    }

    @Test("A cache before URLSession")
    func wrapping() async throws {
        let server = try LoopbackServer.start { _ in
            LoopbackReply(fields: [("Cache-Control", "max-age=60")], body: "hello")
        }
        let folder = try Folder()
        let directory = folder.url.appendingPathComponent("cache")
        let cache = try await HTTPCache.onDisk(at: directory, capacity: 64 << 20)  // or .inMemory(), .tiered(at:)
        let client = Pipeline(transport: URLSessionTransport(), cache: cache)
        for _ in 1...2 { _ = try await client.data(for: URLRequest(url: server.url())) }
        #expect(server.requests.count == 1)
        #expect(cache.statistics.hits == 1)
        await client.drain()
        await cache.close()
    }

    @Test("Why it did that")
    func decision() async throws {
        let bench = CacheBench([step, .respond(200, ["Cache-Control": "no-store"], body: "new")])
        try await bench.load(request)
        bench.clock.advance(by: .seconds(61))
        let client = bench.pipeline
        let response = try await client.send(request)
        print(response.cacheDecision?.description ?? "no cache was asked")
        // miss: stale (RFC 9111 §4.2); not stored: response-no-store (RFC 9111 §5.2.2.5)
        #expect(
            response.cacheDecision?.description
                == "miss: stale (RFC 9111 §4.2); not stored: response-no-store (RFC 9111 §5.2.2.5)"
        )
    }

    @Test("Ignored cookies")
    func ignoredCookies() async throws {
        var options = CacheOptions()
        options.ignoredCookies += ["visit", "ads_*"]
        let cache = HTTPCache(store: MemoryStore(capacity: 64 << 20), options: options)
        let client = Pipeline(transport: ScriptedTransport([step]), cache: cache)
        for number in 1...2 {
            let cookies = ["Cookie": "visit=\(number); ads_1=\(number); AWSALB=\(number)"]
            _ = try await client.data(for: .get("http://origin.example/news/a", cookies))
        }
        #expect(cache.statistics.hits == 1)
    }

    @Test("Rules by route")
    func rules() async throws {
        var options = CacheOptions()
        options.rules = [
            try CacheRule(paths: ["/account/*"], neverStore: true),
            try CacheRule(contentTypes: ["image/*"], lifetime: .seconds(7 * 86_400)),
            try CacheRule(
                hosts: ["*.shop.example"],
                paths: ["/api/*"],
                lifetime: .seconds(300),  // where the server gives none
                staleIfError: .seconds(3_600),
                keyFields: ["X-Tenant"]  // tenants never share a response
            ),
            try CacheRule(query: QueryOptions(ignoredNames: ["utm_*"]), ignoredCookies: ["visit"]),
        ]
        let cache = HTTPCache.inMemory(options: options)
        let transport = ScriptedTransport { _ in .respond(200, body: "x") }
        let client = Pipeline(transport: transport, cache: cache)
        for tenant in ["a", "b", "a", "b"] {
            _ = try await client.data(for: .get("https://eu.shop.example/api/x", ["X-Tenant": tenant]))
        }
        #expect(transport.sent.count == 2)
        for _ in 0..<2 { _ = try await client.data(for: .get("https://eu.shop.example/account/x")) }
        #expect(transport.sent.count == 4)
        let folder = try Folder()
        let file = folder.url.appendingPathComponent("rules.json")
        try Data("{\n  \"rules\": [\n    { \"lifetme\": \"5m\" }\n  ]\n}".utf8).write(to: file)
        let error = #expect(throws: CacheRulesError.self) {
            options.rules = try CacheRules(contentsOf: file)
            // line 3, column 7: "lifetme" is not a member of a rule; the members are: hosts, paths, …
        }
        #expect(
            error?.description.hasPrefix(
                "line 3, column 7: \"lifetme\" is not a member of a rule; the members are: hosts, paths, "
            ) ?? false
        )
    }

    @Test("The example of the reference is valid")
    func rulesPage() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let page = try String(contentsOf: root.appendingPathComponent("docs/reference/rules.md"), encoding: .utf8)
        let lines = page.split(separator: "\n", omittingEmptySubsequences: false)
        let example = try #require(lines.split(separator: "```json").dropFirst().first)
        let json = example.prefix { $0 != "```" }.joined(separator: "\n")
        #expect(try CacheRules(json: json.utf8).rules.count == 3)
    }

    @Test("Rules by route, for keys")
    func keyRules() async throws {
        var options = CacheOptions()
        options.rules = [
            try CacheRule(hosts: ["shop.example"], paths: ["/graphql"], content: .graphQL, cachesPost: true),
            try CacheRule(
                hosts: ["shop.example"],
                query: QueryOptions(sortsNames: true, ignoredNames: ["utm_*"])
            ),
        ]
        let transport = ScriptedTransport([step], repeatsLastStep: true)
        let client = Pipeline(transport: transport, cache: HTTPCache.inMemory(options: options))
        func question(_ text: String) -> URLRequest {
            var request = URLRequest.request(
                "POST",
                "https://shop.example/graphql",
                ["Content-Type": "application/json"]
            )
            request.httpBody = Data(text.utf8)
            return request
        }
        for request in [
            URLRequest.get("https://shop.example/?b=1&a=2"), .get("https://shop.example/?a=2&utm_source=x&b=1"),
            question(#"{"query":"{a}"}"#), question(#"{ "variables": null, "query": "{a}" }"#),
        ] {
            _ = try await client.data(for: request)
            await client.drain()
        }
        #expect(transport.sent.count == 2)
    }

    @Test("A field that is a credential")
    func credentials() async throws {
        let bench = bench(step)
        let client = bench.pipeline
        func load(_ key: String) async throws -> ResponseSource {
            let request = URLRequest.get("http://origin.example/a", ["X-API-Key": key])
            var options = CallOptions()
            options.credentialFields = ["X-API-Key"]
            let response = try await client.send(request, options: options)
            _ = try await response.body.data()
            await client.drain()
            return response.source
        }
        #expect(try await load("one") == .network(attempts: 1))
        #expect(try await load("two") == .network(attempts: 1))
        #expect(try await load("one") == .fresh)
    }

    @Test("One call")
    func oneCall() async throws {
        let bench = bench(.respond(200, ["ETag": "\"1\""], body: "hello"))
        let client = bench.pipeline
        func load() async throws -> ResponseSource {
            var options = CallOptions()
            options.cache = .lifetime(.seconds(300))  // for a server that sends no max-age and no Expires
            options.tags = ["news"]
            let response = try await client.send(request, options: options)
            _ = try await response.body.data()
            await client.drain()
            return response.source
        }
        #expect(try await load() == .network(attempts: 1))
        #expect(try await load() == .fresh)
        try await bench.cache.remove(.tag("news"))
        #expect(try await load() == .network(attempts: 1))
    }

    @Test("A time to live, whatever the server says")
    func timeToLive() async throws {
        let transport = ScriptedTransport(
            [.respond(200, ["Cache-Control": "no-store"], body: "a")],
            repeatsLastStep: true
        )
        let folder = try Folder()
        let directory = folder.url.appendingPathComponent("cache")
        let client = Pipeline(transport: transport, hooks: [CachingServiceHook(ttl: .seconds(600))])
        let hook = try await CachingServiceHook.onDisk(at: directory, ttl: .seconds(3600))
        let other = Pipeline(transport: transport, hooks: [hook])
        for client in [client, client, other, other] {
            _ = try await client.data(for: request)
            await client.drain()
        }
        #expect(transport.sent.count == 2)
        await hook.cache.close()
    }

    @Test("Removing")
    func removing() async throws {
        let transport = ScriptedTransport([step], repeatsLastStep: true)
        let cache = HTTPCache.inMemory()
        let client = Pipeline(transport: transport, cache: cache)
        let request = URLRequest.get("http://origin.example/mine", ["Authorization": "Bearer me"])
        let article = try #require(URL(string: "http://origin.example/article"))
        let images = try #require(URL(string: "http://origin.example/images"))
        let others = try #require(URL(string: "http://origin.example/images2"))
        func fill() async throws {
            _ = try await client.data(for: URLRequest(url: article))
            _ = try await client.data(for: URLRequest(url: images.appendingPathComponent("1")))
            _ = try await client.data(for: URLRequest(url: others))
            var options = CallOptions()
            options.tags = ["news"]
            _ = try await client.data(for: .get("http://origin.example/news"), options: options)
            options = CallOptions()
            options.principal = "user-17"
            _ = try await client.data(for: .get("http://origin.example/me"), options: options)
            _ = try await client.data(for: request)
            await client.drain()
        }
        try await fill()
        #expect(transport.sent.count == 6)
        try await cache.remove(.url(article))
        try await cache.markStale(.path(images))  // /images, /images/1, /images?w=2, not /images2
        try await cache.remove(.prefix("/blog/20"))  // /blog/20, /blog/2026/news, at any origin
        try await cache.markStale(.tag("news"))
        try await cache.remove(.matching { $0.status == .notFound || $0.bodyLength > 1 << 20 })
        try await cache.remove(.principal("user-17"))  // at logout, where calls name their principal
        // where credentials do:
        try await cache.remove(.principal(of: request, adding: client.implicitFields(for: request)))
        #expect(cache.store.statistics.entryCount == 3)
        try await fill()
        #expect(transport.sent.count == 11)
        #expect(transport.sent.suffix(5).allSatisfy { $0.request.url != others })
    }

    @Test("Offline")
    func offline() async throws {
        let cache = HTTPCache.inMemory()
        let client = Pipeline(transport: ScriptedTransport([step], repeatsLastStep: true), cache: cache)
        let requests = [request, .get("http://origin.example/news/b")]
        var offline = CallOptions()
        offline.tags = ["offline"]
        let report = await client.prefetch(requests, options: offline)  // 4 at once, bodies straight to the store
        let pins = try await cache.pin(.tag("offline"))
        if pins.refused > 0 || report.availableCount < requests.count { print("not everything is at hand") }
        #expect(report.storedCount == 2 && pins.refused == 0 && report.failedRequests.isEmpty)
    }

    @Test("Stale, then fresh")
    func staleThenFresh() async throws {
        let bench = CacheBench([step, .respond(200, ["Cache-Control": "max-age=60"], body: "new")])
        let client = bench.pipeline
        try await bench.load(request)
        bench.clock.advance(by: .seconds(90))
        var shown: [String] = []
        func show(_ data: Data, isCurrent: Bool) {
            shown.append("\(String(decoding: data, as: UTF8.self)) \(isCurrent)")
        }
        for try await response in client.staleThenFresh(for: request) {
            show(try await response.body.data(), isCurrent: response.source != .stale)
        }
        #expect(shown == ["hello false", "new true"])
    }
}

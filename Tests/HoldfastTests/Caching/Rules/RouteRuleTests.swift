// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastSemantics
import HoldfastStorage
import HoldfastTesting
import Testing

@testable import Holdfast

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("Rules by route: each setting, seen from outside", .timeLimit(.minutes(20)))
struct RouteRuleTests {
    static func bench(
        _ rules: CacheRules,
        store: any CacheStore = MemoryStore(capacity: 1 << 20),
        mode: CacheOptions.Mode = .private,
        _ transport: ScriptedTransport
    ) -> CacheBench {
        CacheBench(transport, store: store, mode: mode, options: { $0.rules = rules })
    }

    private static func url(_ path: String) -> URLRequest { .get("http://h.example\(path)") }

    @Test("lifetime applies if the server gives none, and only on its route")
    func lifetime() async throws {
        let bench = Self.bench(
            [try CacheRule(paths: ["/api/*"], lifetime: .seconds(60))],
            .counting { $0.url?.query == "own" ? ["Cache-Control": "max-age=5"] : [:] }
        )
        #expect(try await bench.load(Self.url("/api/a")) == .network("1"))
        #expect(try await bench.load(Self.url("/api/a?own")) == .network("2"))
        #expect(try await bench.load(Self.url("/other")) == .network("3"))
        bench.clock.advance(by: .seconds(59))
        #expect(try await bench.load(Self.url("/api/a")) == .fresh("1"))
        #expect(try await bench.load(Self.url("/api/a?own")) == .network("4"))
        #expect(try await bench.load(Self.url("/other")) == .network("5"))
        bench.clock.advance(by: .seconds(1))
        #expect(try await bench.load(Self.url("/api/a")) == .network("6"))
    }

    @Test("lifetime obeys no-store, no-cache and a call's own lifetime, and applies again after a 304")
    func lifetimeObeys() async throws {
        let bench = Self.bench(
            [try CacheRule(lifetime: .seconds(60))],
            .counting { ["Cache-Control": $0.url?.query ?? "", "ETag": "\"1\""] }
        )
        for query in ["no-store", "no-cache", "max-age=0"] {
            try await bench.load(Self.url("/a?\(query)"))
            #expect(try await bench.load(Self.url("/a?\(query)")).source != .fresh)
        }
        var short = CallOptions()
        short.cache = .lifetime(.seconds(10))
        let first = try await bench.load(Self.url("/b"), short)
        bench.clock.advance(by: .seconds(9))
        #expect(try await bench.load(Self.url("/b")) == .fresh(first.body))
        bench.clock.advance(by: .seconds(1))
        #expect(try await bench.load(Self.url("/b")).source != .fresh)

        let confirming = Self.bench(
            [try CacheRule(lifetime: .seconds(60))],
            ScriptedTransport { request in
                request.value(forHTTPHeaderField: "If-None-Match") == nil
                    ? .respond(200, ["ETag": "\"1\""], body: "x") : .respond(304, ["ETag": "\"1\""])
            }
        )
        try await confirming.load(Self.url("/a"))
        confirming.clock.advance(by: .seconds(60))
        #expect(try await confirming.load(Self.url("/a")) == .revalidated("x"))
        confirming.clock.advance(by: .seconds(59))
        #expect(try await confirming.load(Self.url("/a")) == .fresh("x"))
    }

    @Test("fixedLifetime keeps a response with no-store, and only on its route")
    func fixedLifetime() async throws {
        let bench = Self.bench(
            [try CacheRule(paths: ["/api/*"], fixedLifetime: .seconds(60)), try CacheRule(lifetime: .seconds(600))],
            .counting { _ in ["Cache-Control": "no-store, max-age=1"] }
        )
        #expect(try await bench.load(Self.url("/api/a")) == .network("1"))
        #expect(try await bench.load(Self.url("/other")) == .network("2"))
        bench.clock.advance(by: .seconds(60))
        #expect(try await bench.load(Self.url("/api/a")) == .fresh("1"))
        #expect(try await bench.load(Self.url("/other")) == .network("3"))
        bench.clock.advance(by: .milliseconds(1))
        #expect(try await bench.load(Self.url("/api/a")) == .network("4"))
    }

    @Test("A route's lifetime replaces the cache's fixed one")
    func insteadOfFixed() async throws {
        var options = CacheOptions()
        options.fixedLifetime = .seconds(60)
        options.rules = [try CacheRule(paths: ["/api/*"], lifetime: .seconds(60))]
        let bench = CacheBench(options: options, .counting { _ in ["Cache-Control": "no-store"] })
        for path in ["/api/a", "/other"] { try await bench.load(Self.url(path)) }
        #expect(try await bench.load(Self.url("/other")) == .fresh("2"))
        #expect(try await bench.load(Self.url("/api/a")) == .network("3"))
    }

    @Test("By content type: the same URL is kept for as long as its type says")
    func contentType() async throws {
        let bench = Self.bench(
            [
                try CacheRule(contentTypes: ["image/*"], lifetime: .seconds(600)),
                try CacheRule(contentTypes: ["text/html"], neverStore: true),
                try CacheRule(lifetime: .seconds(10), query: QueryOptions(ignoredNames: ["utm"])),
            ],
            .counting {
                ["Content-Type": $0.url?.path == "/i" ? "image/png" : $0.url?.path == "/h" ? "text/html" : "a/b"]
            }
        )
        for path in ["/i?utm=1", "/h", "/x?utm=1"] { try await bench.load(Self.url(path)) }
        #expect(try await bench.load(Self.url("/h")) == .network("4"))
        #expect(try await bench.load(Self.url("/x?utm=2")) == .fresh("3"))
        bench.clock.advance(by: .seconds(10))
        #expect(try await bench.load(Self.url("/x?utm=2")) == .network("5"))
        #expect(try await bench.load(Self.url("/i?utm=2")) == .fresh("1"))
    }

    @Test("neverStore neither stores nor uses nor removes stored responses, whatever fails", arguments: [false, true])
    func neverStore(byType: Bool) async throws {
        let store = MemoryStore(capacity: 1 << 20)
        let origin = ScriptedTransport.counting { _ in
            ["Cache-Control": "max-age=60, stale-if-error=600", "ETag": "\"e\"", "Content-Type": "text/html"]
        }
        let before = Self.bench([], store: store, origin)
        #expect(try await before.load(Self.url("/a")) == .network("1"))
        let rule =
            byType ? try CacheRule(contentTypes: ["text/html"], neverStore: true) : try CacheRule(neverStore: true)
        let during = Self.bench([rule], store: store, origin)
        for number in ["2", "3"] { #expect(try await during.load(Self.url("/a")) == .network(number)) }
        let response = try await during.pipeline.send(Self.url("/a"))
        _ = try await response.body.collect()
        #expect(response.cacheDecision?.reason == .neverStore)
        #expect(response.cacheDecision?.outcome == (byType ? .miss : .bypass))
        #expect(response.cacheDecision?.storage == .notStored(.neverStore))
        #expect(during.sent("If-None-Match").allSatisfy { $0 == nil })
        var offline = CallOptions()
        offline.cache = .onlyIfCached
        #expect(try await during.load(Self.url("/a"), offline).status == 504)
        let failing = Self.bench([rule], store: store, ScriptedTransport([.respond(503)]))
        failing.clock.advance(by: .seconds(120))
        #expect(try await failing.load(Self.url("/a")).status == 503)
        #expect(try await during.load(.request("HEAD", "http://h.example/a")).status == 200)
        let after = Self.bench([], store: store, origin)
        #expect(try await after.load(Self.url("/a")) == .fresh("1"))
        #expect(store.statistics.entryCount == 1)
    }

    @Test("Where a rule stores nothing, an unsafe request and remove still reach what is stored")
    func neverStoreInvalidates() async throws {
        for removes in [false, true] {
            let store = MemoryStore(capacity: 1 << 20)
            let origin = ScriptedTransport.counting()
            try await Self.bench([], store: store, origin).load(Self.url("/a"))
            let during = Self.bench([try CacheRule(neverStore: true)], store: store, origin)
            if removes {
                #expect(try await during.cache.remove(.url(try #require(URL(string: "http://h.example/a")))) == 1)
            } else {
                try await during.load(.request("PUT", "http://h.example/a"))
            }
            #expect(store.statistics.entryCount == 0)
        }
    }

    @Test("staleIfError and staleWhileRevalidate apply only on their routes")
    func stale() async throws {
        let origin = ScriptedTransport { request in
            request.value(forHTTPHeaderField: "X-Fail") == nil
                ? .respond(200, ["Cache-Control": "max-age=10"], body: "x") : .respond(503, body: "no")
        }
        let bench = Self.bench(
            [
                try CacheRule(paths: ["/e"], staleIfError: .seconds(60)),
                try CacheRule(paths: ["/r"], staleWhileRevalidate: .seconds(60)),
            ],
            origin
        )
        for path in ["/e", "/r", "/n"] { try await bench.load(Self.url(path)) }
        bench.clock.advance(by: .seconds(70))
        func failing(_ path: String) async throws -> CacheBench.Answer {
            try await bench.load(.get("http://h.example\(path)", ["X-Fail": "1"]))
        }
        #expect(try await failing("/e") == CacheBench.Answer(status: 200, body: "x", source: .stale))
        #expect(try await failing("/n").status == 503)
        #expect(try await failing("/r") == CacheBench.Answer(status: 200, body: "x", source: .stale))
        await bench.pipeline.drain()
        bench.clock.advance(by: .seconds(1))
        #expect(try await failing("/e").status == 503)
        #expect(try await failing("/r").status == 503)
    }

    @Test("A stored response answers ranges and variants with the rule's lifetime")
    func rangesAndVary() async throws {
        let bench = Self.bench(
            [try CacheRule(fixedLifetime: .seconds(60))],
            ScriptedTransport { request in
                let language = request.value(forHTTPHeaderField: "Accept-Language") ?? ""
                return .respond(
                    200,
                    ["Cache-Control": "no-store", "Vary": "Accept-Language", "ETag": "\"\(language)\""],
                    body: "text in \(language)"
                )
            }
        )
        func get(_ language: String, _ range: String? = nil) -> URLRequest {
            var request = URLRequest.get("http://h.example/a", ["Accept-Language": language])
            request.setValue(range, forHTTPHeaderField: "Range")
            return request
        }
        for language in ["de", "en"] { #expect(try await bench.load(get(language)) == .network("text in \(language)")) }
        for language in ["de", "en"] {
            #expect(try await bench.load(get(language)) == .fresh("text in \(language)"))
            #expect(try await bench.load(get(language, "bytes=8-9")) == .fresh(language, 206))
        }
        bench.clock.advance(by: .seconds(61))
        #expect(try await bench.load(get("de", "bytes=8-9")).source != .fresh)
    }

    @Test("A rule's cookies are ignored on its route, and removing a user's responses finds those of all routes")
    func cookies() async throws {
        let bench = Self.bench(
            [try CacheRule(paths: ["/shop/*"], ignoredCookies: ["visit"])],
            .counting { _ in ["Cache-Control": "max-age=60", "Set-Cookie": "visit=9"] }
        )
        func get(_ path: String, _ cookie: String) -> URLRequest { .get("http://h.example\(path)", ["Cookie": cookie]) }
        #expect(try await bench.load(get("/shop/a", "sid=1; visit=1")) == .network("1"))
        #expect(try await bench.load(get("/shop/a", "sid=1; visit=2")) == .fresh("1"))
        #expect(try await bench.load(get("/shop/a", "sid=2; visit=2")) == .network("2"))
        #expect(try await bench.load(get("/other", "sid=1; visit=1")) == .network("3"))
        #expect(try await bench.load(get("/other", "sid=1; visit=2")) == .network("4"))
        let hit = try await bench.pipeline.send(get("/shop/a", "sid=1; visit=3"))
        #expect(hit.source == .fresh && hit.fields[.setCookie] == nil)
        let own = CacheSelection.principal(of: get("/anything", "sid=1; visit=1"))
        #expect(try await bench.cache.remove(own, now: bench.clock.timestamp) == 2)
        #expect(try await bench.load(get("/shop/a", "sid=2")) == .fresh("2"))
        #expect(try await bench.load(get("/other", "sid=1; visit=2")) == .fresh("4"))
    }

    @Test("Responses stored under other rules are judged by the current ones")
    func movedRules() async throws {
        let store = MemoryStore(capacity: 1 << 20)
        let origin = ScriptedTransport.counting { _ in ["ETag": "\"1\""] }
        try await Self.bench([], store: store, origin).load(Self.url("/a"))
        let today = Self.bench([try CacheRule(lifetime: .seconds(60))], store: store, origin)
        #expect(try await today.load(Self.url("/a")) == .fresh("1"))
        #expect(try await Self.bench([], store: store, origin).load(Self.url("/a")).source != .fresh)
    }

    @Test("A response kept by a fixed lifetime against its server's directives is not used once the rule is gone")
    func movedFixedLifetime() async throws {
        let store = MemoryStore(capacity: 1 << 20)
        let origin = ScriptedTransport.counting { _ in ["Cache-Control": "no-store"] }
        let fixed: CacheRules = [try CacheRule(fixedLifetime: .seconds(60))]
        try await Self.bench(fixed, store: store, origin).load(Self.url("/a"))
        for rules: CacheRules in [
            [try CacheRule(lifetime: .seconds(600))], [try CacheRule(staleWhileRevalidate: .seconds(600))], [],
        ] {
            #expect(
                try await Self.bench(rules, store: store, origin).load(Self.url("/a")).source == .network(attempts: 1)
            )
            let failing = Self.bench(rules, store: store, ScriptedTransport([.fail(URLError(.cannotConnectToHost))]))
            #expect((try? await failing.load(Self.url("/a")))?.source != .stale)
        }
        #expect(try await Self.bench(fixed, store: store, origin).load(Self.url("/a")) == .fresh("1"))
    }

    @Test("Rules are read from a file, and an error is shown with its position")
    func file() throws {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("rules-\(UUID().uuidString).json")
        defer { try? FileManager.default.removeItem(at: file) }
        try Data("{ \"rules\": [ { \"paths\": [\"/a\"], \"lifetime\": \"5m\" } ] }".utf8).write(to: file)
        #expect(try CacheRules(contentsOf: file) == [CacheRule(paths: ["/a"], lifetime: .seconds(300))])
        try Data("{ \"rules\": [ { \"path\": \"/a\" } ] }".utf8).write(to: file)
        let error = #expect(throws: CacheRulesError.self) { try CacheRules(contentsOf: file) }
        #expect(error?.localizedDescription.hasPrefix("line 1, column 16: \"path\" is not a member of a rule") ?? false)
        try Data(repeating: UInt8(ascii: " "), count: (1 << 20) + 1).write(to: file)
        #expect(throws: CacheRulesError.self) { try CacheRules(contentsOf: file) }
        let missing = file.appendingPathComponent("none")
        let unread = #expect(throws: CacheRulesError.self) { try CacheRules(contentsOf: missing) }
        #expect(unread?.message.contains(missing.path) == true && unread?.line == nil)
        // A pipe that nobody writes: reading it would never end.
        let pipe = file.deletingLastPathComponent().appendingPathComponent("rules-\(UUID().uuidString)").path
        #expect(mkfifo(pipe, 0o600) == 0)
        defer { try? FileManager.default.removeItem(atPath: pipe) }
        let refused = #expect(throws: CacheRulesError.self) { try CacheRules(contentsOf: URL(fileURLWithPath: pipe)) }
        #expect(refused?.message.contains("not a regular file") == true)
    }
}

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

@Suite("Rules by route: key fields keep requests apart wherever a response could be shared", .timeLimit(.minutes(20)))
struct KeyFieldTests {
    private static func rules() throws -> CacheRules { [try CacheRule(paths: ["/t/*"], keyFields: ["X-Tenant"])] }

    /// An origin that tells each tenant its own name, and that everyone may have it.
    private static func origin(_ more: HeaderFields = [:]) -> ScriptedTransport {
        ScriptedTransport { request in
            var fields = more
            fields[.cacheControl] = "public, max-age=60"
            return .respond(200, fields, body: request.value(forHTTPHeaderField: "X-Tenant") ?? "none")
        }
    }

    private static func get(_ tenant: String?, _ path: String = "/t/a", _ fields: [String: String] = [:]) -> URLRequest
    {
        var request = URLRequest.get("http://h.example\(path)", fields)
        request.setValue(tenant, forHTTPHeaderField: "X-Tenant")
        return request
    }

    private static let tenants = ["a", "b", "", nil] as [String?]

    @Test("Each value has its own responses, `public` ones too", arguments: [CacheOptions.Mode.private, .shared])
    func apart(mode: CacheOptions.Mode) async throws {
        let bench = RouteRuleTests.bench(try Self.rules(), mode: mode, Self.origin())
        for tenant in Self.tenants { #expect(try await bench.load(Self.get(tenant)) == .network(tenant ?? "none")) }
        for _ in 0..<3 {
            for tenant in Self.tenants { #expect(try await bench.load(Self.get(tenant)) == .fresh(tenant ?? "none")) }
        }
        // Of one user, too, and where a field names others.
        let users = ["1", "2"]
        for user in users {
            let request = Self.get("a", "/t/a", ["Authorization": user])
            #expect(try await bench.load(request).body == "a")
        }
        #expect(try await bench.load(Self.get("c", "/other")) == .network("c"))
        #expect(try await bench.load(Self.get("d", "/other")) == .fresh("c"))
    }

    @Test("Concurrent calls with different values do not share one exchange")
    func collapsed() async throws {
        let bench = RouteRuleTests.bench(try Self.rules(), Self.origin())
        let answers = try await withThrowingTaskGroup(of: (String, String).self) { group in
            for number in 0..<40 {
                let tenant = String(number % 4)
                group.addTask { (tenant, try await bench.load(Self.get(tenant)).body) }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(answers.count == 40 && answers.allSatisfy { $0.0 == $0.1 })
    }

    @Test("An unsafe request and remove reach the responses for all values, QUERY and POST included")
    func invalidated() async throws {
        let bench = RouteRuleTests.bench(
            [try CacheRule(paths: ["/t/*"], keyFields: ["X-Tenant"], cachesPost: true)],
            Self.origin()
        )
        func fill() async throws -> Bool {
            var isFresh = false
            for tenant in Self.tenants {
                for method in ["QUERY", "POST"] {
                    var request = URLRequest.asking(method, "http://h.example/t/a", "{}")
                    request.setValue(tenant, forHTTPHeaderField: "X-Tenant")
                    if try await bench.load(request).source == .fresh { isFresh = true }
                }
                for path in ["/t/a", "/t/ab"] {
                    if try await bench.load(Self.get(tenant, path)).source == .fresh, path == "/t/a" { isFresh = true }
                }
            }
            return isFresh
        }
        #expect(try await !fill())
        try await bench.load(.request("PUT", "http://h.example/t/a", ["X-Tenant": "z"]))
        #expect(try await bench.load(Self.get("a", "/t/ab")) == .fresh("a"))
        #expect(try await !fill())
        #expect(try await bench.cache.remove(.url(try #require(URL(string: "http://h.example/t/a")))) == 12)
        #expect(try await !fill())
        #expect(try await bench.load(Self.get("a", "/t/ab")) == .fresh("a"))
    }

    @Test("With No-Vary-Search an equivalent query is used for the same value only, and removed with the others")
    func searchVariance() async throws {
        let bench = RouteRuleTests.bench(try Self.rules(), Self.origin(["No-Vary-Search": "params=(\"u\")"]))
        for tenant in ["a", "b"] {
            #expect(try await bench.load(Self.get(tenant, "/t/a?u=1")) == .network(tenant))
            #expect(try await bench.load(Self.get(tenant, "/t/a?u=2")) == .fresh(tenant))
        }
        #expect(try await bench.load(Self.get("c", "/t/a?u=2")) == .network("c"))
        try await bench.load(.request("PUT", "http://h.example/t/a?u=3"))
        for tenant in ["a", "b", "c"] {
            #expect(try await bench.load(Self.get(tenant, "/t/a?u=1")) == .network(tenant))
        }
    }

    @Test("A range, a condition and a HEAD get the value's own response")
    func partsAndConditions() async throws {
        let bench = RouteRuleTests.bench(try Self.rules(), Self.origin(["ETag": "\"e\""]))
        try await bench.load(Self.get("aaaa"))
        #expect(try await bench.load(Self.get("aaaa", "/t/a", ["Range": "bytes=0-1"])) == .fresh("aa", 206))
        #expect(try await bench.load(Self.get("bbbb", "/t/a", ["Range": "bytes=0-1"])).body == "bbbb")
        #expect(try await bench.load(Self.get("aaaa", "/t/a", ["If-None-Match": "\"e\""])).status == 304)
        #expect(try await bench.load(Self.get("cccc", "/t/a", ["If-None-Match": "\"e\""])) == .network("cccc"))
        var head = Self.get("aaaa")
        head.httpMethod = "HEAD"
        #expect(try await bench.load(head).source == .fresh)
        head.setValue("dddd", forHTTPHeaderField: "X-Tenant")
        #expect(try await bench.load(head).source != .fresh)
    }

    struct TenantHook: ServiceHook {
        let tenant: String
        var scope = HookScope.call

        func onSchedule(_ request: inout URLRequest, _ context: inout CallContext) async throws -> Response? {
            request.setValue(tenant, forHTTPHeaderField: "X-Tenant")
            return nil
        }
    }

    @Test("If a hook below the cache writes another value, the response is not stored")
    func below() async throws {
        var options = CacheOptions()
        options.rules = try Self.rules()
        let cache = HTTPCache(store: MemoryStore(capacity: 1 << 20), options: options)
        var named = CallOptions()
        named.principal = "me"
        let pipelines = ["a", "b"].map {
            Pipeline(transport: Self.origin(), hooks: [CachingHook(cache), TenantHook(tenant: $0, scope: .message)])
        }
        for (pipeline, tenant) in zip(pipelines + pipelines, ["a", "b", "a", "b"]) {
            for options in [CallOptions(), named] {
                let (data, _) = try await pipeline.data(for: Self.get("x"), options: options)
                #expect(String(decoding: data, as: UTF8.self) == tenant)
            }
        }
        #expect(cache.store.statistics.entryCount == 0)
    }

    @Test("If a hook above the cache writes the value, it counts")
    func above() async throws {
        var options = CacheOptions()
        options.rules = try Self.rules()
        let cache = HTTPCache(store: MemoryStore(capacity: 1 << 20), options: options)
        let transport = Self.origin()
        for tenant in ["a", "b", "a", "b"] {
            let pipeline = Pipeline(transport: transport, cache: cache, hooks: [TenantHook(tenant: tenant)])
            let (data, _) = try await pipeline.data(for: Self.get("x"))
            #expect(String(decoding: data, as: UTF8.self) == tenant)
        }
        #expect(transport.sent.count == 2)
    }

    @Test("A value that is a credential does not appear in the store's bytes")
    func digested() async throws {
        let store = MemoryStore(capacity: 1 << 20)
        let bench = RouteRuleTests.bench(
            [try CacheRule(keyFields: ["X-Key"])],
            store: store,
            ScriptedTransport([.respond(200, ["Cache-Control": "max-age=60"], body: "x")])
        )
        try await bench.load(.get("http://h.example/a", ["X-Key": "s3cr3t"]))
        let entries = try await store.list(after: nil, limit: .max, now: StoreInstant(bench.clock.timestamp)).listed
        #expect(entries.count == 1)
        for entry in entries.map(\.entry) {
            for bytes in [entry.key.bytes, entry.variant.bytes, entry.description.metadata.array] {
                #expect(!String(decoding: bytes, as: UTF8.self).contains("s3cr3t"))
            }
        }
    }

    @Test("The short path to a ready answer keeps values apart like the full one", arguments: ComparedChain.allCases)
    func ready(_ chain: ComparedChain) async throws {
        var options = CacheOptions()
        options.rules = try Self.rules()
        let twins = ComparedTwins(
            ComparedSetting(chain: chain, options: options) { request, _ in
                .respond(
                    200,
                    ["Cache-Control": "max-age=60"],
                    body: request.value(forHTTPHeaderField: "X-Tenant") ?? "-"
                )
            }
        )
        for tenant in ["a", nil, "b", "a", nil] as [String?] {
            for _ in 0..<3 { #expect(await twins.ask(Self.get(tenant)).text == tenant ?? "-") }
        }
        #expect(twins.byFactsCount > 0 || chain == .nested || chain == .stacked)
        twins.expectSameCounts()
    }

    @Test("The short path uses a route's lifetimes and content types", arguments: [1, 2, 3, 4] as [UInt64])
    func readyRules(seed: UInt64) async throws {
        var source = SeededGenerator(seed: seed)
        var options = CacheOptions()
        options.rules = [
            try CacheRule(paths: ["/fixed"], fixedLifetime: .seconds(5)),
            try CacheRule(contentTypes: ["image/*"], lifetime: .seconds(20)),
            try CacheRule(contentTypes: ["text/html"], neverStore: true),
            try CacheRule(paths: ["/t/*"], lifetime: .seconds(10), keyFields: ["X-Tenant"]),
            try CacheRule(paths: ["/never"], neverStore: true),
            try CacheRule(lifetime: .seconds(3), query: QueryOptions(ignoredNames: ["u"]), ignoredCookies: ["visit"]),
        ]
        let twins = ComparedTwins(
            ComparedSetting(options: options) { request, number in
                let types = ["image/png", "text/html", "text/plain", ""]
                let type = types[(request.url?.query?.utf8.count ?? 0) % 4]
                var fields: HeaderFields = number % 7 == 0 ? ["Cache-Control": "no-store"] : [:]
                if !type.isEmpty { fields[.contentType] = type }
                return .respond(200, fields, body: "\(request.value(forHTTPHeaderField: "X-Tenant") ?? "-") \(number)")
            }
        )
        for turn in 0..<300 {
            let path = ["/fixed", "/t/a", "/never", "/x"].randomElement(using: &source) ?? ""
            let query = ["", "?u=1", "?ab", "?abc", "?u=2&a"].randomElement(using: &source) ?? ""
            var request = URLRequest.get("http://h.example\(path)\(query)")
            let tenant = ["a", "b", nil].randomElement(using: &source) ?? nil
            request.setValue(tenant, forHTTPHeaderField: "X-Tenant")
            if Int.random(in: 0..<20, using: &source) == 0 { request.httpMethod = "DELETE" }
            let seen = await twins.ask(request, note: "seed \(seed), turn \(turn)")
            if path == "/t/a", request.httpMethod == "GET" { #expect(seen.text.hasPrefix(tenant ?? "-")) }
            if Int.random(in: 0..<5, using: &source) == 0 {
                twins.advance(.seconds(Int.random(in: 0...6, using: &source)))
            }
        }
        #expect(twins.byFactsCount > 5)
        twins.expectSameCounts(note: "seed \(seed)")
    }
}

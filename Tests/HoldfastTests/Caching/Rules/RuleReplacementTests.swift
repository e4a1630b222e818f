// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastSemantics
import HoldfastStorage
import HoldfastTesting
import Synchronization
import Testing

@testable import Holdfast

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("Rules by route, replaced while the cache is in use", .timeLimit(.minutes(20)))
struct RuleReplacementTests {
    /// A pipeline whose cache gets other rules.
    private final class Bench: Sendable {
        let clock = ManualClock()
        let cache: HTTPCache
        private let pipelines: Mutex<[Pipeline]>

        init(_ rules: CacheRules, store: any CacheStore = MemoryStore(capacity: 1 << 20), _ transport: any Transport) {
            var options = CacheOptions.shared
            options.rules = rules
            var configuration = PipelineConfiguration()
            configuration.clock = clock
            cache = HTTPCache(store: store, options: options)
            pipelines = Mutex([Pipeline(transport: transport, cache: cache, configuration: configuration)])
        }

        var pipeline: Pipeline { pipelines.withLock { $0[$0.count - 1] } }
        var published: Int { pipelines.withLock { $0.count - 1 } }

        @discardableResult
        func replace(with rules: CacheRules) async throws -> Int? {
            let current = pipeline
            let cache = try #require(current.cache)
            return try await cache.replaceRules(with: rules, now: clock.timestamp) { new in
                pipelines.withLock { $0.append(Pipeline(succeeding: current, cache: new)) }
            }
        }

        @discardableResult
        func load(
            _ path: String,
            _ fields: [String: String] = [:],
            over pipeline: Pipeline? = nil
        ) async throws -> CacheBench.Answer {
            let request = URLRequest.get("http://h.example\(path)", fields)
            let response = try await (pipeline ?? self.pipeline).send(request)
            let body = String(decoding: try await response.body.collect(), as: UTF8.self)
            return CacheBench.Answer(status: response.status.rawValue, body: body, source: response.source)
        }
    }

    /// An origin that says which query and which tenant it was asked for.
    private static func origin(_ fields: HeaderFields = [.cacheControl: "max-age=60"]) -> ScriptedTransport {
        ScriptedTransport { request in
            let query = request.url?.query ?? "none"
            return .respond(200, fields, body: query + " " + (request.value(forHTTPHeaderField: "X-Tenant") ?? "none"))
        }
    }

    @Test("Lifetimes count from the next call on, and nothing that is stored is lost")
    func lifetimes() async throws {
        let bench = Bench([try CacheRule(lifetime: .seconds(10))], Self.origin([:]))
        try await bench.load("/a")
        #expect(try await bench.load("/a").source == .fresh)
        #expect(try await bench.replace(with: [try CacheRule(lifetime: .seconds(60))]) == nil)
        bench.clock.advance(by: .seconds(30))
        #expect(try await bench.load("/a").source == .fresh)
        #expect(try await bench.replace(with: [try CacheRule(neverStore: true)]) == nil)
        #expect(try await bench.load("/a").source == .network(attempts: 1))
        #expect(try await bench.replace(with: []) == nil)
        #expect(try await bench.load("/a").source == .network(attempts: 1))
        #expect(bench.published == 3)
    }

    @Test("Counters go on, and both caches count into them")
    func counters() async throws {
        let bench = Bench([], Self.origin())
        let former = bench.pipeline
        try await bench.load("/a")
        try await bench.replace(with: [try CacheRule(lifetime: .seconds(60))])
        try await bench.load("/a")
        try await bench.load("/b", over: former)
        for cache in [former.cache, bench.pipeline.cache] {
            #expect(cache?.statistics.requests == 3 && cache?.statistics.hits == 1 && cache?.statistics.stored == 2)
        }
    }

    @Test("A response that was stored while its query was ignored answers nobody once it counts; other routes stay")
    func query() async throws {
        let ignoring: CacheRules = [try CacheRule(paths: ["/q"], query: QueryOptions(ignoredNames: ["u"]))]
        let bench = Bench(ignoring, Self.origin())
        #expect(try await bench.load("/q?u=1").body == "u=1 none")
        #expect(try await bench.load("/q").body == "u=1 none")
        try await bench.load("/other")
        #expect(try await bench.replace(with: []) == 1)
        #expect(bench.published == 2)
        #expect(try await bench.load("/q").body == "none none")
        #expect(try await bench.load("/other").source == .fresh)
    }

    @Test("Key fields that come and go", arguments: [false, true])
    func keyFields(onDisk: Bool) async throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "holdfast-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: directory) }
        let now = StoreInstant(ManualClock().timestamp)
        let store: any CacheStore =
            onDisk
            ? try await DiskStore.open(directory: directory.path, capacity: 16 << 20, now: now)
            : MemoryStore(capacity: 1 << 20)
        let bench = Bench([], store: store, Self.origin())
        let keyed: CacheRules = [try CacheRule(paths: ["/t/*"], keyFields: ["X-Tenant"])]
        #expect(try await bench.load("/t/a", ["X-Tenant": "a"]).body == "none a")
        #expect(try await bench.load("/t/a", ["X-Tenant": "b"]).body == "none a")
        #expect(try await bench.replace(with: keyed) == 1)
        for tenant in ["a", "b"] {
            #expect(try await bench.load("/t/a", ["X-Tenant": tenant]).body == "none \(tenant)")
        }
        #expect(try await bench.replace(with: []) == 2)
        #expect(try await bench.load("/t/a", ["X-Tenant": "c"]).source == .network(attempts: 1))
        await store.close()
    }

    @Test("A call under way by the former rules is answered, joined by none that begins later, and stores nothing")
    func underWay() async throws {
        let transport = GatedOrigin { request, _ in
            Response(
                status: .ok,
                fields: [.cacheControl: "max-age=60"],
                body: ResponseBody(ByteChunk(copying: (request.url?.query ?? "none").utf8)),
                source: .network(attempts: 1)
            )
        }
        let bench = Bench([try CacheRule(query: QueryOptions(ignoredNames: ["u"]))], transport)
        async let slow = bench.load("/q?u=1")
        try await transport.asked.wait(for: 1)
        try await bench.replace(with: [])
        async let quick = bench.load("/q")
        try await transport.asked.wait(for: 2)
        transport.open(2)
        #expect(try await slow.body == "u=1")
        #expect(try await quick.body == "none")
        await bench.pipeline.drain()
        #expect(try await bench.load("/q") == .fresh("none"))
        #expect(bench.cache.store.statistics.entryCount == 1)
    }

    @Test("Neither stores a call that begins late by rules of two files ago")
    func late() async throws {
        let bench = Bench([try CacheRule(query: QueryOptions(ignoredNames: ["u"]))], Self.origin())
        let oldest = bench.pipeline
        try await bench.replace(with: [try CacheRule(lifetime: .seconds(1), query: QueryOptions(ignoredNames: ["u"]))])
        try await bench.replace(with: [])
        #expect(try await bench.load("/q?u=1", over: oldest).body == "u=1 none")
        #expect(try await bench.load("/q").body == "none none")
    }

    @Test("A store that cannot remove: the routes stay away from it, and the next file makes up for it")
    func failing() async throws {
        let store = FaultyStore()
        let bench = Bench(
            [try CacheRule(paths: ["/q"], query: QueryOptions(ignoredNames: ["u"]))],
            store: store,
            Self.origin()
        )
        try await bench.load("/q?u=1")
        try await bench.load("/other")
        store.fault.withLock { $0 = .purge }
        await #expect(throws: StoreError.self) { try await bench.replace(with: []) }
        for _ in 0..<2 { #expect(try await bench.load("/q").source == .network(attempts: 1)) }
        #expect(try await bench.load("/other").source == .fresh)
        store.fault.withLock { $0 = nil }
        #expect(try await bench.replace(with: []) == 1)
        #expect(try await bench.load("/q").body == "none none")
        #expect(try await bench.load("/q").source == .fresh)
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastTesting
import Synchronization
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("After a power loss of the store nothing is used without revalidation (RFC 9111 §4.4)", .timeLimit(.minutes(20)))
struct PowerLossTests {
    private static let tagged = SoftPurgeTests.tagged

    /// A cache that holds "one" as the response to a plain GET, and whose store has lost power `seconds` later.
    private static func bench(
        after seconds: Int64 = 0,
        fields: HeaderFields = tagged,
        _ steps: ScriptedTransport.Step...
    ) async throws -> (CacheBench, FaultyStore) {
        let store = FaultyStore()
        let transport = ScriptedTransport([.respond(200, fields, body: "one")] + steps)
        let bench = CacheBench(transport, store: store, options: { $0.cacheName = "Here" })
        try await bench.load()
        #expect(try await bench.load() == .fresh("one"))
        try await store.losePower()
        bench.clock.advance(by: .seconds(seconds))
        return (bench, store)
    }

    @Test(
        "A fresh or stale response is revalidated first, and a 304 makes it trusted again",
        arguments: [0, 100] as [Int64]
    )
    func confirmed(age: Int64) async throws {
        let (bench, _) = try await Self.bench(after: age, .respond(304, Self.tagged))
        let response = try await bench.pipeline.send(.get())
        #expect(try await response.body.data() == Data("one".utf8))
        #expect(response.source == .revalidated)
        #expect(response.cacheDecision?.reason == .storeLostPower)
        #expect(response.fields[.cacheStatus]?.contains("detail=\"the store lost power\"") == true)
        #expect(response.fields[.cacheStatus]?.contains("fwd=stale") == true)
        #expect(try await bench.load() == .fresh("one"))
        #expect(bench.sent("If-None-Match") == [nil, "\"v\""])
    }

    @Test("A new response does so too, and one without a validator is fetched again")
    func replaced() async throws {
        let fields: HeaderFields = ["Cache-Control": "max-age=60"]
        let (bench, _) = try await Self.bench(fields: fields, .respond(200, fields, body: "two"))
        #expect(try await bench.load() == .network("two"))
        #expect(try await bench.load() == .fresh("two"))
    }

    @Test(
        "It is never served stale: not for a failing origin, nor to a caller that accepts anything stored",
        arguments: [ScriptedTransport.Step.fail(progress: .notSent), .respond(503, body: "down")],
        [0, 100] as [Int64]
    )
    func noStandIn(step: ScriptedTransport.Step, age: Int64) async throws {
        let (bench, _) = try await Self.bench(after: age, step, step, step)
        var anything = CallOptions()
        anything.cache = .maxStale(.seconds(1_000_000))
        var request = URLRequest.get()
        for policy in [URLRequest.CachePolicy.useProtocolCachePolicy, .returnCacheDataElseLoad] {
            request.cachePolicy = policy
            let answer = try? await bench.load(request)
            #expect(answer?.body != "one")
        }
        let answer = try? await bench.load(.get(), anything)
        #expect(answer?.body != "one")
        request.cachePolicy = .returnCacheDataDontLoad
        await #expect(throws: ServiceError.self) { try await bench.load(request) }
        var onlyIfCached = CallOptions()
        onlyIfCached.cache = .onlyIfCached
        #expect(try await bench.load(.get(), onlyIfCached).status == 504)
        #expect(bench.sends == 4)
    }

    @Test("Stale first and fresh later: only the origin's response counts")
    func staleThenFresh() async throws {
        let (bench, _) = try await Self.bench(after: 100, .respond(200, Self.tagged, body: "two"))
        var bodies: [String] = []
        for try await response in bench.pipeline.staleThenFresh(for: .get()) {
            bodies.append(String(decoding: try await response.body.collect(), as: UTF8.self))
        }
        #expect(bodies == ["two"])
    }

    @Test("A caller's own condition is not evaluated against it")
    func condition() async throws {
        let (bench, _) = try await Self.bench(.respond(200, Self.tagged, body: "two"))
        let request = URLRequest.get("http://origin.example/a", ["If-None-Match": "\"v\""])
        #expect(try await bench.load(request).source != .fresh)
        #expect(bench.sends == 2)
    }

    @Test("Prefetching treats it as not fresh")
    func prefetch() async throws {
        let (bench, _) = try await Self.bench(.respond(304, Self.tagged))
        _ = await bench.pipeline.prefetch([.get()])
        #expect(bench.sends == 2)
        _ = await bench.pipeline.prefetch([.get()])
        #expect(bench.sends == 2)
    }

    @Test("A stored part is revalidated like a whole, before it is used or completed (RFC 9111 §3.4)")
    func parts() async throws {
        let part: HeaderFields = ["Cache-Control": "max-age=60", "ETag": "\"v\"", "Content-Range": "bytes 0-3/8"]
        let rest: HeaderFields = ["Cache-Control": "max-age=60", "ETag": "\"v\"", "Content-Range": "bytes 4-7/8"]
        let store = FaultyStore()
        let bench = CacheBench(
            [.respond(206, part, body: "abcd"), .respond(304), .respond(206, rest, body: "efgh")],
            store: store
        )
        let request = URLRequest.get("http://origin.example/a", ["Range": "bytes=0-3"])
        try await bench.load(request)
        try await store.losePower()
        #expect(try await bench.load(request) == .init(status: 206, body: "abcd", source: .revalidated))
        #expect(try await bench.load(request) == .fresh("abcd", 206))
        try await store.losePower()
        #expect(try await bench.load().body == "abcdefgh")
        #expect(bench.sent("If-Range") == [nil, nil, "\"v\""])
    }

    @Test("If it is marked as stale meanwhile, the mark stays in the entry")
    func softlyRemoved() async throws {
        let (bench, store) = try await Self.bench(.respond(304, Self.tagged))
        #expect(try await bench.cache.markStale(.matching { $0.needsConfirmation && !$0.isFresh }) == 1)
        store.suspectUpTo.withLock { $0 = nil }
        #expect(try await bench.load() == .revalidated("one"))
        #expect(bench.cache.statistics.reasons[.softPurged] == 1)
    }
}

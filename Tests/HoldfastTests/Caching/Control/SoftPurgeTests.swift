// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastStorage
import HoldfastTesting
import Synchronization
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("What a soft purge prevents from being used", .timeLimit(.minutes(20)))
struct SoftPurgeTests {
    static let tagged: HeaderFields = [
        "Cache-Control": "max-age=60, stale-if-error=600, stale-while-revalidate=600", "ETag": "\"v\"",
    ]

    @Test("The request is conditional, the body stays, and a new response replaces it", arguments: EachStore.allCases)
    func confirmation(kind: EachStore) async throws {
        try await kind.with { store in
            let bench = CacheBench(
                [.respond(200, Self.tagged, body: "one"), .respond(304), .respond(200, Self.tagged, body: "two")],
                store: store
            )
            try await bench.load()
            try await bench.cache.markStale(.all)
            #expect(try await bench.load() == .revalidated("one"))
            #expect(try await bench.load() == .fresh("one"))
            try await bench.cache.markStale(.all)
            #expect(try await bench.load() == .network("two"))
            #expect(try await bench.load() == .fresh("two"))
            #expect(bench.sent("If-None-Match") == [nil, "\"v\"", "\"v\""])
            #expect(bench.cache.statistics.reasons[.softPurged] == 2)
        }
    }

    @Test("A second mark changes the entry too, so that a 304 that is being written meanwhile is not")
    func markedTwice() async throws {
        let store = MemoryStore(capacity: 1 << 20)
        let bench = CacheBench([.respond(200, Self.tagged, body: "one")], store: store)
        try await bench.load()
        var versions: [StoredEntry.Version] = []
        for _ in 0..<2 {
            #expect(try await bench.cache.markStale(.all) == 1)
            versions += try await store.list(
                after: nil,
                limit: 9,
                now: StoreInstant(milliseconds: bench.clock.timestamp.millisecondsSinceEpoch)
            ).listed.map(\.entry.version)
        }
        #expect(versions.count == 2 && versions[0] < versions[1])
    }

    @Test(
        "It is never served stale: not for a failing origin, nor to a caller that accepts anything stored",
        arguments: [
            ScriptedTransport.Step.fail(progress: .notSent), .respond(503, body: "down"),
        ]
    )
    func noStandIn(step: ScriptedTransport.Step) async throws {
        let bench = CacheBench([.respond(200, Self.tagged, body: "one"), step, step])
        try await bench.load()
        try await bench.cache.markStale(.all)
        var request = URLRequest.get()
        for policy in [URLRequest.CachePolicy.useProtocolCachePolicy, .returnCacheDataElseLoad] {
            request.cachePolicy = policy
            let answer = try? await bench.load(request)
            #expect(answer?.body != "one")
        }
        request.cachePolicy = .returnCacheDataDontLoad
        await #expect(throws: ServiceError.self) { try await bench.load(request) }
        #expect(bench.sends == 3)
    }

    @Test("Without a validator the response is fetched again")
    func withoutValidator() async throws {
        let fields: HeaderFields = ["Cache-Control": "max-age=60"]
        let bench = CacheBench([.respond(200, fields, body: "one"), .respond(200, fields, body: "two")])
        try await bench.load()
        #expect(try await bench.cache.markStale(.all) == 1)
        #expect(try await bench.load() == .network("two"))
        #expect(try await bench.load() == .fresh("two"))
    }

    @Test(
        "A stored part is revalidated like a whole, before it answers its range or is completed (RFC 9111 §3.4)"
    )
    func parts() async throws {
        let part: HeaderFields = ["Cache-Control": "max-age=60", "ETag": "\"v\"", "Content-Range": "bytes 0-3/8"]
        let rest: HeaderFields = ["Cache-Control": "max-age=60", "ETag": "\"v\"", "Content-Range": "bytes 4-7/8"]
        let bench = CacheBench([.respond(206, part, body: "abcd"), .respond(304), .respond(206, rest, body: "efgh")])
        let request = URLRequest.get("http://origin.example/a", ["Range": "bytes=0-3"])
        try await bench.load(request)
        #expect(try await bench.load(request) == .fresh("abcd", 206))
        #expect(try await bench.cache.markStale(.all) == 1)
        #expect(try await bench.load(request) == .init(status: 206, body: "abcd", source: .revalidated))
        #expect(try await bench.load(request) == .fresh("abcd", 206))
        #expect(try await bench.cache.markStale(.all) == 1)
        #expect(try await bench.load().body == "abcdefgh")
        #expect(bench.sent("If-Range") == [nil, nil, "\"v\""])
        #expect(try await bench.load() == .fresh("abcdefgh"))
    }

    @Test("The mark survives a restart")
    func restart() async throws {
        let transport = ScriptedTransport([.respond(200, Self.tagged, body: "one"), .respond(304)])
        try await DiskCacheTests.withDirectory { directory in
            for run in 0..<2 {
                let cache = try await HTTPCache.onDisk(at: directory)
                let response = try await Pipeline(transport: transport, cache: cache).send(.get())
                #expect(try await response.body.data() == Data("one".utf8))
                #expect(response.source == (run == 0 ? .network(attempts: 1) : .revalidated))
                try await cache.markStale(.all)
                await cache.close()
            }
        }
    }

    @Test(
        "A response that is being stored when its URL is purged does not appear afterwards",
        arguments: EachStore.allCases,
        [false, true]
    )
    func whileStoring(kind: EachStore, softly: Bool) async throws {
        try await kind.with { store in
            let bench = CacheBench(
                [.stream(200, Self.tagged, chunks: ["a", "b"]), .respond(200, Self.tagged, body: "new")],
                store: store
            )
            let response = try await bench.pipeline.send(.get())
            #expect(try await bench.cache.purge(.all, softly: softly) == 0)
            #expect(try await response.body.data() == Data("ab".utf8))
            #expect(store.statistics.entryCount == 0)
            #expect(try await bench.load() == .network("new"))
        }
    }

    @Test("A response to a request in progress when its URL was purged is not stored", arguments: [false, true])
    func whileSending(softly: Bool) async throws {
        let bench = CacheBench([
            .respond(200, Self.tagged, body: "old").delayed(by: .seconds(5)), .respond(200, Self.tagged, body: "new"),
        ])
        let pipeline = bench.pipeline
        let call = Task { try await pipeline.send(.get()) }
        try await bench.transport.waitForSends(1)
        try await bench.cache.purge(.url(try #require(URL.origin)), softly: softly)
        bench.clock.advance(by: .seconds(5))
        let decision = try await call.value.cacheDecision
        #expect(decision?.storage == .notStored(.overtaken))
        #expect(try await bench.load() == .network("new"))
    }

    @Test("A 304 to a request that was sent before the purge does not remove the mark")
    func whileValidating() async throws {
        let bench = CacheBench([
            .respond(200, Self.tagged, body: "one"), .respond(304).delayed(by: .seconds(5)), .respond(304),
        ])
        try await bench.load()
        var revalidating = CallOptions()
        revalidating.cache = .revalidate
        let (pipeline, options) = (bench.pipeline, revalidating)
        let call = Task { try await pipeline.send(.get(), options: options) }
        try await bench.transport.waitForSends(2)
        #expect(try await bench.cache.markStale(.all) == 1)
        bench.clock.advance(by: .seconds(5))
        #expect(try await call.value.source == .revalidated)
        #expect(try await bench.load() == .revalidated("one"))
        #expect(bench.sends == 3)
    }

    @Test("Nor does it if another process, or another cache over the same store, has set the mark")
    func whileValidatingElsewhere() async throws {
        let store = FaultyStore()
        let bench = CacheBench(
            [.respond(200, Self.tagged, body: "one"), .respond(304).delayed(by: .seconds(5)), .respond(304)],
            store: store
        )
        try await bench.load()
        var revalidating = CallOptions()
        revalidating.cache = .revalidate
        let (pipeline, options) = (bench.pipeline, revalidating)
        let call = Task { try await pipeline.send(.get(), options: options) }
        try await bench.transport.waitForSends(2)
        #expect(try await HTTPCache(store: store).markStale(.all) == 1)
        bench.clock.advance(by: .seconds(5))
        _ = try await call.value
        #expect(try await bench.load() == .revalidated("one"))
    }

    @Test(
        "An entry that is freshened or replaced before it is marked is still marked, and a removed one stays removed"
    )
    func meanwhile() async throws {
        let store = FaultyStore()
        let bench = CacheBench(
            [
                .respond(200, Self.tagged, body: "one"), .respond(304), .respond(304),
                .respond(200, Self.tagged, body: "two"), .respond(304),
            ],
            store: store
        )
        var options = CallOptions()
        options.cache = .revalidate
        let (pipeline, cache, asking) = (bench.pipeline, bench.cache, options)
        try await bench.load()
        for _ in 0..<2 {
            store.beforeReplacing.withLock {
                $0 = { _ = try? await pipeline.send(.get(), options: asking).body.collect() }
            }
            #expect(try await cache.markStale(.all) == 1)
            #expect(try await bench.load().source == .revalidated)
        }
        #expect(try await bench.load() == .fresh("two"))
        #expect(bench.sends == 5)
        store.beforeReplacing.withLock { $0 = { _ = try? await cache.remove(.all) } }
        #expect(try await cache.markStale(.all) == 0)
        #expect(store.statistics.entryCount == 0)
    }

    @Test(
        "If the store fails, the purge says so; what cannot be marked is removed, and what cannot be removed stays",
        arguments: [false, true]
    )
    func failure(softly: Bool) async throws {
        let store = FaultyStore()
        let transport = ScriptedTransport([.respond(200, Self.tagged, body: "x")], repeatsLastStep: true)
        let bench = CacheBench(transport, store: store)
        for path in ["a", "b"] { try await bench.load(.get("http://origin.example/\(path)")) }
        store.fault.withLock { $0 = softly ? .replace : .purge }
        let error = await #expect(throws: StoreError.self) { try await bench.cache.purge(.all, softly: softly) }
        #expect(error?.code == .io)
        store.fault.withLock { $0 = nil }
        #expect(store.statistics.entryCount == (softly ? 0 : 2))
        #expect(try await bench.load(.get("http://origin.example/a")) == (softly ? .network("x") : .fresh("x")))
        #expect(try await bench.cache.purge(.all, softly: softly) == (softly ? 1 : 2))
    }
}

extension URL {
    fileprivate static var origin: URL? { URL(string: "http://origin.example/a") }
}

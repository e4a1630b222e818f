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

@Suite("Storing while the body passes through", .timeLimit(.minutes(20)))
struct StreamingStoreTests {
    static let cacheable: HeaderFields = ["Cache-Control": "max-age=60"]

    @Test("A streamed body is stored when it was read to its end, not before")
    func streamed() async throws {
        let bench = CacheBench([.stream(200, Self.cacheable, chunks: ["on", "e"], length: 3), .respond(body: "again")])
        let response = try await bench.pipeline.send(.get())
        var chunks = response.body.makeAsyncIterator()
        #expect(try await chunks.next() == ByteChunk(copying: "on".utf8))
        #expect(bench.cache.store.statistics.entryCount == 0)
        #expect(try await chunks.next() == ByteChunk(copying: "e".utf8))
        #expect(try await chunks.next() == nil)
        #expect(bench.cache.store.statistics.entryCount == 1)
        #expect(try await bench.load() == .fresh("one"))
        #expect(bench.events.events(.responseStored).count == 1)
    }

    @Test(
        "An incomplete response never becomes an entry (RFC 9111 §3.3)",
        arguments: [
            ScriptedTransport.Step.stream(200, cacheable, chunks: ["on"], length: 3),
            .stream(200, cacheable, chunks: ["on", "ee"], length: 3),
            .stream(
                200,
                cacheable,
                chunks: ["on"],
                failure: ServiceError(.connectionLost, "scripted", progress: .bytesReceived)
            ),
        ]
    )
    func incomplete(_ step: ScriptedTransport.Step) async throws {
        let bench = CacheBench([step, .respond(200, ["Cache-Control": "no-store"], body: "whole")])
        _ = try? await bench.load()
        #expect(try await bench.load() == .network("whole"))
        #expect(bench.cache.store.statistics.entryCount == 0)
        #expect(bench.cache.store.statistics.bytesUsed == 0)
    }

    @Test("A body dropped or discarded half-read leaves nothing", arguments: [true, false])
    func dropped(_ discards: Bool) async throws {
        let bench = CacheBench([.stream(200, Self.cacheable, chunks: ["on", "e"])])
        func readOne() async throws {
            let response = try await bench.pipeline.send(.get())
            var chunks = response.body.makeAsyncIterator()
            _ = try await chunks.next()
            if discards { response.body.discard() }
        }
        try await readOne()
        #expect(bench.cache.store.statistics.entryCount == 0)
        #expect(bench.cache.store.statistics.bytesUsed == 0)
        #expect(bench.events.events(.bodyEnded).count == 1)
    }

    @Test(
        "A body that contradicts Content-Length is not stored, in memory or as a stream",
        arguments: [true, false]
    )
    func contentLength(_ streams: Bool) async throws {
        let fields: HeaderFields = ["Cache-Control": "max-age=60", "Content-Length": "10"]
        let step: ScriptedTransport.Step =
            streams ? .stream(200, fields, chunks: ["short"]) : .respond(200, fields, body: "short")
        let bench = CacheBench([step])
        try await bench.load()
        #expect(bench.cache.store.statistics.entryCount == 0)
    }

    @Test("A GET whose head comes after an unsafe request overtook it is not stored")
    func overtakenBeforeTheHead() async throws {
        let gate = CountWatch()
        let asked = CountWatch()
        let transport = ScriptedTransport { request in
            guard request.httpMethod == "GET" else { return .respond(204) }
            asked.increment()
            if asked.count == 1 {
                try await gate.wait(for: 1)
                return .respond(200, Self.cacheable, body: "before")
            }
            return .respond(200, Self.cacheable, body: "after")
        }
        let bench = CacheBench(transport)
        let slow = Task { try await bench.load() }
        try await asked.wait(for: 1)
        try await bench.load(.request("POST", "http://origin.example/a"))
        gate.increment()
        #expect(try await slow.value.body == "before")
        #expect(try await bench.load() == .network("after"))
        #expect(try await bench.load() == .fresh("after"))
    }

    @Test(
        "A response too large for the store is counted as delivered, not as a store failure",
        arguments: [true, false]
    )
    func tooLarge(_ streams: Bool) async throws {
        let body = String(repeating: "x", count: 5_000)
        let step: ScriptedTransport.Step =
            streams
            ? .stream(200, Self.cacheable, chunks: [body], length: 5_000) : .respond(200, Self.cacheable, body: body)
        let bench = CacheBench([step], store: MemoryStore(capacity: 1_000))
        try await bench.load()
        #expect(bench.cache.statistics.networkBytes == 5_000)
        #expect(bench.cache.statistics.storeFailures == 0)
        #expect(bench.events.events(.responseNotStored).map(\.detail) == ["too-large (limit: 250 bytes)"])
    }

    @Test("If a PUT ends while a GET is in progress, the older response is not stored")
    func overtaken() async throws {
        let bench = CacheBench([
            .stream(200, Self.cacheable, chunks: ["old"]), .respond(204), .respond(200, Self.cacheable, body: "new"),
        ])
        let slow = try await bench.pipeline.send(.get())
        try await bench.load(.request("PUT", "http://origin.example/a"))
        _ = try await slow.body.collect()
        #expect(try await bench.load() == .network("new"))
        #expect(bench.events.events(.responseNotStored).contains { $0.detail == CacheReason.overtaken.description })
    }

    @Test("A caller that leaves while the store is waited for is no failure of the store")
    func cancelledWait() async throws {
        let store = FaultyStore()
        let bench = CacheBench([.respond(200, Self.cacheable, body: "one")], store: store)
        store.code.withLock { $0 = .cancelled }
        store.fault.withLock { $0 = .lookUp }
        #expect(try await bench.load().body == "one")
        #expect(bench.cache.statistics.storeFailures == 0)
        #expect(bench.events.events(.storeFailed).isEmpty)
    }

    @Test("A store that fails at any step never breaks a request", arguments: FaultyStore.Fault.ofRequests)
    func brokenStore(_ fault: FaultyStore.Fault) async throws {
        let store = FaultyStore()
        let bench = CacheBench(
            ScriptedTransport(
                [.stream(200, ["Cache-Control": "max-age=10", "ETag": "\"v\""], chunks: ["o", "ne"])],
                repeatsLastStep: true
            ),
            store: store
        )
        if [.lookUp, .body, .replace].contains(fault) { try await bench.load() }
        bench.clock.advance(by: .seconds(20))
        store.fault.withLock { $0 = fault }
        for _ in 0..<2 {
            let answer = try await bench.load()
            #expect(answer.body == "one")
        }
        if fault != .replace { #expect(bench.cache.statistics.storeFailures > 0) }
        #expect(bench.events.events(.storeFailed).count == bench.cache.statistics.storeFailures)
        store.fault.withLock { $0 = nil }
        // What was not stored may answer from its exchange until that is over, and then nothing new would be stored.
        await bench.pipeline.drain()
        try await bench.load()
        #expect(try await bench.load() == .fresh("one"))
    }

    @Test(
        "A stored body that cannot be opened is a miss, and nothing is sent if the call may not send",
        arguments: [true, false]
    )
    func unreadableBody(_ byPolicy: Bool) async throws {
        let store = FaultyStore()
        let bench = CacheBench(
            ScriptedTransport([.respond(200, Self.cacheable, body: "one")], repeatsLastStep: true),
            store: store
        )
        try await bench.load()
        store.fault.withLock { $0 = .body }
        var request = URLRequest.get()
        var options = CallOptions()
        if byPolicy {
            request.cachePolicy = .returnCacheDataDontLoad
            await #expect(throws: ServiceError.self) { try await bench.load(request) }
        } else {
            options.cache = .onlyIfCached
            #expect(try await bench.load(request, options).status == 504)
        }
        #expect(bench.sends == 1)
        #expect(try await bench.load() == .network("one"))
    }

    @Test("Metadata that cannot be decoded is a miss and is removed")
    func damagedMetadata() async throws {
        let store = MemoryStore(capacity: 1 << 20)
        let bench = CacheBench(
            [.respond(200, Self.cacheable, body: "one"), .respond(200, Self.cacheable, body: "two")],
            store: store
        )
        try await bench.load()
        let key = StoreKey(CacheKey(method: .get, target: try TargetURI("http://origin.example/a")).framed)
        let now = StoreInstant(milliseconds: bench.clock.timestamp.millisecondsSinceEpoch)
        let entry = try #require(try await store.entries(for: key, now: now).first)
        try await store.replaceDescription(of: entry, with: EntryDescription(metadata: ByteChunk([1, 2, 3])), now: now)
        #expect(try await bench.load() == .network("two"))
        #expect(try await bench.load() == .fresh("two"))
        #expect(store.statistics.entryCount == 1)
    }
}

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

@Suite("Pinning", .timeLimit(.minutes(20)))
struct PinningTests {
    static let fields: HeaderFields = ["Cache-Control": "max-age=60", "ETag": "\"v\""]
    static let pinned = CacheSelection.matching { $0.isPinned }

    @Test("A pin survives freshening, replacement and a soft purge; unpin removes it", arguments: EachStore.allCases)
    func survives(kind: EachStore) async throws {
        try await kind.with { store in
            let bench = CacheBench(
                [
                    .respond(200, Self.fields, body: "one"), .respond(200, Self.fields, body: "x"), .respond(304),
                    .respond(200, Self.fields, body: "a longer two"),
                ],
                store: store
            )
            try await bench.load()
            try await bench.load(.get("http://origin.example/b"))
            let url = try #require(URL(string: "http://origin.example/a"))
            #expect(try await bench.cache.pin(.url(url)) == PinReport(pinned: 1))
            #expect(try await bench.cache.pin(.url(url)) == PinReport(pinned: 1))
            bench.clock.advance(by: .seconds(61))
            #expect(try await bench.load() == .revalidated("one"))
            #expect(try await bench.cache.markStale(.url(url)) == 1)
            #expect(try await bench.load() == .network("a longer two"))
            #expect(try await bench.cache.unpin(.all) == 1)
            #expect(try await bench.cache.unpin(.all) == 0)
            #expect(try await bench.cache.remove(Self.pinned) == 0)
        }
    }

    @Test("Pinned entries stay while other responses evict each other", arguments: EachStore.allCases)
    func eviction(kind: EachStore) async throws {
        try await kind.with(capacity: 1 << 20) { store in
            let transport = ScriptedTransport(
                [.respond(200, Self.fields, body: String(repeating: "x", count: 20_000))],
                repeatsLastStep: true
            )
            let bench = CacheBench(transport, store: store)
            try await bench.load()
            #expect(try await bench.cache.pin(.all).pinned == 1)
            for number in 0..<150 { try await bench.load(.get("http://origin.example/\(number)")) }
            #expect(try await bench.load().source == .fresh)
            // Which of the others go is the store's choice, and a disk store's sketch is seeded anew each time.
            #expect(bench.cache.store.statistics.entryCount < 60)
        }
    }

    @Test(
        "Pins take at most half of the capacity, and the report names what had no room",
        arguments: EachStore.allCases
    )
    func bounded(kind: EachStore) async throws {
        try await kind.with(capacity: 1 << 20) { store in
            let transport = ScriptedTransport(
                [.respond(200, Self.fields, body: String(repeating: "x", count: 90_000))],
                repeatsLastStep: true
            )
            let bench = CacheBench(transport, store: store)
            for number in 0..<6 { try await bench.load(.get("http://origin.example/\(number)")) }
            let report = try await bench.cache.pin(.all)
            #expect(report.pinned + report.refused == store.statistics.entryCount)
            #expect(report.refused > 0 && report.pinned > 0)
            #expect(report.pinned * 90_000 <= 512 << 10)
            #expect(try await bench.cache.unpin(.all) == report.pinned)
        }
    }

    @Test("An explicit purge removes pinned entries too", arguments: EachStore.allCases)
    func purged(kind: EachStore) async throws {
        try await kind.with { store in
            let bench = CacheBench([.respond(200, Self.fields, body: "x")], store: store)
            try await bench.load()
            try await bench.cache.pin(.all)
            #expect(try await bench.cache.remove(Self.pinned) == 1)
        }
    }

    @Test("A pin survives the process")
    func restart() async throws {
        let transport = ScriptedTransport([.respond(200, Self.fields, body: "x")])
        try await DiskCacheTests.withDirectory { directory in
            let first = try await HTTPCache.onDisk(at: directory)
            _ = try await Pipeline(transport: transport, cache: first).data(for: .get())
            #expect(try await first.pin(.all).pinned == 1)
            await first.close()
            let second = try await HTTPCache.onDisk(at: directory)
            #expect(try await second.unpin(.all) == 1)
            await second.close()
        }
    }

    @Test("A store failure is reported")
    func failure() async throws {
        let store = FaultyStore()
        let bench = CacheBench([.respond(200, Self.fields, body: "x")], store: store)
        try await bench.load()
        store.fault.withLock { $0 = .pin }
        await #expect(throws: StoreError.self) { try await bench.cache.pin(.all) }
        store.fault.withLock { $0 = nil }
        #expect(try await bench.load() == .fresh("x"))
    }

    @Test("What the store could show is pinned, unpinned and marked, although it failed on another record")
    func partly() async throws {
        let store = FaultyStore()
        let bench = CacheBench(
            ["one", "two"].map { .respond(200, Self.fields, body: $0) },
            store: store
        )
        try await bench.load()
        func failing(_ call: () async throws -> Void) async {
            store.fault.withLock { $0 = .purged }
            await #expect(throws: StoreError.self) { try await call() }
            store.fault.withLock { $0 = nil }
        }
        func pins() async throws -> [Bool] {
            try await store.list(after: nil, limit: .max, now: StoreInstant(milliseconds: 0)).listed.map(
                \.entry.isPinned
            )
        }
        await failing { try await bench.cache.pin(.all) }
        #expect(try await pins() == [true])
        await failing { try await bench.cache.unpin(.all) }
        #expect(try await pins() == [false])
        await failing { try await bench.cache.markStale(.all) }
        #expect(try await pins() == [false])
        #expect(try await bench.load() == .network("two"))
        #expect(bench.sent("If-None-Match").last == "\"v\"")
    }
}

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

@Suite("A long stored body with damage found while reading", .timeLimit(.minutes(20)))
struct HealingBodyTests {
    static func withDamaged(_ origin: RangeOrigin, _ body: (CacheBench) async throws -> Void) async throws {
        try await DiskCacheTests.withDirectory { directory in
            let store = try await StoreKind.open(directory)
            let bench = CacheBench(origin.transport, store: store)
            try await bench.range(nil)
            try PartFailureTests.damageBody(in: directory)
            try await body(bench)
            await store.close()
        }
    }

    @Test(
        "If the content is the same, the rest comes from the network instead of the store",
        arguments: [nil, "1000-899999"]
    )
    func healed(_ range: String?) async throws {
        let origin = RangeOrigin(length: 1_000_000)
        try await Self.withDamaged(origin) { bench in
            let answer = try await bench.range(range)
            #expect(answer.body == origin.bytes(range.map { _ in 1_000..<900_000 }))
            #expect(answer.source == .fresh)
            #expect(bench.sends == 2)
            #expect(bench.sent("If-Range").last == "\"1\"")
            let asked = try #require(bench.sent("Range").last as? String)
            let rest = try #require(RangeRequest(parsing: asked)?.ranges.first?.bounds)
            #expect(rest.lowerBound > 64 << 10 && rest.lowerBound <= 400_000)
            #expect(rest.upperBound == (range == nil ? 1_000_000 : 900_000))
            #expect(bench.cache.statistics.storeFailures == 1)
            #expect(bench.cache.store.statistics.entryCount == 0)
            #expect(try await bench.range(nil).source == .network(attempts: 1))
        }
    }

    @Test(
        "A store that has too much to do loses nothing; one that cannot read an entry loses that entry",
        arguments: [(StoreError.Code.temporarilyUnavailable, 1), (.io, 0), (.corrupt, 0)]
    )
    func failingReads(_ code: StoreError.Code, entriesLeft: Int) async throws {
        let origin = RangeOrigin(length: 300_000)
        let store = FaultyStore(capacity: 16 << 20)
        let bench = CacheBench(origin.transport, store: store)
        try await bench.range(nil)
        #expect(store.statistics.entryCount == 1)
        store.code.withLock { $0 = code }
        store.fault.withLock { $0 = .read }
        #expect(try await bench.range(nil).body == origin.bytes())
        #expect(bench.sends == 2)
        #expect(store.statistics.entryCount == entriesLeft)
    }

    @Test(
        "The reader fails if the rest has other content, cannot be fetched, or may not be requested",
        arguments: 0..<5
    )
    func notHealed(_ item: Int) async throws {
        let origin = RangeOrigin(length: 1_000_000) { $0.validator = item == 0 ? .weak : .strong }
        try await Self.withDamaged(origin) { bench in
            switch item {
            case 1: origin.change { $0.version = 2 }
            case 2: origin.change { $0.instead = .fail(.connectionLost, progress: .bodySent) }
            case 3:
                origin.change {
                    $0.instead = .respond(206, ["ETag": "\"1\"", "Content-Range": "bytes 0-0/1000000"], body: "x")
                }
            default: break
            }
            let fields = item == 4 ? ["Cache-Control": "only-if-cached"] : [:]
            let response = try await bench.pipeline.send(.get("http://origin.example/a", fields))
            await #expect(throws: ServiceError.self) { try await response.body.collect() }
            #expect(bench.sends == (item == 0 || item == 4 ? 1 : 2))
            #expect(try await bench.range(nil).body == origin.bytes())
        }
    }
}

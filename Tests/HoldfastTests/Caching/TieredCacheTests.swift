// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastStorage
import HoldfastTesting
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("A cache in memory over the disk", .timeLimit(.minutes(20)))
struct TieredCacheTests {
    private static let fields: HeaderFields = ["Cache-Control": "max-age=60000", "ETag": "\"v\""]

    @Test("Stored responses are there after a restart; hits, purges and validation use both tiers")
    func restart() async throws {
        let transport = ScriptedTransport([.respond(200, Self.fields, body: "one"), .respond(304, Self.fields)])
        try await DiskCacheTests.withDirectory { directory in
            for run in 0..<2 {
                let cache = try await HTTPCache.tiered(at: directory, memory: 1 << 20, rule: .firstHit)
                let pipeline = Pipeline(transport: transport, cache: cache)
                for call in 0..<20 {
                    let response = try await pipeline.send(.get())
                    #expect(try await response.body.data() == Data("one".utf8))
                    #expect(response.source == (run + call == 0 ? .network(attempts: 1) : .fresh))
                }
                await cache.close()
            }
            #expect(transport.sent.count == 1)
            let cache = try await HTTPCache.tiered(at: directory)
            let pipeline = Pipeline(transport: transport, cache: cache)
            try await pipeline.send(.get()).body.discard()
            try await cache.markStale(.all)
            #expect(try await pipeline.send(.get()).source == .revalidated)
            #expect(try await cache.remove(.tag("none")) ?? 0 == 0)
            #expect(try await cache.remove(.all) == 1)
            #expect(store(of: cache)?.statistics.entryCount == 0)
            await cache.close()
        }
    }

    private func store(of cache: HTTPCache) -> TieredStore? {
        cache.store as? TieredStore
    }
}

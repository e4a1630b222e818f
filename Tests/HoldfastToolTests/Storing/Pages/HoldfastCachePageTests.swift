// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    import Foundation
    import Holdfast
    import HoldfastStorage
    import HoldfastTesting
    import Testing

    #if canImport(FoundationNetworking)
        import FoundationNetworking
    #endif

    @Suite("The page on holdfast cache", .timeLimit(.minutes(20)))
    struct HoldfastCachePageTests {
        @Test("A cache is read beside the process that has it open; a pipeline over it answers and stores nothing")
        func reading() async throws {
            let held = try CacheDirectory()
            let store = try await held.open()
            try await held.sample(store)
            let directory = URL(fileURLWithPath: held.path)
            let before = try held.state()

            let cache = try await HTTPCache.onDiskReadOnly(at: directory)
            for try await info in cache.entries() where !info.isFresh {
                print(info.target, "is stale for", -info.freshnessLeft, "s")
            }

            #expect(cache.statistics.hits == 0)
            var configuration = PipelineConfiguration()
            configuration.clock = held.clock
            let origin = ScriptedTransport([.respond(200, ["Cache-Control": "max-age=60"], body: "new")])
            let pipeline = Pipeline(
                transport: origin,
                cache: cache,
                retrierFactory: NilRetrier.Factory(),
                configuration: configuration
            )
            let large = try await pipeline.send(
                URLRequest(url: #require(URL(string: "https://cdn.example/large"))),
                options: CallOptions()
            )
            #expect(large.source == .fresh)
            #expect(try await large.body.collect().count == 300_000)
            let other = try await pipeline.send(
                URLRequest(url: #require(URL(string: "https://cdn.example/other"))),
                options: CallOptions()
            )
            #expect(try await other.body.collect().count == 3)
            #expect(origin.sent.count == 1)
            await pipeline.drain()
            #expect(try held.state() == before)
            await cache.close()
            await store.close()
        }
    }
#endif

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Redis
    import Foundation
    import HoldfastSemantics
    import HoldfastStorage
    import HoldfastTestKit
    import HoldfastTesting
    import Synchronization
    import Testing

    @testable import Holdfast
    @testable import HoldfastRedis

    #if canImport(FoundationNetworking)
        import FoundationNetworking
    #endif

    @Suite(
        "One fill for a fleet that shares one Redis",
        .enabled(if: RedisServer.program != nil, "redis-server is not installed"),
        .timeLimit(.minutes(20))
    )
    struct RedisFleetTests {
        private final class Origin: Transport {
            let asked = CountWatch()
            let gate = CountWatch()
            var enforcesDeadline: Bool { false }

            func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
                asked.increment()
                try await gate.wait(for: 1)
                return Response(
                    status: .ok,
                    fields: ["Cache-Control": "max-age=60"],
                    body: ResponseBody(ByteChunk(copying: "one".utf8))
                )
            }
        }

        private static func processes(_ redis: RedisServer, _ origin: Origin) -> [(Pipeline, HTTPCache, RedisLeases)] {
            let store = MemoryStore(capacity: 16 << 20)
            return (0..<2).map { _ in
                let leases = RedisLeases(SocketLeaseServer(redis), prefix: "t:")
                var options = CacheOptions()
                // A machine that is busy must not make the calls impatient.
                (options.longestFillWait, options.fillLease) = (.seconds(900), .seconds(600))
                let cache = HTTPCache(store: FleetStore(store, leasing: leases), options: options)
                var configuration = PipelineConfiguration()
                configuration.attemptTimeout = nil
                let pipeline = Pipeline(transport: origin, cache: cache, configuration: configuration)
                return (pipeline, cache, leases)
            }
        }

        private static func calls(_ count: Int, _ pipeline: Pipeline) throws -> [Task<[UInt8], any Error>] {
            let url = try #require(URL(string: "http://origin.example/a"))
            return (0..<count).map { _ in
                Task { try await pipeline.send(URLRequest(url: url)).body.collect().array }
            }
        }

        @Test("50 callers in each of two processes cause one request")
        func coldKey() async throws {
            let redis = try RedisServer()
            let origin = Origin()
            let fleet = Self.processes(redis, origin)
            let calls = try Self.calls(50, fleet[0].0)
            try await origin.asked.wait(for: 1)
            let others = try Self.calls(50, fleet[1].0)
            // A call that came after the fill had ended would find the response in the store.
            while fleet[1].2.waiting == 0 || fleet[1].1.fetches.readers < 50 { await Task.yield() }
            origin.gate.increment()
            for call in calls + others { #expect(try await call.value == Array("one".utf8)) }
            #expect(origin.asked.count == 1)
            #expect(fleet[1].1.statistics.reasons[.filledElsewhere] == 50)
        }

        @Test("If Redis is killed while one process waits for the other, all calls of both get a response")
        func killed() async throws {
            let redis = try RedisServer()
            let origin = Origin()
            let fleet = Self.processes(redis, origin)
            let calls = try Self.calls(50, fleet[0].0)
            try await origin.asked.wait(for: 1)
            let others = try Self.calls(50, fleet[1].0)
            while fleet[1].2.waiting == 0 { await Task.yield() }
            redis.kill()
            try await origin.asked.wait(for: 2)
            origin.gate.increment()
            for call in calls + others { #expect(try await call.value == Array("one".utf8)) }
            #expect(origin.asked.count == 2)
        }
    }
#endif

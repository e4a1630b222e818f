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

@Suite("RETRY §3.6.9: a hedge below a cache", .timeLimit(.minutes(20)))
struct HedgedStoreTests {
    /// Sends two copies at once, takes the first head, cancels the other copy and drops what it brings all the same.
    struct TwiceTransport: Transport {
        let base: ScriptedTransport
        var enforcesDeadline: Bool { true }

        func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
            try await withThrowingTaskGroup(of: Response.self) { group in
                for _ in 0..<2 { group.addTask { try await base.send(request, body: body, context: context) } }
                guard let first = try await group.next() else { throw CancellationError() }
                group.cancelAll()
                while let late = await group.nextResult() { (try? late.get())?.body.discard() }
                return first
            }
        }
    }

    @Test("§3.6.9, E12: the first head wins, the loser is cancelled, and exactly one response is stored")
    func storesOnce() async throws {
        let clock = ManualClock()
        let transport = ScriptedTransport([
            .respond(200, cacheable, body: "slow").delayed(by: .seconds(5)), .respond(200, cacheable, body: "quick"),
        ])
        let cache = HTTPCache.inMemory()
        var configuration = PipelineConfiguration()
        configuration.clock = clock
        let pipeline = Pipeline(
            transport: TwiceTransport(base: transport),
            cache: cache,
            retrierFactory: .seeded(),
            configuration: configuration
        )
        let response = try await pipeline.send(.get())
        #expect(response.attempts.count == 1)
        #expect(try await response.body.collect() == ByteChunk(copying: "quick".utf8))
        #expect(transport.sent.count == 2)
        #expect(clock.sleeperCount == 0)
        let counted = cache.statistics
        #expect(counted.requests == 1 && counted.misses == 1 && counted.stored == 1)
        #expect(cache.store.statistics.entriesWritten == 1)
        let hit = try await pipeline.send(.get())
        #expect(hit.source == .fresh)
        #expect(try await hit.body.collect() == ByteChunk(copying: "quick".utf8))
        #expect(transport.sent.count == 2)
    }

    @Test("§3.6.9: calls that wait together share the hedge and the retry after it")
    func shared() async throws {
        let transport = ScriptedTransport { _ in .respond(503) }
        let cache = HTTPCache.inMemory()
        let factory = WatchedFactory { $0.waits(.seconds(10)) }
        let clock = ManualClock()
        var configuration = PipelineConfiguration()
        configuration.clock = clock
        let pipeline = Pipeline(
            transport: TwiceTransport(base: transport),
            cache: cache,
            retrierFactory: factory,
            configuration: configuration
        )
        let calls = (0..<10).map { _ in Task { try await pipeline.send(.get()).status } }
        await until { cache.fetches.readers == 10 }
        for wait in 1...2 {
            try await clock.waitForSleeps(wait)
            clock.advance(by: .seconds(10))
        }
        for call in calls { #expect(try await call.value == .serviceUnavailable) }
        #expect(transport.sent.count == 6)
        #expect(factory.made.count == 1)
        #expect(cache.store.statistics.entryCount == 0)
    }
}

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

@Suite("RETRY §3.6.8: background requests", .timeLimit(.minutes(20)))
struct BackgroundClassTests {
    static let lenient: HeaderFields = ["Cache-Control": "max-age=10, stale-while-revalidate=100"]
    let watch = AttemptWatch()

    func bench(_ steps: [ScriptedTransport.Step], _ clock: ManualClock, _ factory: any RetrierFactory) -> CacheBench {
        CacheBench(ScriptedTransport(steps), clock: clock, retrierFactory: factory, { $0.prepare = [watch.step] })
    }

    /// The ways to say that nothing may be sent.
    enum Restraint: CaseIterable, Sendable {
        case field, directive, policy
    }

    @Test("§3.6.8, E12: only-if-cached never reaches retry", arguments: Restraint.allCases)
    func onlyIfCached(_ restraint: Restraint) async throws {
        let factory = WatchedFactory()
        let bench = bench([], ManualClock(), factory)
        var request = URLRequest.get("http://origin.example/a")
        var options = CallOptions()
        switch restraint {
        case .field: request.setValue("only-if-cached", forHTTPHeaderField: "Cache-Control")
        case .directive: options.cache = .onlyIfCached
        case .policy: request.cachePolicy = .returnCacheDataDontLoad
        }
        let status = try? await bench.load(request, options).status
        #expect(status == (restraint == .policy ? nil : 504))
        #expect(factory.made.count == 0 && bench.sends == 0)
    }

    @Test("§3.6.8, E12: a refresh by stale-while-revalidate is in the background in every attempt")
    func refresh() async throws {
        let clock = ManualClock(autoAdvances: true)
        let bench = bench(
            [.respond(200, Self.lenient, body: "old"), .respond(503), .respond(200, cacheable, body: "new")],
            clock,
            .seeded()
        )
        try await bench.load()
        clock.advance(by: .seconds(20))
        #expect(try await bench.load() == .stale("old"))
        await bench.pipeline.drain()
        #expect(watch.wereBackground == [false, true, true])
        #expect(try await bench.load() == .fresh("new"))
    }

    @Test("§3.6.8: a refresh that a caller waits for is no longer in the background")
    func joined() async throws {
        let clock = ManualClock()
        let bench = bench(
            [
                .respond(200, Self.lenient, body: "old"),
                .respond(200, cacheable, body: "new").delayed(by: .seconds(500)),
            ],
            clock,
            .seeded()
        )
        try await bench.load()
        clock.advance(by: .seconds(20))
        #expect(try await bench.load() == .stale("old"))
        try await bench.transport.waitForSends(2)
        #expect(watch.areBackground.last == true)
        clock.advance(by: .seconds(200))
        let call = Task { try await bench.load() }
        await until { bench.cache.fetches.readers == 1 }
        #expect(watch.areBackground.last == false)
        call.cancel()
        _ = try? await call.value
        #expect(watch.areBackground.last == true)
    }

    @Test("§3.6.8: what a pipeline sends for another one's refresh is in the background too", arguments: [true, false])
    func nested(_ hasOwnCache: Bool) async throws {
        let clock = ManualClock(autoAdvances: true)
        var configuration = PipelineConfiguration()
        configuration.clock = clock
        configuration.prepare = [watch.step]
        let inner = Pipeline(
            transport: ScriptedTransport([
                .respond(200, Self.lenient, body: "old"), .respond(503), .respond(200, cacheable, body: "new"),
            ]),
            cache: hasOwnCache ? .inMemory() : nil,
            retrierFactory: .seeded(),
            configuration: configuration
        )
        configuration.prepare = []
        let outer = Pipeline(transport: inner, cache: .inMemory(), configuration: configuration)
        #expect(try await outer.data(for: .get()).0 == Data("old".utf8))
        clock.advance(by: .seconds(20))
        #expect(try await outer.data(for: .get()).0 == Data("old".utf8))
        await outer.drain()
        await inner.drain()
        #expect(watch.wereBackground == [false, true, true])
    }
}

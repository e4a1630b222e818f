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

@Suite("Measuring: what was saved", .timeLimit(.minutes(20)))
struct SavingTests {
    /// A bench whose origin takes `delay` to answer, by a clock that stands still otherwise.
    private static func bench(_ delay: Duration, _ fields: HeaderFields) -> CacheBench {
        let clock = ManualClock()
        let transport = ScriptedTransport { request in
            clock.advance(by: delay)
            if request.value(forHTTPHeaderField: "If-None-Match") != nil { return .respond(304) }
            return .respond(200, fields, body: "12345")
        }
        return CacheBench(transport) { $0.clock = clock }
    }

    @Test("Each fresh hit saves the time that its response took to arrive")
    func fresh() async throws {
        let bench = Self.bench(.milliseconds(120), ["Cache-Control": "max-age=60"])
        for _ in 0..<4 { try await bench.load() }
        let counted = bench.cache.statistics
        #expect(counted.hits == 3)
        #expect(counted.timeSaved == .milliseconds(360))
        #expect(counted.bytesSaved == 15)
        #expect(bench.cache.statistics(of: "http://origin.example").timeSaved == .milliseconds(360))
    }

    @Test("A 304 saves bytes but no time, and afterwards a hit saves the time of the 304")
    func revalidated() async throws {
        let bench = Self.bench(.milliseconds(80), ["Cache-Control": "no-cache", "ETag": "\"v\""])
        for _ in 0..<4 { try await bench.load() }
        let counted = bench.cache.statistics
        #expect(counted.revalidated == 3)
        #expect(counted.revalidationRatio == 0.75)
        #expect(counted.hitRatio == 0)
        #expect(counted.timeSaved == .zero)
        #expect(counted.bytesSaved == 15)
        #expect(counted.bytesFromStore == 15)
    }

    @Test("An origin that seems to take longer than a minute counts as a minute, because the clock was set")
    func longest() async throws {
        let bench = Self.bench(.seconds(3000), ["Cache-Control": "max-age=86400"])
        for _ in 0..<2 { try await bench.load() }
        #expect(bench.cache.statistics.timeSaved == .seconds(60))
    }

    @Test(
        "The time of the hit itself is subtracted, and the saving is never negative",
        arguments: [(0, 100), (30, 70), (100, 0), (5000, 0)]
    )
    func timeOfHit(took: Int, saved: Int) throws {
        let clock = ManualClock()
        let meter = CacheMeter()
        let metrics = CallMetrics(
            meter,
            target: try TargetURI("http://a.example/"),
            history: LookupHistory(begun: clock.now),
            clock: clock
        )
        clock.advance(by: .milliseconds(took))
        metrics.count(.fresh, reason: .fresh, delay: .milliseconds(100))
        #expect(meter.total.timeSaved == .milliseconds(saved))
        #expect(meter.total.hits == 1)
    }

    @Test("A clock that was set back between request and response saves nothing")
    func negative() throws {
        let clock = ManualClock()
        let meter = CacheMeter()
        let metrics = CallMetrics(meter, target: nil, history: LookupHistory(begun: clock.now), clock: clock)
        for kind in [HitKind.fresh, .stale, .revalidating, .onError] {
            metrics.count(kind, reason: .fresh, delay: .milliseconds(-100))
        }
        #expect(meter.total.timeSaved == .zero)
        #expect(meter.total.allHits == 3 && meter.total.staleOnError == 1)
        #expect(meter.total.reasons == [.fresh: 3])
    }

    @Test("Ratios computed manually: ten requests, including a bypass")
    func ratios() {
        var counts = CacheStatistics()
        (counts.requests, counts.bypasses, counts.hits, counts.staleHits) = (11, 1, 3, 1)
        (counts.revalidated, counts.collapsed, counts.misses) = (2, 1, 3)
        (counts.hitBytes, counts.revalidatedBytes, counts.collapsedBytes, counts.networkBytes) = (50, 20, 10, 120)
        #expect(counts.hitRatio == 0.4)
        #expect(counts.revalidationRatio == 0.2)
        #expect(counts.byteHitRatio == 0.25)
        #expect(counts.bytesSaved == 80)
        #expect(counts.bytesFromStore == 70)
    }

    @Test("Sums and differences include every figure")
    func sums() {
        var one = CacheStatistics()
        for (index, figure) in [
            \CacheStatistics.requests, \.hits, \.staleHits, \.revalidatingHits, \.staleOnError,
            \.revalidated, \.collapsed, \.misses, \.bypasses, \.stored, \.storeFailures, \.backgroundRevalidations,
            \.backgroundFailures, \.hitBytes, \.staleOnErrorBytes, \.revalidatedBytes, \.collapsedBytes, \.networkBytes,
        ].enumerated() {
            one[keyPath: figure] = index + 1
        }
        one.timeSaved = .milliseconds(7)
        one.reasons = [.stale: 2]
        one.notStored = [.varyStar: 3]
        // Whoever adds a figure adds it to the sums: each is an Int of eight bytes, or one of the three that are none.
        let others = MemoryLayout<[CacheReason: Int]>.size * 2 + MemoryLayout<Duration>.size
        #expect(MemoryLayout<CacheStatistics>.size - others == 18 * 8)
        var two = one
        two += one
        #expect(two != one)
        #expect(two.networkBytes == 36)
        #expect(two.timeSaved == .milliseconds(14))
        #expect(two.reasons == [.stale: 4])
        #expect(two - one == one)
        #expect(one - one == CacheStatistics())
    }
}

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

@Suite("Measuring: windows of minutes", .timeLimit(.minutes(20)))
struct WindowTests {
    private static func ring(_ length: Int, _ counts: [(minute: Int64, hits: Int)]) -> MinuteRing {
        var ring = MinuteRing(length: length)
        for step in counts { ring.count(in: step.minute) { $0.hits += step.hits } }
        return ring
    }

    @Test(
        "A window contains its minutes, including those without requests",
        arguments: [
            (0..<1, 1), (0..<2, 3), (1..<2, 2), (2..<5, 0), (2..<6, 4), (5..<6, 4), (5..<90, 4), (0..<90, 7),
            (6..<90, 0),
        ] as [(Range<Int64>, Int)]
    )
    func minutes(_ minutes: Range<Int64>, _ hits: Int) {
        let ring = Self.ring(9, [(0, 1), (1, 2), (5, 1), (5, 3)])
        #expect(ring.counts(in: minutes).hits == hits)
    }

    @Test("Minutes older than the ring are left out, and the sum since the start stays")
    func bound() {
        let ring = Self.ring(3, (0..<10).map { (minute: Int64($0), hits: 1) })
        #expect(ring.counts(in: 0..<10).hits == 4)
        #expect(ring.counts(in: 6..<10).hits == 4)
        #expect(ring.counts(in: 7..<9).hits == 2)
        #expect(ring.counts.hits == 10)
    }

    @Test("A minute that has ended counts as the current one, because another pipeline's clock may be behind")
    func backwards() {
        let ring = Self.ring(3, [(5, 1), (4, 1)])
        #expect(ring.counts(in: 5..<6).hits == 2)
        #expect(ring.counts(in: 4..<5).hits == 0)
    }

    @Test("It agrees with a plain list of counts for random input (seeded)", arguments: [1, 2, 3, 4, 5] as [UInt64])
    func model(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let length = Int.random(in: 1...7, using: &random)
        var ring = MinuteRing(length: length)
        var list: [(minute: Int64, hits: Int)] = []
        var minute: Int64 = 0
        for _ in 0..<400 {
            minute += Int64.random(in: 0...2, using: &random)
            let hits = Int.random(in: 0...3, using: &random)
            ring.count(in: minute) { $0.hits += hits }
            list.append((minute, hits))
            // The ring surely has the running minute and so many before it.
            let low = minute - Int64.random(in: 0...Int64(length), using: &random)
            let high = Int64.random(in: low...minute + 2, using: &random)
            let expected = list.filter { low <= $0.minute && $0.minute < high }.map(\.hits).reduce(0, +)
            #expect(ring.counts(in: low..<high).hits == expected, "seed \(seed), \(low)..<\(high)")
        }
    }

    @Test("A cache reports the last minutes, in total and one by one, by the pipeline's clock")
    func cache() async throws {
        let bench = CacheBench(
            ScriptedTransport { _ in .respond(200, ["Cache-Control": "max-age=86400"], body: "12345") }
        )
        try await bench.load()
        for _ in 0..<2 { try await bench.load() }
        bench.clock.advance(by: .seconds(60))
        try await bench.load()
        bench.clock.advance(by: .seconds(120))
        for _ in 0..<4 { try await bench.load() }
        let (cache, now) = (bench.cache, bench.clock.now)
        #expect(cache.statistics(overLast: .seconds(60), now: now).hits == 4)
        #expect(cache.statistics(overLast: .seconds(61), now: now).hits == 5)
        let hour = cache.statistics(overLast: .seconds(3600), now: now)
        #expect(hour == cache.statistics)
        #expect(hour.hits == 7)
        #expect(hour.hitBytes == 35)
        #expect(cache.statistics(overLast: .seconds(60), now: now).hitBytes == 20)
        #expect(cache.statistics(overLast: .seconds(60), now: now).misses == 0)
        #expect(cache.statisticsByMinute(overLast: .seconds(180), now: now).map(\.requests) == [3, 1, 0, 4])
        #expect(cache.statistics(of: "http://origin.example", overLast: .seconds(120), now: now).hits == 5)
        bench.clock.advance(by: .seconds(3600))
        #expect(cache.statistics(overLast: .seconds(3600), now: bench.clock.now).hits == 4)
        bench.clock.advance(by: .seconds(60))
        #expect(cache.statistics(overLast: .seconds(1_000_000), now: bench.clock.now) == CacheStatistics())
    }

    @Test("Reasons are counted per window too")
    func reasons() async throws {
        let bench = CacheBench(ScriptedTransport { _ in .respond(200, ["Cache-Control": "no-store"], body: "1") })
        try await bench.load()
        bench.clock.advance(by: .seconds(180))
        for _ in 0..<2 { try await bench.load() }
        let window = bench.cache.statistics(overLast: .seconds(60), now: bench.clock.now)
        #expect(window.notStored.values.reduce(0, +) == 2)
        #expect(window.reasons.values.reduce(0, +) == 2)
        #expect(bench.cache.statistics.notStored.values.reduce(0, +) == 3)
    }
}

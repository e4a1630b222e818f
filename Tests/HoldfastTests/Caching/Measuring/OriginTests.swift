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

@Suite("Measuring: by origin", .timeLimit(.minutes(20)))
struct OriginTests {
    private static func origin(_ number: Int) throws -> CountedOrigin {
        CountedOrigin(of: try TargetURI("http://h\(number).example/path"))
    }

    @Test("Scheme, host and port identify an origin, and nothing else does")
    func kinds() async throws {
        let bench = CacheBench(
            ScriptedTransport { request in
                .respond(200, ["Cache-Control": "max-age=60"], body: request.url?.query == nil ? "12345" : "123")
            }
        )
        for url in [
            "http://a.example/1", "http://A.example:80/1", "http://a.example/2?q", "https://a.example/1",
            "http://a.example:81/1", "http://a.example:81/1", "http://a.example:81/1",
        ] {
            try await bench.load(.get(url))
        }
        let cache = bench.cache
        let plain = cache.statistics(of: "http://a.example")
        #expect(plain.requests == 3)
        #expect(plain.hits == 1)
        #expect(plain.hitBytes == 5)
        #expect(plain.networkBytes == 8)
        #expect(cache.statistics(of: "http://a.example:80/some/path") == plain)
        #expect(cache.statistics(of: "https://a.example:443").requests == 1)
        #expect(cache.statistics(of: "http://a.example:81").hitRatio == 2.0 / 3.0)
        #expect(cache.statistics(of: "http://b.example") == CacheStatistics())
        #expect(cache.statistics(of: "no URL at all") == CacheStatistics())
        let each = cache.originStatistics
        #expect(
            each.map(\.origin) == ["http://a.example", "http://a.example:81", "https://a.example", nil]
        )
        #expect(each.last?.statistics == CacheStatistics())
        var sum = CacheStatistics()
        for origin in each { sum += origin.statistics }
        #expect(sum == cache.statistics)
    }

    @Test("A URL that cannot be a key counts under the others")
    func noKey() async throws {
        let bench = CacheBench(ScriptedTransport { _ in .respond(200, [:], body: "1") })
        _ = try? await bench.load(.get("ftp://a.example/"))
        #expect(bench.cache.originStatistics.count == 1)
        #expect(bench.cache.originStatistics.last?.statistics.bypasses == 1)
        #expect(bench.cache.statistics.requests == 1)
    }

    @Test("The number of origins is limited; one that loses its place moves to the others, and the sum stays")
    func bound() throws {
        var state = MeterState(places: 8)
        for number in 0..<1000 {
            let origin = try Self.origin(number)
            state.arrive(from: origin, in: 0)
            state.count(for: origin, in: 0) { $0.misses += 1 }
            #expect(state.origins.count == min(number + 1, 8))
        }
        var sum = state.other
        for origin in state.origins { sum += origin.ring.counts }
        #expect(sum == state.total.counts)
        #expect(sum.requests == 1000)
        #expect(sum.misses == 1000)
    }

    @Test("An origin with more than its share of the requests keeps its place, whatever else is requested")
    func heavy() throws {
        var state = MeterState(places: 8)
        // A quarter each, and the rest of the requests to origins that are seen once.
        for number in 0..<4000 {
            let name = number % 4 < 2 ? number % 4 : 10 + number
            state.arrive(from: try Self.origin(name), in: Int64(number / 100))
        }
        for number in 0..<2 {
            let found = state.origins.first { $0.name == "http://h\(number).example" }
            #expect(found?.ring.counts.requests == 1000)
        }
    }

    @Test("An origin that was popular long ago gives way to one that is popular now")
    func recent() throws {
        var state = MeterState(places: 2)
        for _ in 0..<4000 { state.arrive(from: try Self.origin(0), in: 0) }
        for _ in 0..<100 { state.arrive(from: try Self.origin(1), in: 0) }
        for minute in 1..<200 {
            for number in 2..<4 { state.arrive(from: try Self.origin(number), in: Int64(minute)) }
            for number in 2..<4 { state.arrive(from: try Self.origin(number), in: Int64(minute)) }
        }
        #expect(Set(state.origins.map(\.name)) == ["http://h2.example", "http://h3.example"])
    }

    @Test("A cache shows 64 origins and the others, with and without four stripes")
    func manyOrigins() async throws {
        let bench = CacheBench(ScriptedTransport { _ in .respond(200, ["Cache-Control": "no-store"], body: "1") })
        for number in 0..<300 { try await bench.load(.get("http://h\(number).example/")) }
        for _ in 0..<20 { try await bench.load(.get("http://much.example/")) }
        let each = bench.cache.originStatistics
        #expect(each.count == 65)
        #expect(each.first?.origin == "http://much.example")
        #expect(each.map(\.statistics.requests).reduce(0, +) == 320)
        var sum = CacheStatistics()
        for origin in each { sum += origin.statistics }
        #expect(sum == bench.cache.statistics)
    }

    @Test("With many tasks at once nothing is lost, and no call counts twice")
    func together() async throws {
        let meter = CacheMeter()
        let clock = ManualClock()
        await withTaskGroup(of: Void.self) { group in
            for task in 0..<8 {
                group.addTask {
                    for number in 0..<500 {
                        let target = try? TargetURI("http://h\((task + number) % 5).example/")
                        let metrics = CallMetrics(
                            meter,
                            target: target,
                            history: LookupHistory(begun: clock.now),
                            clock: clock
                        )
                        metrics.arrive()
                        await Task.yield()
                        metrics.count { $0.misses += 1 }
                        metrics.count(3, bodySource: .network)
                    }
                }
            }
        }
        #expect(meter.total.requests == 4000)
        let (each, other) = meter.origins
        #expect(other == CacheStatistics())
        #expect(each.count == 5)
        for origin in each {
            #expect(origin.counts.requests == 800)
            #expect(origin.counts.misses == 800)
            #expect(origin.counts.networkBytes == 2400)
        }
    }

    @Test("The hash of an origin depends on its text and on nothing else in the URL")
    func hashes() throws {
        let hashes = try ["http://a.example/1", "http://u:p@A.example:80/2?q", "http://a.example"].map {
            CountedOrigin(of: try TargetURI($0)).hash
        }
        #expect(Set(hashes).count == 1)
        for text in ["http://a.example/", "http://a.example:8/b/c?d=/", "https://[::1]/"] {
            let target = try TargetURI(text)
            let length = TargetURI.originLength(ofCanonical: text)
            #expect(length == target.originLength)
            let origin = CountedOrigin(canonical: text, originLength: length)
            #expect(origin.hash == CountedOrigin(of: target).hash)
            #expect(origin.name == target.origin)
        }
        #expect(CountedOrigin(of: try TargetURI("http://a.example:8/")).hash != hashes[0])
        #expect(CountedOrigin(of: try TargetURI("https://a.example/")).hash != hashes[0])
    }
}

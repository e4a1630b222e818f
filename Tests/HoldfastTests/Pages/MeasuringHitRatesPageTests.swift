// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastSimulation
import HoldfastStorage
import HoldfastTesting
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The code of docs/measuring-hit-rates.md, block by block, and of README.md on statistics.
@Suite("Page: Measuring hit rates", .timeLimit(.minutes(20)))
struct MeasuringHitRatesPageTests {
    private let bench = CacheBench(
        ScriptedTransport([.respond(200, ["Cache-Control": "max-age=60"], body: "hello")], repeatsLastStep: true)
    )

    private func load(times: Int) async throws {
        for _ in 1...times { try await bench.load(.get("https://shop.example/a")) }
        await bench.pipeline.drain()
    }

    @Test("What the cache did")
    func ratios() async throws {
        let cache = bench.cache
        try await load(times: 4)
        print(cache.statistics.hitRatio, cache.statistics.byteHitRatio)
        #expect(cache.statistics.hitRatio == 0.75 && cache.statistics.byteHitRatio == 0.75)
    }

    @Test("Live figures")
    func live() async throws {
        let cache = bench.cache
        // The page reads windows by the system's clock.
        bench.clock.advance(by: bench.clock.now.duration(to: SystemClock().now))
        try await load(times: 2)
        let counted = cache.statistics  // since the cache was made
        let lately = cache.statistics(overLast: .seconds(300))  // the running minute and five before it
        let shop = cache.statistics(of: "https://shop.example")  // one origin
        for origin in cache.originStatistics {
            print(origin.origin ?? "others", origin.statistics.hitRatio, origin.statistics.timeSaved)
        }
        #expect(counted.hits == 1 && lately.hits == 1 && shop.hits == 1)
        #expect(cache.originStatistics.first?.origin == "https://shop.example")
    }

    @Test("Recording")
    func recording() async throws {
        let cache = bench.cache
        let folder = try Folder()
        let file = folder.url.appendingPathComponent("shop.trace")
        let recorder = HitRateRecorder(rate: 0.1)  // a tenth of all URLs
        cache.record(with: recorder)
        try await load(times: 3)
        print(recorder.estimate(capacities: [64 << 20, 256 << 20]).map(\.description))
        try recorder.write(to: file)  // for `hitrate --trace`
        #expect(recorder.estimate(capacities: [64 << 20, 256 << 20]).count == 2)
        #expect(FileManager.default.fileExists(atPath: file.path))
    }

    @Test("The recorder of README.md")
    func readme() async throws {
        let cache = bench.cache
        print(cache.statistics.hitRatio, cache.statistics.byteHitRatio, cache.statistics.timeSaved)

        let recorder = HitRateRecorder(rate: 0.1)  // a tenth of all URLs, hashed
        cache.record(with: recorder)
        try await load(times: 3)
        print(recorder.estimate(capacities: [64 << 20, 256 << 20]))  // import HoldfastSimulation
        #expect(recorder.estimate(capacities: [64 << 20, 256 << 20]).count == 2)
    }

    private struct LogLine {
        let target: TargetURI
        let bodyLength: Int
    }

    private func writeTrace(of log: [LogLine], to path: String) throws {
        var trace = RequestTrace()
        for line in log {
            trace.append(RequestHead(target: line.target), bodyLength: line.bodyLength)
        }
        try trace.write(to: path)
    }

    @Test("A log, a trace, a simulator, a curve")
    func simulator() throws {
        let folder = try Folder()
        let path = folder.url.appendingPathComponent("shop.trace").path
        let log = try (0..<4_000).map { number in
            LogLine(target: try TargetURI("https://shop.example/\(number * number % 997)"), bodyLength: 4_096)
        }
        try writeTrace(of: log, to: path)

        let trace = try RequestTrace(contentsOf: path)
        var simulator = HitRateSimulator()
        for megabytes in [64, 256, 1_024] {
            simulator.add(.memory, capacity: megabytes << 20)
            simulator.add(.lru, capacity: megabytes << 20)
        }
        simulator.replay(trace)
        for result in simulator.results {
            print(result.policy, result.capacity, result.objectHitRatio, result.byteHitRatio, result.evictions)
        }
        #expect(trace.requests.count == 4_000)
        #expect(simulator.results.count == 6)
        #expect(simulator.results.allSatisfy { $0.objectHitRatio > 0 })

        let curves = [EvictionStrategy.memory, .lru].map { MissRatioCurve($0, trace: trace) }
        let enough = curves[0].smallestSize(missingAtMost: 0.4)
        let svg = MissRatioPlot(title: "shop", curves: curves).svg

        let lru = StackDistances(trace)
        print(lru.hitRatio(capacity: 256 << 20), lru.curve().missRatio(at: 100e6) ?? .nan)
        #expect(enough != nil)
        #expect(svg.hasPrefix("<svg"))
        #expect(lru.hitRatio(capacity: 256 << 20) > 0)
    }
}

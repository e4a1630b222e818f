// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Holdfast
import HoldfastSimulation
import HoldfastStorage
import Testing

func trace(of log: [(path: String, bytes: UInt32)]) -> RequestTrace {
    var trace = RequestTrace()
    for line in log { trace.append(name: line.path, size: line.bytes) }
    return trace
}

func compare(_ trace: RequestTrace, capacities: [Int]) -> [HitRateResult] {
    var simulator = HitRateSimulator()
    for capacity in capacities {
        simulator.add(.memory, capacity: capacity)
        simulator.add(.lru, capacity: capacity)
    }
    simulator.replay(trace)
    return simulator.results
}

func smallestSize(_ trace: RequestTrace, missingAtMost ratio: Double) -> Double? {
    MissRatioCurve(.memory, trace: trace).smallestSize(missingAtMost: ratio)
}

/// The code of `HoldfastSimulation.docc`: articles, and the steps from first to last.
@Suite("Catalog: HoldfastSimulation", .timeLimit(.minutes(20)))
struct HoldfastSimulationCatalogTests {
    private let log = (0..<4_000).map { (path: "/\($0 * $0 % 997)", bytes: UInt32(4_096)) }

    @Test("Choosing a size")
    func sizes() {
        let log = log
        var trace = RequestTrace()
        for line in log { trace.append(name: line.path, size: line.bytes) }
        #expect(trace.requests.count == 4_000)
        var simulator = HitRateSimulator()
        for capacity in [1 << 20, 4 << 20] {
            simulator.add(.memory, capacity: capacity)
            simulator.add(.lru, capacity: capacity)
        }
        simulator.replay(trace)
        for result in simulator.results {
            print(result.policy, result.capacity, result.objectHitRatio, result.byteHitRatio)
        }
        #expect(simulator.results.count == 4)
        let curve = MissRatioCurve(.memory, trace: trace)
        let plot = MissRatioPlot(title: "shop", curves: [curve])
        print(curve.smallestSize(missingAtMost: 0.5) ?? 0, plot.svg.count)
        #expect(curve.points.count > 1)
        let best = BeladyBound(trace).replay(.largest, capacity: 4 << 20)
        print(best.objectHitRatio)
        #expect(simulator.results.allSatisfy { $0.capacity < 4 << 20 || $0.hits <= best.hits })
    }

    @Test("Trying a retry policy")
    func storm() async throws {
        var rules = RetryRules.default
        rules.budget = .ratio(0.2)
        var scenario = StormScenario.outage.scaled(to: 0.1)
        scenario.seeds = [1]
        let figures = try await Storm(scenario).run(StormSubject("mine", rules: rules)).figures
        print(figures.load, figures.success, figures.recoverySeconds ?? 0)
        #expect(figures.load < 1.5)
    }

    @Test("The tutorial")
    func tutorial() {
        let requests = trace(of: log)
        let results = compare(requests, capacities: [1 << 20, 4 << 20])
        #expect(results.map(\.policy) == ["memory", "lru", "memory", "lru"])
        #expect(results[3].objectHitRatio == requests.unboundedObjectHitRatio)
        #expect((smallestSize(requests, missingAtMost: 0.5) ?? .infinity) <= 4_194_304)
    }
}

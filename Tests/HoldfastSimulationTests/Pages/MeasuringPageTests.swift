// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSimulation
import HoldfastStorage
import Testing

/// The code of docs/measuring-hit-rates.md, so that what stands there compiles and does what it says.
@Suite("The page on measuring hit rates")
struct MeasuringPageTests {
    private struct MyPolicy: EvictionPolicy {
        let capacity = 0
        let used = 0
        let count = 0
        let metadataBytes = 0
        func holds(_ slot: Slot) -> Bool { false }
        mutating func use(_ slot: Slot) {}
        mutating func insert(_ slot: Slot, key: UInt64, size: Int, victims: inout [Slot]) { victims.append(slot) }
        mutating func remove(_ slot: Slot) {}
        mutating func resize(_ slot: Slot, to size: Int, victims: inout [Slot]) {}
        mutating func setCapacity(_ capacity: Int, victims: inout [Slot]) {}
    }

    private func shop() -> RequestTrace {
        var trace = RequestTrace()
        for index in 0..<3_000 {
            trace.append(name: "/\(index * index % 701)", size: UInt32(index * index % 701 + 1) << 12)
        }
        return trace
    }

    @Test("In your own program: policies and sizes in one pass, a custom policy among them")
    func simulator() throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let file = directory.path + "/shop.trace"
        try shop().write(to: file)

        let trace = try RequestTrace(contentsOf: file)
        var simulator = HitRateSimulator()
        for megabytes in [64, 256, 1_024] {
            simulator.add(.memory, capacity: megabytes << 20)
            simulator.add(.lru, capacity: megabytes << 20)
        }
        simulator.add(MyPolicy(), name: "mine")
        simulator.replay(trace)
        #expect(simulator.results.map(\.policy) == ["memory", "lru", "memory", "lru", "memory", "lru", "mine"])
        #expect(simulator.results[5].objectHitRatio == trace.unboundedObjectHitRatio)
        #expect(simulator.results[6].hits == 0 && simulator.results[6].evictions == 0)

        var streaming = HitRateSimulator()
        streaming.add(.lru, capacity: 64 << 20)
        try streaming.replay(contentsOf: file)
        #expect(streaming.results[0] == simulator.results[1])
    }

    @Test("In your own program: curves, their plot, and LRU's whole curve from one pass")
    func curves() throws {
        let trace = shop()
        let curves = [EvictionStrategy.memory, .lru].map { MissRatioCurve($0, trace: trace) }
        #expect(curves[0].smallestSize(missingAtMost: 0.4) != nil)
        let svg = MissRatioPlot(title: "shop", curves: curves).svg
        #expect(svg.hasPrefix("<svg ") && svg.contains(">memory<") && svg.contains(">lru<"))
        let lru = StackDistances(trace)
        #expect(lru.hitRatio(capacity: 256 << 20) > 0)
        #expect(lru.curve().missRatio(at: 100e6) != nil)
    }
}

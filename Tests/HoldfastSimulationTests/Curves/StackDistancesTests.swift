// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastTesting
import Testing

@testable import HoldfastSimulation
@testable import HoldfastStorage

@Suite("LRU at every size in one pass")
struct StackDistancesTests {
    private func lru(_ trace: RequestTrace, _ capacity: Int) -> HitRateResult {
        var simulator = HitRateSimulator()
        simulator.add(.lru, capacity: capacity)
        simulator.replay(trace)
        return simulator.results[0]
    }

    @Test("Computed manually: a b c a a b with sizes 10, 20, 30")
    func byHand() {
        var trace = RequestTrace()
        for key: UInt64 in [1, 2, 3, 1, 1, 2] { trace.append(key: key, size: UInt32(key) * 10) }
        let distances = StackDistances(trace)
        // The third a needs 60 bytes, the one after it 10, the second b needs itself, c and a.
        let expected = [(9, 0), (10, 1), (59, 1), (60, 3)]
        for (capacity, hits) in expected {
            #expect(distances.hitRatio(capacity: capacity) == Double(hits) / 6, "\(capacity)")
        }
        #expect(distances.hitRatio(capacity: 60, .byte) == 40.0 / 100)
        #expect(distances.exactFrom == 30)
    }

    private func random(_ seed: UInt64, changes: Bool) -> RequestTrace {
        var generator = SeededGenerator(seed: seed)
        var trace = RequestTrace()
        for index in 0..<4_000 {
            let key = UInt64.random(in: 0...255, using: &generator) & .random(in: 0...255, using: &generator)
            let version = changes && Int.random(in: 0..<30, using: &generator) == 0 ? UInt32(index % 50) : 0
            trace.append(key: key, size: UInt32(key % 40) + 1 + version)
        }
        return trace
    }

    @Test("It agrees with LRU itself at every size that holds the largest entry", arguments: [1, 2, 3] as [UInt64])
    func agrees(seed: UInt64) {
        let trace = random(seed, changes: false)
        let distances = StackDistances(trace)
        for capacity in stride(from: distances.exactFrom, to: 6_000, by: 61) {
            let result = lru(trace, capacity)
            #expect(distances.hitRatio(capacity: capacity) == result.objectHitRatio, "seed \(seed), \(capacity)")
            #expect(distances.hitRatio(capacity: capacity, .byte) == result.byteHitRatio, "seed \(seed), \(capacity)")
        }
    }

    @Test("By key, other sizes are the same version, as for LRU itself", arguments: [7, 8] as [UInt64])
    func byKey(seed: UInt64) throws {
        let trace = random(seed, changes: true)
        let distances = StackDistances(trace, sizesTellVersions: false)
        let capacities = [distances.exactFrom, 1_000, 3_000]
        let sizes = try #require(CacheSize.list(capacities.map(String.init).joined(separator: ",")))
        let curve = MissRatioCurve(.lru, trace: trace, sizes: sizes, sizesTellVersions: false)
        for (capacity, point) in zip(capacities, curve.points) {
            #expect(
                abs(distances.hitRatio(capacity: capacity) - (1 - point.missRatio)) < 0.005,
                "seed \(seed), \(capacity)"
            )
        }
        let repeated = trace.requests.count - trace.keyCount
        #expect(distances.hitRatio(capacity: .max) == Double(repeated) / Double(trace.requests.count), "seed \(seed)")
    }

    @Test("It is close to LRU if sizes change, and equal without a bound", arguments: [4, 5, 6] as [UInt64])
    func changes(seed: UInt64) {
        let trace = random(seed, changes: true)
        let distances = StackDistances(trace)
        for capacity in stride(from: distances.exactFrom, to: 6_000, by: 61) {
            let difference = distances.hitRatio(capacity: capacity) - lru(trace, capacity).objectHitRatio
            #expect(abs(difference) < 0.005, "seed \(seed), \(capacity)")
        }
        #expect(distances.hitRatio(capacity: .max) == trace.unboundedObjectHitRatio, "seed \(seed)")
        #expect(distances.hitRatio(capacity: .max, .byte) == trace.unboundedByteHitRatio, "seed \(seed)")
    }

    @Test("The curve goes from the first possible hit to the last")
    func curve() throws {
        var trace = RequestTrace()
        for key: UInt64 in [1, 2, 3, 1, 1, 2] { trace.append(key: key, size: UInt32(key) * 10) }
        let curve = StackDistances(trace).curve(points: 5)
        #expect(curve.points.count == 5 && curve.name == "lru")
        #expect(curve.points.first?.size == 10 && curve.points.last?.size == 60)
        let expected: [Double] = [1 - 1.0 / 6, 0.5]
        #expect([curve.points.first, curve.points.last].map { $0?.missRatio } == expected)
        #expect(StackDistances(RequestTrace()).curve().points.isEmpty)
        #expect(StackDistances(RequestTrace()).hitRatio(capacity: 10, .byte) == 0)
    }
}

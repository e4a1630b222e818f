// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSimulation
import HoldfastStorage
import HoldfastTesting
import Testing

@Suite("Replays that know the future")
struct BeladyBoundTests {
    private static let rules = [BeladyBound.Rule.furthest, .largest]

    private func trace(_ requests: [(key: UInt64, size: UInt32)]) -> RequestTrace {
        var trace = RequestTrace()
        for request in requests { trace.append(key: request.key, size: request.size) }
        return trace
    }

    @Test("Another size is another version: a miss that replaces the copy, without an eviction", arguments: rules)
    func versions(rule: BeladyBound.Rule) {
        let trace = trace([(1, 40), (1, 40), (1, 50), (1, 50), (2, 10), (1, 40)])
        let result = BeladyBound(trace).replay(rule, capacity: 100)
        #expect(result.hits == 2 && result.hitBytes == 90 && result.requests == 6)
        #expect(result.evictions == 0)
        #expect(result.writtenBytes == 40 + 50 + 10 + 40)
    }

    @Test("A version too large to be held removes the older one", arguments: rules)
    func tooLarge(rule: BeladyBound.Rule) {
        let result = BeladyBound(trace([(1, 40), (1, 200), (1, 40), (1, 40)])).replay(rule, capacity: 100)
        #expect(result.hits == 1 && result.evictions == 0 && result.writtenBytes == 80)
    }

    @Test("What is needed next in another version goes first")
    func useless() {
        let trace = trace([(1, 10), (2, 10), (3, 10), (1, 11), (2, 10)])
        #expect(BeladyBound(trace).replay(.furthest, capacity: 21).hits == 1)
        // Any size is a hit: key 2 goes, for it is needed later than key 1.
        #expect(BeladyBound(trace, sizesTellVersions: false).replay(.furthest, capacity: 21).hits == 1)
        #expect(BeladyBound(trace, sizesTellVersions: false).replay(.furthest, capacity: 100).hits == 2)
    }

    @Test("With room for all, it has the hits of any policy", arguments: [UInt64](1...20), [true, false])
    func unbounded(seed: UInt64, sizesTellVersions: Bool) {
        var numbers = SeededGenerator(seed: seed)
        var trace = RequestTrace()
        for _ in 0..<500 {
            trace.append(key: UInt64.random(in: 0..<40, using: &numbers), size: .random(in: 1...3, using: &numbers))
        }
        var simulator = HitRateSimulator(sizesTellVersions: sizesTellVersions)
        simulator.add(.lru, capacity: 1 << 20)
        simulator.replay(trace)
        let bound = BeladyBound(trace, sizesTellVersions: sizesTellVersions)
        for rule in Self.rules {
            let (found, expected) = (bound.replay(rule, capacity: 1 << 20), simulator.results[0])
            #expect(found.hits == expected.hits && found.hitBytes == expected.hitBytes, "seed \(seed)")
        }
    }
}

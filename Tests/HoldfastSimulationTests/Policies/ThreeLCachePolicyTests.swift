// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastStorage
import HoldfastTesting
import Testing

@testable import HoldfastSimulation

@Suite("3L-Cache", .timeLimit(.minutes(20)))
struct ThreeLCachePolicyTests {
    private static let objectives: [ThreeLCachePolicy.Objective] = [.objects, .bytes]

    /// Half of the requests are for one of few keys, half for a key that nobody asks for again.
    private static func requests(_ count: Int, seed: UInt64) -> [UInt32] {
        var random = SeededGenerator(seed: seed)
        var newest: UInt32 = 1_000
        return (0..<count).map { _ in
            if Bool.random(using: &random) { return UInt32.random(in: 0..<600, using: &random) }
            newest += 1
            return newest
        }
    }

    private func result(_ policy: any EvictionPolicy, _ requests: [UInt32]) -> HitRateResult {
        var simulator = HitRateSimulator()
        simulator.add(policy, name: "policy")
        for key in requests { simulator.replay(key: key, size: 1 + key % 7) }
        return simulator.results[0]
    }

    @Test("It is LRU until it has learned enough", arguments: objectives)
    func untaught(objective: ThreeLCachePolicy.Objective) {
        let requests = Self.requests(20_000, seed: 1)
        let policy = ThreeLCachePolicy(capacity: 2_000, objective: objective, seed: 1)
        let lru = result(LRUPolicy(capacity: 2_000), requests)
        #expect(lru.evictions > 5_000)
        var learnt = result(policy, requests)
        #expect(learnt == lru)
        learnt = result(ThreeLCachePolicy(capacity: 2_000, objective: objective, seed: 1, lessons: 2_000), requests)
        #expect(learnt != lru)
    }

    @Test("With a model it keeps the entries that return", arguments: objectives)
    func taught(objective: ThreeLCachePolicy.Objective) {
        let requests = Self.requests(60_000, seed: 2)
        let policy = ThreeLCachePolicy(capacity: 2_000, objective: objective, seed: 1, lessons: 2_000)
        let lru = result(LRUPolicy(capacity: 2_000), requests)
        let learnt = result(policy, requests)
        #expect(learnt.objectHitRatio > lru.objectHitRatio + 0.05)
        #expect(learnt.byteHitRatio > lru.byteHitRatio + 0.05)
    }

    @Test(
        "After random calls it holds what a model holds, whatever it learned",
        arguments: objectives,
        1...4 as ClosedRange<UInt64>
    )
    func random(objective: ThreeLCachePolicy.Objective, seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        for capacity in [0, 1, 50, 4_000] {
            let policy = ThreeLCachePolicy(capacity: capacity, objective: objective, seed: seed, lessons: 150)
            var owner = PolicyOwner(policy, looksAtAllEvery: 64)
            for _ in 0..<6_000 {
                let key = UInt64(Int(1 / Double.random(in: 0.002..<1, using: &random)))
                switch Int.random(in: 0..<40, using: &random) {
                case 0: owner.remove(key)
                case 1: owner.resize(key, to: Int.random(in: -1...300, using: &random))
                case 2: owner.setCapacity(Int.random(in: 0...max(1, 2 * capacity), using: &random))
                case 3: owner.missUse()
                case 4: owner.request(key, size: .max)
                default: owner.request(key, size: Int(key % 90))
                }
            }
            owner.checkAll()
            #expect(owner.faults.isEmpty, "seed \(seed), capacity \(capacity): \(owner.faults.prefix(3))")
        }
    }

    /// What the program of 3L-Cache's authors hit, in libCacheSim 0.3.5, in percent of objects and of bytes.
    private static let reference:
        [(trace: String, share: Double, strategy: EvictionStrategy, objects: Double, bytes: Double)] = [
            ("lirs_multi3", 0.01, .threeLCache, 5.14, 5.14), ("lirs_multi3", 0.1, .threeLCacheForBytes, 35.49, 35.49),
            ("arc_oltp", 0.01, .threeLCache, 43.63, 43.63), ("arc_oltp", 0.01, .threeLCacheForBytes, 45.17, 45.17),
            ("scarab_recs", 0.1, .threeLCache, 54.22, 54.22), ("scarab_recs", 0.1, .threeLCacheForBytes, 54.16, 54.16),
            ("cran_dec14", 0.01, .threeLCache, 39.70, 26.10), ("cran_dec14", 0.1, .threeLCacheForBytes, 66.54, 74.40),
        ]

    @Test(
        "It has the hits of its authors' program",
        .enabled(if: StudyFigures.areTracesThere, "the open traces are not beside the package"),
        arguments: reference.indices
    )
    func authors(index: Int) throws {
        let cell = Self.reference[index]
        guard StudyFigures.isWhole || StudyFigures.quick.contains(cell.trace) else { return }
        let trace = try StudyFigures.trace(cell.trace)
        var simulator = HitRateSimulator()
        simulator.add(cell.strategy, capacity: Int(Double(trace.uniqueBytes) * cell.share), seed: 1)
        simulator.replay(trace)
        let result = simulator.results[0]
        // Where neither has a model they agree to the digit; else the trees, and what is drawn, are not the same.
        let tolerance = StudyFigures.quick.contains(cell.trace) ? 0.01 : 1.5
        #expect(abs(result.objectHitRatio * 100 - cell.objects) < tolerance, "\(cell), objects")
        #expect(abs(result.byteHitRatio * 100 - cell.bytes) < tolerance, "\(cell), bytes")
    }
}

@Suite("Boosted trees", .timeLimit(.minutes(20)))
struct BoostedTreesTests {
    private func prediction(_ trees: BoostedTrees, _ row: [Double]) -> Double {
        row.withUnsafeBufferPointer { trees.predict($0) }
    }

    @Test("They learn a step in one feature among others that say nothing")
    func steps() {
        var random = SeededGenerator(seed: 1)
        var rows: [Double] = []
        var labels: [Double] = []
        for _ in 0..<4_000 {
            let row = (0..<4).map { _ in Double.random(in: 0..<100, using: &random) }
            rows += row
            labels.append(row[2] < 30 ? 1 : row[2] < 80 ? 5 : 9)
        }
        let trees = BoostedTrees(rows: rows, width: 4, labels: labels, seed: 3)
        // Sixteen steps of a tenth leave a fifth of the way from the mean.
        let mean = labels.reduce(0, +) / 4_000
        for (value, wanted) in [(10.0, 1.0), (50, 5), (95, 9)] {
            let found = prediction(trees, [50, 50, value, 50])
            #expect(abs(found - wanted) < abs(mean - wanted) * 0.35 + 0.1, "\(value): \(found)")
        }
    }

    @Test("Without rows they predict 0, and if all labels are the same, that label")
    func plain() {
        #expect(prediction(BoostedTrees(rows: [], width: 2, labels: [], seed: 1), [1, 2]) == 0)
        let rows: [Double] = (0..<200).flatMap { number -> [Double] in [Double(number), 1] }
        let same = BoostedTrees(rows: rows, width: 2, labels: Array(repeating: 7, count: 200), seed: 1)
        #expect(prediction(same, [3, 1]) == 7)
        // Too few rows for a leaf of twenty on each side.
        let few = BoostedTrees(rows: [1, 2, 3], width: 1, labels: [1, 2, 3], seed: 1)
        #expect(prediction(few, [3]) == 2)
    }

    @Test("The same rows and the same seed give the same trees")
    func deterministic() {
        var random = SeededGenerator(seed: 5)
        let rows = (0..<3_000).map { _ in Double.random(in: 0..<1, using: &random) }
        let labels = stride(from: 0, to: 3_000, by: 3).map { first in rows[first] * rows[first + 1] }
        let twins = (0..<2).map { _ in BoostedTrees(rows: rows, width: 3, labels: labels, seed: 9) }
        for row in 0..<50 {
            let values = Array(rows[3 * row..<3 * row + 3])
            #expect(prediction(twins[0], values) == prediction(twins[1], values))
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastStorage
import HoldfastTesting
import Testing

@testable import Holdfast
@testable import HoldfastSimulation

@Suite("Measuring: the hit ratio of another size", .timeLimit(.minutes(20)))
struct EstimateTests {
    /// Requests for keys with a few favourites among many, sizes by key.
    private static func requests(_ count: Int, seed: UInt64) -> [(key: Int, size: Int)] {
        var random = SeededGenerator(seed: seed)
        return (0..<count).map { _ in
            // The square root of a uniform number's inverse has a heavy tail.
            let key = Int(1 / Double.random(in: 0.000_02..<1, using: &random))
            return (key, 100 + key % 900)
        }
    }

    @Test("If everything is recorded, the replay equals the simulation of the requests")
    func direct() {
        let recorder = HitRateRecorder()
        var simulator = HitRateSimulator()
        for capacity in [5_000, 50_000] { simulator.add(.lru, capacity: capacity) }
        var numbers: [Int: UInt32] = [:]
        for (key, size) in Self.requests(20_000, seed: 1) {
            recorder.record("http://origin.example/\(key)", size: size)
            let number = numbers[key] ?? UInt32(numbers.count)
            numbers[key] = number
            simulator.replay(key: number, size: UInt32(size))
        }
        let estimates = recorder.estimate(capacities: [5_000, 50_000], policies: [.lru])
        #expect(estimates.map(\.replayed) == simulator.results)
        #expect(estimates.map(\.objectHitRatio) == simulator.results.map(\.objectHitRatio))
        #expect(estimates.map(\.byteHitRatio) == simulator.results.map(\.byteHitRatio))
        #expect(estimates.map(\.capacity) == [5_000, 50_000])
        #expect(estimates.map(\.policy) == ["lru", "lru"])
    }

    @Test("A sample at a rate predicts about the same as the whole, at a scaled size")
    func sample() throws {
        let whole = HitRateRecorder(secret: (5, 6))
        let sample = HitRateRecorder(rate: 0.2, secret: (5, 6))
        for (key, size) in Self.requests(100_000, seed: 2) {
            whole.record("\(key)", size: size)
            sample.record("\(key)", size: size)
        }
        #expect(sample.count < 40_000)
        for capacity in [50_000, 400_000] {
            let exact = try #require(whole.estimate(capacities: [capacity], policies: [.lru]).first)
            let near = try #require(sample.estimate(capacities: [capacity], policies: [.lru]).first)
            #expect(near.replayed.capacity == capacity / 5)
            #expect(abs(exact.objectHitRatio - near.objectHitRatio) < 0.03, "\(exact) \(near)")
            #expect(abs(exact.byteHitRatio - near.byteHitRatio) < 0.03, "\(exact) \(near)")
        }
    }

    @Test("Requests of the sample beyond its share are subtracted from its hits, computed manually")
    func adjusted() {
        var simulator = HitRateSimulator()
        simulator.add(.lru, capacity: 1_000)
        // Ten requests of two keys: eight hits.
        for number in 0..<10 { simulator.replay(key: UInt32(number % 2), size: 10) }
        let result = simulator.results[0]
        let many = HitRateEstimate(capacity: 10_000, replayed: result, expectedRequests: 8, expectedBytes: 100)
        #expect(many.objectHitRatio == 0.75)
        #expect(many.byteHitRatio == 0.8)
        let few = HitRateEstimate(capacity: 10_000, replayed: result, expectedRequests: 20, expectedBytes: 200)
        #expect(few.objectHitRatio == 0.9)
        let none = HitRateEstimate(capacity: 10_000, replayed: result, expectedRequests: 1, expectedBytes: 0)
        #expect(none.objectHitRatio == 0)
        #expect(none.byteHitRatio == 0)
    }

    @Test(
        "One line answers the question, and an empty recording does not trap",
        arguments: [0, -1, 256 << 20, Int.max]
    )
    func oneLine(capacity: Int) {
        for rate in [1, 0.5] {
            let recorder = HitRateRecorder(rate: rate, secret: (1, 1))
            #expect(recorder.estimate(capacities: [capacity]).map(\.objectHitRatio) == [0])
            for _ in 0..<4 { recorder.record("a", size: 10) }
            let estimate = recorder.estimate(capacities: [capacity])
            #expect(estimate.count == 1)
            #expect(estimate[0].description.hasSuffix(" of bytes"))
            if rate == 1, capacity > 0 { #expect(estimate[0].objectHitRatio == 0.75) }
        }
    }

    @Test("Policies and sizes come in the requested order")
    func order() {
        let recorder = HitRateRecorder()
        recorder.record("a", size: 1)
        let all = recorder.estimate(capacities: [10, 20], policies: [.lru, .lru])
        #expect(all.map(\.capacity) == [10, 20, 10, 20])
    }
}

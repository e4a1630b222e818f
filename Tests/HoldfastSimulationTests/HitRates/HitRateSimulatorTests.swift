// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastTesting
import Testing

@testable import HoldfastSimulation
@testable import HoldfastStorage

@Suite("Hit rates of replayed requests")
struct HitRateSimulatorTests {
    private func trace(_ requests: [(key: UInt64, size: UInt32)]) -> RequestTrace {
        var trace = RequestTrace()
        for request in requests { trace.append(key: request.key, size: request.size) }
        return trace
    }

    private func result(_ trace: RequestTrace, capacity: Int, warmUp: Int = 0) -> HitRateResult {
        var simulator = HitRateSimulator(warmUp: warmUp)
        simulator.add(.lru, capacity: capacity)
        simulator.replay(trace)
        return simulator.results[0]
    }

    @Test("Computed manually: LRU of 100 bytes")
    func byHand() {
        // a b hit(a) c evicts b, d is too large, hit(a), b evicts c.
        let trace = trace([(1, 40), (2, 40), (1, 40), (3, 40), (4, 101), (1, 40), (2, 40)])
        let result = result(trace, capacity: 100)
        #expect(result.requests == 7 && result.hits == 2 && result.misses == 5)
        #expect(result.requestedBytes == 341 && result.hitBytes == 80)
        #expect(result.evictions == 2)
        #expect(result.writtenBytes == 160)
        #expect(result.objectHitRatio == 2.0 / 7 && result.byteHitRatio == 80.0 / 341)
        #expect(result.writesPerByte == 160.0 / 341)
        #expect(result.policy == "lru" && result.capacity == 100)
    }

    @Test("No requests means no hits and no division by zero")
    func nothing() {
        let result = result(RequestTrace(), capacity: 10)
        #expect(result.requests == 0 && result.objectHitRatio == 0 && result.byteHitRatio == 0)
        #expect(result.writesPerByte == 0)
    }

    @Test("Another size is another version: a miss that replaces the copy, without an eviction")
    func versions() {
        let result = result(trace([(1, 40), (1, 40), (1, 50), (1, 50), (2, 10), (1, 40)]), capacity: 100)
        #expect(result.hits == 2 && result.hitBytes == 90)
        #expect(result.evictions == 0)
        #expect(result.writtenBytes == 40 + 50 + 10 + 40)
    }

    @Test("A version that came with an earlier replay is known in the next one, whichever way it is made")
    func versionsAcrossReplays() {
        let (first, second) = (trace([(1, 40), (2, 10), (1, 40)]), trace([(1, 50), (2, 10)]))
        var simulator = HitRateSimulator()
        simulator.add(.lru, capacity: 100)
        simulator.replay(first)
        simulator.replay(second)
        #expect(simulator.results[0].hits == 2 && simulator.results[0].hitBytes == 50)
        simulator.replay(key: 1, size: 40)
        simulator.replay(key: 1, size: 40)
        #expect(simulator.results[0].hits == 3)
        var single = HitRateSimulator()
        single.add(.lru, capacity: 100)
        single.replay(first)
        single.replay(key: 1, size: 50)
        #expect(single.results[0].hits == 1)
    }

    @Test("If sizes do not mark versions, a stored key is a hit, whatever its size")
    func sizesWithoutVersions() {
        var simulator = HitRateSimulator(sizesTellVersions: false)
        simulator.add(.lru, capacity: 100)
        simulator.replay(trace([(1, 40), (1, 30), (2, 50), (1, 60)]))
        simulator.replay(key: 1, size: 70)
        let result = simulator.results[0]
        #expect(result.hits == 3 && result.hitBytes == 160 && result.writtenBytes == 90 && result.evictions == 0)
    }

    @Test("An expired copy is revalidated, and gets the lifetime of the request that renewed it")
    func lives() {
        var trace = RequestTrace()
        func request(at now: Int64, until end: Int64?) {
            trace.append(
                key: 1,
                size: 10,
                at: StoreInstant(milliseconds: now),
                freshUntil: end.map { StoreInstant(milliseconds: $0) }
            )
        }
        request(at: 0, until: 100)
        request(at: 99, until: 500)  // A hit, which renews nothing.
        request(at: 100, until: 200)  // At the end of its life: revalidated.
        request(at: 199, until: nil)  // A hit.
        request(at: 200, until: nil)  // Revalidated, and fresh for ever.
        request(at: 9_999_999, until: 0)  // A hit.
        let result = result(trace, capacity: 100)
        #expect(result.hits == 3 && result.revalidations == 2 && result.misses == 1)
        #expect(result.hitBytes == 30 && result.revalidatedBytes == 20)
        #expect(result.writtenBytes == 10)
    }

    @Test("A new version of an expired copy is a miss, not a revalidation")
    func changedPastLife() {
        var trace = RequestTrace()
        trace.append(key: 1, size: 10, at: StoreInstant(milliseconds: 0), freshUntil: StoreInstant(milliseconds: 5))
        trace.append(key: 1, size: 20, at: StoreInstant(milliseconds: 9), freshUntil: StoreInstant(milliseconds: 20))
        trace.append(key: 1, size: 20, at: StoreInstant(milliseconds: 19))
        let result = result(trace, capacity: 100)
        #expect(result.hits == 1 && result.revalidations == 0 && result.misses == 2)
    }

    @Test("The warm-up fills the cache and is not counted", arguments: [1, 2, 3, 100])
    func warmUp(every: Int) {
        let trace = trace([(1, 40), (2, 40), (1, 40), (3, 40), (1, 40)])
        var simulator = HitRateSimulator(warmUp: 2)
        simulator.add(.lru, capacity: 100)
        simulator.replay(trace, every: every) { _ in }
        let result = simulator.results[0]
        #expect(result.requests == 3 && result.hits == 2)
        #expect(result.writtenBytes == 40 && result.evictions == 1)
        #expect(self.result(trace, capacity: 100, warmUp: 5).requests == 0)
        #expect(self.result(trace, capacity: 100, warmUp: 6).requests == 0)
    }

    @Test("Progress is reported, and an error from it ends the replay")
    func progress() {
        struct Enough: Error {}
        let trace = trace((0..<10).map { (UInt64($0), 1) })
        var simulator = HitRateSimulator()
        simulator.add(.lru, capacity: 100)
        var told: [Int] = []
        simulator.replay(trace, every: 4) { told.append($0) }
        #expect(told == [4, 8, 10])
        var cut = HitRateSimulator()
        cut.add(.lru, capacity: 100)
        #expect(throws: Enough.self) {
            try cut.replay(trace, every: 4) { done in if done == 8 { throw Enough() } }
        }
        #expect(cut.results[0].requests == 8)
        // A distance that makes no sense is 1.
        cut.replay(trace, every: -5) { _ in }
        #expect(cut.results[0].requests == 18)
    }

    /// Requests of a few keys, some of which change their size now and then, and some with lives.
    private func random(_ seed: UInt64, changes: Bool, lives: Bool) -> RequestTrace {
        var generator = SeededGenerator(seed: seed)
        var trace = RequestTrace()
        for index in 0..<5_000 {
            let key = UInt64.random(in: 0...200, using: &generator) & .random(in: 0...255, using: &generator)
            let version = changes && Int.random(in: 0..<20, using: &generator) == 0 ? UInt32(index) : 0
            trace.append(
                key: key,
                size: UInt32(key) + 1 + version,
                at: lives ? StoreInstant(milliseconds: Int64(index)) : nil,
                freshUntil: lives ? StoreInstant(milliseconds: Int64(index + 100)) : nil
            )
        }
        return trace
    }

    @Test(
        "One pass over many policies and sizes equals a pass for each, in pieces of any length",
        arguments: [(1, false, false), (2, true, false), (3, false, true), (4, true, true)] as [(UInt64, Bool, Bool)]
    )
    func onePass(seed: UInt64, changes: Bool, lives: Bool) {
        let trace = random(seed, changes: changes, lives: lives)
        var together = HitRateSimulator(warmUp: 77)
        var alone: [HitRateResult] = []
        for strategy in EvictionStrategy.all {
            for capacity in [0, 100, 2_000, 20_000] {
                together.add(strategy, capacity: capacity, seed: seed)
                var simulator = HitRateSimulator(warmUp: 77)
                simulator.add(strategy, capacity: capacity, seed: seed)
                simulator.replay(trace)
                alone.append(simulator.results[0])
            }
        }
        together.replay(trace, every: 97) { _ in }
        #expect(together.results == alone, "seed \(seed)")
        for result in alone {
            #expect(result.hits + result.misses + result.revalidations == 5_000 - 77)
            if !lives { #expect(result.revalidations == 0) }
            if lives, result.capacity == 20_000 { #expect(result.revalidations > 0, "\(result.policy)") }
        }
    }

    @Test("Single requests, numbered or hashed, count like the whole trace", arguments: [5, 6] as [UInt64])
    func singly(seed: UInt64) {
        let trace = random(seed, changes: true, lives: false)
        var numbered = HitRateSimulator()
        var hashed = HitRateSimulator()
        numbered.add(.lru, capacity: 5_000)
        hashed.add(.lru, capacity: 5_000)
        for request in trace.requests {
            numbered.replay(key: request.key, size: request.size)
            hashed.replay(hash: ~UInt64(request.key), size: request.size)
        }
        #expect(numbered.results == [result(trace, capacity: 5_000)], "seed \(seed)")
        #expect(hashed.results == numbered.results, "seed \(seed)")
    }

    @Test("A custom policy can be added")
    func ownPolicy() {
        var simulator = HitRateSimulator()
        simulator.add(LRUPolicy(capacity: 100), name: "mine")
        simulator.replay(trace([(1, 40), (1, 40)]))
        #expect(simulator.results[0].policy == "mine" && simulator.results[0].hits == 1)
    }

    @Test("A cache without a bound has the hits that the trace predicts", arguments: [7, 8] as [UInt64])
    func unbounded(seed: UInt64) {
        let trace = random(seed, changes: true, lives: false)
        let result = result(trace, capacity: .max)
        #expect(result.objectHitRatio == trace.unboundedObjectHitRatio, "seed \(seed)")
        #expect(result.byteHitRatio == trace.unboundedByteHitRatio, "seed \(seed)")
        #expect(result.evictions == 0)
    }
}

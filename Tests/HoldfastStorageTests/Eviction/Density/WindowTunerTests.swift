// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastTesting
import Testing

@testable import HoldfastSimulation
@testable import HoldfastStorage

@Suite("Window trials", .timeLimit(.minutes(20)))
struct WindowTunerTests {
    /// Requests of size 1 to trials of a cache of so many entries, each with the frequency that `weight` gives.
    private func share(after keys: [UInt32], from start: Int, capacity: Int, tuner: inout WindowTuner) -> Double {
        var counts: [UInt32: Int] = [:]
        for (index, key) in keys.enumerated() {
            counts[key, default: 0] += 1
            let weight = DensityWeight.weight(ofCount: min(15, counts[key, default: 0]))
            let now = UInt32((start + index) * 512 / (10 * capacity))
            tuner.note(
                UInt32(truncatingIfNeeded: SplitMix64.mixed(UInt64(key))),
                size: 1,
                weight: weight,
                now: now,
                capacity: capacity,
                expected: capacity
            )
        }
        return tuner.share
    }

    @Test(
        "Requests that return once and soon widen the window; a loop narrows it",
        arguments: [64, 128, 1_024]
    )
    func follows(capacity: Int) {
        var tuner = WindowTuner(beta: 512, seed: 1)
        #expect(tuner.share == 0.10)
        // Each key twice, a third of the capacity apart: a window of 0.30 just loses it.
        let distance = UInt32(capacity / 3)
        let recent = (distance..<distance + 30_000).flatMap { [$0, $0 - distance] }
        #expect(share(after: recent, from: 0, capacity: capacity, tuner: &tuner) == 0.70)
        let loop = (0..<60_000).map { UInt32(1_000_000 + $0 % (capacity * 2)) }
        #expect(share(after: loop, from: 60_000, capacity: capacity, tuner: &tuner) <= 0.10)
        #expect(share(after: recent.map { $0 + 2_000_000 }, from: 120_000, capacity: capacity, tuner: &tuner) == 0.70)
    }

    @Test(
        "The sample is halved until a trial holds at most 256 entries",
        arguments: [(100, 0), (257, 1), (1_000, 2), (100_000, 9)]
    )
    func sample(expected: Int, samplingShift: UInt32) {
        var tuner = WindowTuner(beta: 512, seed: 1)
        for key in 0..<40_000 as Range<UInt64> {
            tuner.note(
                UInt32(truncatingIfNeeded: SplitMix64.mixed(key)),
                size: 1,
                weight: 0,
                now: 0,
                capacity: expected,
                expected: expected
            )
        }
        #expect(tuner.samplingShift == samplingShift)
        let part = (0..<40_000 as Range<UInt64>)
            .filter { tuner.samples(UInt32(truncatingIfNeeded: SplitMix64.mixed($0))) }.count
        #expect(abs(part - 40_000 >> Int(samplingShift)) < 200)
    }

    @Test("Memory stays bounded, whatever the sizes", arguments: [0, 1, 5, 1_000_000])
    func bounded(size: Int) {
        var tuner = WindowTuner(beta: 512, seed: 1)
        for key in 0..<60_000 as Range<UInt64> {
            tuner.note(
                UInt32(truncatingIfNeeded: SplitMix64.mixed(key)),
                size: size,
                weight: 0,
                now: 0,
                capacity: 1_000_000,
                expected: 100
            )
        }
        #expect(tuner.bytes < 150_000)
    }

    @Test("With many keys seen and few stored, the trials restart with every key in the sample", arguments: [0, 1, 31])
    func manySeenFewHeld(held: Int) {
        var tuner = WindowTuner(beta: 512, seed: 1)
        for key in 0..<20_000 as Range<UInt64> {
            tuner.note(
                UInt32(truncatingIfNeeded: SplitMix64.mixed(key)),
                size: 1_000,
                weight: 0,
                now: 0,
                capacity: 64 << 20,
                expected: held
            )
        }
        #expect(tuner.samplingShift == 0)
        #expect(tuner.bytes < 150_000)
        // They follow the requests still.
        let recent = (100..<30_100 as Range<UInt32>).flatMap { [$0, $0 - 100] }
        #expect(share(after: recent, from: 0, capacity: 300, tuner: &tuner) == 0.70)
    }

    @Test("The table of keys behaves like a dictionary", arguments: [1, 2, 3] as [UInt64])
    func keys(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var keys = SampledKeys()
        var model: [UInt32: UInt16] = [:]
        var isRight = true
        for _ in 0..<20_000 {
            // Hashes that share their places in the table.
            let hash = UInt32.random(in: 0..<600, using: &generator) << 20
            let id = keys.note(hash, size: 1, weight: 0, now: 0)
            isRight = isRight && model[hash] ?? id == id && keys[id].hash == hash
            if Bool.random(using: &generator) {
                keys.setPlace(id, cache: 3, place: .absent)
                keys.release(id)
                model[hash] = nil
            } else {
                keys.setPlace(id, cache: 3, place: .main)
                keys.release(id)
                model[hash] = id
            }
            isRight = isRight && keys.count == model.count
        }
        #expect(isRight, "seed \(seed)")
    }
}

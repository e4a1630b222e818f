// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Testing

@testable import HoldfastStorage

@Suite("Density weights", .timeLimit(.minutes(20)))
struct DensityWeightTests {
    @Test(
        "Adds one to the count that a weight represents",
        arguments: [(-4_096, 0), (-512, 300), (0, 512), (512, 812), (1_024, 1_189), (3_584, 3_590)]
    )
    func increments(weight: Int32, expected: Int32) {
        // log2(2^(weight / 512) + 1) * 512
        #expect(abs(DensityWeight.incremented(weight) - expected) <= 8)
    }

    @Test("Consecutive uses count up, to at most 256")
    func countsUp() {
        var weight: Int32 = 0
        for count in 2...15 {
            weight = DensityWeight.incremented(weight)
            #expect(DensityWeight.count(of: weight) == count)
            #expect(abs(weight - DensityWeight.weight(ofCount: count)) <= 12)
        }
        for _ in 0..<1_000 { weight = DensityWeight.incremented(weight) }
        #expect(weight == DensityWeight.highest)
    }

    @Test("Counts survive a round trip", arguments: 1...15)
    func roundTrip(count: Int) {
        #expect(DensityWeight.count(of: DensityWeight.weight(ofCount: count)) == count)
    }

    @Test("A use long ago counts nothing", arguments: [(0, 1), (-512, 1), (-513, 0), (-100_000, 0)])
    func old(weight: Int32, count: Int) {
        #expect(DensityWeight.count(of: weight) == count)
    }

    @Test(
        "A weight halves each half-life, also if the clock wraps",
        arguments: [0, 1_000, 0xFF_FFFF, .max] as [UInt32]
    )
    func falls(start: UInt32) {
        var entry = DensityEntry()
        entry.place = .usedInWindow
        entry.isListed = true
        entry.staleItems = 31
        entry.setWeight(1_000, at: start)
        #expect(entry.weight(at: start) == 1_000)
        #expect(entry.weight(at: start &+ 512) == 488)
        #expect(entry.weight(at: start &+ 5_120) == -4_120)
        #expect(entry.place == .usedInWindow && entry.isListed && entry.staleItems == 31)
        entry.staleItems = 0
        entry.place = .main
        #expect(entry.weight(at: start) == 1_000 && entry.isListed && entry.staleItems == 0)
    }

    @Test("A size's weight is its logarithm, within a tenth, and is monotonic")
    func sizes() {
        for power in 0..<32 { #expect(DensityWeight.weight(ofSize: 1 << UInt32(power)) == power * 512) }
        #expect(DensityWeight.weight(ofSize: 0) == 0)
        let weights = stride(from: 1 as UInt32, to: 2_000_000, by: 997).map { DensityWeight.weight(ofSize: $0) }
        #expect(weights == weights.sorted())
        // log2(3 * 2^20) = 21.585; the chord says 21.5.
        #expect(DensityWeight.weight(ofSize: 3 << 20) == 21 * 512 + 256)
    }

    @Test("A record takes twelve bytes")
    func recordSize() {
        #expect(MemoryLayout<DensityEntry>.stride == 12)
        #expect(MemoryLayout<SampledKey>.stride == 12)
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Testing

@testable import HoldfastStorage

@Suite("Worth: its lines, and the small log's share")
struct WorthSampleTests {
    @Test("worth grows with use and falls slowly with bytes")
    func worth() {
        let worths = [(1, 1_000), (2, 1_000), (3, 1_000), (15, 1_000)].map {
            EntryWorth.of(frequency: $0.0, wasUsed: false, bytes: $0.1)
        }
        #expect(worths == worths.sorted() && Set(worths).count == 4)
        let small = EntryWorth.of(frequency: 1, wasUsed: false, bytes: 1_000)
        let large = EntryWorth.of(frequency: 1, wasUsed: false, bytes: 1_024_000)
        // 1,024 times the bytes weigh as much as half the requests: 1,024^0.1 is 2.
        #expect(abs(Int(small) - Int(large) - 512) < 16)
        #expect(EntryWorth.of(frequency: 1, wasUsed: true, bytes: 1_000) > small)
        #expect(
            EntryWorth.of(frequency: 2, wasUsed: false, bytes: 1_000)
                > EntryWorth.of(frequency: 1, wasUsed: true, bytes: 1_000)
        )
        #expect(EntryWorth.of(frequency: 0, wasUsed: false, bytes: .max) < 0)
    }

    @Test("without entries every line is open")
    func empty() {
        let sample = WorthSample([], entries: 0)
        #expect(sample.admission == .min && sample.eviction == .min && sample.promotion == .max)
        #expect(sample.yield(of: 3, weight: 0) == 1)
        #expect((0...1).contains(sample.yield(of: 3, weight: 10)))
    }

    @Test("a segment yields what is worth little in it and what is dead, and an unknown one what the others do")
    func yields() {
        var draws: [WorthSample.Draw] = []
        for number in 0..<300 {
            // Segment 0 holds what is worth least, 1 what is worth most, of 2 hardly anything is left.
            draws.append(WorthSample.Draw(worth: Int32(number), bytes: 10, segment: 0))
            draws.append(WorthSample.Draw(worth: Int32(2_000 + number), bytes: 10, segment: 1))
        }
        draws.append(WorthSample.Draw(worth: 2_000, bytes: 10, segment: 2))
        var sample = WorthSample(draws, entries: 601)
        let yields = (0..<4).map { sample.yield(of: UInt16($0), weight: 3_000) }
        #expect(yields[0] > yields[1] && yields[2] > yields[0])
        sample.forget(0)
        #expect(sample.yield(of: 0, weight: 3_000) == yields[3])
    }

    @Test("the share stays narrow, is widened where that wins, and climbs with the hit ratio from there")
    func share() {
        func run(_ ratio: (Double) -> Int, periods: Int) -> Double {
            var share = SmallLogShare()
            var (requests, hits) = (0, 0)
            for _ in 0..<periods {
                requests += 1_000
                hits += ratio(share.value)
                share.update(requests: requests, hits: hits, entries: 10)
            }
            return share.value
        }
        #expect(run({ _ in 500 }, periods: 4) == 0.1)
        #expect(run({ $0 > 0.5 ? 600 : 400 }, periods: 4) == 0.6)
        #expect((0.5...0.8).contains(run({ $0 > 0.5 ? 600 : 400 }, periods: 40)))
        #expect((0.005...0.8).contains(run({ Int(900 * $0) }, periods: 400)))
        var share = SmallLogShare()
        share.update(requests: 999, hits: 0, entries: 10)
        share.update(requests: 3_999, hits: 0, entries: 1_000)
        #expect(share.value == 0.1)
    }

    @Test("counts of keys that are kept outlive the growth of a sketch, and age")
    func sketch() {
        var sketch = AgingSketch()
        for _ in 0..<6 { sketch.add(7) }
        #expect(sketch.isTooSmall(for: 1_000))
        sketch.grow(for: 1_000) { $0(7) }
        #expect(!sketch.isTooSmall(for: 1_000))
        #expect(sketch.estimate(7) == 6)
        for number in 0..<100_000 as Range<UInt32> { sketch.add(number &* 2_654_435_761) }
        #expect(sketch.estimate(7) < 6)
        sketch.removeAll()
        #expect(sketch.estimate(7) == 0)
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Testing

@testable import Harness

@Suite("Latency histograms")
struct LatencyHistogramTests {
    @Test("Small durations are counted exactly")
    func exact() {
        var histogram = LatencyHistogram()
        for value in 1...50 { histogram.note(nanoseconds: UInt64(value)) }
        #expect(histogram.percentile(0.5) == 25)
        #expect(histogram.percentile(0) == 1)
        #expect(histogram.percentile(1) == 50)
        #expect(histogram.count == 50)
        #expect(LatencyHistogram().percentile(0.5) == nil)
    }

    @Test(
        "Percentiles are at most 1/64 above those of the sorted durations, never below",
        arguments: [1, 2, 3] as [UInt64]
    )
    func precision(seed: UInt64) throws {
        var numbers = SeededNumbers(seed: seed)
        var histogram = LatencyHistogram()
        var all: [UInt64] = []
        for _ in 0..<20_000 {
            let value = UInt64.random(in: 0...(1 << UInt64.random(in: 1...40, using: &numbers)), using: &numbers)
            all.append(value)
            histogram.note(nanoseconds: value)
        }
        all.sort()
        for share in [0.01, 0.5, 0.9, 0.99, 0.999, 1] {
            let exact = all[max(0, Int((share * Double(all.count)).rounded(.up)) - 1)]
            let found = try #require(histogram.percentile(share))
            #expect(found >= exact, "seed \(seed), share \(share)")
            #expect(found <= exact + exact / 64 + 1, "seed \(seed), share \(share)")
        }
    }

    @Test("Merging equals recording everything in one")
    func merging() {
        var numbers = SeededNumbers(seed: 5)
        var (left, right, both) = (LatencyHistogram(), LatencyHistogram(), LatencyHistogram())
        for index in 0..<1_000 {
            let value = UInt64.random(in: 0...1_000_000, using: &numbers)
            both.note(nanoseconds: value)
            if index % 3 == 0 { left.note(nanoseconds: value) } else { right.note(nanoseconds: value) }
        }
        left.merge(right)
        #expect(left == both)
    }

    @Test("The longest possible duration does not trap")
    func longest() {
        var histogram = LatencyHistogram()
        histogram.note(nanoseconds: .max)
        #expect(histogram.maximum == .max)
        #expect(histogram.percentile(0.5) != nil)
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastTesting
import Testing

@Suite("LatencyWindow", .timeLimit(.minutes(20)))
struct LatencyWindowTests {
    @Test("Percentiles are never too low and at most 3.2 % too high", arguments: [1, 2, 3])
    func accuracy(seed: Int) {
        var generator = SeededGenerator(seed: UInt64(seed))
        var window = LatencyWindow(now: .zero)
        var lengths: [Duration] = []
        for _ in 0..<2000 {
            let power = Double.random(in: 0...5, using: &generator)
            var length = Duration.microseconds(100)
            for _ in 0..<Int(power) { length = length * 8 }
            length = length * (1 + Int.random(in: 0..<70, using: &generator)) / 10
            lengths.append(length)
            window.record(length, now: .zero)
        }
        lengths.sort()
        for share in [0.5, 0.9, 0.95, 0.99, 0.999, 1.0] {
            let exact = lengths[min(lengths.count - 1, max(0, Int((share * 2000).rounded(.up)) - 1))]
            let found = window.percentile(share) ?? .zero
            #expect(found >= exact, "seed \(seed), share \(share)")
            #expect(found <= exact * 1.033 || exact < .microseconds(65), "seed \(seed), share \(share)")
        }
    }

    @Test("Defect 13 of 15: one straggler moves an average but not the percentile")
    func percentileAndAverage() {
        var window = LatencyWindow(now: .zero)
        for _ in 0..<99 { window.record(.milliseconds(10), now: .zero) }
        window.record(.seconds(60), now: .zero)
        let found = window.percentile(0.95) ?? .zero
        #expect(found >= .milliseconds(10) && found < .milliseconds(10.4))
    }

    @Test("Values older than the window are forgotten, slot by slot")
    func rotation() {
        var window = LatencyWindow(length: .seconds(40), now: .zero)
        window.record(.seconds(1), now: .seconds(5))
        window.record(.milliseconds(10), now: .seconds(35))
        #expect(window.count == 2)
        let didTurn = window.rotate(now: .seconds(40))
        #expect(didTurn)
        #expect(window.count == 1)
        #expect(window.percentile(1).map { $0 < .milliseconds(11) } == true)
        window.rotate(now: .seconds(1_000_000_000))
        #expect(window.count == 0)
        #expect(window.percentile(0.5) == nil)
    }

    @Test("Durations and shares out of bounds count as the nearest bound")
    func bounds() {
        var window = LatencyWindow(length: .zero, now: .seconds(-5))
        for length in [Duration.seconds(-1), .zero, .seconds(1_000_000), .nanoseconds(1)] {
            window.record(length, now: .zero)
        }
        for share in [-1, 0, .nan, .infinity, 1] as [Double] { #expect(window.percentile(share) != nil) }
        #expect(window.percentile(1).map { $0 > .seconds(60) } == true)
        #expect(window.percentile(0).map { $0 < .milliseconds(1) } == true)
    }
}

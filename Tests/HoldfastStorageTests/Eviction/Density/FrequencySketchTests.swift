// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastTesting
import Testing

@testable import HoldfastStorage

@Suite("Frequency sketch", .timeLimit(.minutes(20)))
struct FrequencySketchTests {
    @Test("An estimate is never below the count, up to 15", arguments: [1, 7, 64, 1_000], [1, 2] as [UInt64])
    func neverBelow(words: Int, seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var sketch = FrequencySketch(words: words)
        var counts: [UInt32: Int] = [:]
        for _ in 0..<4_000 {
            // Few keys often, many once.
            let hash =
                UInt32.random(in: 0..<UInt32.random(in: 1...3_000, using: &generator), using: &generator) &* 0x9E37_79B9
            counts[hash, default: 0] += 1
            sketch.add(hash)
        }
        let below = counts.filter { sketch.estimate($0.key) < min(15, $0.value) }
        #expect(below.isEmpty, "seed \(seed)")
    }

    @Test("With keys for a quarter of its counters, nearly all estimates are exact")
    func exact() {
        var sketch = FrequencySketch(words: 1_000)
        for key in 0..<4_000 as Range<UInt32> {
            for _ in 0...(key % 3) { sketch.add(key &* 0x9E37_79B9) }
        }
        let wrong = (0..<4_000 as Range<UInt32>).filter { sketch.estimate($0 &* 0x9E37_79B9) != Int($0 % 3) + 1 }.count
        #expect(wrong < 800)
        let unknown = (4_000..<8_000 as Range<UInt32>).filter { sketch.estimate($0 &* 0x9E37_79B9) > 0 }.count
        #expect(unknown < 1_200)
    }

    @Test("Halving halves each count and leaves adjacent ones alone", arguments: [1, 2, 3, 7, 8, 14, 15])
    func halves(count: Int) {
        var sketch = FrequencySketch(words: 16)
        sketch.raise(77, to: count)
        sketch.halve()
        #expect(sketch.estimate(77) == count / 2)
        sketch.halve()
        #expect(sketch.estimate(77) == count / 4)
    }

    @Test("Raising sets the given count, up to 15, and never lowers it")
    func raises() {
        var sketch = FrequencySketch(words: 64)
        #expect(sketch.estimate(5) == 0)
        sketch.raise(5, to: 9)
        #expect(sketch.estimate(5) == 9)
        sketch.raise(5, to: 3)
        #expect(sketch.estimate(5) == 9)
        sketch.raise(5, to: 400)
        #expect(sketch.estimate(5) == 15)
        #expect(sketch.add(5) == 15)
        sketch.raise(6, to: -1)
        #expect(sketch.estimate(6) == 0)
    }

    @Test("It takes eight bytes a word, and at least one word", arguments: [(0, 1), (1, 1), (1_000, 1_000)])
    func memory(words: Int, expected: Int) {
        let sketch = FrequencySketch(words: words)
        #expect(sketch.count == expected)
        #expect(sketch.bytes >= expected * 8 && sketch.bytes <= expected * 8 + 64)
    }
}

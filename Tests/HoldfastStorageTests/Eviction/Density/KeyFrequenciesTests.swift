// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Testing

@testable import HoldfastStorage

@Suite("Request frequencies of keys, in 8 bits")
struct KeyFrequenciesTests {
    @Test("A new key has weight 1, and uses count correctly on average", arguments: [1, 3, 10, 60])
    func counts(uses: Int) {
        var sum = 0.0
        for seed in 0..<64 as Range<UInt64> {
            var frequencies = KeyFrequencies(seed: seed)
            frequencies.fit(keys: 1 << 20)
            var mark = frequencies.noteMiss(77)
            for _ in 1..<max(2, uses) where uses > 1 { mark = frequencies.noteUse(mark) }
            sum += Double(frequencies.weight(mark))
        }
        var expected: Int32 = 0
        for _ in 1..<max(2, uses) where uses > 1 { expected = DensityWeight.incremented(expected) }
        #expect(abs(sum / 64 - Double(expected)) < 64, "\(sum / 64), not \(expected)")
    }

    @Test("A weight halves each half-life, for 23 half-lives")
    func falls() {
        var frequencies = KeyFrequencies(seed: 1)
        let mark = frequencies.noteMiss(1)
        let (first, start) = (frequencies.weight(mark), frequencies.now)
        while Int(frequencies.now) < 23 * DensityWeight.unit {
            _ = frequencies.noteMiss(2)
            #expect(frequencies.weight(mark) == first - Int32(frequencies.now - start))
        }
    }

    @Test("No frequency counts above 256, and every mark and time give a valid weight")
    func range() {
        var frequencies = KeyFrequencies(seed: 2)
        frequencies.fit(keys: 1 << 16)
        var mark = frequencies.noteMiss(5)
        for _ in 0..<5_000 { mark = frequencies.noteUse(mark) }
        #expect(abs(frequencies.weight(mark) - DensityWeight.highest) <= 128)
        for _ in 0..<3_000 {
            _ = frequencies.noteMiss(9)
            for mark in 0...255 as ClosedRange<UInt8> {
                let weight = frequencies.weight(mark)
                #expect(weight <= DensityWeight.highest + 64 && weight > DensityWeight.highest + 64 - 16_384)
            }
            frequencies.fit(keys: 1 << 6)
        }
    }

    @Test("A key that left and comes back has its old weight, up to 15")
    func comesBack() {
        for (uses, least) in [(1, 0), (7, 7), (40, 15)] {
            var frequencies = KeyFrequencies(seed: 3)
            frequencies.fit(keys: 1 << 16)
            var mark = frequencies.noteMiss(123)
            for _ in 1..<max(2, uses) where uses > 1 { mark = frequencies.noteUse(mark) }
            frequencies.noteGone(123, mark: mark)
            let back = frequencies.weight(frequencies.noteMiss(123))
            #expect(back >= DensityWeight.weight(ofCount: least) - 160, "after \(uses) uses")
        }
    }

    @Test("The sketch follows the number of keys, whatever it is", arguments: [-1, 0, 1, 1_000, 100_000])
    func memory(keys: Int) {
        var frequencies = KeyFrequencies(seed: 4)
        frequencies.fit(keys: keys)
        #expect(frequencies.bytes >= 512 && frequencies.bytes <= max(700, 8 * keys))
    }
}

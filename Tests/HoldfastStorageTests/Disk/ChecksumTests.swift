// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastTesting
import Testing

@testable import HoldfastStorage

@Suite("Checksum", .timeLimit(.minutes(5)))
struct ChecksumTests {
    @Test("Every single flipped bit changes the sum", arguments: [1, 7, 8, 9, 31, 32, 33, 64, 200])
    func flippedBits(count: Int) {
        var generator = SeededGenerator(seed: UInt64(count))
        var bytes = generator.bytes(count)
        let sum = Checksum.of(bytes, seed: 1)
        var sums: Set<UInt64> = [sum]
        for bit in 0..<(count * 8) {
            bytes[bit / 8] ^= 1 << UInt8(bit % 8)
            sums.insert(Checksum.of(bytes, seed: 1))
            bytes[bit / 8] ^= 1 << UInt8(bit % 8)
        }
        #expect(sums.count == count * 8 + 1)
        #expect(Checksum.of(bytes, seed: 1) == sum)
    }

    @Test("Length, order and seed count")
    func differences() {
        let zeros = (0..<100).map { Checksum.of([UInt8](repeating: 0, count: $0), seed: 0) }
        #expect(Set(zeros).count == 100)
        let blocks = [UInt8](repeating: 1, count: 32) + [UInt8](repeating: 2, count: 32)
        #expect(Checksum.of(blocks, seed: 0) != Checksum.of(Array(blocks.reversed()), seed: 0))
        #expect(Checksum.of(blocks, seed: 0) != Checksum.of(blocks, seed: 1))
    }

    @Test("A flipped input bit flips about half of the sum's bits")
    func avalanche() {
        var generator = SeededGenerator(seed: 5)
        var flipped = 0
        let rounds = 2_000
        for _ in 0..<rounds {
            var bytes = generator.bytes(48)
            let before = Checksum.of(bytes, seed: 3)
            let bit = Int.random(in: 0..<384, using: &generator)
            bytes[bit / 8] ^= 1 << UInt8(bit % 8)
            flipped += (before ^ Checksum.of(bytes, seed: 3)).nonzeroBitCount
        }
        let mean = Double(flipped) / Double(rounds)
        #expect((31.0...33.0).contains(mean), "mean \(mean) of 64")
    }

    @Test("The sum is part of the disk format and stays what it is")
    func fixedValues() {
        #expect(Checksum.of(Array("holdfast".utf8), seed: 7) == 0x777A_1F62_71A0_E2E5)
        #expect(Checksum.of((0..<100).map { UInt8($0) }, seed: 7) == 0x21B0_6E05_A82C_DC67)
    }
}

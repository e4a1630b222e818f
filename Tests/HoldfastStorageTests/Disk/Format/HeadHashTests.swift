// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastTesting
import Testing

@testable import HoldfastStorage

@Suite("HeadHash", .timeLimit(.minutes(20)))
struct HeadHashTests {
    @Test(
        "The hash is part of the disk format and does not change",
        arguments: [
            ([], 0, 0xE03E_D22E_D2BE_4E95), ([], 7, 0xA1F5_DE68_42C0_0673),
            (Array("holdfast".utf8), 0, 0x8C89_AED2_FB2F_4A99), (Array("holdfast".utf8), 7, 0x1AB5_D914_80A2_80D6),
            (Array(0..<100), 7, 0xEE0A_27CA_32A4_2A0F),
        ] as [([UInt8], UInt64, UInt64)]
    )
    func fixedValues(bytes: [UInt8], seed: UInt64, hash: UInt64) {
        #expect(HeadHash.of(bytes, seed: seed) == hash)
        let part = ByteChunk([9] + bytes)[1..<(bytes.count + 1)]
        let again = part.withUnsafeBytes { HeadHash.of($0, seed: seed) }
        #expect(again == hash)
    }

    @Test("Two parts hash as one if the first is whole rows; otherwise the first is padded")
    func parts() {
        let head = [UInt8](0..<96)
        let more = Array("abc".utf8)
        let hash = head.withUnsafeBytes { head in more.withUnsafeBytes { HeadHash.of(head, more: $0, seed: 7) } }
        #expect(hash == 0x6234_9C56_50FF_B7E1)
        #expect(hash == HeadHash.of(head + more, seed: 7))
        let short = more.withUnsafeBytes { HeadHash.of($0, more: $0, seed: 7) }
        #expect(short != HeadHash.of(more + more, seed: 7))
    }

    @Test("Every single flipped bit changes the hash", arguments: [1, 7, 8, 9, 31, 32, 33, 64, 200])
    func flippedBits(count: Int) {
        var generator = SeededGenerator(seed: UInt64(count))
        var bytes = generator.bytes(count)
        var hashes: Set<UInt64> = [HeadHash.of(bytes, seed: 1)]
        for bit in 0..<(count * 8) {
            bytes[bit / 8] ^= 1 << UInt8(bit % 8)
            hashes.insert(HeadHash.of(bytes, seed: 1))
            bytes[bit / 8] ^= 1 << UInt8(bit % 8)
        }
        #expect(hashes.count == count * 8 + 1)
    }

    @Test("Length, word order and seed matter")
    func differences() {
        #expect(Set((0..<100).map { HeadHash.of([UInt8](repeating: 0, count: $0), seed: 0) }).count == 100)
        let words: [[UInt8]] = (1...8).map { [UInt8](repeating: $0, count: 8) }
        var hashes: Set<UInt64> = []
        for first in 0..<8 {
            for second in 0..<8 where first <= second {
                var swapped = words
                swapped.swapAt(first, second)
                hashes.insert(HeadHash.of(swapped.flatMap(\.self), seed: 0))
            }
        }
        #expect(hashes.count == 28 + 1)
        #expect(Set((0..<1_000).map { HeadHash.of(words[0], seed: $0) }).count == 1_000)
    }

    @Test("A flipped input bit flips about half of the hash's bits")
    func avalanche() {
        var generator = SeededGenerator(seed: 5)
        var flips = [Int](repeating: 0, count: 64)
        let rounds = 4_000
        for _ in 0..<rounds {
            var bytes = generator.bytes(48)
            let before = HeadHash.of(bytes, seed: 3)
            let bit = Int.random(in: 0..<384, using: &generator)
            bytes[bit / 8] ^= 1 << UInt8(bit % 8)
            let changed = before ^ HeadHash.of(bytes, seed: 3)
            for place in 0..<64 where changed >> UInt64(place) & 1 == 1 { flips[place] += 1 }
        }
        for (place, count) in flips.enumerated() {
            #expect((rounds * 9 / 20...rounds * 11 / 20).contains(count), "bit \(place) flipped \(count) times")
        }
    }

    @Test("A key's fragment and shard are spread evenly, also for keys that differ in one digit")
    func spread() {
        let hashing = KeyHashing(seed: 42)
        var shards = [Int](repeating: 0, count: 64)
        var fragments: Set<UInt32> = []
        for number in 0..<64_000 {
            let hash = hashing.primary(StoreKey("https://example.com/item?page=\(number)"))
            shards[Int(hash >> 58)] += 1
            fragments.insert(UInt32(truncatingIfNeeded: hash))
        }
        #expect(shards.allSatisfy { (850...1_150).contains($0) })
        // By chance about half a pair meets in 2^32.
        #expect(fragments.count >= 63_995)
    }

    @Test("Keys, variants and tags are hashed with the directory's seed")
    func keyHashing() {
        let hashing = KeyHashing(seed: 7)
        // Of the whole hash, 1AB5D91480A280D6, the primary hash leaves bits 43 to 57 to the variant hash.
        #expect(hashing.primary(StoreKey("holdfast")) == 0x1800_0114_80A2_80D6)
        #expect(hashing.variant(StoreKey("holdfast"), of: StoreKey("holdfast")) == 0x80A2_80D6 ^ 0x56BB)
        #expect(hashing.tag("holdfast") == HeadHash.of(Array("holdfast".utf8), seed: 8))
        #expect(KeyHashing(seed: .max).tag("t") == HeadHash.of(Array("t".utf8), seed: 0))
    }

    @Test("Words chosen to cancel the public constants do not make keys collide")
    func noBlindWord() {
        let constants = [
            HeadHash.constants.0, HeadHash.constants.1, HeadHash.constants.2, HeadHash.constants.3,
        ]
        for constant in constants {
            for place in 0..<4 {
                var hashes: Set<UInt64> = []
                for value in 0..<200 {
                    var words = [UInt64](repeating: UInt64(value), count: 4)
                    words[place] = constant
                    hashes.insert(words.withUnsafeBytes { HeadHash.of($0, seed: 99) })
                }
                #expect(hashes.count == 200)
            }
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastTesting
import Testing

@testable import HoldfastStorage

/// What the port promises, asked of the seal that the store's own tests use.
@Suite("The seal port")
struct StoreSealTests {
    private let part = SealedPart.body(order: 3)

    @Test("A seal opens what it sealed, and adds exactly its overhead", arguments: [0, 1, 15, 16, 17, 1_000, 65_520])
    func roundTrip(_ count: Int) throws {
        let seed: UInt64 = 41
        var generator = SeededGenerator(seed: seed)
        let plain = generator.bytes(count)
        let seal = TestSeal()
        let first = try seal.seal(ByteChunk(plain), context: part)
        let second = try seal.seal(ByteChunk(plain), context: part)
        #expect(first.count == count + seal.overhead, "seed \(seed)")
        #expect(first != second, "seed \(seed)")
        #expect(try seal.open(ByteChunk(first), keyID: seal.keyID, context: part) == plain, "seed \(seed)")
        #expect(try seal.open(ByteChunk(second), keyID: seal.keyID, context: part) == plain, "seed \(seed)")
    }

    @Test("An unknown key is not damage; another key, context or byte is")
    func refusals() throws {
        let seal = TestSeal()
        let sealed = try seal.seal(ByteChunk(Array("field".utf8)), context: part)
        #expect(seal.failure(opening: ByteChunk(sealed), keyID: 8, context: part) == .sealed)
        let other = TestSeal(7, key: 0x0DD)
        #expect(other.failure(opening: ByteChunk(sealed), keyID: 7, context: part) == .corrupt)
        let elsewhere = SealedPart.body(order: 4)
        #expect(seal.failure(opening: ByteChunk(sealed), keyID: 7, context: elsewhere) == .corrupt)
        for place in sealed.indices {
            var flipped = sealed
            flipped[place] ^= 4
            #expect(seal.failure(opening: ByteChunk(flipped), keyID: 7, context: part) == .corrupt, "byte \(place)")
        }
        for count in 0..<sealed.count {
            let cut = ByteChunk(Array(sealed.prefix(count)))
            #expect(seal.failure(opening: cut, keyID: 7, context: part) == .corrupt, "\(count) bytes")
        }
    }

    @Test("No two parts have the same context")
    func contexts() {
        var parts: [[UInt8]] = []
        for number: UInt64 in [0, 1, 255, 256, .max] {
            parts.append(SealedPart.body(order: number))
            for kind in [RecordKind.prefixMark, .entry] {
                var header = RecordHeader(kind: kind, segment: 1, order: number, primary: 1)
                parts.append(SealedPart.detail(of: header))
                guard kind == .entry else { continue }
                header.bodyLength = 7
                parts.append(SealedPart.detail(of: header))
                header.hasBlob = true
                for blob: UInt64 in [0, 3] {
                    header.bodyWord = blob
                    parts.append(SealedPart.detail(of: header))
                }
            }
            for index in [0, 1, Int.max] {
                parts += [false, true].map { SealedPart.chunk(blob: number, index: index, isLast: $0) }
            }
        }
        #expect(Set(parts).count == parts.count)
    }
}

extension StoreSeal {
    /// Why the bytes do not open; nil where they do.
    fileprivate func failure(opening bytes: ByteChunk, keyID: UInt32, context: [UInt8]) -> StoreError.Code? {
        do throws(StoreError) {
            _ = try open(bytes, keyID: keyID, context: context)
            return nil
        } catch {
            return error.code
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if canImport(CryptoKit) || Crypto
    import HoldfastCrypto
    import HoldfastStorage
    import HoldfastTesting
    import Testing

    @Suite("Sealing with AES-256-GCM", .timeLimit(.minutes(20)))
    struct AEADSealTests {
        private static let context = Array("part".utf8)

        private static func key(_ id: UInt32, _ byte: UInt8) throws -> SealingKey {
            try SealingKey(id: id, bytes: Array(repeating: byte, count: 32))
        }

        @Test("Opening returns what was sealed", arguments: [0, 1, 15, 16, 17, 4_096, 65_492, 131_072])
        func roundTrip(_ count: Int) throws {
            var generator = SeededGenerator(seed: 4)
            let plain = (0..<count).map { _ in UInt8(truncatingIfNeeded: generator.next()) }
            let seal = try AEADSeal(current: .random(id: 1))
            let sealed = try seal.seal(ByteChunk(plain), context: Self.context)
            #expect(sealed.count == count + seal.overhead)
            #expect(try seal.open(ByteChunk(sealed), keyID: 1, context: Self.context) == plain)
            // A chunk that is cut from a larger one opens as well.
            let around = ByteChunk([9, 9] + sealed + [9])[2..<2 + sealed.count]
            #expect(try seal.open(around, keyID: 1, context: Self.context) == plain)
        }

        @Test("A test vector of SP 800-38D for AES-256 opens: nonce, ciphertext, tag")
        func vector() throws {
            // Test case 14 of the submission of GCM to NIST: key, nonce and plain text all zero.
            let seal = try AEADSeal(current: Self.key(1, 0))
            let cipher: [UInt8] = [
                0xCE, 0xA7, 0x40, 0x3D, 0x4D, 0x60, 0x6B, 0x6E, 0x07, 0x4E, 0xC5, 0xD3, 0xBA, 0xF3, 0x9D, 0x18,
            ]
            let tag: [UInt8] = [
                0xD0, 0xD1, 0xC8, 0xA7, 0x99, 0x99, 0x6B, 0xF0, 0x26, 0x5B, 0x98, 0xB5, 0xD4, 0x8A, 0xB9, 0x19,
            ]
            let sealed = ByteChunk(Array(repeating: 0, count: 12) + cipher + tag)
            #expect(try seal.open(sealed, keyID: 1, context: []) == Array(repeating: 0, count: 16))
        }

        @Test("Equal parts get different ciphertexts that show nothing of their content")
        func nonces() throws {
            let seal = try AEADSeal(current: .random(id: 1))
            let plain = ByteChunk(Array(repeating: 0x41, count: 64))
            let sealed = try (0..<2_000).map { _ in try seal.seal(plain, context: Self.context) }
            #expect(Set(sealed.map { Array($0.prefix(12)) }).count == sealed.count)
            #expect(Set(sealed.map { Array($0.suffix(80)) }).count == sealed.count)
        }

        @Test("A changed byte, a truncation, another context or another key with the same id counts as damage")
        func damage() throws {
            let seal = try AEADSeal(current: Self.key(5, 1))
            let sealed = try seal.seal(ByteChunk(Array("a field's value".utf8)), context: Self.context)
            for place in sealed.indices {
                var flipped = sealed
                flipped[place] ^= 0x80
                #expect(seal.failure(opening: flipped, keyID: 5, context: Self.context) == .corrupt, "byte \(place)")
            }
            for count in 0..<sealed.count {
                let cut = Array(sealed.prefix(count))
                #expect(seal.failure(opening: cut, keyID: 5, context: Self.context) == .corrupt, "\(count) bytes")
            }
            #expect(seal.failure(opening: sealed, keyID: 5, context: Self.context + [0]) == .corrupt)
            #expect(seal.failure(opening: sealed, keyID: 5, context: []) == .corrupt)
            let other = try AEADSeal(current: Self.key(5, 2))
            #expect(other.failure(opening: sealed, keyID: 5, context: Self.context) == .corrupt)
            #expect(seal.failure(opening: sealed, keyID: 5, context: Self.context) == nil)
        }

        @Test("A key that is not available is not damage, and the error names it")
        func unknownKey() throws {
            let seal = try AEADSeal(current: Self.key(5, 1))
            let sealed = try seal.seal(ByteChunk([1, 2]), context: Self.context)
            let error = #expect(throws: StoreError.self) {
                try seal.open(ByteChunk(sealed), keyID: 6, context: Self.context)
            }
            #expect(error?.code == .sealed)
            #expect(error?.message.contains("key 6") == true)
        }

        @Test("After a key change, old parts open with the retired key and new ones use the new key")
        func rotation() throws {
            let before = try AEADSeal(current: Self.key(1, 1))
            let after = try AEADSeal(current: Self.key(2, 2), retired: [Self.key(1, 1)])
            let old = try before.seal(ByteChunk([1]), context: Self.context)
            let new = try after.seal(ByteChunk([2]), context: Self.context)
            #expect(after.keyID == 2)
            #expect(try after.open(ByteChunk(old), keyID: 1, context: Self.context) == [1])
            #expect(try after.open(ByteChunk(new), keyID: 2, context: Self.context) == [2])
            #expect(before.failure(opening: new, keyID: 2, context: Self.context) == .sealed)
            #expect(before.failure(opening: new, keyID: 1, context: Self.context) == .corrupt)
            let dropped = try AEADSeal(current: Self.key(2, 2))
            #expect(dropped.failure(opening: old, keyID: 1, context: Self.context) == .sealed)
        }

        @Test("Two keys with one id are refused")
        func doubleID() throws {
            let error = #expect(throws: StoreError.self) {
                try AEADSeal(current: Self.key(1, 1), retired: [Self.key(1, 2)])
            }
            #expect(error?.code == .badConfiguration)
        }
    }

    extension AEADSeal {
        fileprivate func failure(opening bytes: [UInt8], keyID: UInt32, context: [UInt8]) -> StoreError.Code? {
            do throws(StoreError) {
                _ = try open(ByteChunk(bytes), keyID: keyID, context: context)
                return nil
            } catch {
                return error.code
            }
        }
    }
#endif

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if canImport(CryptoKit) || Crypto
    import HoldfastCrypto
    import HoldfastStorage
    import Testing

    @Suite("Sealing keys")
    struct SealingKeyTests {
        @Test("A key has 32 bytes", arguments: [0, 16, 31, 33, 64])
        func length(_ count: Int) throws {
            let error = #expect(throws: StoreError.self) {
                try SealingKey(id: 1, bytes: Array(repeating: 1, count: count))
            }
            #expect(error?.code == .badConfiguration)
            #expect(error?.message.contains("\(count)") == true)
        }

        @Test("The id 0 is refused")
        func zero() {
            #expect(throws: StoreError.self) { try SealingKey(id: 0, bytes: Array(repeating: 1, count: 32)) }
            #expect(throws: StoreError.self) { try SealingKey.random(id: 0) }
        }

        @Test("Two random keys differ, and a key's bytes make the same key again")
        func random() throws {
            let first = try SealingKey.random(id: 1).withUnsafeBytes { Array($0) }
            let second = try SealingKey.random(id: 1).withUnsafeBytes { Array($0) }
            #expect(first.count == SealingKey.byteCount)
            #expect(first != second)
            #expect(try SealingKey(id: 1, bytes: first).withUnsafeBytes { Array($0) } == first)
            #expect(try SealingKey(id: 1, bytes: AnySequence(first)).withUnsafeBytes { Array($0) } == first)
        }

        @Test("Neither a key nor a seal that holds one is ever printed")
        func hidden() throws {
            let key = try SealingKey(id: 77, bytes: Array(repeating: 0xAB, count: 32))
            let seal = try AEADSeal(current: key)
            var dumped = ""
            dump(key, to: &dumped)
            dump(seal, to: &dumped)
            for text in ["\(key)", String(reflecting: key), "\(seal)", String(reflecting: seal), dumped] {
                #expect(text.contains("77"))
                for trace in ["171", "AB", "ab,", "q6urq", "\u{AB}"] {
                    #expect(!text.contains(trace), "\(trace)")
                }
            }
        }
    }
#endif

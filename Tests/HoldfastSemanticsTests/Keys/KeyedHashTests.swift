// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import Testing

@Suite("SipHash-2-4")
struct KeyedHashTests {
    private static let hash = KeyedHash(keys: (0x0706_0504_0302_0100, 0x0F0E_0D0C_0B0A_0908))

    @Test("The example in appendix A of its paper")
    func paper() {
        #expect(Self.hash.of((0..<15).map { UInt8($0) }) == 0xA129_CA61_49BE_45E5)
        let words = [1, 2, UInt64.max]
        let bytes = words.flatMap { word in (0..<8).map { UInt8(truncatingIfNeeded: word >> ($0 * 8)) } }
        #expect(Self.hash.of(1, 2, .max) == Self.hash.of(bytes))
    }

    @Test(
        "128 bits: the first vectors of the reference implementation",
        arguments: [
            (0, "a3817f04ba25a8e66df67214c7550293"), (1, "da87c1d86b99af44347659119b22fc45"),
            (2, "8177228da4a45dc7fca38bdef60affe4"),
        ]
    )
    func wide(_ count: Int, _ expected: String) {
        let wide = (0..<count).map { UInt8($0) }.withUnsafeBytes { Self.hash.wide(of: $0) }
        let bytes = [wide.high, wide.low].flatMap { word in
            (0..<8).map { UInt8(truncatingIfNeeded: word >> ($0 * 8)) }
        }
        #expect(bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() == expected)
    }

    @Test("Different lists of texts have different hashes, and equal ones the same")
    func texts() {
        let parts: [String?] = [nil, "", "a", "b", "ab", "aaaaaaa", "aaaaaaaa", "aaaaaaaaa", "\0"]
        var seen: Set<KeyedHash.Wide> = []
        for first in parts {
            for second in parts {
                for third in parts {
                    let wide = Self.hash.wide(of: first, second, third)
                    #expect(seen.insert(wide).inserted)
                    #expect(wide == Self.hash.wide(of: first, second, third))
                }
            }
        }
    }
}

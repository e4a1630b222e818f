// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Redis

    /// SHA-1 (FIPS 180-4), which Redis names scripts by; nothing here depends on its collision resistance.
    struct ScriptDigest: Sendable {
        let hex: String

        init(of message: [UInt8]) {
            var state: [UInt32] = [0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476, 0xC3D2_E1F0]
            var padded = message + [0x80]
            while padded.count % 64 != 56 { padded.append(0) }
            let bits = UInt64(message.count) &* 8
            for shift in stride(from: 56, through: 0, by: -8) {
                padded.append(UInt8(truncatingIfNeeded: bits >> shift))
            }
            for start in stride(from: 0, to: padded.count, by: 64) {
                ScriptDigest.compress(&state, block: padded[start..<(start + 64)])
            }
            hex = state.map { word in
                let digits = String(word, radix: 16)
                return String(repeating: "0", count: 8 - digits.count) + digits
            }.joined()
        }

        private static func compress(_ state: inout [UInt32], block: ArraySlice<UInt8>) {
            var words = stride(from: block.startIndex, to: block.endIndex, by: 4).map { place in
                block[place..<(place + 4)].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
            }
            for index in 16..<80 {
                words.append(rotate(words[index - 3] ^ words[index - 8] ^ words[index - 14] ^ words[index - 16], by: 1))
            }
            var (a, b, c, d, e) = (state[0], state[1], state[2], state[3], state[4])
            for (index, word) in words.enumerated() {
                let (mixed, constant): (UInt32, UInt32) =
                    switch index / 20 {
                    case 0: (b & c | ~b & d, 0x5A82_7999)
                    case 1: (b ^ c ^ d, 0x6ED9_EBA1)
                    case 2: (b & c | b & d | c & d, 0x8F1B_BCDC)
                    default: (b ^ c ^ d, 0xCA62_C1D6)
                    }
                (a, b, c, d, e) = (rotate(a, by: 5) &+ mixed &+ e &+ constant &+ word, a, rotate(b, by: 30), c, d)
            }
            for (index, value) in [a, b, c, d, e].enumerated() { state[index] &+= value }
        }

        private static func rotate(_ word: UInt32, by count: UInt32) -> UInt32 {
            word << count | word >> (32 - count)
        }
    }
#endif

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Numbers drawn at random inside a policy: the same ones for the same seed (xorshift64, Marsaglia 2003).
package struct PolicyRandom: Sendable, Equatable {
    private var state: UInt64

    /// Draws that depend on nothing but `seed`.
    package init(seed: UInt64) {
        let mixed = (seed &+ 0x9E37_79B9_7F4A_7C15) &* 0xBF58_476D_1CE4_E5B9
        // The generator stands still at 0.
        state = (mixed ^ mixed >> 31) | 1 << 63
    }

    /// A number from 0 to `count` - 1; `count` is 1 to 2^32 - 1.
    package mutating func next(below count: Int) -> Int {
        state ^= state << 13
        state ^= state >> 7
        state ^= state << 17
        return Int(truncatingIfNeeded: ((state >> 32) &* UInt64(truncatingIfNeeded: count)) >> 32)
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Random numbers that are the same for the same seed on every platform: SplitMix64.
///
/// The algorithm is that of Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (OOPSLA 2014).
package struct SplitMix: RandomNumberGenerator, Sendable {
    private var state: UInt64

    /// Creates a generator whose numbers depend only on `seed`.
    package init(seed: UInt64) {
        state = seed
    }

    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        return SplitMix.mixed(state)
    }

    /// The next number as a fraction: at least 0, less than 1.
    package mutating func nextShare() -> Double {
        SplitMix.share(next())
    }

    /// A number that depends only on `parts` and their order.
    ///
    /// Decisions made by it do not depend on which of several tasks asks first.
    package static func hash(_ parts: UInt64...) -> UInt64 {
        parts.reduce(0x2545_F491_4F6C_DD1D) { mixed(($0 ^ $1) &+ 0x9E37_79B9_7F4A_7C15) }
    }

    /// A number as a fraction: at least 0, less than 1.
    package static func share(_ number: UInt64) -> Double {
        Double(number >> 11) * 0x1p-53
    }

    private static func mixed(_ number: UInt64) -> UInt64 {
        var mixed = number
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Random numbers that are the same for the same seed on every platform.
///
/// The algorithm is that of Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (OOPSLA 2014). Its users are
/// other modules, which draw millions of numbers; hence `@inlinable`.
package struct SplitMix64: RandomNumberGenerator, Sendable {
    @usableFromInline var state: UInt64

    @inlinable package init(seed: UInt64) { state = seed }

    @inlinable package mutating func next() -> UInt64 {
        defer { state &+= SplitMix64.step }
        return SplitMix64.mixed(state)
    }

    /// The next number as a fraction: at least 0, less than 1.
    @inlinable package mutating func nextShare() -> Double { SplitMix64.share(next()) }

    /// A number that depends only on `parts` and their order.
    ///
    /// Decisions made by it do not depend on which of several tasks asks first.
    package static func hash(_ parts: UInt64...) -> UInt64 { parts.reduce(0x2545_F491_4F6C_DD1D) { mixed($0 ^ $1) } }

    /// A number as a fraction: at least 0, less than 1.
    @inlinable package static func share(_ number: UInt64) -> Double { Double(number >> 11) * 0x1p-53 }

    /// A mix of all bits, so that consecutive numbers can be used as hashes: the first number of a generator with this seed.
    @inlinable package static func mixed(_ seed: UInt64) -> UInt64 {
        var mixed = seed &+ step
        mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }

    @inlinable package static var step: UInt64 { 0x9E37_79B9_7F4A_7C15 }
}

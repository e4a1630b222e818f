// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics

/// A random number generator that produces the same numbers for the same seed on every platform: SplitMix64.
///
/// The algorithm is from Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (OOPSLA 2014).
public struct SeededGenerator: RandomNumberGenerator, Sendable {
    /// The seed that it started with; print it when a property fails.
    public let seed: UInt64
    private var numbers: SplitMix64

    /// A generator that starts with `seed`.
    public init(seed: UInt64) {
        self.seed = seed
        numbers = SplitMix64(seed: seed)
    }

    public mutating func next() -> UInt64 { numbers.next() }
}

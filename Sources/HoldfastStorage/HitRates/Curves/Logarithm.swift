// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if canImport(Darwin)
    private import Darwin
#elseif canImport(Glibc)
    private import Glibc
#elseif canImport(Musl)
    private import Musl
#endif

/// Logarithms and powers, which the standard library does not have.
enum Logarithm {
    /// The power of ten that gives `value`.
    static func ten(_ value: Double) -> Double {
        log10(value)
    }

    /// Ten to a power.
    static func tenTo(_ power: Double) -> Double {
        pow(10, power)
    }
}

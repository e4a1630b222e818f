// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Numbers keys from 0 on in the order in which they come up.
struct KeyNumbers: Sendable {
    private var numbers: [UInt64: UInt32] = [:]
    private let maximum: Int

    /// Nothing numbered yet; the last number of 32 bits is never given, since tables by number use it for "none".
    init(maximum: Int = Int(UInt32.max)) {
        self.maximum = maximum
    }

    /// How many keys have a number.
    var count: Int { numbers.count }

    /// The number of a key, a new one if it has none; nil when the numbers are used up.
    mutating func number(of key: UInt64) -> UInt32? {
        if let known = numbers[key] { return known }
        guard numbers.count < maximum else { return nil }
        let number = UInt32(numbers.count)
        numbers[key] = number
        return number
    }
}

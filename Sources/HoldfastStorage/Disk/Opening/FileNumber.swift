// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The numbers by which files are named, so that a name says nothing of what the file holds.
enum FileNumber {
    /// A number that nothing else has, for what is set aside.
    static func random() -> UInt64 {
        var generator = SystemRandomNumberGenerator()
        return UInt64.random(in: 1 ... .max, using: &generator)
    }

    /// Sixteen lower-case hexadecimal digits.
    static func name(_ number: UInt64) -> String {
        let digits = String(number, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }

    /// The number in a name of this suffix; nil for every other name.
    static func number(in name: String, suffix: String) -> UInt64? {
        guard name.utf8.count == 16 + suffix.utf8.count, name.hasSuffix(suffix) else { return nil }
        guard let number = UInt64(name.prefix(16), radix: 16), self.name(number) + suffix == name else { return nil }
        return number
    }
}

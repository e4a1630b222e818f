// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import ArgumentParser

    /// A number of bytes as people write it: `512`, `64MB`, `1.5GiB`.
    ///
    /// kB, MB, GB and TB are powers of 1,000, KiB, MiB, GiB and TiB of 1,024; letter case does not matter, and B may be left out.
    struct ByteCount: ExpressibleByArgument, Sendable, Hashable, CustomStringConvertible {
        /// The number.
        let bytes: Int

        init(_ bytes: Int) {
            self.bytes = bytes
        }

        init?(argument: String) {
            let text = argument.lowercased()
            let digits = text.prefix { $0.isASCII && ($0.isNumber || $0 == ".") }
            var unit = text.dropFirst(digits.count).drop { $0 == " " }
            if unit.hasSuffix("b") { unit = unit.dropLast() }
            guard let number = Double(digits), let factor = ByteCount.factors[String(unit)] else { return nil }
            let product = (number * factor).rounded()
            guard product < Double(Int.max / 2) else { return nil }
            bytes = Int(product)
        }

        /// The number with the largest unit of 1,000 that leaves at least 1, to one decimal.
        var description: String {
            var (value, unit) = (Double(bytes), "B")
            for next in ["kB", "MB", "GB", "TB"] where value >= 999.95 || (unit == "B" && value >= 1_000) {
                value /= 1_000
                unit = next
            }
            if unit == "B" { return "\(bytes) B" }
            let tenths = Int((value * 10).rounded())
            return tenths % 10 == 0 ? "\(tenths / 10) \(unit)" : "\(tenths / 10).\(tenths % 10) \(unit)"
        }

        var defaultValueDescription: String { description.replacing(" ", with: "") }

        private static let factors: [String: Double] = [
            "": 1, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12,
            "ki": 1_024, "mi": 1_048_576, "gi": 1_073_741_824, "ti": 1_099_511_627_776,
        ]
    }
#endif

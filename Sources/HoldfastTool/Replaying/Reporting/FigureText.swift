// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import Foundation

    /// Numbers as people read them.
    enum FigureText {
        /// `1,234,567`.
        static func grouped(_ number: Int) -> String {
            var text = ""
            for (index, digit) in String(number.magnitude).reversed().enumerated() {
                if index > 0, index % 3 == 0 { text.append(",") }
                text.append(digit)
            }
            return (number < 0 ? "-" : "") + String(text.reversed())
        }

        /// `41.2 %`.
        static func percent(_ ratio: Double) -> String {
            let tenths = Int((ratio * 1_000).rounded())
            return "\(tenths / 10).\(tenths % 10) %"
        }

        /// `1 object`, `2 objects`.
        static func count(_ number: Int, _ noun: String) -> String {
            "\(grouped(number)) \(noun)\(number == 1 ? "" : "s")"
        }

        /// The length between two instants, in the largest unit that leaves at least 2.
        static func span(milliseconds: Int64) -> String {
            let seconds = Double(milliseconds) / 1_000
            for (unit, length) in [("days", 86_400.0), ("hours", 3_600), ("minutes", 60)] where seconds >= 2 * length {
                return "\((seconds / length * 10).rounded() / 10) \(unit)"
            }
            return "\((seconds * 10).rounded() / 10) seconds"
        }
    }
#endif

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import Holdfast
    internal import HoldfastSemantics

    /// Heads of messages as text for people.
    enum HeadText {
        /// Status and fields, a line each. The version of HTTP is left out: after a cache there is none.
        static func head(_ status: StatusCode, _ fields: HeaderFields, prefix: String) -> String {
            prefix + "HTTP \(status)\n" + fields.map { "\(prefix)\($0.name): \(printable($0.value))\n" }.joined()
        }

        /// Text of a stranger's as a terminal may show it: no control characters.
        static func printable(_ text: String) -> String {
            guard text.unicodeScalars.contains(where: isControl) else { return text }
            return String(String.UnicodeScalarView(text.unicodeScalars.map { isControl($0) ? "?" : $0 }))
        }

        /// `1.25 s`, `80 ms`.
        static func seconds(_ duration: Duration) -> String {
            let milliseconds = max(0, duration.wholeMilliseconds)
            if milliseconds < 1_000 { return "\(milliseconds) ms" }
            let hundredths = milliseconds / 10
            let rest = hundredths % 100
            if rest == 0 { return "\(hundredths / 100) s" }
            return "\(hundredths / 100).\(rest < 10 ? "0" : "")\(rest) s"
        }

        private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
            scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value)
        }
    }
#endif

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import ArgumentParser

    /// A length of time as people write it: `2` (seconds), `250ms`, `1.5s`, `10m`, `1h`, `7d`.
    struct TimeSpan: ExpressibleByArgument, Sendable, Hashable, CustomStringConvertible {
        /// The length; never negative.
        let duration: Duration

        init(_ duration: Duration) {
            self.duration = duration
        }

        init?(argument: String) {
            let digits = argument.prefix { $0.isASCII && ($0.isNumber || $0 == ".") }
            guard let number = Double(digits), let unit = TimeSpan.units[String(argument.dropFirst(digits.count))]
            else {
                return nil
            }
            let seconds = number * unit
            // Beyond that an instant could not be told any more.
            guard seconds <= 1e9 else { return nil }
            duration = .milliseconds(Int64((seconds * 1_000).rounded()))
        }

        /// The length with the largest unit that it is a whole number of, milliseconds at least.
        var description: String {
            let (seconds, fraction) = duration.components
            let milliseconds = seconds * 1_000 + fraction / 1_000_000_000_000_000
            for (unit, length) in [("d", Int64(86_400_000)), ("h", 3_600_000), ("m", 60_000), ("s", 1_000)]
            where milliseconds > 0 && milliseconds % length == 0 {
                return "\(milliseconds / length)\(unit)"
            }
            return milliseconds == 0 ? "0s" : "\(milliseconds)ms"
        }

        var defaultValueDescription: String { description }

        private static let units: [String: Double] = ["": 1, "ms": 0.001, "s": 1, "m": 60, "h": 3_600, "d": 86_400]
    }
#endif

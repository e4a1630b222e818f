// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import HoldfastSemantics

    /// Instants as logs and HAR files spell them; anything else is nil.
    enum LogTime {
        /// `10/Oct/2000:13:55:36 -0700`, as Apache and nginx write it, or the form of ``iso8601(_:)``.
        static func logged(_ text: ArraySlice<UInt8>) -> Timestamp? {
            var reader = Reader(text)
            guard let day = reader.number(2), reader.eat("/"), let month = reader.month(), reader.eat("/"),
                let year = reader.number(4), reader.eat(":"), let second = reader.timeOfDay(), reader.eat(" "),
                let zone = reader.zone(), reader.isAtEnd
            else { return iso8601(text) }
            return instant(year, month, day, second, zone, milliseconds: 0)
        }

        /// `2026-01-31T13:55:36.250+01:00`: RFC 3339, further places of the fraction cut off.
        static func iso8601(_ text: ArraySlice<UInt8>) -> Timestamp? {
            var reader = Reader(text)
            guard let year = reader.number(4), reader.eat("-"), let month = reader.number(2), reader.eat("-"),
                let day = reader.number(2), reader.eat("T") || reader.eat("t") || reader.eat(" "),
                let second = reader.timeOfDay()
            else { return nil }
            let milliseconds = reader.eat(".") ? reader.fraction() : 0
            guard let milliseconds, let zone = reader.zone(), reader.isAtEnd else { return nil }
            return instant(year, month, day, second, zone, milliseconds: milliseconds)
        }

        /// The instant in UTC, for people: `2026-01-31 12:55:36`.
        static func text(_ instant: Timestamp) -> String {
            let (days, second) = CivilDay.split(seconds: instant.secondsSinceEpoch)
            let date = CivilDay.date(of: days)
            func two(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
            return "\(date.year)-\(two(Int64(date.month)))-\(two(Int64(date.day))) "
                + "\(two(second / 3600)):\(two(second / 60 % 60)):\(two(second % 60))"
        }

        private static func instant(
            _ year: Int,
            _ month: Int,
            _ day: Int,
            _ second: Int,
            _ zone: Int,
            milliseconds: Int
        ) -> Timestamp? {
            guard (1...12).contains(month), day >= 1, day <= CivilDay.length(ofMonth: month, year: Int64(year)) else {
                return nil
            }
            // Four digits of a year are far from the ends of 64 bits.
            let days = CivilDay.number(year: Int64(year), month: month, day: day)
            let seconds = days * 86_400 + Int64(second - zone)
            return Timestamp(millisecondsSinceEpoch: seconds * 1_000 + Int64(milliseconds))
        }

        private struct Reader {
            private var bytes: ArraySlice<UInt8>
            var isAtEnd: Bool { bytes.isEmpty }

            init(_ bytes: ArraySlice<UInt8>) {
                self.bytes = bytes
            }

            mutating func eat(_ character: Unicode.Scalar) -> Bool {
                guard bytes.first == UInt8(ascii: character) else { return false }
                bytes.removeFirst()
                return true
            }

            /// So many digits, eight at most.
            mutating func number(_ count: Int) -> Int? {
                guard bytes.count >= count else { return nil }
                var value = 0
                for byte in bytes.prefix(count) {
                    guard byte.isDigit else { return nil }
                    value = value * 10 + Int(byte - UInt8(ascii: "0"))
                }
                bytes.removeFirst(count)
                return value
            }

            mutating func month() -> Int? {
                let name = String(decoding: bytes.prefix(3).map(\.lowerCased), as: UTF8.self)
                guard let index = LogTime.months.firstIndex(of: name) else { return nil }
                bytes.removeFirst(3)
                return index + 1
            }

            /// `13:55:36`; a leap second counts as the one after.
            mutating func timeOfDay() -> Int? {
                guard let hour = number(2), eat(":"), let minute = number(2), eat(":"), let second = number(2),
                    hour <= 23, minute <= 59, second <= 60
                else { return nil }
                return hour * 3600 + minute * 60 + second
            }

            /// The digits after the point, in milliseconds.
            mutating func fraction() -> Int? {
                let digits = bytes.prefix { $0.isDigit }
                guard !digits.isEmpty else { return nil }
                bytes = bytes.dropFirst(digits.count)
                var value = 0
                for place in 0..<3 {
                    let digit = place < digits.count ? Int(digits[digits.startIndex + place] - UInt8(ascii: "0")) : 0
                    value = value * 10 + digit
                }
                return value
            }

            /// `Z`, `+0100` or `+01:00`, in seconds east of Greenwich.
            mutating func zone() -> Int? {
                if eat("Z") || eat("z") { return 0 }
                let isWest = bytes.first == UInt8(ascii: "-")
                guard eat("+") || eat("-"), let hours = number(2) else { return nil }
                _ = eat(":")
                guard let minutes = number(2), hours <= 23, minutes <= 59 else { return nil }
                return (hours * 3600 + minutes * 60) * (isWest ? -1 : 1)
            }
        }

        private static let months = [
            "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
        ]
    }
#endif

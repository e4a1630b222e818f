// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import HoldfastSemantics

    /// A line of an access log in the common or combined format, with or without a virtual host.
    ///
    ///     host ident user [10/Oct/2000:13:55:36 -0700] "GET /a?b=1 HTTP/1.1" 200 2326 "referer" "agent"
    ///
    /// Anything after the size is ignored.
    struct AccessLogLine: Sendable, Hashable {
        /// What is wrong with a line, in a few words.
        struct Malformation: Error, Hashable, CustomStringConvertible {
            let description: String

            static let time = Malformation(description: "no [time] in it")
            static let request = Malformation(description: "no \"request\" after the time")
            static let status = Malformation(description: "no status after the request")
            static let size = Malformation(description: "no number of bytes after the status")
            static let tooLong = Malformation(description: "longer than 64 KiB")
        }

        /// The virtual host of the request, if the log has it.
        let host: String?
        let time: Timestamp
        /// The method; nil if the client sent no request line.
        let method: String?
        /// The target as it was sent; "" if the client sent no request line.
        let target: String
        let status: StatusCode
        /// Bytes of the body; nil if the log has `-`.
        let bytes: Int?

        /// Reads a line without its end.
        init(_ line: ArraySlice<UInt8>) throws(Malformation) {
            if line.count >= LineReader.longestLine { throw .tooLong }
            guard let (before, time, rest) = Self.time(in: line) else { throw .time }
            self.time = time
            host = Self.virtualHost(before)
            var after = rest.drop { $0 == Self.space }
            guard after.first == Self.quote, let end = Self.closingQuote(after) else { throw .request }
            let request = after[(after.startIndex + 1)..<end]
            after = after[(end + 1)...]
            guard let word = Self.word(&after), word.count == 3, let number = FieldScanner.number(word, limit: 999)
            else {
                throw .status
            }
            status = StatusCode(Int(number))
            guard let word = Self.word(&after) else { throw .size }
            if word.elementsEqual([UInt8(ascii: "-")]) {
                bytes = nil
            } else {
                guard let number = FieldScanner.number(word, limit: Int64(Int.max)) else { throw .size }
                bytes = Int(clamping: number)
            }
            (method, target) = Self.split(request)
        }

        private static let space = UInt8(ascii: " ")
        private static let quote = UInt8(ascii: "\"")

        /// The bracket with the time; a user's name may contain brackets too.
        private static func time(
            in line: ArraySlice<UInt8>
        ) -> (before: ArraySlice<UInt8>, time: Timestamp, rest: ArraySlice<UInt8>)? {
            var from = line.startIndex
            for _ in 0..<8 {
                guard let open = line[from...].firstIndex(of: UInt8(ascii: "[")),
                    let close = line[open...].firstIndex(of: UInt8(ascii: "]"))
                else { return nil }
                if let time = LogTime.logged(line[(open + 1)..<close]) {
                    return (line[..<open], time, line[(close + 1)...])
                }
                from = open + 1
            }
            return nil
        }

        /// `host:port` before the address of the client.
        private static func virtualHost(_ before: ArraySlice<UInt8>) -> String? {
            let words = before.split(separator: space)
            guard words.count >= 4, let colon = words[0].lastIndex(of: UInt8(ascii: ":")),
                words[0][(colon + 1)...].allSatisfy(\.isDigit),
                words[1].contains(where: { $0 == UInt8(ascii: ".") || $0 == UInt8(ascii: ":") })
            else { return nil }
            return String(decoding: words[0], as: UTF8.self)
        }

        /// The closing quotation mark of a text; one after a backslash does not count.
        private static func closingQuote(_ text: ArraySlice<UInt8>) -> Int? {
            var index = text.startIndex + 1
            while index < text.endIndex {
                if text[index] == quote { return index }
                index += text[index] == UInt8(ascii: "\\") ? 2 : 1
            }
            return nil
        }

        private static func word(_ text: inout ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
            text = text.drop { $0 == space }
            let word = text.prefix { $0 != space && $0 != UInt8(ascii: "\r") }
            text = text.dropFirst(word.count)
            return word.isEmpty ? nil : word
        }

        /// `GET /a HTTP/1.1`; a target may contain spaces, and HTTP/0.9 has no version.
        private static func split(_ request: ArraySlice<UInt8>) -> (String?, String) {
            guard let first = request.firstIndex(of: space),
                let method = RequestMethod(validating: String(decoding: request[..<first], as: UTF8.self))
            else { return (nil, "") }
            var target = request[(first + 1)...]
            if let last = target.lastIndex(of: space), target[(last + 1)...].starts(with: "HTTP/".utf8) {
                target = target[..<last]
            }
            return target.isEmpty ? (nil, "") : (method.rawValue, String(decoding: target, as: UTF8.self))
        }
    }

    /// Instants as written in logs and HAR files; nil for anything else.
    enum LogTime {
        /// `10/Oct/2000:13:55:36 -0700`, as Apache and nginx write it, or the format of ``iso8601(_:)``.
        static func logged(_ text: ArraySlice<UInt8>) -> Timestamp? {
            var reader = Reader(text)
            guard let day = reader.number(2), reader.eat("/"), let month = reader.month(), reader.eat("/"),
                let year = reader.number(4), reader.eat(":"), let second = reader.timeOfDay(), reader.eat(" "),
                let zone = reader.zone(), reader.isAtEnd
            else { return iso8601(text) }
            return instant(year: year, month: month, day: day, second: second, zone: zone, milliseconds: 0)
        }

        /// `2026-01-31T13:55:36.250+01:00`: RFC 3339, with further digits of the fraction cut off.
        static func iso8601(_ text: ArraySlice<UInt8>) -> Timestamp? {
            var reader = Reader(text)
            guard let year = reader.number(4), reader.eat("-"), let month = reader.number(2), reader.eat("-"),
                let day = reader.number(2), reader.eat("T") || reader.eat("t") || reader.eat(" "),
                let second = reader.timeOfDay()
            else { return nil }
            let milliseconds = reader.eat(".") ? reader.fraction() : 0
            guard let milliseconds, let zone = reader.zone(), reader.isAtEnd else { return nil }
            return instant(year: year, month: month, day: day, second: second, zone: zone, milliseconds: milliseconds)
        }

        /// The instant in UTC, for people: `2026-01-31 12:55:36`.
        static func text(_ instant: Timestamp) -> String {
            ReadableText.instant(instant).replacing("T", with: " ").replacing("Z", with: "")
        }

        private static func instant(
            year: Int,
            month: Int,
            day: Int,
            second: Int,
            zone: Int,
            milliseconds: Int
        ) -> Timestamp? {
            guard (1...12).contains(month), day >= 1, day <= CivilDay.length(ofMonth: month, year: Int64(year)) else {
                return nil
            }
            // Four-digit years are far from the limits of 64 bits.
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

            /// This many digits, at most eight.
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

            /// `13:55:36`; a leap second counts as the next second.
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

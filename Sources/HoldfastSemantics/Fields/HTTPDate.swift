// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// A date as HTTP writes it, whole seconds in UTC (RFC 9110 §5.6.7).
public struct HTTPDate: Sendable, Hashable, Comparable, CustomStringConvertible {
    /// The instant, on a whole second.
    public let timestamp: Timestamp

    /// Creates a date from an instant, cut down to its second.
    public init(_ timestamp: Timestamp) {
        self.timestamp = Timestamp(secondsSinceEpoch: timestamp.secondsSinceEpoch)
    }

    /// Reads any of the three forms a recipient must accept: IMF-fixdate, RFC 850 and asctime (RFC 9110 §5.6.7).
    ///
    /// Letter case is ignored and the day of the week must be a name but may be the wrong one; everything else is
    /// strict. Zones other than GMT and UTC, impossible days and impossible times are refused; 23:59:60 is taken.
    ///
    /// - Parameters:
    ///   - text: the field value; costs linear time and never traps.
    ///   - receivedAt: when the message came; a two-digit year that would lie more than 50 years after it is read as the
    ///     latest past year with the same digits.
    public init?(_ text: String, receivedAt: Timestamp) {
        var text = text
        guard text.utf8.count <= HTTPDate.longestForm,
            let calendar = text.withUTF8({ HTTPDate.parseFixed($0) ?? HTTPDate.parse(Array($0)) })
        else { return nil }
        var year = calendar.year
        if calendar.hasTwoDigitYear {
            year = HTTPDate.fullYear(of: calendar, receivedAt: receivedAt)
        }
        guard calendar.day <= CivilDay.length(ofMonth: calendar.month, year: year) else { return nil }
        let days = CivilDay.number(year: year, month: calendar.month, day: calendar.day)
        timestamp = Timestamp(secondsSinceEpoch: days * 86_400 + calendar.secondOfDay)
    }

    /// The date as IMF-fixdate, such as `Sun, 06 Nov 1994 08:49:37 GMT`; years outside 0 to 9999 are clamped.
    public var description: String {
        let lowest = CivilDay.number(year: 0, month: 1, day: 1) * 86_400
        let highest = CivilDay.number(year: 10_000, month: 1, day: 1) * 86_400 - 1
        let seconds = min(max(timestamp.secondsSinceEpoch, lowest), highest)
        let (days, rest) = CivilDay.split(seconds: seconds)
        let date = CivilDay.date(of: days)
        // Day 0, the first of January 1970, was a Thursday.
        let weekday = HTTPDate.weekdays[Int(((days % 7) + 10) % 7)].prefix(3)
        let time = [rest / 3600, rest / 60 % 60, rest % 60].map { HTTPDate.padded($0, to: 2) }.joined(separator: ":")
        let month = HTTPDate.months[date.month - 1]
        return "\(weekday), \(HTTPDate.padded(Int64(date.day), to: 2)) \(month) "
            + "\(HTTPDate.padded(date.year, to: 4)) \(time) GMT"
    }

    /// Whether the left date comes before the right one.
    public static func < (left: HTTPDate, right: HTTPDate) -> Bool {
        left.timestamp < right.timestamp
    }
}

extension HTTPDate {
    private struct Calendar {
        var year: Int64
        var month: Int
        var day: Int
        var secondOfDay: Int64
        var hasTwoDigitYear = false
    }

    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]
    private static let weekdays = [
        "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday",
    ]
    /// `Wednesday, 06-Nov-94 08:49:37 GMT` has 34 bytes; nothing longer can be a date.
    private static let longestForm = 40

    private static func padded(_ number: Int64, to width: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, width - digits.utf8.count)) + digits
    }

    /// The latest year with these two digits whose date lies no more than 50 years after the message.
    private static func fullYear(of calendar: Calendar, receivedAt: Timestamp) -> Int64 {
        let lowest = CivilDay.number(year: 100, month: 1, day: 1) * 86_400
        let highest = CivilDay.number(year: 9900, month: 1, day: 1) * 86_400
        let now = min(max(receivedAt.secondsSinceEpoch, lowest), highest)
        let century = CivilDay.date(of: CivilDay.split(seconds: now).days).year / 100 * 100
        for candidate in [century + 100 + calendar.year, century + calendar.year] {
            let back = CivilDay.number(year: candidate - 50, month: calendar.month, day: calendar.day)
            if back * 86_400 + calendar.secondOfDay <= now { return candidate }
        }
        return century - 100 + calendar.year
    }

    /// IMF-fixdate in the letter case in which it is to be sent, as nearly all are, without taking it apart into words; nil for
    /// anything else, which may be a date all the same.
    private static func parseFixed(_ bytes: UnsafeBufferPointer<UInt8>) -> Calendar? {
        func number(_ position: Int, _ count: Int) -> Int64? {
            var value: Int64 = 0
            for byte in bytes[position..<position + count] {
                guard byte.isDigit else { return nil }
                value = value * 10 + Int64(byte - UInt8(ascii: "0"))
            }
            return value
        }
        func place(of position: Int, in names: StaticString) -> Int? {
            names.withUTF8Buffer { names in
                stride(from: 0, to: names.count, by: 3).first { start in
                    (0..<3).allSatisfy { names[start + $0] == bytes[position + $0] }
                }.map { $0 / 3 }
            }
        }
        func stands(_ mark: Unicode.Scalar, at positions: Int...) -> Bool {
            positions.allSatisfy { bytes[$0] == UInt8(ascii: mark) }
        }
        guard bytes.count == 29, stands(",", at: 3), stands(" ", at: 4, 7, 11, 16, 25), stands(":", at: 19, 22),
            stands("G", at: 26), stands("M", at: 27), stands("T", at: 28),
            place(of: 0, in: "MonTueWedThuFriSatSun") != nil, let day = number(5, 2),
            let month = place(of: 8, in: "JanFebMarAprMayJunJulAugSepOctNovDec"), let year = number(12, 4),
            let hour = number(17, 2), let minute = number(20, 2), let second = number(23, 2),
            let time = secondOfDay(hour, minute, second)
        else { return nil }
        return checked(year: year, month: month + 1, day: day, time: time, hasTwoDigitYear: false)
    }

    private static func parse(_ bytes: [UInt8]) -> Calendar? {
        var reader = DateReader(bytes: bytes)
        guard let name = reader.word() else { return nil }
        let isLong = weekdays.contains { reader.matches(name, $0) }
        guard isLong || weekdays.contains(where: { reader.matches(name, String($0.prefix(3))) }) else { return nil }
        guard reader.eat(",") else { return isLong ? nil : parseASCTime(&reader) }
        guard reader.eat(" "), let day = reader.digits(2) else { return nil }
        let separator: Unicode.Scalar = isLong ? "-" : " "
        guard reader.eat(separator), let month = month(&reader), reader.eat(separator),
            let year = reader.digits(isLong ? 2 : 4), reader.eat(" "), let time = time(&reader), reader.eat(" "),
            let zone = reader.word(), reader.matches(zone, "GMT") || reader.matches(zone, "UTC"), reader.isAtEnd
        else { return nil }
        return checked(year: year, month: month, day: day, time: time, hasTwoDigitYear: isLong)
    }

    private static func parseASCTime(_ reader: inout DateReader) -> Calendar? {
        guard reader.eat(" "), let month = month(&reader), reader.eat(" ") else { return nil }
        let day = reader.eat(" ") ? reader.digits(1) : reader.digits(2)
        guard let day, reader.eat(" "), let time = time(&reader), reader.eat(" "), let year = reader.digits(4),
            reader.isAtEnd
        else { return nil }
        return checked(year: year, month: month, day: day, time: time, hasTwoDigitYear: false)
    }

    private static func month(_ reader: inout DateReader) -> Int? {
        guard let word = reader.word() else { return nil }
        return months.firstIndex { reader.matches(word, $0) }.map { $0 + 1 }
    }

    private static func time(_ reader: inout DateReader) -> Int64? {
        guard let hour = reader.digits(2), reader.eat(":"), let minute = reader.digits(2), reader.eat(":"),
            let second = reader.digits(2)
        else { return nil }
        return secondOfDay(hour, minute, second)
    }

    private static func secondOfDay(_ hour: Int64, _ minute: Int64, _ second: Int64) -> Int64? {
        guard hour < 24, minute < 60 else { return nil }
        guard second < 60 || (second == 60 && hour == 23 && minute == 59) else { return nil }
        return hour * 3600 + minute * 60 + second
    }

    private static func checked(
        year: Int64,
        month: Int,
        day: Int64,
        time: Int64,
        hasTwoDigitYear: Bool
    ) -> Calendar? {
        guard day >= 1, day <= 31 else { return nil }
        return Calendar(year: year, month: month, day: Int(day), secondOfDay: time, hasTwoDigitYear: hasTwoDigitYear)
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// A date in HTTP's format, in whole seconds in UTC (RFC 9110 §5.6.7).
public struct HTTPDate: Sendable, Hashable, Comparable, CustomStringConvertible {
    /// The instant, on a whole second.
    public let timestamp: Timestamp

    /// Creates a date from an instant, truncated to its second.
    public init(_ timestamp: Timestamp) {
        self.timestamp = Timestamp(secondsSinceEpoch: timestamp.secondsSinceEpoch)
    }

    /// Parses any of the three forms that a recipient must accept: IMF-fixdate, RFC 850 and asctime (RFC 9110 §5.6.7).
    ///
    /// Case is ignored, and the day of the week must be a name but may be wrong; everything else is strict. Zones other than GMT
    /// and UTC, impossible days and impossible times are refused; 23:59:60 is accepted.
    ///
    /// - Parameters:
    ///   - text: the field value; costs linear time and never traps.
    ///   - receivedAt: when the message arrived; a two-digit year more than 50 years after it is read as the latest past year with
    ///     the same digits.
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

    /// Whether the left date is before the right one.
    public static func < (left: HTTPDate, right: HTTPDate) -> Bool {
        left.timestamp < right.timestamp
    }

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

    /// The latest year with these two digits whose date is at most 50 years after the message.
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

    /// Parses an IMF-fixdate in the case in which it must be sent, as nearly all are, without splitting it into words; nil for
    /// anything else, which may still be a date.
    private static func parseFixed(_ bytes: UnsafeBufferPointer<UInt8>) -> Calendar? {
        func number(at position: Int, count: Int) -> Int64? {
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
            place(of: 0, in: "MonTueWedThuFriSatSun") != nil, let day = number(at: 5, count: 2),
            let month = place(of: 8, in: "JanFebMarAprMayJunJulAugSepOctNovDec"), let year = number(at: 12, count: 4),
            let hour = number(at: 17, count: 2), let minute = number(at: 20, count: 2),
            let second = number(at: 23, count: 2),
            let time = secondOfDay(hour: hour, minute: minute, second: second)
        else { return nil }
        return checked(year: year, month: month + 1, day: day, time: time, hasTwoDigitYear: false)
    }

    private static func parse(_ bytes: [UInt8]) -> Calendar? {
        var reader = DateReader(bytes: bytes)
        guard let name = reader.word() else { return nil }
        let isLong = weekdays.contains { reader.matches(name, name: $0) }
        guard isLong || weekdays.contains(where: { reader.matches(name, name: String($0.prefix(3))) }) else {
            return nil
        }
        guard reader.eat(",") else { return isLong ? nil : parseASCTime(&reader) }
        guard reader.eat(" "), let day = reader.digits(2) else { return nil }
        let separator: Unicode.Scalar = isLong ? "-" : " "
        guard reader.eat(separator), let month = month(&reader), reader.eat(separator),
            let year = reader.digits(isLong ? 2 : 4), reader.eat(" "), let time = time(&reader), reader.eat(" "),
            let zone = reader.word(), reader.matches(zone, name: "GMT") || reader.matches(zone, name: "UTC"),
            reader.isAtEnd
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
        return months.firstIndex { reader.matches(word, name: $0) }.map { $0 + 1 }
    }

    private static func time(_ reader: inout DateReader) -> Int64? {
        guard let hour = reader.digits(2), reader.eat(":"), let minute = reader.digits(2), reader.eat(":"),
            let second = reader.digits(2)
        else { return nil }
        return secondOfDay(hour: hour, minute: minute, second: second)
    }

    private static func secondOfDay(hour: Int64, minute: Int64, second: Int64) -> Int64? {
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

/// Conversion between days since 1970 and Gregorian dates, without a calendar library.
///
/// Years are counted from March, so that the leap day ends a year and month lengths follow one linear rule. Exact for every year
/// whose day number fits in 64 bits; callers clamp first.
package enum CivilDay {
    private static let daysPerEra: Int64 = 146_097
    /// Days from 0000-03-01 to 1970-01-01.
    private static let epochOffset: Int64 = 719_468

    package static func number(year: Int64, month: Int, day: Int) -> Int64 {
        let marchYear = month <= 2 ? year - 1 : year
        let era = floorDivide(marchYear, by: 400)
        let yearOfEra = marchYear - era * 400
        let monthFromMarch = Int64((month + 9) % 12)
        let dayOfYear = (153 * monthFromMarch + 2) / 5 + Int64(day) - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return era * daysPerEra + dayOfEra - epochOffset
    }

    package static func date(of number: Int64) -> (year: Int64, month: Int, day: Int) {
        let shifted = number + epochOffset
        let era = floorDivide(shifted, by: daysPerEra)
        let dayOfEra = shifted - era * daysPerEra
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        let day = Int(dayOfYear - (153 * monthFromMarch + 2) / 5 + 1)
        let month = Int(monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9)
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, day)
    }

    /// Days since 1970, rounded down, and the second within the day.
    package static func split(seconds: Int64) -> (days: Int64, secondOfDay: Int64) {
        let days = floorDivide(seconds, by: 86_400)
        return (days, seconds - days * 86_400)
    }

    package static func length(ofMonth month: Int, year: Int64) -> Int {
        switch month {
        case 4, 6, 9, 11: 30
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        default: 31
        }
    }

    private static func floorDivide(_ value: Int64, by divisor: Int64) -> Int64 {
        let quotient = value / divisor
        return value % divisor < 0 ? quotient - 1 : quotient
    }
}

/// The small steps for parsing the three date forms.
struct DateReader {
    let bytes: [UInt8]
    var position = 0

    init(bytes: [UInt8]) { self.bytes = bytes }

    var isAtEnd: Bool { position == bytes.count }

    mutating func eat(_ character: Unicode.Scalar) -> Bool {
        guard position < bytes.count, bytes[position] == UInt8(ascii: character) else { return false }
        position += 1
        return true
    }

    mutating func digits(_ count: Int) -> Int64? {
        guard position + count <= bytes.count else { return nil }
        let value = FieldScanner.number(bytes[position..<(position + count)], limit: 9999)
        position += count
        return value
    }

    mutating func word() -> ArraySlice<UInt8>? {
        let start = position
        while position < bytes.count, bytes[position].isLetter { position += 1 }
        return start == position ? nil : bytes[start..<position]
    }

    func matches(_ word: ArraySlice<UInt8>, name: String) -> Bool {
        word.elementsEqual(name.utf8) { $0.lowerCased == $1.lowerCased }
    }
}

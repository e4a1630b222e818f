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
        guard text.utf8.count <= HTTPDate.longestForm, let calendar = HTTPDate.parse(Array(text.utf8)) else {
            return nil
        }
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
            let second = reader.digits(2), hour < 24, minute < 60
        else { return nil }
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

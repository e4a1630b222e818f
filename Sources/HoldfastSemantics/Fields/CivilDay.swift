// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Days since 1970 and Gregorian dates, each from the other, without a calendar library.
///
/// Years are counted from March, so that the leap day ends a year and month lengths follow one linear rule. Exact for
/// every year whose day number fits in 64 bits; callers clamp first.
package enum CivilDay {
    private static let daysPerEra: Int64 = 146_097
    /// Days from 0000-03-01 to 1970-01-01.
    private static let epochOffset: Int64 = 719_468

    package static func number(year: Int64, month: Int, day: Int) -> Int64 {
        let marchYear = month <= 2 ? year - 1 : year
        let era = floorDivide(marchYear, 400)
        let yearOfEra = marchYear - era * 400
        let monthFromMarch = Int64((month + 9) % 12)
        let dayOfYear = (153 * monthFromMarch + 2) / 5 + Int64(day) - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return era * daysPerEra + dayOfEra - epochOffset
    }

    package static func date(of number: Int64) -> (year: Int64, month: Int, day: Int) {
        let shifted = number + epochOffset
        let era = floorDivide(shifted, daysPerEra)
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
        let days = floorDivide(seconds, 86_400)
        return (days, seconds - days * 86_400)
    }

    package static func length(ofMonth month: Int, year: Int64) -> Int {
        switch month {
        case 4, 6, 9, 11: 30
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        default: 31
        }
    }

    private static func floorDivide(_ value: Int64, _ divisor: Int64) -> Int64 {
        let quotient = value / divisor
        return value % divisor < 0 ? quotient - 1 : quotient
    }
}

/// The small steps that the three date forms are read with.
struct DateReader {
    let bytes: [UInt8]
    var position = 0

    init(bytes: [UInt8]) {
        self.bytes = bytes
    }

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

    func matches(_ word: ArraySlice<UInt8>, _ name: String) -> Bool {
        word.elementsEqual(name.utf8) { $0.lowerCased == $1.lowerCased }
    }
}

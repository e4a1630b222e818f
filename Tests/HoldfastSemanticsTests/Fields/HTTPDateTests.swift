// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastTesting
import Testing

@Suite struct HTTPDateTests {
    @Test(
        "RFC 9110 §5.6.7: the three formats give the same instant",
        arguments: [
            "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
            "sun, 06 NOV 1994 08:49:37 gmt", "Mon, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 UTC",
        ]
    )
    func threeForms(text: String) throws {
        let date = try #require(HTTPDate(text, receivedAt: .noon))
        #expect(date.timestamp == Timestamp(secondsSinceEpoch: 784_111_777))
        #expect(date.description == "Sun, 06 Nov 1994 08:49:37 GMT")
    }

    @Test(
        "RFC 9110 §5.6.7: invalid dates are refused",
        arguments: [
            "", "0", "-1", "Sun", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 PST",
            "Sun 06 Nov 1994 08:49:37 GMT", "Sun, 6 Nov 1994 08:49:37 GMT", "Sun, 06  Nov 1994 08:49:37 GMT",
            "Sun, 06-Nov-1994 08:49:37 GMT", "Sun, 06 Nov 94 08:49:37 GMT", "Sun, 06 Nov 1994 8:49:37 GMT",
            "Sun, 06 Nov 1994 24:00:00 GMT", "Sun, 06 Nov 1994 08:60:37 GMT", "Sun, 06 Nov 1994 08:49:60 GMT",
            "Sun, 06 Nov 1994 08:49:61 GMT", "Sun, 00 Nov 1994 08:49:37 GMT", "Sun, 31 Nov 1994 08:49:37 GMT",
            "Sun, 29 Feb 1900 08:49:37 GMT", "Sun, 30 Feb 2000 08:49:37 GMT", "Sun, 06 Foo 1994 08:49:37 GMT",
            "Foo, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT ", "Sun, 06 Nov 1994 08:49:37 GMT+1",
            "Sun, 06 Nov 19940 08:49:37 GMT", "Sun Nov 6 08:49:37 1994", "Sun Nov 06 08:49:37 1994 GMT",
            "Sunday Nov  6 08:49:37 1994", "Sunday, 06-Nov-94 08:49:37 AEST", "Sun, 06-Nov-94 08:49:37 GMT",
            "Sun, 0٦ Nov 1994 08:49:37 GMT", "1994-11-06T08:49:37Z",
        ]
    )
    func refused(text: String) {
        #expect(HTTPDate(text, receivedAt: .noon) == nil)
    }

    @Test("RFC 9110 §5.6.7: a leap second ends the day", arguments: ["Sat, 31 Dec 2016 23:59:60 GMT"])
    func leapSecond(text: String) {
        #expect(HTTPDate(text, receivedAt: .noon)?.timestamp == Timestamp(secondsSinceEpoch: 1_483_228_800))
    }

    @Test(
        "RFC 9110 §5.6.7: two-digit years lie at most 50 years ahead",
        arguments: [
            ("Thursday, 17-Sep-76 12:00:00 GMT", "Thu, 17 Sep 2076 12:00:00 GMT"),
            ("Thursday, 17-Sep-76 12:00:01 GMT", "Fri, 17 Sep 1976 12:00:01 GMT"),
            ("Saturday, 17-Sep-77 12:00:00 GMT", "Sat, 17 Sep 1977 12:00:00 GMT"),
            ("Friday, 01-Jan-99 00:00:00 GMT", "Fri, 01 Jan 1999 00:00:00 GMT"),
            ("Thursday, 18-Aug-50 02:01:18 GMT", "Thu, 18 Aug 2050 02:01:18 GMT"),
            ("Tuesday, 29-Feb-00 00:00:00 GMT", "Tue, 29 Feb 2000 00:00:00 GMT"),
        ]
    )
    func twoDigitYears(text: String, expected: String) {
        #expect(HTTPDate(text, receivedAt: .noon)?.description == expected)
    }

    @Test("A century's end is handled for two-digit years")
    func centuryEnd() {
        let late = Timestamp(secondsSinceEpoch: 4_099_680_000)  // 30 Nov 2099
        #expect(HTTPDate("Friday, 01-Jan-10 00:00:00 GMT", receivedAt: late)?.description.contains("2110") == true)
    }

    @Test(arguments: propertySeeds)
    func roundTrip(seed: UInt64) {
        var source = SeededGenerator(seed: seed)
        for _ in 0..<500 {
            let seconds = Int64.random(in: -62_167_219_200...253_402_300_799, using: &source)
            let date = HTTPDate(Timestamp(secondsSinceEpoch: seconds))
            #expect(HTTPDate(date.description, receivedAt: .noon) == date, "\(seconds)")
            let (year, month, day) = CivilDay.date(of: seconds / 86_400)
            #expect(CivilDay.number(year: year, month: month, day: day) == seconds / 86_400)
        }
    }

    @Test("RFC 9110 §5.6.7: a date has the same meaning in any letter case, and any wrong byte is refused")
    func letterCase() {
        let text = "Sun, 06 Nov 1994 08:49:37 GMT"
        #expect(HTTPDate(text.lowercased(), receivedAt: .noon) == HTTPDate(text, receivedAt: .noon))
        for position in text.utf8.indices {
            for byte in UInt8(0)..<128 {
                var bytes = Array(text.utf8)
                bytes[text.utf8.distance(from: text.startIndex, to: position)] = byte
                let damaged = String(decoding: bytes, as: UTF8.self)
                #expect(
                    HTTPDate(damaged, receivedAt: .noon) == HTTPDate(damaged.lowercased(), receivedAt: .noon),
                    "\(damaged)"
                )
            }
        }
    }

    @Test("No year traps", arguments: [Timestamp.distantPast, .distantFuture, Timestamp(secondsSinceEpoch: -1)])
    func extremes(instant: Timestamp) {
        let text = HTTPDate(instant).description
        #expect(HTTPDate(text, receivedAt: instant) != nil)
        #expect(HTTPDate("Saturday, 17-Sep-77 12:00:00 GMT", receivedAt: instant) != nil)
    }

    @Test func millisecondsAreCutDown() {
        let date = HTTPDate(Timestamp(millisecondsSinceEpoch: -1))
        #expect(date.description == "Wed, 31 Dec 1969 23:59:59 GMT")
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastServices
import HoldfastTesting
import Testing

private enum Order: String, QueryArgumentConvertible {
    case ascending = "asc"
    case descending = "desc"
}

private enum Level: Int, QueryArgumentConvertible, CustomStringConvertible {
    case low = 1
    var description: String { "the low one" }
}

private struct Version: QueryArgumentConvertible, CustomStringConvertible {
    var description: String { "v2+" }
}

@Suite("QueryArgument", .timeLimit(.minutes(20)))
struct QueryArgumentTests {
    @Test(
        "E-T10: dates are rounded to the nearest millisecond",
        arguments: [
            (1.234, "1234"), (0.0009, "1"), (-0.0015, "-2"), (0, "0"), (1_700_000_000.123, "1700000000123"),
            (1e300, "9223372036854775807"), (-1e300, "-9223372036854775808"), (.infinity, "9223372036854775807"),
        ]
    )
    func dates(seconds: Double, text: String) {
        #expect(Date(timeIntervalSince1970: seconds).queryArgument.values == [text])
    }

    @Test("E-T10: each of 20 000 consecutive whole milliseconds survives")
    func wholeMilliseconds() {
        let first: Int64 = 1_700_000_000_000
        let changed = (first..<(first + 20_000)).filter { milliseconds in
            let date = Date(timeIntervalSince1970: Double(milliseconds) / 1000)
            return QueryArgument.date(date).values != [String(milliseconds)]
        }
        #expect(changed.isEmpty)
    }

    @Test("A date that is not a number is left out")
    func noDate() {
        #expect(QueryArgument.date(Date(timeIntervalSince1970: .nan)).values == [])
    }

    @Test("E-T11: dates in an array are whole milliseconds too")
    func dateArray() {
        let dates = [Date(timeIntervalSince1970: 1), Date(timeIntervalSince1970: 0.5)]
        #expect(dates.queryArgument.values == ["1000", "500"])
    }

    @Test("E-T12: an optional is its value, however deep, and nil is left out")
    func optionals() {
        let deep: Int??? = .some(.some(.some(1)))
        let hollow: Int??? = .some(.some(.none))
        #expect(deep.queryArgument.values == ["1"])
        #expect(hollow.queryArgument.values == [])
        #expect([1, nil, 3].queryArgument.values == ["1", "3"])
    }

    @Test("E-T7, E-T8, E-T9: arrays keep their order, and empty or undefined elements are left out")
    func arrays() {
        #expect(["a", "b", "c"].queryArgument.values == ["a", "b", "c"])
        #expect([String]().queryArgument.values == [])
        let holed: [QueryArgument] = [1, .undefined, 3]
        #expect(holed.queryArgument.values == ["1", "3"])
        let nested: QueryArgument = [1, ["x", [true, nil]], 2.5]
        #expect(nested.values == ["1", "x", "true", "2.5"])
        #expect(QueryArgument(["a", 1, nil, Order.ascending]).values == ["a", "1", "asc"])
        #expect(["a", "b", "c"][1...].queryArgument.values == ["b", "c"])
        #expect(ContiguousArray([1, 2]).queryArgument.values == ["1", "2"])
    }

    @Test("E-T13: a set is sorted: by its elements if they are comparable, else by their texts")
    func sets() {
        #expect(Set([10, 9, 100, -1]).queryArgument.values == ["-1", "9", "10", "100"])
        #expect(Set(["b", "a", "é", "Z"]).queryArgument.values == ["Z", "a", "b", "é"])
        #expect(Set([Order.descending, .ascending]).queryArgument.values == ["asc", "desc"])
        #expect(Set([Int?.some(2), nil, 1]).queryArgument.values == ["1", "2"])
    }

    @Test("E-T6: each kind of value has the text that Swift gives it")
    func kinds() throws {
        let uuid = try #require(UUID(uuidString: "E621E1F8-C36C-495A-93FC-0C247A3E6E5F"))
        let url = try #require(URL(string: "b?c", relativeTo: URL(string: "https://a.example/x")))
        let texts: [(any QueryArgumentConvertible, String)] = [
            ("é&ø+?", "é&ø+?"), ("abc".dropFirst(), "bc"), (Character("ß"), "ß"), (true, "true"), (false, "false"),
            (123, "123"), (Int8.min, "-128"), (UInt64.max, "18446744073709551615"), (Int16(3), "3"), (Int32(3), "3"),
            (Int64.min, "-9223372036854775808"), (UInt(3), "3"), (UInt8(3), "3"), (UInt16(3), "3"), (UInt32(3), "3"),
            (Int128.max, "170141183460469231731687303715884105727"), (UInt128(3), "3"),
            (2.5, "2.5"), (8.0, "8.0"), (0.1 + 0.2, "0.30000000000000004"), (1e16, "1e+16"), (-0.0, "-0.0"),
            (Double.infinity, "inf"), (-Double.infinity, "-inf"), (Double.nan, "nan"), (Float(0.1), "0.1"),
            (Decimal(string: "1234567.89") ?? 0, "1234567.89"), (uuid, uuid.uuidString),
            (url, "https://a.example/b?c"), (Order.ascending, "asc"), (Level.low, "1"), (Version(), "v2+"),
            (QueryArgument.undefined, ""), (QueryArgument.flag, ""),
        ]
        for (value, text) in texts { #expect(value.queryArgument.values.joined() == text) }
    }

    @Test("Arguments can be written as literals")
    func literals() {
        let arguments: [QueryArgument] = ["x", 1, 2.5, true, nil, ["a", 1], "n\(1)"]
        #expect(arguments == [.text("x"), .text("1"), .text("2.5"), .boolean(true), .undefined, ["a", "1"], "n1"])
    }

    @Test("The text of a double is read back as the same double", arguments: [UInt64.random(in: 0...UInt64.max)])
    func roundTrip(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<500 {
            let number = Double(bitPattern: generator.next())
            guard !number.isNaN else { continue }
            let text = try #require(number.queryArgument.values.first)
            #expect(Double(text) == number, "seed \(seed)")
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastServices
import Testing

@Suite("KeyValueEncoder", .timeLimit(.minutes(20)))
struct KeyValueEncoderTests {
    struct Address: Encodable {
        var city = "Ulm"
        var zip: Int? = 89_073
    }

    struct Everything: Encodable {
        var text = "naïve & wörld+1"
        var flag = true
        var whole: Int64 = -9_007_199_254_740_993
        var half = 2.5
        var round = 3.0
        var address = Address()
        var tags = ["a", "b"]
        var stops = [Address(), Address(city: "Köln", zip: nil)]
        var data = Data([0xFB, 0xFF])
        var link = URL(string: "https://example.com/a?b=c")
        var price = Decimal(string: "12345678901234567890.12")
        var id = UUID(uuid: (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15))
        var missing: Int?
    }

    private func texts(_ value: some Encodable, _ encoder: KeyValueEncoder = KeyValueEncoder()) throws -> [String] {
        try encoder.pairs(of: value).map { pair in "\(pair.name)=\(pair.value ?? "<null>")" }
    }

    private func query(_ value: some Encodable, _ encoder: KeyValueEncoder = KeyValueEncoder()) throws -> String {
        try encoder.query(of: value).encoded
    }

    private func form(_ value: some Encodable, _ encoder: KeyValueEncoder = KeyValueEncoder()) throws -> String {
        try StrictForm.text(of: encoder.form(of: value))
    }

    @Test("Each kind of value has its text, nested values are named by their path, and nothing is lost")
    func everything() throws {
        #expect(
            try texts(Everything()) == [
                "text=naïve & wörld+1", "flag=true", "whole=-9007199254740993", "half=2.5", "round=3",
                "address[city]=Ulm", "address[zip]=89073", "tags=a", "tags=b",
                "stops[0][city]=Ulm", "stops[0][zip]=89073", "stops[1][city]=Köln",
                "data=+/8=", "link=https://example.com/a?b=c", "price=12345678901234567890.12",
                "id=00010203-0405-0607-0809-0A0B0C0D0E0F",
            ]
        )
    }

    private enum Order: Encodable {
        case ascending
        case by(field: String)
    }

    @Test("A case without associated values is its name, one with them is an object")
    func cases() throws {
        struct Query: Encodable {
            let sort: Order
            let orders: [Order]
        }
        let pairs = try KeyValueEncoder().pairs(of: Query(sort: .ascending, orders: [.ascending, .by(field: "n")]))
        #expect(pairs.map(\.name) == ["sort", "orders", "orders[1][by][field]"])
        #expect(pairs.map(\.value) == ["ascending", "ascending", "n"])
    }

    @Test(
        "A key that would be read as another name is refused",
        arguments: ["x][admin", "[", "]", "a.b", "", "admin]\u{301}", "x]\u{301}[\u{301}admin", "]\u{200D}"]
    )
    func keys(_ key: String) throws {
        let value = ["user": [key: "1"]]
        var encoder = KeyValueEncoder()
        if key != "a.b" {
            #expect(throws: EncodingError.self) { try encoder.pairs(of: value) }
        } else {
            #expect(try encoder.pairs(of: value).map(\.name) == ["user[a.b]"])
        }
        encoder.nesting = .dots
        #expect(throws: EncodingError.self) { try encoder.pairs(of: value) }
        // Who names the whole means it.
        #expect(try encoder.pairs(of: ["filter[name]": "x"]).map(\.name) == ["filter[name]"])
    }

    @Test("Arrays without brackets or with indices, dotted names, booleans as numbers")
    func namings() throws {
        struct Value: Encodable {
            var tags = ["a", "b"]
            var stops = [Address(zip: nil)]
            var home = Address(zip: nil)
            var grid = [[1, 2], [3]]
            var on = [true, false]
        }
        var encoder = KeyValueEncoder()
        encoder.arrays = .repeated
        encoder.nesting = .dots
        encoder.booleans = .numbers
        #expect(
            try texts(Value(), encoder) == [
                "tags=a", "tags=b", "stops[0].city=Ulm", "home.city=Ulm", "grid[0]=1", "grid[0]=2", "grid[1]=3",
                "on=1", "on=0",
            ]
        )
        encoder.arrays = .indexed
        #expect(try texts(Value(), encoder).prefix(2) == ["tags[0]=a", "tags[1]=b"])
        encoder.arrays = .brackets
        #expect(
            try texts(Value(), encoder) == [
                "tags[]=a", "tags[]=b", "stops[0].city=Ulm", "home.city=Ulm", "grid[0][]=1", "grid[0][]=2",
                "grid[1][]=3",
                "on[]=1", "on[]=0",
            ]
        )
    }

    @Test(
        "Dates: as they encode themselves, seconds, milliseconds to the nearest, ISO 8601, by a formatter, custom",
        arguments: [
            (KeyValueEncoder.DateFormat.deferredToDate, "0.5"),
            (.secondsSince1970, "978307200.5"),
            (.millisecondsSince1970, "978307200500"),
            (.iso8601, "2001-01-01T00:00:00Z"),
            (.formatted(formatter), "2001/01/01"),
            (.custom { _ in "own" }, "own"),
        ]
    )
    func dates(_ format: KeyValueEncoder.DateFormat, expected: String) throws {
        var encoder = KeyValueEncoder()
        encoder.dates = format
        let date = Date(timeIntervalSinceReferenceDate: 0.5)
        #expect(try texts(["at": date], encoder) == ["at=\(expected)"])
        #expect(try texts(["at": [date]], encoder) == ["at=\(expected)"])
        #expect(try texts(["at": Optional(date)], encoder) == ["at=\(expected)"])
    }

    private static var formatter: DateFormatter {
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = TimeZone(secondsFromGMT: 0)
        formatter.dateFormat = "yyyy/MM/dd"
        return formatter
    }

    @Test("0.0015 s are 2 ms: milliseconds are rounded, never cut")
    func rounding() throws {
        var encoder = KeyValueEncoder()
        encoder.dates = .millisecondsSince1970
        #expect(try texts(["at": Date(timeIntervalSince1970: 1.2996)], encoder) == ["at=1300"])
        #expect(try texts(["at": Date(timeIntervalSince1970: -0.0006)], encoder) == ["at=-1"])
    }

    @Test(
        "A date beyond its format, or an invalid number, is an error",
        arguments: [Double.nan, .infinity, -1e300]
    )
    func noText(_ seconds: Double) throws {
        var encoder = KeyValueEncoder()
        encoder.dates = .iso8601
        let date = Date(timeIntervalSince1970: seconds)
        #expect(throws: EncodingError.self) { try encoder.pairs(of: ["at": date]) }
        guard !seconds.isFinite else { return }
        for format in [KeyValueEncoder.DateFormat.deferredToDate, .secondsSince1970, .millisecondsSince1970] {
            encoder.dates = format
            #expect(throws: EncodingError.self) { try encoder.pairs(of: ["at": date]) }
        }
        #expect(throws: EncodingError.self) { try encoder.pairs(of: ["n": seconds]) }
        #expect(throws: EncodingError.self) { try encoder.pairs(of: ["n": Float(seconds)]) }
        #expect(throws: EncodingError.self) { try encoder.pairs(of: ["n": Decimal.nan]) }
    }

    @Test(
        "D-T12: a nil field that encodes null is `k` in a query and `k=` in a form; one that is not encoded is left out"
    )
    func null() throws {
        struct Value: Encodable {
            var omitted: Int?
            var a: Int?
            var b = "x"
            enum CodingKeys: CodingKey { case a, b }
            func encode(to encoder: any Encoder) throws {
                var container = encoder.container(keyedBy: CodingKeys.self)
                try container.encode(b, forKey: .b)
                try container.encodeNil(forKey: .a)
                try container.encodeIfPresent(omitted, forKey: .a)
            }
        }
        #expect(try query(Value()) == "a&b=x")
        #expect(try form(Value()) == "b=x&a=")
        #expect(try query(["k": [Int?.none, 1]]) == "k&k=1")
    }

    @Test("A query is sorted by name, stable within a name; dictionaries and sets are sorted in a form too")
    func order() throws {
        struct Value: Encodable {
            var z = [3, 1, 2]
            var a = ["y": 1, "x": 2, "w": 3, "v": 4]
            var s: Set<String> = ["q", "r", "p", "o"]
            var pairs: [Double: String] = [1.5: "one", 2.5: "two", 0.5: "none", 3.5: "three"]
        }
        var encoder = KeyValueEncoder()
        encoder.arrays = .repeated
        #expect(
            try form(Value(), encoder).split(separator: "&").map {
                $0.replacing("%5B", with: "(").replacing("%5D", with: ")")
            }
                == [
                    "z=3", "z=1", "z=2", "a(v)=4", "a(w)=3", "a(x)=2", "a(y)=1", "s=o", "s=p", "s=q", "s=r",
                    "pairs=0.5", "pairs=none", "pairs=1.5", "pairs=one", "pairs=2.5", "pairs=two", "pairs=3.5",
                    "pairs=three",
                ]
        )
        #expect(try query(Value(), encoder).hasPrefix("a%5Bv%5D=4&"))
        #expect(try query(Value(), encoder).hasSuffix("&z=3&z=1&z=2"))
        #expect(try query(Everything()) == query(Everything()))
    }

    @Test("The elements of a set are in the same order as a proxy sends them")
    func sets() throws {
        enum Size: String, Codable, QueryArgumentConvertible { case small, large, medium }
        struct Value: Encodable {
            var numbers: Set<Int> = [10, 9, 111, -1]
            var fractions: Set<Double> = [10.5, 9.5, -1.5]
            var dates: Set<Date> = [Date(timeIntervalSince1970: 1e10), Date(timeIntervalSince1970: 9e9)]
            var words: Set<String> = ["b", "a", "é", "Z", "e\u{301}x"]
            var truths: Set<Bool> = [true, false]
            var sizes: Set<Size> = [.small, .large, .medium]
        }
        var encoder = KeyValueEncoder()
        encoder.arrays = .repeated
        encoder.dates = .millisecondsSince1970
        let value = Value()
        let arguments: HttpQuery = [
            "numbers": value.numbers, "fractions": value.fractions, "dates": value.dates, "words": value.words,
            "truths": value.truths, "sizes": value.sizes,
        ]
        #expect(try query(value, encoder) == arguments.encoded)
        #expect(try query(["n": value.numbers], encoder) == "n=-1&n=9&n=10&n=111")
    }

    @Test("D-T11: special characters in a query are percent-encoded")
    func special() throws {
        #expect(try query(["k": "weird&=?<>+ "]) == "k=weird%26%3D%3F%3C%3E%2B%20")
    }
}

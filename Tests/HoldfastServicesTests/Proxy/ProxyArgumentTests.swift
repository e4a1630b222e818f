// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastServices
import HoldfastTesting
import Testing

@Suite("Arguments of a proxy's calls", .timeLimit(.minutes(20)))
struct ProxyArgumentTests {
    /// What is sent behind the question mark.
    private func query(_ arguments: [String: (any QueryArgumentConvertible)?]) async throws -> String? {
        let scripted = try ScriptedProxy()
        try await scripted.proxy.invoke(.get, path: "a", arguments: arguments)
        let url = try #require(scripted.urls.first)
        #expect(url.hasPrefix("https://h/api/a"))
        return url.firstIndex(of: "?").map { String(url[url.index(after: $0)...]) }
    }

    @Test("The seed's call sites with variables compile unchanged")
    func callSites() async throws {
        let count = 8
        let when = Date(timeIntervalSince1970: 1_700_000_000.123)
        let tags = ["a", "b"]
        let some: Int? = 3
        let none: Int? = nil
        let scripted = try ScriptedProxy()
        let _: [Int] = try await scripted.proxy.invoke(
            .get,
            path: "test/fibonacci",
            arguments: [
                "count": count, "when": when, "tags": tags, "more": ["c", "d"], "some": some, "none": none,
                "unknown": WebServiceProxy.undefined, "flag": true, "ratio": 0.5, "text": "x", "gone": nil,
            ]
        )
        let sent = "count=8&flag=true&more=c&more=d&ratio=0.5&some=3&tags=a&tags=b&text=x&when=1700000000123"
        #expect(scripted.urls == ["https://h/api/test/fibonacci?" + sent])
    }

    @Test("E-T6: numbers, booleans and text are percent-encoded so that the server reads the original")
    func scalars() async throws {
        let text = "é&ø+?"
        let query = try await query(["n": 123, "b": true, "t": text])
        #expect(query == "b=true&n=123&t=%C3%A9%26%C3%B8%2B%3F")
        let components = URLComponents(string: "https://h/?" + (query ?? ""))
        #expect(components?.queryItems?.last?.value == text)
    }

    @Test("E-T6: a name is percent-encoded too")
    func names() async throws {
        #expect(try await query(["a b&c=": 1]) == "a%20b%26c%3D=1")
    }

    @Test("E-T7: an array repeats the name, in order")
    func arrays() async throws {
        #expect(try await query(["k": ["a", "b", "c"], "j": [3, 1, 2]]) == "j=3&j=1&j=2&k=a&k=b&k=c")
    }

    @Test("An array of several types, and an enum with raw values")
    func mixed() async throws {
        enum Order: String, QueryArgumentConvertible { case ascending = "asc" }
        let date = Date(timeIntervalSince1970: 1)
        let query = try await query(["k": QueryArgument([1, "a", date]), "o": Order.ascending])
        #expect(query == "k=1&k=a&k=1000&o=asc")
    }

    @Test("E-T8: an empty array is left out")
    func emptyArrays() async throws {
        let empty: [String] = []
        #expect(try await query(["k": empty]) == nil)
        #expect(try await query(["k": empty, "n": 1]) == "n=1")
    }

    @Test("E-T9: undefined is left out, also inside an array")
    func undefined() async throws {
        #expect(try await query(["k": WebServiceProxy.undefined]) == nil)
        #expect(try await query(["k": [1, WebServiceProxy.undefined, 3]]) == "k=1&k=3")
    }

    @Test(
        "E-T10: a date is whole milliseconds since 1970, rounded to the nearest",
        arguments: [
            (1.234, "1234"), (0.0009, "1"), (-0.0015, "-2"), (0, "0"), (1_700_000_000.123, "1700000000123"),
            (-62_135_596_800, "-62135596800000"),
        ]
    )
    func dates(seconds: Double, sent: String) async throws {
        #expect(try await query(["d": Date(timeIntervalSince1970: seconds)]) == "d=" + sent)
    }

    @Test("E-T11: dates in an array are numbers too")
    func arraysOfDates() async throws {
        let dates = [Date(timeIntervalSince1970: 2), Date(timeIntervalSince1970: 1)]
        #expect(try await query(["d": dates]) == "d=2000&d=1000")
    }

    @Test("E-T12: an Optional is its value, however deep, and nil is left out")
    func optionals() async throws {
        let nested: Int?? = .some(.some(2))
        let hollow: Int?? = .some(nil)
        let dates: [Date?] = [Date(timeIntervalSince1970: 1), nil]
        let query = try await query(["a": Optional(1), "b": nil, "c": nested, "d": hollow, "e": dates, "f": Int?.none])
        #expect(query == "a=1&c=2&e=1000")
    }

    @Test("E-T13: a Set is sent as a sorted array")
    func sets() async throws {
        let numbers: Set<Int> = [10, 9, 111, 1]
        let words: Set<String> = ["b", "a", "c"]
        #expect(try await query(["n": numbers, "w": words]) == "n=1&n=9&n=10&n=111&w=a&w=b&w=c")
    }

    @Test("E-T14: an argument without a name is refused and nothing is sent")
    func emptyName() async throws {
        let hook = RecordingRequestHook()
        let scripted = try ScriptedProxy(requestHooks: [hook])
        let undefined: [String: (any QueryArgumentConvertible)?] = ["": nil]
        for arguments in [["": 1, "a": 2], undefined] {
            let error = await #expect(throws: WebServiceError.self) {
                try await scripted.proxy.invoke(.get, path: "a", arguments: arguments)
            }
            #expect(error?.statusCode == 0)
        }
        #expect(scripted.transport.sent.isEmpty)
        #expect(hook.failures == ["WebServiceError", "WebServiceError"])
    }

    @Test("E-T15: the same arguments give the same URL, whatever the order of a process's dictionaries")
    func order() async throws {
        let names = (0..<40).map { "name\($0)" } + ["é", "Z", "a", "e\u{301}x", "~"]
        var orders: Set<[String]> = []
        var queries: Set<String?> = []
        for round in 0..<8 {
            // A dictionary's order depends on its capacity, on what it held, and on the process.
            var arguments: [String: (any QueryArgumentConvertible)?] = [:]
            arguments.reserveCapacity(50 << round)
            for name in round.isMultiple(of: 2) ? names : names.reversed() { arguments[name] = [2, 1] }
            orders.insert(Array(arguments.keys))
            queries.insert(try await query(arguments))
        }
        #expect(orders.count > 1)
        #expect(queries.count == 1)
        let sorted = names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }.map { name in
            name.utf8.map { byte in
                byte < 0x80 ? String(Unicode.Scalar(byte)) : "%" + String(byte, radix: 16, uppercase: true)
            }.joined()
        }
        #expect(queries.first == sorted.flatMap { ["\($0)=2", "\($0)=1"] }.joined(separator: "&"))
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastServices
import HoldfastTesting
import Testing

@Suite("HttpQuery", .timeLimit(.minutes(20)))
struct HttpQueryTests {
    @Test("A literal takes values of all kinds, including variables")
    func literal() throws {
        let number = 7
        let maybe: Int? = nil
        let deep: String?? = "x"
        let date = Date(timeIntervalSince1970: 1)
        let undefined = QueryArgument.undefined
        let query: HttpQuery = [
            "a": 1, "b": true, "c": "x", "d": 2.5, "e": nil, "n": number, "tags": ["a", "b"], "when": date,
            "maybe": maybe, "deep": deep, "u": undefined, "holes": [1, .undefined, 3] as QueryArgument,
            "set": Set([2, 1]), "f": QueryArgument.flag, "i": "\(number)!",
        ]
        #expect(
            try query.encoded
                == "a=1&b=true&c=x&d=2.5&deep=x&f&holes=1&holes=3&i=7%21&n=7&set=1&set=2&tags=a&tags=b&when=1000"
        )
        let arguments: [String: (any QueryArgumentConvertible)?] = [
            "n": number, "tags": ["a", "b"], "when": date, "maybe": maybe, "u": undefined, "e": nil,
        ]
        #expect(try HttpQuery(arguments).encoded == "n=7&tags=a&tags=b&when=1000")
        let numbers = ["b": 2, "a": 1]
        #expect(try HttpQuery(numbers).encoded == "a=1&b=2")
    }

    @Test("E-T15: sorted by the bytes of names, stable within a name, whatever order they came in")
    func sorting() throws {
        let names = ["b", "a", "Z", "é", "aa", "ﬁ", "😀", "_"]
        let sorted = "Z=0&_=0&a=0&aa=0&b=0&%C3%A9=0&%EF%AC%81=0&%F0%9F%98%80=0"
        for shift in names.indices {
            let turned = Array(names[shift...] + names[..<shift])
            let query = HttpQuery(items: turned.map { HttpQuery.Item(name: $0, value: 0) })
            #expect(try query.encoded == sorted)
        }
        #expect(try (["b": 2, "a": "x", "b": 1, "a": "w"] as HttpQuery).encoded == "a=x&a=w&b=2&b=1")
        #expect(HttpQuery(["x": 1, "y": 2, "z": 3]) == ["z": 3, "y": 2, "x": 1])
    }

    @Test("S23: the right side's values win, all of a name at once")
    func merging() throws {
        let left: HttpQuery = ["a": [1, 2], "b": 1]
        #expect(try (left + ["a": 3, "c": 4]).encoded == "a=3&b=1&c=4")
        #expect(try (left + ["a": nil]).encoded == "b=1")
        #expect(try (left + HttpQuery()).encoded == "a=1&a=2&b=1")
    }

    @Test("E-T6: special characters are encoded, plus as %2B and space as %20")
    func encoding() throws {
        #expect(try (["k": "é&ø+?"] as HttpQuery).encoded == "k=%C3%A9%26%C3%B8%2B%3F")
        #expect(try (["a b": "=#%/ ~-._*'"] as HttpQuery).encoded == "a%20b=%3D%23%25%2F%20~-._%2A%27")
    }

    @Test("E-T14: an argument without a name is refused, even if it would be left out")
    func emptyName() {
        for query in [["": 1], ["": nil], ["a": 1, "": "x"]] as [HttpQuery] {
            #expect(!query.isValid)
            let error = #expect(throws: ServiceError.self) { try query.encoded }
            #expect(error?.code == .badRequest)
            #expect(error?.progress == .notSent)
        }
        #expect((["a": 1] as HttpQuery).isValid)
    }

    @Test("A name's value can be read, replaced and removed")
    func byName() throws {
        var query: HttpQuery = ["a": [1, 2], "b": "x", "b": "y"]
        #expect(query["a"] == [1, 2])
        #expect(query["b"] == ["x", "y"])
        #expect(query["c"] == nil)
        query["b"] = "z"
        query["a"] = Optional<QueryArgument>.none
        #expect(try query.encoded == "b=z")
        #expect(!query.isEmpty)
        #expect((["e": nil, "l": [String]()] as HttpQuery).isEmpty)
    }

    @Test(
        "A query is parsed as servers do",
        arguments: [
            ("a=1&b", ["a": "1", "b": .flag]), ("a+b=c+d%2B", ["a b": "c d+"]), ("&&a==&", ["a": "="]),
            ("%zz=%4", ["%zz": "%4"]), ("%FF=%C3%A9", ["\u{FFFD}": "é"]), ("", [:]),
        ] as [(String, [String: QueryArgument])]
    )
    func parsing(text: String, arguments: [String: QueryArgument]) {
        #expect(HttpQuery(encoded: text) == HttpQuery(arguments))
    }

    @Test("Any text survives being encoded and parsed as a server does", arguments: [UInt64.random(in: 0...UInt64.max)])
    func roundTrip(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<200 {
            let items = (0..<Int.random(in: 0...5, using: &generator)).map { _ in
                HttpQuery.Item(name: "n" + text(&generator), value: .text(text(&generator)))
            }
            let query = HttpQuery(items: items)
            let encoded = try query.encoded
            #expect(HttpQuery(encoded: encoded) == query, "seed \(seed)")
            #expect(encoded.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }, "seed \(seed)")
            let url = try #require(URL(string: "http://h.example/?\(encoded)"))
            #expect(URLComponents(url: url, resolvingAgainstBaseURL: false)?.percentEncodedQuery == encoded)
        }
    }

    private func text(_ generator: inout SeededGenerator) -> String {
        let special = Array("+&=#?% /\\\"'<>[]{}|^`~*@:;,!$()\u{0}\u{7F}\n\réßø日😀\u{301}az09".unicodeScalars)
        var text = String.UnicodeScalarView()
        for _ in 0..<Int.random(in: 0...12, using: &generator) {
            text.append(special.randomElement(using: &generator) ?? "a")
        }
        return String(text)
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastTesting
import Testing

@Suite struct NoVarySearchTests {
    @Test("Vector group no_vary_search", arguments: VectorFile.canonical?.noVarySearch.vectors ?? [])
    func vectors(vector: NoVarySearchVector) throws {
        let variance = NoVarySearch(fieldValue: vector.fieldValue)
        let one = try TargetURI(vector.one)
        let other = try TargetURI(vector.other)
        #expect(variance.isEquivalent(one, to: other) == vector.isEquivalent)
        #expect(variance.isEquivalent(other, to: one) == vector.isEquivalent)
        if one.origin + one.path == other.origin + other.path {
            #expect((variance.canonicalQuery(of: one) == variance.canonicalQuery(of: other)) == vector.isEquivalent)
        }
    }

    @Test(
        "RFC 9651 §4.2.2: a field that does not parse or has the wrong type has no effect",
        arguments: [
            "", " ", "params=", "params,", "params,,key-order", ",params", "Params", "params=1", "params=\"a\"",
            "params=a", "params=(\"a\"", "params=(\"a\"\"b\")", "params=(\"a)", "params=(\"\\a\")", "params=(\"a\" 1)",
            "params=(\u{E9})", "params=(\"\u{E9}\")", "params=?2", "params=?", "params key-order",
            "params;A", "key-order=1", "key-order=()", "key-order=\"a\"", "except=(\"a\")", "params=?0, except=(\"a\")",
            "params, except", "params, except=(a)", "params, except=\"a\"", "params=?0", "params=()", "key-order=?0",
            "params, x=1.", "params, x=1.2345", "params, x=1234567890123456", "params, x=1234567890123.1",
            "params, x=:a", "params, x=@1.5", "params, x=%\"%zz\"", "params, x=%\"%ff\"", "params, x=-", "params, x={}",
            "params, params=?0", "\tparams", "params, x=%\"%C3%A9\"", "*", "unknown", "params=(\"a\" ,)", "(params)",
        ]
    )
    func noEffect(value: String) throws {
        let variance = NoVarySearch(fieldValue: value)
        #expect(variance.isNone)
        #expect(!variance.isEquivalent(try target("http://h/?a=1"), to: try target("http://h/?a=2")))
    }

    @Test(
        "RFC 9651 §4.2.2: unknown members and parameters are ignored",
        arguments: [
            "params", " params ", "params=?1", "params; key-order", "params;x;y=1", "params=?0, params",
            "params\t , \tunknown",
            "params, x=1, y=-1.5, z=\"\\\"\\\\\", t=a/b:c, b=:aGk=:, d=@-5, s=%\"%c3%a9\"", "a=(1 2;x \"b\");y, params",
            "params=(\"a\"  \"b\";q=1 );c", "*a.b-c_d, params", "params, except=()",
        ]
    )
    func hasEffect(value: String) throws {
        #expect(
            NoVarySearch(fieldValue: value).isEquivalent(try target("http://h/?a=1"), to: try target("http://h/?a=2"))
        )
    }

    @Test("Several lines form one field (RFC 9651 §4.2)")
    func severalLines() throws {
        let variance = NoVarySearch(["No-Vary-Search": "params", "no-vary-search": "except=(\"id\")"])
        #expect(!variance.isNone)
        #expect(variance.isEquivalent(try target("http://h/?id=1&a"), to: try target("http://h/?b=1&id=1")))
        #expect(!variance.isEquivalent(try target("http://h/?id=1"), to: try target("http://h/?id=2")))
        #expect(NoVarySearch([:]) == .none)
    }

    @Test(
        "The draft's comparison: decoded names and values, authority and path compared",
        arguments: [
            ("params=(\"a b\")", "http://h/?a+b=1", "http://h/?a%20b=2", true),
            ("key-order", "http://h/?a=b=c", "http://h/?a=b%3Dc", true),
            ("key-order", "http://h/?a%3Db=c", "http://h/?a=b=c", false),
            ("key-order", "http://h/?a=%26b=", "http://h/?a=&b=", false),
            ("key-order", "http://h/?=", "http://h/", false), ("key-order", "http://h/?a", "http://h/?a=", true),
            ("key-order", "http://h/?a=%C3%A9", "http://h/?a=e%CC%81", false),
            ("params", "http://h/", "http://h:81/", false), ("params", "http://h/", "http://i/", false),
            ("params", "http://u@h/?a", "http://h/?b", true), ("params", "http://h/a", "http://h/a/", false),
            ("params", "http://h", "http://h/?x=1", true), ("unknown", "http://h/", "http://h/?", false),
            ("params=(\"A\")", "http://h/?a=1", "http://h/?a=2", false),
            ("params=(\"\")", "http://h/?=1&b", "http://h/?b", true),
        ]
    )
    func comparison(value: String, one: String, other: String, expected: Bool) throws {
        #expect(NoVarySearch(fieldValue: value).isEquivalent(try target(one), to: try target(other)) == expected)
    }

    /// The draft's own steps, one after another, over lists of text pairs.
    private func isEquivalentByTheDraft(_ one: TargetURI, _ other: TargetURI, ignoring name: String) -> Bool {
        func pairs(_ uri: TargetURI) -> [[String]] {
            (uri.query ?? "").split(separator: "&").map { piece in
                let parts = piece.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                return [String(parts[0]), parts.count > 1 ? String(parts[1]) : ""]
            }
            .filter { $0[0] != name }
        }
        func stable(_ pairs: [[String]]) -> [[String]] {
            Set(pairs.map { $0[0] }).sorted().flatMap { name in pairs.filter { $0[0] == name } }
        }
        return stable(pairs(one)) == stable(pairs(other))
    }

    @Test("Canonical queries are equal exactly if the draft's steps say so", arguments: FuzzRounds.seeds)
    func canonicalQueries(seed: UInt64) throws {
        var source = SeededGenerator(seed: seed)
        let variance = NoVarySearch(fieldValue: "params=(\"c\"), key-order")
        let pieces = ["a", "b", "c", "a=1", "a=2", "b=1", "c=3", "", "="]
        var equivalent = 0
        for _ in 0..<FuzzRounds.of(2000) {
            func uri() throws -> TargetURI {
                let count = Int.random(in: 0...4, using: &source)
                let query = (0..<count).map { _ in pieces.randomElement(using: &source) ?? "" }
                return try TargetURI("http://h/?" + query.joined(separator: "&"))
            }
            let one = try uri()
            let other = try uri()
            let expected = isEquivalentByTheDraft(one, other, ignoring: "c")
            #expect(variance.isEquivalent(one, to: other) == expected, "\(one) \(other)")
            equivalent += expected ? 1 : 0
        }
        #expect(equivalent > 50)
    }

    @Test("Random values never trap", arguments: FuzzRounds.seeds)
    func arbitraryValues(seed: UInt64) throws {
        var source = SeededGenerator(seed: seed)
        let pieces = [
            "params", "except", "key-order", "=", "?1", "?0", "(", ")", "\"a\"", "\"", ",", ";", " ", "%\"", "1",
        ]
        let one = try target("http://h/?a=%C3&b=1")
        for _ in 0..<FuzzRounds.of(2000) {
            let variance = NoVarySearch(fieldValue: source.text(from: pieces, upTo: 12))
            #expect(variance.isEquivalent(one, to: one))
            #expect(variance.isNone || variance.canonicalQuery(of: one).utf8.first != UInt8(ascii: "?"))
        }
    }
}

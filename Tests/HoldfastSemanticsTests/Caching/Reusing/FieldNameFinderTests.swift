// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastTesting
import Testing

@Suite("Finding field names by length first")
struct FieldNameFinderTests {
    private static let long = String(repeating: "n", count: 61)

    @Test(
        "A name is found in any letter case, and no other name is",
        arguments: [
            ("host", 0), ("Host", 0), ("HOST", 0), ("hOsT", 0), ("hos", nil), ("hosts", nil), ("", nil),
            ("hosT\u{301}", nil),
            ("cookie", 1), ("Cookie", 1), ("cookif", nil), ("c\u{F6}okie", nil), ("\u{212A}ookie", nil),
            ("coo\u{212A}ie", nil),
            ("x-1_a", 2), ("X-1_A", 2), ("x-1\u{7F}a", nil), ("X-1?A", nil),
            (long + "a", 3), (long.uppercased() + "A", 3), (long + "b", nil), (long, nil),
            (long + "bc", 4), (long + "bC", 4), (long + "bd", nil),
            (long + "cdef", 5), (long + "CDEF", 5), (long + "cdeg", nil), (long + "cde", nil),
            (long + long + long, nil),
        ] as [(String, Int?)]
    )
    func table(_ name: String, _ number: Int?) {
        let finder = FieldNameFinder([
            "host", "cookie", "x-1_a", Self.long + "a", Self.long + "bc", Self.long + "cdef",
        ])
        #expect(finder.number(of: name) == number)
    }

    @Test("Without names nothing is found, and an empty name counts as a name")
    func empty() {
        #expect(FieldNameFinder([]).number(of: "") == nil)
        #expect(FieldNameFinder([]).number(of: "host") == nil)
        #expect(FieldNameFinder([""]).number(of: "") == 0)
        #expect(FieldNameFinder([""]).number(of: "a") == nil)
    }

    @Test("If a name is listed twice, the first position counts")
    func twice() {
        #expect(FieldNameFinder(["range", "vary", "range"]).number(of: "Range") == 0)
    }

    @Test("Names that differ by more than letter case are different", arguments: ["@", "[", "`", "{", "^", "~"])
    func neighboursOfLetters(_ mark: String) {
        // These differ from one another, or from letters, in the bit alone that tells letter cases apart.
        let finder = FieldNameFinder(["x" + mark])
        for other in ["@", "[", "`", "{", "^", "~"] {
            #expect(finder.number(of: "X" + other) == (other == mark ? 0 : nil))
        }
    }

    @Test("For random names, the result equals that of a linear search", arguments: propertySeeds)
    func likeASearch(_ seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        func name() -> String {
            let letters = Array("abAB-9")
            return String(
                (0..<Int.random(in: 0...70, using: &random)).map { _ in letters.randomElement(using: &random) ?? "a" }
            )
        }
        for _ in 0..<500 {
            let names = (0..<Int.random(in: 0...12, using: &random)).map { _ in name().lowercased() }
            let finder = FieldNameFinder(names)
            let asked = [name()] + names + names.map { $0.uppercased() } + names.map { String($0.dropLast()) }
            for name in asked {
                #expect(finder.number(of: name) == names.firstIndex(of: name.lowercased()), "seed \(seed): \(name)")
            }
        }
    }
}

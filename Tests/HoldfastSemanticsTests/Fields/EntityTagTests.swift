// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import Testing

@Suite struct EntityTagTests {
    @Test(
        "RFC 9110 §8.8.3: reading and writing",
        arguments: [
            (#""xyzzy""#, "xyzzy", false), (#"W/"xyzzy""#, "xyzzy", true), (#""""#, "", false),
            (#""a,b\""#, #"a,b\"#, false), ("\"é\"", "é", false),
        ]
    )
    func reading(text: String, opaque: String, weak: Bool) throws {
        let tag = try #require(EntityTag(" \(text) "))
        #expect(tag.opaqueTag == opaque)
        #expect(tag.isWeak == weak)
        #expect(tag.description == text)
        #expect(EntityTag(opaqueTag: opaque, isWeak: weak) == tag)
    }

    @Test(arguments: ["", "xyzzy", #"w/"x""#, #""x"#, #"x""#, #""x" y"#, #""a b""#, #"W/ "x""#, #""a"b""#, "*"])
    func refused(text: String) {
        #expect(EntityTag(text) == nil)
    }

    @Test(
        "RFC 9110 §8.8.3.2: the table of comparisons",
        arguments: [
            (#"W/"1""#, #"W/"1""#, false, true), (#"W/"1""#, #"W/"2""#, false, false),
            (#"W/"1""#, #""1""#, false, true), (#""1""#, #""1""#, true, true),
            // Compared character by character, so two spellings of one letter in Unicode are two tags.
            ("\"\u{E9}\"", "\"e\u{301}\"", false, false),
        ]
    )
    func comparison(left: String, right: String, strong: Bool, weak: Bool) throws {
        let one = try #require(EntityTag(left))
        let other = try #require(EntityTag(right))
        #expect(one.strongMatches(other) == strong)
        #expect(one.weakMatches(other) == weak)
        #expect((one == other) == (left.utf8.elementsEqual(right.utf8)))
    }

    @Test("RFC 9110 §13.1.2: If-None-Match lists")
    func lists() throws {
        let plain = try #require(EntityTag(#""a,b""#))
        let weak = try #require(EntityTag(#"W/"c""#))
        #expect(EntityTag.list(#" "a,b" , ,W/"c", "#) == .tags([plain, weak]))
        #expect(EntityTag.list(" * ") == .any)
        for text in ["", ",", "a", #""a" "b""#, #"*, "a""#, #""a", *"#, #""a", b"#] {
            #expect(EntityTag.list(text) == nil, "\(text)")
        }
    }
}

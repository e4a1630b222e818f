// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import Testing

@Suite("The fields of a plain request")
struct PlainRequestFieldsTests {
    @Test("They are found in any spelling, and all others are skipped")
    func found() throws {
        let fields = try #require(
            PlainRequestFields(["AUTHORIZATION": "t", "cookie": "a=b", "Cache-Control": "max-age=1", "Host": "x"])
        )
        #expect(fields.authorization == "t")
        #expect(fields.cookie == "a=b")
        #expect(fields.cacheControl == "max-age=1")
        #expect(!fields.arePlain)
        let none = try #require(PlainRequestFields(["Accept": "a", "X-Cookie": "b", "Cookie2": "c"]))
        #expect((none.authorization ?? none.cookie ?? none.cacheControl) == nil)
        #expect(none.arePlain)
    }

    @Test("What the transport adds counts if the request has no such field")
    func implicit() throws {
        let fields = try #require(
            PlainRequestFields(["cookie": "own"], implicit: ["Cookie": "added", "Authorization": "t"])
        )
        #expect(fields.cookie == "own")
        #expect(fields.authorization == "t")
    }

    @Test("A field in several spellings, or on several lines, makes the request no plain one")
    func repeated() {
        #expect(PlainRequestFields(["Cookie": "a", "cookie": "b"]) == nil)
        #expect(PlainRequestFields(["Cache-Control": "a", "CACHE-CONTROL": "a"]) == nil)
        #expect(PlainRequestFields([:], implicit: ["Authorization": "a", "authorization": "b"]) == nil)
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastTesting
import Testing

@Suite struct VariantSelectionTests {
    private func stored(
        _ request: HeaderFields,
        vary: String,
        _ fields: HeaderFields = [:],
        at seconds: Int64 = 0
    ) throws -> StoredResponse {
        let all = (["Vary": vary, "Date": date(seconds)] as HeaderFields).merging(fields)
        return StoredResponse(
            target: try target(),
            nominated: try #require(NominatedFields(vary: all, request: request, secret: [1])),
            head: ResponseHead(status: .ok, fields: all),
            requestTime: .noon.plus(seconds),
            responseTime: .noon.plus(seconds)
        )
    }

    private func select(_ fields: HeaderFields, _ candidates: [StoredResponse]) throws -> Int? {
        VariantSelection.select(
            RequestHead(method: .get, target: try target(), fields: fields),
            among: candidates,
            secret: [1]
        )
    }

    @Test(
        "RFC 9110 §12.5.4: a response is found by the one language that a request prefers to all others",
        arguments: [
            ("de", "fr;q=0.5, de;q=1.0", true), ("de", "DE", true), ("dE", "fr;q=0.5,de", true),
            ("de", "de;q=0.4, *;q=0.1", true), ("de", "en, de", false), ("de", "de, en", false),
            ("de", "de;q=0", false), ("de", "*", false),
            ("de", "fr, de;q=0.9", false), ("de", "de-CH", false), ("de-CH", "de", false), ("de, en", "de", false),
            ("", "de", false), ("de", "", false), ("de", "de;q=2", false), ("de", "de;level=1", false),
            ("de", "de;q=1;q=0", false), ("de", "fr;q=x, de", false),
        ] as [(String, String, Bool)]
    )
    func language(content: String, accept: String, isSelected: Bool) throws {
        let response = try stored(
            ["Accept-Language": "en, de, x"],
            vary: "Accept-Language",
            ["Content-Language": content]
        )
        #expect(try select(["Accept-Language": accept], [response]) == (isSelected ? 0 : nil))
        #expect(try select([:], [response]) == nil)
    }

    @Test("RFC 9111 §4.1: the language does not replace other nominated fields, and needs Content-Language")
    func languageAlone() throws {
        let both = try stored(
            ["Accept-Language": "en, de", "Accept": "a/b"],
            vary: "Accept, Accept-Language",
            ["Content-Language": "de"]
        )
        #expect(try select(["Accept-Language": "de", "Accept": "a/b"], [both]) == 0)
        #expect(try select(["Accept-Language": "de", "Accept": "a/c"], [both]) == nil)
        let silent = try stored(["Accept-Language": "en, de"], vary: "Accept-Language")
        #expect(try select(["Accept-Language": "de"], [silent]) == nil)
    }

    @Test(
        "RFC 9110 §12.5.4: the order of languages does not matter, their weights do",
        arguments: [
            ("en, de", "de, en", true), ("en;q=0.5, de", "DE,en;q=0.50", true), ("en, de", "en", false),
            ("en;q=0.5, de", "en, de;q=0.5", false), ("en;x=1, de", "de, en;x=1", false),
            ("en, de", "de, en, fr", false),
        ] as [(String, String, Bool)]
    )
    func languageOrder(known: String, presented: String, isSelected: Bool) throws {
        let response = try stored(["Accept-Language": known], vary: "Accept-Language")
        #expect(try select(["Accept-Language": presented], [response]) == (isSelected ? 0 : nil))
        let own = try stored(["Accept-Language": presented], vary: "Accept-Language", at: -50)
        #expect(try select(["Accept-Language": presented], [response, own]) == 1)
    }

    @Test("RFC 9111 §4.1: the same values precede equivalent ones, and a more recent response an older one")
    func order() throws {
        let own = try stored(["Foo": "1, 2"], vary: "Foo", at: 0)
        let same = try stored(["Foo": "1,2"], vary: "Foo", at: 50)
        let older = try stored(["Foo": "1 ,2"], vary: "Foo", at: 40)
        #expect(try select(["Foo": "1, 2"], [own, same]) == 0)
        #expect(try select(["Foo": "1, 2"], [older, same]) == 1)
    }

    @Test(
        "RFC 9111 §4.1: white space around commas in a list does not matter, unless quoted",
        arguments: [
            ("Foo", "1,2", " 1, 2 ", true), ("Foo", "1 \t,\t2", "1,2", true), ("Foo", "1 2", "12", false),
            ("Foo", "\"a, b\"", "\"a,b\"", false), ("Foo", "\"a\\\", b\"", "\"a\\\",b\"", false),
            ("Foo", "\"a\", b", "\"a\",b", true), ("Foo", "\"a, b", "\"a,b", false), ("Foo", "1,,2", "1,2", false),
            ("Foo", "1,2", "2,1", false), ("Foo", "a,b", "A,b", false), ("User-Agent", "a, b", "a,b", false),
            ("Cookie", "a, b", "a,b", false), ("Authorization", "T a, b", "T a,b", false),
        ] as [(String, String, String, Bool)]
    )
    func listSpace(name: String, known: String, presented: String, isSelected: Bool) throws {
        func fields(_ value: String) -> HeaderFields {
            var fields = HeaderFields()
            fields.append(rawName: name, value: value)
            return fields
        }
        let response = try stored(fields(known), vary: name)
        #expect(try select(fields(presented), [response]) == (isSelected ? 0 : nil))
        #expect(try select(fields(known), [stored(fields(presented), vary: name)]) == (isSelected ? 0 : nil))
    }

    @Test("Random values never trap, and always select what was stored for them", arguments: propertySeeds)
    func arbitrary(seed: UInt64) throws {
        var source = SeededGenerator(seed: seed)
        for _ in 0..<300 {
            let value = source.text(from: ["a", ",", " ", "\"", "\\", ";q=0.5", "de", "*", "\t"], upTo: 12)
            let fields: HeaderFields = ["Foo": value, "Accept-Language": value]
            let response = try stored(fields, vary: "Foo, Accept-Language", ["Content-Language": value])
            #expect(try select(fields, [response]) == 0)
        }
    }
}

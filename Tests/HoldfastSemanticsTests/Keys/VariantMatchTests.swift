// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastTesting
import Testing

@Suite struct VariantMatchTests {
    private static let secret: [UInt8] = Array("secret".utf8)

    private func fields(_ pairs: [[String]]) -> HeaderFields {
        var fields = HeaderFields()
        for pair in pairs { fields.append(rawName: pair[0], value: pair[1]) }
        return fields
    }

    private func matches(_ vary: String, _ stored: HeaderFields, _ presented: HeaderFields, semantic: Bool) -> Bool {
        NominatedFields(
            vary: ["Vary": vary],
            request: stored,
            secret: VariantMatchTests.secret,
            normalizes: semantic
        )?.matches(presented, secret: VariantMatchTests.secret) ?? false
    }

    @Test("Vector group vary", arguments: VectorFile.canonical?.vary.vectors ?? [])
    func vectors(vector: VaryVector) {
        let stored = fields(vector.storedRequest)
        let presented = fields(vector.presentedRequest)
        #expect(matches(vector.vary, stored, presented, semantic: false) == vector.matchGeneric)
        #expect(matches(vector.vary, stored, presented, semantic: true) == vector.matchSemantic)
    }

    @Test(
        "RFC 9110 §12.5, §8.4.1: more spellings",
        arguments: [
            ("Accept-Encoding", "x-gzip", "gzip", true), ("Accept-Encoding", "gzip;q=0", "gzip", false),
            ("Accept-Encoding", "gzip;q=0.5", "gzip;q=0.500", true), ("Accept-Encoding", "gzip;Q=1", "gzip", true),
            ("Accept-Encoding", "gzip;q=2", "gzip", false), ("Accept-Encoding", "*;q=0, br", "br,*;q=0.0", true),
            ("Accept", "Text/HTML", "text/html", true), ("Accept", "text/html;Level=1", "text/html;level=1", true),
            ("Accept", "text/html;level=1", "text/html;level=2", false), ("Accept", "a/b;q=0.3", "a/b;q=0.4", false),
            ("Accept", "a/b;q=1.000", "a/b", true), ("Accept-Language", "EN-gb", "en-GB", true),
            ("Accept-Language", "en", "en;q=0.5", false), ("Authorization", "Basic eA==", "basic eA==", true),
            ("Authorization", "Basic eA==", "Basic ea==", false), ("X-Foo", "a,b", "a, b", false),
            ("X-Foo", " a ", "a", true), ("X-Foo", "", "a", false),
        ]
    )
    func furtherSpellings(name: String, stored: String, presented: String, expected: Bool) {
        #expect(matches(name, fields([[name, stored]]), fields([[name, presented]]), semantic: true) == expected)
        #expect(matches(name, fields([[name, presented]]), fields([[name, stored]]), semantic: true) == expected)
    }

    @Test("The value of a field that the caller declares as a credential is kept as a digest and read back as one")
    func namedCredentials() throws {
        func nominated(_ request: HeaderFields, _ names: [FieldName]) throws -> NominatedFields {
            try #require(
                NominatedFields(
                    vary: ["Vary": "X-Key, A"],
                    request: request,
                    secret: Self.secret,
                    credentialFields: names
                )
            )
        }
        let request: HeaderFields = ["X-Key": "s3cret", "A": "1"]
        let hidden = try nominated(request, ["x-key"])
        #expect(!String(decoding: hidden.framed, as: UTF8.self).contains("s3cret"))
        let read = try #require(NominatedFields(framed: hidden.framed))
        #expect(read == hidden)
        let digest = String(decoding: hidden.framed.suffix(64), as: UTF8.self)
        for stored in [hidden, read] {
            #expect(stored.matches(request, secret: Self.secret))
            for other: HeaderFields in [["X-Key": "s3cret2", "A": "1"], ["A": "1"], ["X-Key": digest, "A": "1"]] {
                #expect(!stored.matches(other, secret: Self.secret))
                #expect(!stored.matchesInEffect(other, contentLanguage: nil, secret: Self.secret))
            }
            #expect(!stored.matches(request, secret: [1]))
        }
        // What is absent is no secret, and what is a credential by its name keeps its form.
        #expect(try nominated(["A": "1"], ["x-key"]) == nominated(["A": "1"], []))
        let named = NominatedFields(
            vary: ["Vary": "Cookie"],
            request: ["Cookie": "a"],
            secret: Self.secret,
            credentialFields: [.cookie]
        )
        let usual = NominatedFields(vary: ["Vary": "Cookie"], request: ["Cookie": "a"], secret: Self.secret)
        #expect(named == usual)
    }

    @Test(
        "Different Unicode spellings of a character are different bytes and different variants",
        arguments: ["X-Foo", "X-List"]
    )
    func unicodeSpellings(_ name: String) throws {
        let list = name == "X-List" ? "a, " : ""
        let composed = fields([[name, list + "\u{E9}"]])
        let decomposed = fields([[name, list + "e\u{301}"]])
        #expect(!matches(name, composed, decomposed, semantic: true))
        let stored = try #require(NominatedFields(vary: ["Vary": name], request: composed, secret: []))
        #expect(!stored.matchesInEffect(decomposed, contentLanguage: nil, secret: []))
        #expect(stored.matchesInEffect(composed, contentLanguage: nil, secret: []))
    }

    @Test("Every field that Vary names counts, however many there are", arguments: [1, 8, 9, 200])
    func manyNames(_ count: Int) throws {
        let names = (0..<count).map { "X-\($0)" }
        let request = fields(names.flatMap { [[$0, "a"], [$0.lowercased(), "b"]] })
        let vary = names.joined(separator: ", ")
        #expect(matches(vary, request, request, semantic: true))
        for name in [names.first, names.last].compactMap(\.self) {
            var other = request
            other.append(rawName: name, value: "c")
            #expect(!matches(vary, request, other, semantic: true))
            var lacking = request
            lacking.removeAll { $0.name.rawName == name }
            #expect(!matches(vary, request, lacking, semantic: true))
            #expect(!matches(vary, lacking, request, semantic: true))
        }
        let framed = try #require(NominatedFields(vary: ["Vary": vary], request: request, secret: [])).framed
        #expect(NominatedFields(framed: framed)?.matches(request, secret: []) == true)
    }

    @Test("RFC 9111 §4.1: empty is not absent")
    func emptyIsNotAbsent() {
        #expect(!matches("X", ["X": ""], [:], semantic: true))
        #expect(!matches("X", [:], ["X": ""], semantic: true))
        #expect(matches("X", ["X": ""], ["X": " "], semantic: true))
    }

    @Test(
        "RFC 9111 §4.1: a star anywhere, or no field name, matches nothing",
        arguments: [
            "*", "*, *", ", *", "*, Foo", "Foo, *", "Foo Bar", "Foo;q=1",
        ]
    )
    func unusableVary(value: String) {
        #expect(NominatedFields(vary: ["Vary": value], request: [:], secret: []) == nil)
        #expect(NominatedFields(vary: ["Vary": "", "vary": value], request: [:], secret: []) == nil)
    }

    @Test func framesReadBack() throws {
        let request: HeaderFields = ["B": "2", "Authorization": "Bearer token", "C": ""]
        let vary: HeaderFields = ["Vary": "c, D", "vary": "B, authorization, b"]
        for normalizes in [true, false] {
            let nominated = try #require(
                NominatedFields(vary: vary, request: request, secret: [7], normalizes: normalizes)
            )
            #expect(nominated.names == ["authorization", "b", "c", "d"])
            let text = String(decoding: nominated.framed, as: UTF8.self)
            #expect(!text.contains("token"))
            let read = try #require(NominatedFields(framed: nominated.framed))
            #expect(read == nominated)
            #expect(read.matches(request, secret: [7]))
            #expect(!read.matches(request, secret: [8]))
        }
    }

    @Test func withoutVaryThereIsNoKey() throws {
        let nominated = try #require(NominatedFields(vary: [:], request: ["A": "1"], secret: []))
        #expect(nominated.framed.isEmpty)
        #expect(nominated.matches([:], secret: []))
        #expect(NominatedFields(framed: []) == nominated)
        #expect(NominatedFields(vary: ["Vary": " , "], request: [:], secret: [])?.framed == [])
    }

    @Test(arguments: propertySeeds)
    func damagedFramesNeverTrap(seed: UInt64) throws {
        var source = SeededGenerator(seed: seed)
        let nominated = try #require(NominatedFields(vary: ["Vary": "a, b"], request: ["A": "1"], secret: []))
        for _ in 0..<300 {
            var bytes = nominated.framed
            let index = Int.random(in: bytes.indices, using: &source)
            bytes[index] = UInt8.random(in: 0...255, using: &source)
            if Bool.random(using: &source) { bytes.removeLast(Int.random(in: 0...bytes.count, using: &source)) }
            guard let read = NominatedFields(framed: bytes) else { continue }
            #expect(read.framed == bytes)
        }
    }
}

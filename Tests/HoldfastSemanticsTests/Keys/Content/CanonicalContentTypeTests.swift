// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastTesting
import Testing

@Suite struct CanonicalContentTypeTests {
    @Test("Vector group content_type", arguments: VectorFile.canonical?.contentType.vectors ?? [])
    func vectors(vector: ContentTypeVector) {
        #expect(CanonicalContentType(vector.input).text == vector.canonical)
    }

    @Test(
        "RFC 9110 §8.3.1, §5.6.4, §5.6.6: more spellings",
        arguments: [
            ("text/html ; charset=\"UTF-\\8\"", "text/html;charset=utf-8"), ("a/b;;c=d ; ", "a/b;c=d"),
            ("a/b;X=\"\"", "a/b;x=\"\""), ("a/b;x=\"Y\"", "a/b;x=Y"), ("a/b;x=\"y z\"", "a/b;x=\"y z\""),
            ("a/b;x=\"\\\\\"", "a/b;x=\"\\\\\""), ("a/b;c=1;a=2", "a/b;c=1;a=2"), (" A/B\t", "a/b"),
            ("a/b;charset=\"x y\"", "a/b;charset=\"x y\""), ("*/*", "*/*"),
            // What is no media type stays as it is.
            ("", ""), (" JSON ", "JSON"), ("A/", "A/"), ("/B", "/B"), ("A/B C", "A/B C"), ("A/B;c", "A/B;c"),
            ("A/B;c =d", "A/B;c =d"), ("A/B;c=", "A/B;c="), ("A/B;c=\"d", "A/B;c=\"d"), ("A/B, C/D", "A/B, C/D"),
            ("A/B;c=d e", "A/B;c=d e"), ("A / B", "A / B"), ("A/B;c=\"d\"e", "A/B;c=\"d\"e"),
        ]
    )
    func furtherSpellings(input: String, canonical: String) {
        #expect(CanonicalContentType(input).text == canonical)
    }

    @Test(
        "RFC 6839 §3.1: which content is JSON",
        arguments: [
            ("application/json", true), ("Application/JSON; charset=UTF-8", true), ("application/problem+JSON", true),
            ("application/json;charset=utf-16", false), ("text/plain", false), ("json", false), ("", false),
            ("application/json, application/json", false), ("application/jsonl", false),
        ]
    )
    func json(value: String, expected: Bool) {
        #expect(CanonicalContentType(value).isJSON == expected)
    }

    @Test("Canonical text is its own canonical form", arguments: FuzzRounds.seeds)
    func idempotence(seed: UInt64) {
        var source = SeededGenerator(seed: seed)
        let pieces = ["Text", "/", "html", ";", "charset", "=", "\"", "\\", " ", "UTF-8", "é", "a=b"]
        var parsed = 0
        for _ in 0..<FuzzRounds.of(2000) {
            let text = (Bool.random(using: &source) ? "a/B;" : "") + source.text(from: pieces, upTo: 10)
            let once = CanonicalContentType(text)
            #expect(Array(CanonicalContentType(once.text).text.utf8) == Array(once.text.utf8), "\(text)")
            parsed += once.essence.isEmpty ? 0 : 1
        }
        #expect(parsed > 50)
    }
}

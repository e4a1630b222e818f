// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastTesting
import Testing

@testable import HoldfastSemantics

@Suite struct VariantNormalizerTests {
    private static let negotiated = ["accept", "accept-encoding", "accept-language", "authorization"]

    private func normalized(_ value: String, _ name: String) -> [UInt8] {
        Array(VariantNormalizer.normalized(value, of: name).utf8)
    }

    @Test(
        "RFC 9110 §12.4.2, §12.5, §11.1: normal forms",
        arguments: [
            ("accept", "B/c;q=0.50, a/b", "a/b,b/c;q=0.5"), ("accept", "a/b;X=\"y\";Q=0.001", "a/b;x=y;q=0.001"),
            ("accept", "a/b;q=0.5;x=Y", "a/b;x=Y;q=0.5"), ("accept", "a/b;q=0.000", "a/b;q=0"),
            ("accept", "a/b, a/b;q=1.0", "a/b"), ("accept", "a/b;x=\"1,q=0\"", "a/b;x=\"1,q=0\""),
            ("accept", "text/html;Charset=UTF-8", "text/html;charset=utf-8"), ("accept", "", ""),
            ("accept-encoding", "X-GZIP;q=1., br;q=0.25", "br;q=0.25,gzip"), ("accept-encoding", ", ,", ""),
            ("accept-encoding", "x-compress, *;q=0", "*;q=0,compress"),
            ("accept-language", "EN ;q=0.8 ,, fr-CH", "en;q=0.8,fr-ch"), ("authorization", "BASIC Ab=", "basic Ab="),
            // Malformed or ambiguous values keep their spelling.
            ("accept", "a/B;q=500", "a/B;q=500"), ("accept", "a/B;q=.5", "a/B;q=.5"), ("accept", "A, b", "A, b"),
            ("accept", "A/b;q=0.5;q=0.3", "A/b;q=0.5;q=0.3"), ("accept", "A/b;q=\"0.5\"", "A/b;q=\"0.5\""),
            ("accept", "A/b;q=0.5, a/b;q=0.3", "A/b;q=0.5, a/b;q=0.3"),
            ("accept", "A/b;x=\"\u{E9}\"", "A/b;x=\"\u{E9}\""),
            ("accept", "A/b;x", "A/b;x"), ("accept", "q=0.5;A/b", "q=0.5;A/b"), ("accept", ";A/b", ";A/b"),
            ("accept-encoding", "q=0.5;GZIP", "q=0.5;GZIP"),
            ("accept-encoding", "gzip, X-gzip;q=0", "gzip, X-gzip;q=0"),
            ("accept-encoding", "Gzip;level=1", "Gzip;level=1"), ("accept-encoding", "gzip;q=1.001", "gzip;q=1.001"),
            ("authorization", "SecretKey", "SecretKey"), ("authorization", "Sec/ret Key", "Sec/ret Key"),
            ("user-agent", "A  B", "A  B"),
        ]
    )
    func normalForms(name: String, value: String, expected: String) {
        #expect(normalized(value, name) == Array(expected.utf8))
    }

    @Test("A list of codings has one normal form, with or without an explicit weight of 1 (RFC 9110 §12.4.2)")
    func wordLists() {
        var random = SeededGenerator(seed: .random(in: .min ... .max))
        let seed = random.seed
        let words = ["gzip", "br", "deflate", "zstd", "*", "identity", "GZIP", "x-gzip", "xz", "a/b", "gz", "", "é"]
        for _ in 0..<2000 {
            let count = Int.random(in: 1...6, using: &random)
            let members = (0..<count).map { _ in words.randomElement(using: &random) ?? "" }
            let spaces = ["", " ", "\t", "  "]
            let plain = members.map { word in
                (spaces.randomElement(using: &random) ?? "") + word + (spaces.randomElement(using: &random) ?? "")
            }
            let weighed = members.map { $0.isEmpty ? "" : $0 + ";q=1" }
            // What parses is taken apart with the weights and without; what does not keeps its spelling.
            let expected = normalized(weighed.joined(separator: ","), "accept-encoding")
            let isKept = members.contains { $0 == "é" || $0 == "a/b" }
            let value = plain.joined(separator: ",")
            #expect(
                normalized(value, "accept-encoding") == (isKept ? Array(value.utf8) : expected),
                "seed \(seed): \(value)"
            )
        }
    }

    @Test("Values that compare equal as text but not as bytes are two variants (RFC 9111 §4.1)")
    func unicodeEquivalence() throws {
        for name in ["X-Name", "Accept", "Accept-Language", "Cookie"] {
            let field = try #require(FieldName(name))
            var composed = HeaderFields()
            composed.append(field, "a/b;x=\u{E9}")
            var decomposed = HeaderFields()
            decomposed.append(field, "a/b;x=e\u{301}")
            let nominated = try #require(NominatedFields(vary: ["Vary": name], request: composed, secret: []))
            #expect(nominated.matches(composed, secret: []))
            #expect(!nominated.matches(decomposed, secret: []))
            #expect(nominated != NominatedFields(vary: ["Vary": name], request: decomposed, secret: []))
        }
    }

    @Test(
        "Vector group vary: two values share a normal form only if a vector says that they match"
    )
    func neverMergesWhatTheVectorsTellApart() throws {
        let vectors = try #require(VectorFile.canonical).vary.vectors
        for name in VariantNormalizerTests.negotiated {
            func value(_ lines: [[String]]) -> String? {
                let values = lines.filter { $0[0].lowercased() == name }.map { $0[1] }
                return values.isEmpty ? nil : values.joined(separator: ", ")
            }
            let all = vectors.flatMap { [$0.storedRequest, $0.presentedRequest] }.compactMap(value)
            for one in Set(all) {
                for other in Set(all) where normalized(one, name) == normalized(other, name) {
                    #expect(Negotiation(name, one) == Negotiation(name, other), "\(name): \(one) | \(other)")
                }
            }
        }
    }

    @Test("Normalizing keeps what content negotiation needs, and is idempotent", arguments: FuzzRounds.seeds)
    func properties(seed: UInt64) {
        var source = SeededGenerator(seed: seed)
        let pieces = [
            "gzip", "X-GZIP", "br", "*", "a/b", "A/b", "*/*", "en", "EN-gb", ",", ", ", ";", ";q=0.5", ";Q=0.50",
            ";q=1",
            ";q=0", ";q=2", ";x=1", ";X=\"1\"", "\"", " ", "Basic ", "e\u{301}",
        ]
        for name in VariantNormalizerTests.negotiated {
            var forms: [[UInt8]: String] = [:]
            for _ in 0..<FuzzRounds.of(1500) {
                let line = HeaderFields.Line(name: "X", value: source.text(from: pieces, upTo: 7))
                let form = normalized(line.value, name)
                #expect(normalized(String(decoding: form, as: UTF8.self), name) == form, "\(name): \(line.value)")
                if let other = forms.updateValue(line.value, forKey: form) {
                    #expect(Negotiation(name, line.value) == Negotiation(name, other), "\(line.value) | \(other)")
                }
            }
        }
    }

    @Test("Long values cost linear time: a megabyte of each kind is normalized")
    func longValues() {
        for piece in [",", ";", "\"", "a/b;q=0.5,", "a/b;x=\"", ";q=", "\\\"", "a/b;c=d;"] {
            let value = String(repeating: piece, count: 1_000_000 / piece.utf8.count)
            for name in VariantNormalizerTests.negotiated {
                #expect(normalized(value, name).count <= value.utf8.count)
            }
        }
    }
}

/// What a server may tell from a value: read independently of the normalizer, and roughly, by the text of the RFC.
private struct Negotiation: Equatable {
    private var members: [String] = []

    init(_ name: String, _ value: String) {
        if name == "authorization" {
            let words = value.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: false)
            members = words.count == 2 ? [words[0].lowercased(), String(words[1])] : [value]
            return
        }
        for member in value.split(separator: ",") {
            let text = member.filter { $0 != " " && $0 != "\t" }
            guard !text.isEmpty else { continue }
            var parameters = text.split(separator: ";", omittingEmptySubsequences: false).map(String.init)
            var head = parameters.removeFirst().lowercased()
            if name == "accept-encoding", head.hasPrefix("x-") { head = String(head.dropFirst(2)) }
            var weight = "1"
            var others: [String] = []
            for parameter in parameters where !parameter.isEmpty {
                let folded = name == "accept-language" ? parameter.lowercased() : parameter
                if folded.lowercased().hasPrefix("q="), let number = Double(folded.dropFirst(2)) {
                    weight = name == "accept-language" ? folded : "\(number)"
                    if weight == "1.0" { weight = "1" }
                } else {
                    let parts = folded.filter { $0 != "\"" }.split(separator: "=", omittingEmptySubsequences: false)
                    others.append(([parts[0].lowercased()] + parts.dropFirst().map(String.init)).joined(separator: "="))
                }
            }
            members.append(([head] + others + [weight]).joined(separator: ";"))
        }
        if name != "accept-language" { members = Set(members).sorted() }
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastTesting
import Testing

@Suite struct CanonicalJSONTests {
    private func canonical(_ text: String) -> String? {
        CanonicalJSON.bytes(of: Array(text.utf8)).map { String(decoding: $0, as: UTF8.self) }
    }

    @Test(
        "RFC 8785 §3.2: canonical forms",
        arguments: [
            ("{}", "{}"), (" [ ] ", "[]"), ("[{},[],[[]]]", "[{},[],[[]]]"), ("\t\r\n null", "null"),
            ("[true,false,null]", "[true,false,null]"),
            ("{\"a\":{\"c\":1,\"b\":[2,1]}}", "{\"a\":{\"b\":[2,1],\"c\":1}}"),
            ("\"\\u20ac$\\u000F\\u000aA'\\u0042\\u0022\\u005c\\\\\\\"\\/\"", "\"€$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\""),
            ("\"\\b\\f\\n\\r\\t\\u0000\\u001f\\u007f\"", "\"\\b\\f\\n\\r\\t\\u0000\\u001f\u{7F}\""),
            ("\"\\uD83D\\uDE02\"", "\"😂\""), ("\"\\ud7ff\\ue000\\uFFFF\"", "\"\u{D7FF}\u{E000}\u{FFFF}\""),
            (
                "{\"\\u20ac\":1,\"\\r\":2,\"\\ufb33\":3,\"1\":4,\"\\ud83d\\ude00\":5,\"\\u0080\":6,\"\\u00f6\":7}",
                "{\"\\r\":2,\"1\":4,\"\u{80}\":6,\"ö\":7,\"€\":1,\"😀\":5,\"\u{FB33}\":3}"
            ),
            ("{\"ab\":1,\"a\":2,\"\":3}", "{\"\":3,\"a\":2,\"ab\":1}"),
            ("{\"\u{E9}\":1,\"e\u{301}\":2}", "{\"e\u{301}\":2,\"\u{E9}\":1}"),
            (
                "[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001]",
                "[333333333.3333333,1e+30,4.5,0.002,1e-27]"
            ),
        ]
    )
    func forms(input: String, expected: String) {
        #expect(canonical(input).map { Array($0.utf8) } == Array(expected.utf8))
    }

    @Test(
        "RFC 8785 §3.2.2.3 and Appendix B: numbers as ECMAScript writes them",
        arguments: [
            ("0", "0"), ("-0", "0"), ("-0.0e5", "0"), ("1", "1"), ("-1.50", "-1.5"), ("1e2", "100"), ("100", "100"),
            ("120e-1", "12"), ("0.1", "0.1"), ("1e-6", "0.000001"), ("1e-7", "1e-7"), ("123e-9", "1.23e-7"),
            ("0.00001234", "0.00001234"), ("9007199254740991", "9007199254740991"),
            ("-9007199254740992", "-9007199254740992"), ("123456.789", "123456.789"), ("5e-324", "5e-324"),
            ("-5e-324", "-5e-324"), ("1.7976931348623157e308", "1.7976931348623157e+308"), ("1e21", "1e+21"),
            ("1e20", "100000000000000000000"), ("9007199254740994.0", "9007199254740994"),
            ("1.5E+25", "1.5e+25"), ("9.999999999999997e22", "9.999999999999997e+22"), ("1e23", "1e+23"),
            ("333333333.3333332", "333333333.3333332"), ("333333333.33333325", "333333333.33333325"),
            ("-0.0000033333333333333333", "-0.0000033333333333333333"), ("1424953923781206.2", "1424953923781206.2"),
            ("0.30000000000000004", "0.30000000000000004"), ("1e-400", nil), ("1e400", nil), ("-1e999999999999", nil),
            ("9007199254740993", nil), ("9007199254740994", nil), ("-9007199254740993", nil),
            ("100000000000000000000", nil),
            ("9007199254740993e0", nil), ("9007199254740992.5", nil), ("9007199254740991.9", nil),
            ("90071992547409930e-1", nil), ("123456789012345678901e5", nil),
        ] as [(String, String?)]
    )
    func numbers(input: String, expected: String?) {
        #expect(canonical(input) == expected)
    }

    @Test(
        "RFC 8259, RFC 7493 §2: content that keeps its bytes",
        arguments: [
            "", " ", "{", "}", "[", "]", "[1", "[1,", "[1,]", "[,1]", "[1 2]", "{\"a\"}", "{\"a\":}", "{\"a\":1,}",
            "{,}",
            "{a:1}", "{1:1}", "{\"a\" 1}", "{\"a\":1 \"b\":2}", "[1}", "{\"a\":1]", "nul", "True", "nulll", "1 1",
            "[]]",
            "01", "-", "+1", ".5", "1.", "1e", "1e+", "0x1", "NaN", "Infinity", "1_0", "--1", "1.2.3", "\"", "\"a",
            "\"\\\"", "\"\\x\"", "\"\\u12\"", "\"\\u12g4\"", "\"\n\"", "\"\u{0}\"", "\"\\ud800\"", "\"\\udc00\"",
            "\"\\ud800a\"", "\"\\ud800\\n\"", "\"\\ud800\\ud800\"", "\"\\udc00\\ud800\"", "\u{FEFF}1", "\u{A0}1",
            "//\n1",
            "{\"a\":1,\"a\":1}", "{\"a\":1,\"b\":2,\"\\u0061\":3}", "[{\"x\":{\"\":0,\"\":0}}]", "'a'", "[\u{0}]",
        ]
    )
    func refused(input: String) {
        #expect(canonical(input) == nil)
    }

    @Test(
        "Bytes that are not UTF-8",
        arguments: [
            [0x22, 0xFF, 0x22], [0x22, 0xC0, 0xAF, 0x22], [0x22, 0xED, 0xA0, 0x80, 0x22], [0x22, 0xE2, 0x82, 0x22],
            [0xFF],
        ] as [[UInt8]]
    )
    func notUTF8(bytes: [UInt8]) {
        #expect(CanonicalJSON.bytes(of: bytes) == nil)
    }

    @Test("Nesting up to the limit works, and deeper nesting does not use the call stack")
    func nesting() {
        func nested(_ count: Int, _ open: String, _ close: String) -> String {
            String(repeating: open, count: count) + "1" + String(repeating: close, count: count)
        }
        let limit = CanonicalJSON.depthLimit
        #expect(canonical(nested(limit, "[", "]")) == nested(limit, "[", "]"))
        #expect(canonical(nested(limit, "{\"a\": ", "}")) == nested(limit, "{\"a\":", "}"))
        #expect(canonical(nested(limit + 1, "[", "]")) == nil)
        #expect(canonical(nested(limit + 1, "{\"a\":", "}")) == nil)
        #expect(canonical(nested(1_000_000, "[", "]")) == nil)
        #expect(canonical(String(repeating: "{\"a\":", count: 100_000)) == nil)
        #expect(canonical("[" + String(repeating: "[],", count: 1000) + "1]") != nil)
        #expect(canonical(String(repeating: "1", count: 500_000)) == nil)
    }

    /// A random value, spelled twice: other white space, member order, escapes and number forms.
    private func spellings(_ source: inout SeededGenerator, depth: Int) -> (String, String) {
        func space() -> String { ["", "", " ", "\n", "\t\r"].randomElement(using: &source) ?? "" }
        func text() -> (String, String) {
            let scalars = (0..<Int.random(in: 0...3, using: &source)).map { _ in
                ["a", "é", "e\u{301}", "\u{FB33}", "😀", "\"", "\\", "\u{1}", "/", "€"].randomElement(using: &source)
                    ?? ""
            }
            func spelled() -> String {
                let units = scalars.joined().utf16.map { unit in
                    let hex = String(unit, radix: 16, uppercase: Bool.random(using: &source))
                    return "\\u" + String(repeating: "0", count: 4 - hex.utf8.count) + hex
                }
                let plain = scalars.map { ["\"": "\\\"", "\\": "\\\\", "\u{1}": "\\u0001"][$0] ?? $0 }
                return "\"" + (Bool.random(using: &source) ? units : plain).joined() + "\""
            }
            return (spelled(), spelled())
        }
        switch Int.random(in: 0..<(depth > 0 ? 6 : 4), using: &source) {
        case 0: return text()
        case 1:
            let number = Int.random(in: -99_999...99_999, using: &source)
            return ("\(number)", "\(number)0.0E-\(1)")
        case 2:
            let number = Double.random(in: -1e9...1e9, using: &source)
            return ("\(number)", "\(number)e0")
        case 3: return ("null", space() + "null" + space())
        case 4:
            let items = (0..<Int.random(in: 0...3, using: &source)).map { _ in spellings(&source, depth: depth - 1) }
            let one = items.map(\.0).joined(separator: ",")
            let other = items.map(\.1).joined(separator: space() + "," + space())
            return ("[\(one)]", "[" + space() + other + "]")
        default:
            var one: [String] = []
            var members: [String] = []
            for index in 0..<Int.random(in: 0...4, using: &source) {
                let name = text()
                let value = spellings(&source, depth: depth - 1)
                // The index keeps names apart.
                one.append("\"\(index)\(name.0.dropFirst()):\(value.0)")
                members.append("\"\(index)\(name.1.dropFirst())\(space()):\(space())\(value.1)")
            }
            members.shuffle(using: &source)
            let other = members.joined(separator: "," + space())
            return ("{" + one.joined(separator: ",") + "}", "{\(other)\(space())}")
        }
    }

    @Test("Two spellings of one value have one canonical form, which is canonical itself", arguments: FuzzRounds.seeds)
    func properties(seed: UInt64) throws {
        var source = SeededGenerator(seed: seed)
        for _ in 0..<FuzzRounds.of(400) {
            let (one, other) = spellings(&source, depth: 4)
            let form = try #require(CanonicalJSON.bytes(of: Array(one.utf8)), "\(one)")
            #expect(CanonicalJSON.bytes(of: Array(other.utf8)) == form, "\(one) \(other)")
            #expect(CanonicalJSON.bytes(of: form) == form, "\(one)")
        }
    }

    @Test("Doubles are read back unchanged", arguments: FuzzRounds.seeds)
    func doubles(seed: UInt64) throws {
        var source = SeededGenerator(seed: seed)
        var seen = 0
        for _ in 0..<FuzzRounds.of(2000) {
            let value = Double(bitPattern: source.next())
            guard value.isFinite, let text = canonical("\(value)") else { continue }
            seen += 1
            #expect(Double(text) == value)
            #expect(canonical(text) ?? text == text)
        }
        #expect(seen > 1500)
    }

    @Test("Random and damaged bytes never trap, and canonical text stays unchanged", arguments: FuzzRounds.seeds)
    func arbitraryBytes(seed: UInt64) {
        var source = SeededGenerator(seed: seed)
        let pieces = ["{", "}", "[", "]", ",", ":", "\"", "\\u", "d83d", "1", "-", "e", ".", "null", " ", "\"a\"", "0"]
        for _ in 0..<FuzzRounds.of(1500) {
            var bytes = Array(source.text(from: pieces, upTo: 14).utf8)
            if Bool.random(using: &source) {
                bytes = Array(spellings(&source, depth: 3).0.utf8)
                let index = Int.random(in: bytes.indices, using: &source)
                bytes[index] = UInt8.random(in: 0...255, using: &source)
            }
            guard let form = CanonicalJSON.bytes(of: bytes) else { continue }
            // A number between 2^53 and 10^21 comes out as an integer, which by itself keeps its bytes.
            #expect(CanonicalJSON.bytes(of: form) ?? form == form)
        }
    }
}

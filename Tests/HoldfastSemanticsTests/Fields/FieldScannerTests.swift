// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastTesting
import Testing

@Suite(.timeLimit(.minutes(20))) struct FieldScannerTests {
    @Test(
        "RFC 9110 §5.6.1: lists skip empty members and respect quotes",
        arguments: [
            ("a, b ,c", ["a", "b", "c"]), (",, a,,b,", ["a", "b"]), ("", []), (" , ", []),
            (#"a="x,y", b"#, [#"a="x,y""#, "b"]), (#""a\",b", c"#, [#""a\",b""#, "c"]),
            (#"a="open, no-store"#, [#"a="open"#, "no-store"]),
        ]
    )
    func members(value: String, expected: [String]) {
        #expect(FieldScanner.members(of: value) == expected)
    }

    @Test(
        "RFC 9110 §5.6.4: a quoted string yields its content",
        arguments: [
            (#""""#, ""), (#""a b""#, "a b"), (#""a\"b\\c""#, #"a"b\c"#), (#""\a""#, "a"),
        ]
    )
    func quotedStrings(text: String, content: String) {
        var scanner = FieldScanner(text)
        let read = scanner.quotedString()
        #expect(read == content)
        #expect(scanner.isAtEnd)
    }

    @Test(arguments: [#""open"#, #""open\""#, "plain", ""])
    func noQuotedString(text: String) {
        var scanner = FieldScanner(text)
        let read = scanner.quotedString()
        #expect(read == nil)
        #expect(scanner.position == 0)
    }

    @Test func stepsOfAScan() {
        var scanner = FieldScanner("  name = rest")
        scanner.skipWhitespace()
        let name = scanner.token()
        #expect(name == "name")
        scanner.skipWhitespace()
        let hasSemicolon = scanner.consume(UInt8(ascii: ";"))
        #expect(!hasSemicolon)
        let hasEquals = scanner.consume(UInt8(ascii: "="))
        #expect(hasEquals)
        let rest = scanner.text(upTo: UInt8(ascii: ","))
        #expect(rest == "rest")
        #expect(scanner.isAtEnd)
        let nothing = scanner.token()
        #expect(nothing == nil)
    }

    @Test(
        "RFC 9111 §1.2.2: numbers are digits and saturate",
        arguments: [
            ("0", Int64(0)), ("007", 7), ("100", 100), ("101", 100), ("99999999999999999999999999", 100), ("", nil),
            ("-1", nil), ("1.5", nil), ("+1", nil), ("1 ", nil), ("١", nil), ("99999999999999999999999999x", nil),
        ] as [(String, Int64?)]
    )
    func numbers(text: String, expected: Int64?) {
        #expect(FieldScanner.number(text.utf8, limit: 100) == expected)
    }

    @Test(
        "A long hostile value is read in one pass",
        arguments: [
            #""\"#, "\"", "\\\"", ",", "\",", "a=\"", "W/\"", ";q=", "no-cache=\"a,", " ",
        ]
    )
    func hostileValues(piece: String) {
        let value = String(repeating: piece, count: 200_000 / piece.utf8.count)
        #expect(CacheControl(parsing: value).directives.count <= value.utf8.count)
        #expect(FieldScanner.members(of: value).count <= value.utf8.count)
        _ = EntityTag.list(value)
        _ = EntityTag(value)
        _ = HTTPDate(value, receivedAt: .noon)
        _ = NominatedFields(vary: ["Vary": "Accept"], request: ["Accept": value], secret: [])
        _ = try? TargetURI("http://h/" + value)
    }

    @Test(arguments: propertySeeds)
    func randomTextNeverTraps(seed: UInt64) {
        var source = SeededGenerator(seed: seed)
        for _ in 0..<400 {
            let text = source.text(from: ["\"", "\\", ",", ";", "=", " ", "a", "W/", "*", "max-age", "9"], upTo: 40)
            let members = FieldScanner.members(of: text)
            #expect(members.allSatisfy { !$0.isEmpty })
            _ = CacheControl(parsing: text).description
            _ = EntityTag(text)
            _ = EntityTag.list(text)
            _ = HTTPDate(text, receivedAt: .noon)
        }
    }
}

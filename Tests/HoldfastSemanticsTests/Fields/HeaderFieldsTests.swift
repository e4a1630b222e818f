// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import Testing

@Suite struct HeaderFieldsTests {
    @Test("RFC 9110 §5.1: names are tokens and ignore letter case", arguments: ["ETag", "x-a.b!#$%&'*+^_`|~0"])
    func names(text: String) throws {
        let name = try #require(FieldName(text))
        #expect(name.rawName == text)
        #expect(name == FieldName(text.uppercased()))
        #expect(name.canonicalName == text.lowercased())
        #expect(name.hashValue == FieldName(text.uppercased())?.hashValue)
    }

    @Test(
        "RFC 9110 §5.6.2: what is not a token is not a name",
        arguments: ["", "a b", "a:", "é", "a\r", "(a)", "a\u{0}"]
    )
    func refusedNames(text: String) {
        #expect(FieldName(text) == nil)
        var fields = HeaderFields()
        let wasAdded = fields.append(rawName: text, value: "1")
        #expect(!wasAdded)
        #expect(fields.isEmpty)
    }

    @Test(
        "RFC 9110 §5.5: ends are trimmed; CR, LF and NUL become spaces",
        arguments: [
            ("  a b\t", "a b"), ("a\r\nX: y", "a  X: y"), ("\r\n a \u{0}", "a"), ("", ""), (" \t ", ""), ("é", "é"),
            ("a\u{0}b", "a b"), ("a\rb", "a b"), ("a\nb", "a b"),
        ]
    )
    func values(raw: String, clean: String) {
        #expect(HeaderFields.Line(name: "x", value: raw).value == clean)
    }

    @Test("RFC 9110 §5.3: lines combine in order, and none is lost")
    func combination() {
        var fields: HeaderFields = ["Vary": "a", "X": "1", "vary": "b", "Cookie": "a=1", "cookie": "b=2"]
        fields.append(.setCookie, "s=1, 2")
        fields.append(.setCookie, "t=1")
        #expect(fields[.vary] == "a, b")
        #expect(fields[.cookie] == "a=1; b=2")
        #expect(fields[.setCookie] == "s=1, 2")
        #expect(fields.values(of: .setCookie) == ["s=1, 2", "t=1"])
        #expect(fields["y"] == nil)
        #expect(fields.count == 7)
        #expect(fields.map(\.name.rawName) == ["Vary", "X", "vary", "Cookie", "cookie", "Set-Cookie", "Set-Cookie"])
    }

    #if os(Linux) || os(macOS)
        @Test("A literal that is not a token traps")
        func badLiteral() async {
            await #expect(processExitsWith: .failure) {
                _ = FieldName(stringLiteral: "two words")
            }
        }
    #endif

    @Test func settingReplacesInPlace() {
        var fields: HeaderFields = ["A": "1", "B": "2", "a": "3", "C": "4"]
        fields["a"] = "5"
        #expect(fields.map(\.value) == ["5", "2", "4"])
        fields["B"] = nil
        #expect(fields.map(\.value) == ["5", "4"])
        fields["D"] = "6"
        #expect(fields.map(\.value) == ["5", "4", "6"])
        fields.removeAll { $0.value == "4" }
        #expect(!fields.contains("c"))
        fields.removeAll("A")
        #expect(fields == ["D": "6"])
    }

    @Test func mergingReplacesNamedFieldsOnly() {
        let ours: HeaderFields = ["A": "1", "B": "2", "a": "3"]
        let merged = ours.merging(["A": "9", "C": "7", "c": "8"])
        #expect(merged.map(\.value) == ["2", "9", "7", "8"])
        #expect(ours.merging([:]) == ours)
    }
}

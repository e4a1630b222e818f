// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if HTTPTypes
    import Foundation
    import HTTPTypes
    import Holdfast
    import HoldfastHTTPTypes
    import HoldfastSemantics
    import Testing

    @Suite("HTTPFields and HeaderFields")
    struct FieldsTests {
        @Test("Lines keep order, spelling and number both ways, including Set-Cookie and Cookie crumbs")
        func lines() throws {
            let lines: HeaderFields = [
                "X-One": "1", "set-cookie": "a=1", "Set-Cookie": "b=2", "cookie": "c=3", "Cookie": "d=4", "x-one": "2",
                "X-Empty": "", "X-Text": "ä, \"quoted\"",
            ]
            let fields = HTTPFields(lines)
            #expect(fields.map { "\($0.name.rawName)=\($0.value)" } == lines.map { "\($0.name.rawName)=\($0.value)" })
            let back = HeaderFields(fields)
            #expect(back == lines)
            #expect(back.map(\.name.rawName) == lines.map(\.name.rawName))
        }

        @Test("Pseudo-header fields are left out, because they are not header fields (RFC 9113 §8.3)")
        func pseudoFields() {
            let request = HTTPRequest(
                method: .get,
                scheme: "https",
                authority: "example.com",
                path: "/",
                headerFields: [.accept: "*/*"]
            )
            #expect(HeaderFields(request.headerFields) == ["Accept": "*/*"])
        }

        @Test(
            "Any bytes of a value are decoded, as UTF-8 or else as ISO 8859-1 (RFC 9110 §5.5)",
            arguments: [
                ([0x61, 0xC3, 0xA4], "aä"), ([0x61, 0xE4], "aä"), ([0xFF, 0xFE], "ÿþ"), ([], ""),
                ([0x61, 0x00, 0x62], "a b"), ([0x61, 0x0D, 0x0A, 0x62], "a  b"),
            ] as [([UInt8], String)]
        )
        func bytes(_ bytes: [UInt8], _ text: String) throws {
            let name = try #require(HTTPField.Name("X-Value"))
            for field in [HTTPField(name: name, value: bytes), HTTPField(name: name, lenientValue: bytes)] {
                var fields = HTTPFields()
                fields.append(field)
                #expect(HeaderFields(fields)["X-Value"] == text)
            }
        }

        @Test("Control characters in a value become spaces in HTTPFields")
        func controlCharacters() throws {
            let fields = HTTPFields(["X-Value": "a\u{1}b\u{7F}c", "X-Ends": "\u{B} a \u{8}"])
            #expect(fields.map(\.value).allSatisfy { HTTPField.isValidValue($0) })
            #expect(fields.first?.value == "a b c")
        }

        @Test("More lines than HTTPFields can hold are dropped without a trap")
        func manyLines() {
            let lines = HeaderFields(
                (0..<65_600).map { _ in HeaderFields.Line(name: "X", value: "") }
            )
            #expect(HTTPFields(lines).count == 65_534)
        }
    }
#endif

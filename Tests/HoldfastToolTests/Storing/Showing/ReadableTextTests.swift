// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    import Foundation
    import HoldfastSemantics
    import Testing

    @testable import HoldfastTool

    @Suite("Output for people and programs")
    struct ReadableTextTests {
        @Test(
            "Spans",
            arguments: [
                (0, "0s"), (-5, "0s"), (59, "59s"), (60, "1m"), (3_601, "1h"), (3_660, "1h 1m"), (90_000, "1d 1h"),
                (Int64.max, "106751991167300d 15h"),
            ] as [(Int64, String)]
        )
        func spans(_ seconds: Int64, _ text: String) {
            #expect(ReadableText.span(seconds) == text)
        }

        @Test("Extreme instants do not trap")
        func instants() {
            #expect(ReadableText.instant(.distantPast) == "1970-01-01T00:00:00Z")
            #expect(ReadableText.instant(.distantFuture) == "9999-12-31T23:59:59Z")
        }

        @Test("Foundation reads back what JSONText quotes (RFC 8259 §7)")
        func quoting() throws {
            let text =
                (0...0x300).compactMap { Unicode.Scalar($0) }.map { String(Character($0)) }.joined() + "\u{2028}🦊\r\n"
            let value = JSONText.array([.string(text), .null, .bool(true), .int(.min), .object([("a\"", .int(1))])])
            let read = try JSONSerialization.jsonObject(with: Data(value.text.utf8)) as? [Any]
            #expect((read?[0] as? String)?.unicodeScalars.elementsEqual(text.unicodeScalars) == true)
            #expect(read?[3] as? Int == .min)
            #expect((read?[4] as? [String: Int]) == ["a\"": 1])
            #expect(!value.text.unicodeScalars.contains { $0.properties.generalCategory == .control })
        }

        @Test("Bars fit the width, and the smallest count is visible")
        func histogram() {
            var histogram = Histogram("sizes", classes: [("small", 10), ("large", 100)], beyond: "huge")
            for number in [1, 2, 3, 50] + Array(repeating: 5, count: 996) { histogram.add(number) }
            let lines = histogram.text(width: 40).split(separator: "\n")
            #expect(lines[0] == "sizes")
            #expect(lines[1] == "  small 999 " + String(repeating: "█", count: 27))
            #expect(lines[2] == "  large   1 ▏")
            #expect(lines[3] == "  huge    0")
            #expect(Histogram("none", classes: [("a", 1)], beyond: "b").text(width: 40).isEmpty)
        }
    }
#endif

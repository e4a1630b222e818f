// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Testing

@testable import Harness

@Suite("Reports")
struct ReportTests {
    private struct Wire: Decodable, Equatable {
        struct Row: Decodable, Equatable {
            let `case`: String
            let subject: String
            let value: Double?
            let unit: String
        }
        let results: [Row]
    }

    private func report() -> Report {
        var report = Report()
        report.add(Figure("get-16KiB", "raw", Sample([1_900, 2_000, 2_100]), "ns"))
        report.add(Figure("get-16KiB", "holdfast", Sample([3_000, 2_300]), "ns"))
        report.add(Figure("open-1M", "holdfast", 133.25, "ms"))
        report.add(Figure("get-16KiB", "absent", Sample([]), "ns"))
        return report
    }

    @Test("JSON has the form of docs/architecture.md")
    func json() throws {
        let text = report().json
        let expected =
            #"{"results": [{"case": "get-16KiB", "subject": "raw", "value": 2000, "unit": "ns"}, "#
            + #"{"case": "get-16KiB", "subject": "holdfast", "value": 2650, "unit": "ns"}, "#
            + #"{"case": "open-1M", "subject": "holdfast", "value": 133.25, "unit": "ms"}]}"#
        #expect(text == expected)
        let wire = try JSONDecoder().decode(Wire.self, from: Data(text.utf8))
        #expect(wire.results.map(\.value) == [2_000, 2_650, 133.25])
    }

    @Test(
        "Strings survive a decoder",
        arguments: ["", "plain", "\"", "\\", "a\nb\tc\rd", "\u{0}\u{1f}", "Ünïcödé ☕️ 👩‍💻", "</script>"]
    )
    func strings(_ text: String) throws {
        let decoded = try JSONDecoder().decode([String].self, from: Data("[\(JSONText.quoted(text))]".utf8))
        #expect(decoded == [text])
    }

    @Test(
        "Whole numbers are written as such, others with three decimals",
        arguments: [
            (0, "0"), (2_300, "2300"), (-4, "-4"), (133.25, "133.25"), (0.0004, "0"), (-0.0625, "-0.063"),
            (1.005, "1.005"), (2.5, "2.5"), (.nan, "null"), (.infinity, "null"),
        ] as [(Double, String)]
    )
    func numbers(_ value: Double, _ expected: String) {
        #expect(JSONText.number(value) == expected)
    }

    @Test("Numbers of any size are valid numbers", arguments: [1e15, 9e18, 1e300, -1e300])
    func largeNumbers(_ value: Double) throws {
        let decoded = try JSONDecoder().decode([Double].self, from: Data("[\(JSONText.number(value))]".utf8))
        #expect(decoded == [value])
    }

    @Test("A figure has as many decimals in JSON as it asks for")
    func places() {
        #expect(JSONText.number(0.45123456, places: 6) == "0.451235")
        #expect(JSONText.number(-0.5, places: 6) == "-0.5")
        #expect(JSONText.number(2.6, places: 0) == "3")
        #expect(JSONText.number(0.1234567891, places: 99) == "0.123456789")
        var report = Report()
        report.add(Figure("t@1%", "lru", 0.45123456, "object-hit-ratio", places: 6))
        #expect(
            report.json
                == #"{"results": [{"case": "t@1%", "subject": "lru", "value": 0.451235, "unit": "object-hit-ratio"}]}"#
        )
    }

    @Test("Shares, whole numbers and bytes for people")
    func words() {
        #expect([0, 0.123456, 1, -0.5].map(TextTable.percent) == ["0.00", "12.35", "100.00", "-50.00"])
        #expect(
            [0, 999, 1_000, -1_234_567, .min].map(TextTable.count).prefix(4) == ["0", "999", "1,000", "-1,234,567"]
        )
        let bytes = [0, 999, 1_000, 9_994, 99_940, 999_499, 999_500, 279_954_259, 1_000_000_000_000].map(
            TextTable.bytes
        )
        #expect(bytes == ["0 B", "999 B", "1.00 kB", "9.99 kB", "99.9 kB", "999 kB", "1.00 MB", "280 MB", "1.00 TB"])
    }

    @Test("A ratio divides a subject's figure by another's in the same case")
    func ratios() {
        let report = report()
        #expect(report.ratio("get-16KiB", "holdfast", to: "raw") == 1.325)
        #expect(report.ratio("get-16KiB", "raw", to: "raw") == 1)
        #expect(report.ratio("open-1M", "holdfast", to: "raw") == nil)
        #expect(report.ratio("get-16KiB", "absent", to: "raw") == nil)
        var zero = Report()
        zero.add(Figure("x", "a", 1, "ns"))
        zero.add(Figure("x", "b", 0, "ns"))
        #expect(zero.ratio("x", "a", to: "b") == nil)
    }

    @Test("A table has the ratios to the bases that were measured, and then each note once")
    func table() {
        var report = report()
        report.note("noisy")
        report.note("noisy")
        #expect(
            report.table(comparedWith: ["raw", "sqlite"]) == """
                get-16KiB     ns   best  spread  × raw
                raw        2,000  1,900  10.0 %   1.00
                holdfast   2,650  2,300  26.4 %   1.33

                open-1M    ms  best  spread
                holdfast  133

                note: noisy

                """
        )
    }

    @Test("A subject that was not measured has null and its reason, and a line below the table")
    func skipped() {
        var report = Report()
        report.add(Figure("hit", "holdfast", 700, "ns"))
        report.add(Figure("hit", "hishel", skipped: "pip failed", "ns"))
        let row = #"{"case": "hit", "subject": "hishel", "value": null, "unit": "ns", "skipped": "pip failed"}"#
        #expect(report.json.contains(row))
        #expect(report.table(comparedWith: ["hishel"]).contains("\nhishel skipped: pip failed\n"))
    }

    @Test("Companions of a case become columns of its table")
    func companions() {
        var report = Report()
        report.add(Figure("hit", "holdfast", 700, "ns"))
        report.add(Figure("hit-allocations", "holdfast", 2, "allocations"))
        let text = report.table(comparedWith: [], companions: ["allocations"])
        #expect(text.contains("allocations\n") && text.contains("2.0\n") && !text.contains("hit-allocations"))
    }

    @Test(
        "Figures for people",
        arguments: [
            (0, "0.0"), (99.94, "99.9"), (133.25, "133"), (1_234, "1,234"), (1_000_000, "1,000,000"),
            (-1_234.6, "-1,235"),
            (-0.01, "0.0"), (.infinity, "inf"),
        ] as [(Double, String)]
    )
    func figures(_ value: Double, _ expected: String) {
        #expect(TextTable.figure(value) == expected)
    }

    @Test("Ratios for people", arguments: [(1.325, "1.33"), (0.05, "0.05"), (12.34, "12.3"), (4_321.0, "4,321")])
    func ratioText(_ value: Double, _ expected: String) {
        #expect(TextTable.ratio(value) == expected)
    }
}

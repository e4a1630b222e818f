// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Testing

/// Holds docs/threat-model.md to the tests that it names: each exists under that name in that file, and each defence has one.
@Suite("The tests of the threat model")
struct ThreatModelTests {
    private static func page() throws -> String {
        try String(contentsOf: ImportTableTests.root.appending(path: "docs/threat-model.md"), encoding: .utf8)
    }

    @Test("Each test that the page names is in the file that it names")
    func named() throws {
        let page = try Self.page()
        let named = page.matches(of: /`(Tests\/[^`]+\.swift)`(?: \(\w+\))?: "([^"]+)"/)
        #expect(named.count > 30)
        #expect(named.count == page.matches(of: /`Tests\//).count, "a file is named without a test")
        for match in named {
            let (file, name) = (String(match.output.1), String(match.output.2))
            let text = try String(contentsOf: ImportTableTests.root.appending(path: file), encoding: .utf8)
            #expect(text.contains("\"\(name)\""), "\(file) has no test called \(name)")
        }
    }

    @Test("Each threat that is countered has a test in its row")
    func rows() throws {
        let rows = try Self.page().split(whereSeparator: \.isNewline).filter { $0.hasPrefix("| ") }
            .map { row in row.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) } }
            .filter { $0.first != "threat" }
        #expect(rows.count > 30)
        for row in rows {
            guard row.count == 4 else {
                Issue.record("a row has \(row.count) columns in place of 4: \(row.first ?? "")")
                continue
            }
            if row[1].hasPrefix("Nothing") {
                #expect(!row[3].isEmpty, "nothing is done, and nothing says why: \(row[0])")
            } else {
                #expect(row[2].contains("`Tests/"), "no test holds what is done: \(row[0])")
            }
        }
    }
}

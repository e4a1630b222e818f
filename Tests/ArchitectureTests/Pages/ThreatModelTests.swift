// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Testing

/// Holds docs/threat-model.md to the tests that it names: each exists under that name in that file.
@Suite("The tests of the threat model")
struct ThreatModelTests {
    @Test("Each test that the page names stands in the file that it names")
    func named() throws {
        let page = try String(
            contentsOf: ImportTableTests.root.appending(path: "docs/threat-model.md"),
            encoding: .utf8
        )
        let named = page.matches(of: /`(Tests\/[^`]+\.swift)`(?: \(\w+\))?: "([^"]+)"/)
        #expect(named.count > 30)
        for match in named {
            let (file, name) = (String(match.output.1), String(match.output.2))
            let text = try String(contentsOf: ImportTableTests.root.appending(path: file), encoding: .utf8)
            #expect(text.contains("\"\(name)\""), "\(file) has no test called \(name)")
        }
    }
}

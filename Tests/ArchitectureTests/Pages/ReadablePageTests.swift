// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastTestKit
import Testing

/// Holds the pages that people read first to a size that they read, to the codes that they explain and to the figures that they draw.
@Suite("Pages that are read first")
struct ReadablePageTests {
    private static func text(_ path: String) throws -> String {
        try String(contentsOf: ImportTableTests.root.appending(path: path), encoding: .utf8)
    }

    @Test("README.md has at most 120 lines, at least two pictures, and a link to the API reference")
    func readme() throws {
        let text = try Self.text("README.md")
        #expect(text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).count <= 121)
        let links = try Page(at: "README.md").relativeLinks.map(\.path)
        #expect(links.count { $0.hasSuffix(".svg") } >= 2)
        #expect(links.contains("Sources/Holdfast/Holdfast.docc/Holdfast.md"))
    }

    @Test("The guide to caching has at most 2,000 words")
    func guide() throws {
        let words = try Self.text("docs/caching.md").split(whereSeparator: \.isWhitespace)
        #expect(words.count <= 2_000)
    }

    @Test("The troubleshooting page explains every reason that a cache gives")
    func reasons() throws {
        let page = try Self.text("docs/operating/troubleshooting.md")
        let sources = try Pages.files(below: "Sources/HoldfastSemantics", endings: [".swift"])
        let codes = try Set(
            sources.flatMap { path in
                try Self.text(path).matches(of: /CacheReason\(code: "([a-z-]+)"/).map { String($0.output.1) }
            }
        )
        #expect(codes.count > 40)
        for code in codes.sorted() { #expect(page.contains("`\(code)`"), "the page does not explain \(code)") }
    }

    @Test("The pictures match what .ci/pictures draws from the tables of the pages")
    func pictures() throws {
        let script = ImportTableTests.root.appending(path: ".ci/pictures").path
        let check = try ChildProcess.run("python3", [script, "--check"])
        #expect(check.status == 0, "\(check.output)")
    }
}

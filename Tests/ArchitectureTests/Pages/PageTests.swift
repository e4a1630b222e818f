// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Testing

/// Holds the pages to code that is compiled and run: every ```swift block of theirs stands in a test.
@Suite("Pages and their code")
struct PageTests {
    private static let pages = [
        "services/http-service", "services/web-service-proxy", "services/endpoints", "services/in-process-services",
        "services/streams", "services/mocking-and-logging", "migrating", "clients/urlsession", "clients/intercepting",
        "clients/async-http-client", "clients/http-types", "operating/observing", "clients/weather-example",
        "extending/writing-a-transport", "tool/inspector", "operating/redis", "tool/proxy",
    ]

    /// Lines without indentation and without blank ones.
    private static func lines(_ text: some StringProtocol) -> [String] {
        text.split(whereSeparator: \.isNewline).map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty }
    }

    /// The blocks fenced as ```swift and nothing else: what is fenced as "swift original" is not ours and not compared.
    private static func blocks(of page: String) -> [[String]] {
        var blocks: [[String]] = []
        var open: [String]?
        var isOther = false
        for line in page.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline) {
            let text = line.trimmingCharacters(in: .whitespaces)
            if text.hasPrefix("```") {
                if let block = open {
                    blocks.append(block)
                    open = nil
                } else if isOther {
                    isOther = false
                } else if text == "```swift" {
                    open = []
                } else {
                    isOther = true
                }
            } else if !text.isEmpty {
                open?.append(text)
            }
        }
        return blocks
    }

    /// The files in the folders `Pages` of all tests, and the example, which pages quote.
    private static func sources() throws -> [[String]] {
        let files = FileManager.default
        let tests = ImportTableTests.root.appending(path: "Tests")
        let folders =
            try files.contentsOfDirectory(at: tests, includingPropertiesForKeys: nil).map {
                $0.appending(path: "Pages")
            }
            + ["Clients", "Generated"].map {
                ImportTableTests.root.appending(path: "Sources/WeatherExample/\($0)")
            }
        return try folders.filter { files.fileExists(atPath: $0.path) }
            .flatMap { try files.contentsOfDirectory(at: $0, includingPropertiesForKeys: nil) }
            .filter { $0.pathExtension == "swift" }
            .map { lines(try String(contentsOf: $0, encoding: .utf8)) }
    }

    private static func contains(_ lines: [String], _ block: [String]) -> Bool {
        guard let first = block.first, block.count <= lines.count else { return block.isEmpty }
        return lines.indices.contains { start in
            lines[start] == first && lines.count - start >= block.count
                && lines[start..<(start + block.count)].elementsEqual(block)
        }
    }

    @Test("Every block of Swift on a page stands in a test that runs it", arguments: pages)
    func compiled(_ name: String) throws {
        let url = ImportTableTests.root.appending(path: "docs/\(name).md")
        let blocks = Self.blocks(of: try String(contentsOf: url, encoding: .utf8))
        let sources = try Self.sources()
        #expect(!blocks.isEmpty)
        for block in blocks {
            #expect(
                sources.contains { Self.contains($0, block) },
                "docs/\(name).md has code that no test runs; it begins: \(block.first ?? "")"
            )
        }
    }
}

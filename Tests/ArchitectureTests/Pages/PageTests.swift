// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Testing

/// Holds the pages to code that is compiled and run: every ```swift block of theirs stands in a test or an example.
///
/// Fenced otherwise, and so not compared, is code that is not ours ("swift original") and what belongs into a manifest
/// ("swift manifest", see `ManifestBlockTests`).
@Suite("Pages and their code")
struct PageTests {
    /// What a page may quote: tests of pages, and the examples.
    private static let sources = Result {
        let tests = try Pages.files(below: "Tests", endings: [".swift"]).filter { path in
            !path.hasPrefix("Tests/ArchitectureTests/")
                && (path.contains("/Pages/") || path.hasSuffix("PageTests.swift"))
        }
        let examples = try ["Sources/WeatherExample", "Sources/Quickstart"].flatMap {
            try Pages.files(below: $0, endings: [".swift"])
        }
        return try (tests + examples).map { path in
            let url = ImportTableTests.root.appending(path: path)
            return lines(of: try String(contentsOf: url, encoding: .utf8))
        }
    }

    /// Lines without indentation and without blank ones.
    private static func lines(of text: String) -> [String] {
        text.split(whereSeparator: \.isNewline).map { tidied($0.trimmingCharacters(in: .whitespaces)) }
            .filter { !$0.isEmpty }
    }

    /// Pages set comments at the ends of lines in columns; the formatter sets them two spaces apart.
    private static func tidied(_ line: String) -> String {
        line.replacing(/[ ]{2,}\/\//, with: "  //")
    }

    private static func contains(_ lines: [String], _ block: [String]) -> Bool {
        guard let first = block.first, block.count <= lines.count else { return block.isEmpty }
        return lines.indices.contains { start in
            lines[start] == first && lines.count - start >= block.count
                && lines[start..<(start + block.count)].elementsEqual(block)
        }
    }

    @Test("Every Swift block on a page is part of a test that runs it", arguments: try Pages.all())
    func compiled(_ path: String) throws {
        let sources = try Self.sources.get()
        for block in try Page(at: path).blocks where block.language == "swift" {
            let lines = block.lines.map(Self.tidied)
            #expect(
                sources.contains { Self.contains($0, lines) },
                "\(path) has code that no test runs; it begins: \(lines.prefix(3).joined(separator: " / "))"
            )
        }
    }

    @Test("Every Swift block has a fence that says how it is checked", arguments: try Pages.all())
    func fences(_ path: String) throws {
        for block in try Page(at: path).blocks where block.language.lowercased().hasPrefix("swift") {
            #expect(
                ["swift", "swift original", "swift manifest"].contains(block.language),
                "\(path) has a block fenced as \(block.language)"
            )
        }
    }

    @Test("The search finds all pages, and some of them have code")
    func walk() throws {
        let pages = try Pages.all()
        #expect(pages.contains("README.md") && pages.contains("Benchmarks/README.md"))
        #expect(pages.contains("docs/extending/writing-a-store.md"))
        let blocks = try pages.flatMap { try Page(at: $0).blocks.filter { $0.language == "swift" } }
        #expect(blocks.count > 140)
    }
}

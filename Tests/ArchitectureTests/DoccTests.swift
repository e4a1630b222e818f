// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Testing

/// Holds the catalogs to what docs are held to: each product has one, and its code stands in a test that runs it.
///
/// That links lead somewhere and that landing pages name every symbol is seen to by `.ci/documentation`, which has the symbol graphs.
@Suite("Catalogs and their code")
struct DoccTests {
    /// The library products of Package.swift, each of which is one module of its own name.
    static let products: [String] = {
        let manifest = try? String(contentsOf: ImportTableTests.root.appending(path: "Package.swift"), encoding: .utf8)
        return (manifest ?? "").matches(of: /\.library\(name: "(\w+)"/).map { String($0.output.1) }
    }()

    private static func catalog(_ product: String) -> URL {
        ImportTableTests.root.appending(path: "Sources/\(product)/\(product).docc")
    }

    /// The pages of a catalog.
    private static func pages(of product: String) throws -> [URL] {
        try FileManager.default.contentsOfDirectory(at: catalog(product), includingPropertiesForKeys: nil)
            .filter { $0.pathExtension == "md" }.sorted { $0.path < $1.path }
    }

    private static func text(of url: URL) throws -> String { try String(contentsOf: url, encoding: .utf8) }

    /// Lines without indentation and without blank ones.
    private static func lines(_ text: String) -> [String] {
        text.split(whereSeparator: \.isNewline).map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty }
    }

    /// The blocks that are fenced as Swift and nothing else.
    static func blocks(of page: String) -> [[String]] {
        Page(path: "", text: page).blocks.filter { $0.language == "swift" }.map(\.lines)
    }

    /// All files of tests that hold the code of pages.
    private static let tests: [[String]] = {
        let folder = ImportTableTests.root.appending(path: "Tests")
        let paths = FileManager.default.enumerator(atPath: folder.path)?.compactMap { $0 as? String } ?? []
        return paths.filter { $0.hasSuffix(".swift") && $0.contains("/Pages/") }
            .compactMap { try? lines(text(of: folder.appending(path: $0))) }
    }()

    private static func isTested(_ block: [String]) -> Bool {
        guard let first = block.first else { return true }
        return tests.contains { lines in
            lines.indices.contains { start in
                lines[start] == first && lines.count - start >= block.count
                    && lines[start..<(start + block.count)].elementsEqual(block)
            }
        }
    }

    @Test("Every product has a catalog with a landing page and an article", arguments: products)
    func parts(_ product: String) throws {
        let pages = try Self.pages(of: product).map { try Self.text(of: $0) }
        #expect(pages.contains { $0.hasPrefix("# ``\(product)``\n") })
        #expect(pages.contains { !$0.hasPrefix("# ``") })
    }

    @Test("Every Swift block in a catalog is part of a test that runs it", arguments: products)
    func blocks(_ product: String) throws {
        for url in try Self.pages(of: product) {
            for block in Self.blocks(of: try Self.text(of: url)) {
                #expect(
                    Self.isTested(block),
                    "\(product).docc/\(url.lastPathComponent) has code that no test runs; it begins: \(block.first ?? "")"
                )
            }
        }
    }

    @Test("The parser finds the blocks of a page")
    func reader() {
        let page = """
            Text.
            ```swift
            let one = 1

              let two = 2
            ```
            ```sh
            let three = 3
            ```
            """
        #expect(Self.blocks(of: page) == [["let one = 1", "let two = 2"]])
    }
}

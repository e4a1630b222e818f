// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Testing

/// Holds the catalogs to what docs are held to: each product has one, and its code stands in a test that runs it.
///
/// That links lead somewhere, that landing pages name every symbol, and that the files of tutorials compile as they stand is seen
/// to by `.ci/documentation`, which has the symbol graphs.
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

    /// The files of a catalog's own folder, or of its `Resources`, with one extension.
    private static func files(of product: String, in folder: String = "", kind: String) throws -> [URL] {
        try FileManager.default.contentsOfDirectory(
            at: catalog(product).appending(path: folder),
            includingPropertiesForKeys: nil
        )
        .filter { $0.pathExtension == kind }.sorted { $0.path < $1.path }
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

    /// A file without the comments, imports and conditions that it begins with.
    static func code(of file: String) -> [String] {
        Array(
            lines(file).drop {
                $0.hasPrefix("//") || $0.hasPrefix("import ") || $0.hasPrefix("#if canImport(") || $0 == "#endif"
            }
        )
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

    @Test("Every product has a catalog with a landing page, an article and a tutorial", arguments: products)
    func parts(_ product: String) throws {
        let pages = try Self.files(of: product, kind: "md").map { try Self.text(of: $0) }
        #expect(pages.contains { $0.hasPrefix("# ``\(product)``\n") })
        #expect(pages.contains { !$0.hasPrefix("# ``") })
        let tutorials = try Self.files(of: product, kind: "tutorial").map { try Self.text(of: $0) }
        #expect(tutorials.contains { $0.hasPrefix("@Tutorials(") })
        #expect(tutorials.contains { $0.hasPrefix("@Tutorial(") })
    }

    @Test("Every block of Swift in a catalog stands in a test that runs it", arguments: products)
    func blocks(_ product: String) throws {
        for url in try Self.files(of: product, kind: "md") {
            for block in Self.blocks(of: try Self.text(of: url)) {
                #expect(
                    Self.isTested(block),
                    "\(product).docc/\(url.lastPathComponent) has code that no test runs; it begins: \(block.first ?? "")"
                )
            }
        }
    }

    @Test("Every file of a tutorial is shown by one, and stands in a test that runs it", arguments: products)
    func tutorials(_ product: String) throws {
        let shown = try Self.files(of: product, kind: "tutorial").map { try Self.text(of: $0) }.joined()
        let files = try Self.files(of: product, in: "Resources", kind: "swift")
        #expect(!files.isEmpty)
        for url in files {
            #expect(shown.contains("file: \"\(url.lastPathComponent)\""), "no tutorial shows \(url.lastPathComponent)")
            let code = Self.code(of: try Self.text(of: url))
            #expect(!code.isEmpty)
            // A file that goes on in the next step has the next one's closing braces too early.
            #expect(
                Self.isTested(code) || Self.isTested(Self.withoutEnd(code)),
                "\(product).docc/Resources/\(url.lastPathComponent) has code that no test runs"
            )
        }
    }

    /// The same code without the braces that close its outermost declaration.
    static func withoutEnd(_ code: [String]) -> [String] {
        code.last == "}" ? Array(code.dropLast()) : code
    }

    @Test("The readers find blocks, and where a file's code begins")
    func readers() {
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
        let file = """
            // A comment.

            import A
            #if canImport(B)
                import B
            #endif

            struct C {
                // Stays.
            }
            """
        #expect(Self.code(of: file) == ["struct C {", "// Stays.", "}"])
        #expect(Self.withoutEnd(Self.code(of: file)) == ["struct C {", "// Stays."])
    }
}

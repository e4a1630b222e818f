// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Testing

/// Holds decision 0020 to the sources: every condition under which code is compiled or not stands in its table.
///
/// Conditions around nothing but imports are not listed one by one; they must have one of few forms.
@Suite("Conditions in the sources")
struct ConditionalsTests {
    /// One `#if … #endif`.
    struct Conditional: Sendable, Hashable {
        var condition: String
        /// The conditions of its further branches; an empty one for `#else`.
        var further: [String] = []
        var holdsOnlyImports = true
        /// Whether nothing but comments and imports stands outside it.
        var isWholeFile = false
    }

    /// The conditionals of a file in the order in which they begin.
    static func conditionals(in text: String) -> [Conditional] {
        var found: [Conditional] = []
        var open: [Int] = []
        var codeBefore = false
        var wrapper: Int?
        for line in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline) {
            let words = line.trimmingCharacters(in: .whitespaces)
            if words.isEmpty || words.hasPrefix("//") { continue }
            if words.hasPrefix("#if ") {
                if open.isEmpty, !codeBefore, found.isEmpty { wrapper = found.count }
                open.append(found.count)
                found.append(Conditional(condition: String(words.dropFirst(4))))
            } else if words.hasPrefix("#elseif "), let last = open.last {
                found[last].further.append(String(words.dropFirst(8)))
            } else if words == "#else", let last = open.last {
                found[last].further.append("")
            } else if words == "#endif" {
                open.removeLast()
            } else {
                if open.isEmpty, !isImport(words) {
                    codeBefore = true
                    wrapper = nil
                }
                if !isImport(words) { for place in open { found[place].holdsOnlyImports = false } }
            }
        }
        if let wrapper { found[wrapper].isWholeFile = true }
        return found
    }

    private static func isImport(_ line: String) -> Bool {
        line.range(
            of: #"^((public|package|internal|private|@[a-zA-Z_]+(\([a-zA-Z]+\))?)\s+)*import\s"#,
            options: .regularExpression
        ) != nil
    }

    /// Forms that conditions around imports may have.
    private static let importForms: Set<[String]> = [
        ["canImport(FoundationNetworking)"], ["canImport(FoundationNetworking)", ""],
        ["canImport(Darwin)", "canImport(Musl)", ""], ["canImport(Glibc)", "canImport(Musl)", "canImport(Darwin)"],
        ["canImport(Darwin)", "canImport(Glibc)", "canImport(Musl)"], ["canImport(CryptoKit)", ""],
    ]

    private static let traits: Set<String> = [
        "AsyncHTTPClient", "HTTPTypes", "Observability", "XML", "Crypto", "Proxy", "Redis", "Tool",
    ]

    private static func sources() throws -> [(path: String, conditionals: [Conditional])] {
        let folder = ImportTableTests.root.appending(path: "Sources")
        let paths = FileManager.default.enumerator(atPath: folder.path)?.compactMap { $0 as? String } ?? []
        return try paths.filter { $0.hasSuffix(".swift") }.sorted().map { path in
            (path, conditionals(in: try String(contentsOf: folder.appending(path: path), encoding: .utf8)))
        }
    }

    /// The rows of the page's tables: the files, and how many conditionals they are said to have.
    private static func rows() throws -> [String: Int] {
        let folder = ImportTableTests.root.appending(path: "docs/decisions/building")
        let name = try #require(
            try FileManager.default.contentsOfDirectory(atPath: folder.path).first { $0.hasPrefix("0020-") }
        )
        let page = try String(contentsOf: folder.appending(path: name), encoding: .utf8)
        var rows: [String: Int] = [:]
        for line in page.split(whereSeparator: \.isNewline) where line.hasPrefix("| `") {
            let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
            guard cells.count >= 3, let count = Int(cells[1]) else { continue }
            rows[cells[0].trimmingCharacters(in: ["`"]), default: 0] += count
        }
        return rows
    }

    @Test("Decision 0020 lists every file with conditional code and its number of conditions, and no other file")
    func table() throws {
        var present: [String: Int] = [:]
        for (path, all) in try Self.sources() {
            let count = all.count { !$0.holdsOnlyImports && !($0.isWholeFile && Self.traits.contains($0.condition)) }
            if count > 0 { present[path] = count }
        }
        let rows = try Self.rows()
        for path in Set(rows.keys).union(present.keys).sorted() {
            #expect(rows[path] == present[path], "\(path)")
        }
    }

    @Test("A condition around imports has a known form")
    func imports() throws {
        for (path, all) in try Self.sources() {
            for conditional in all where conditional.holdsOnlyImports && !conditional.isWholeFile {
                #expect(
                    Self.importForms.contains([conditional.condition] + conditional.further),
                    "\(path): \(conditional)"
                )
            }
        }
    }

    @Test("The parser finds conditionals and their contents, and sees whether one wraps a whole file")
    func reader() {
        let text = """
            // A comment.
            #if XML
                public import A
                #if canImport(B)
                    internal import B
                #else
                    internal import C
                #endif
                let one = 1
                #if os(Linux)
                    let two = 2
                #endif
            #endif
            """
        let found = Self.conditionals(in: text)
        #expect(found.map(\.condition) == ["XML", "canImport(B)", "os(Linux)"])
        #expect(found.map(\.holdsOnlyImports) == [false, true, false])
        #expect(found.map(\.isWholeFile) == [true, false, false])
        #expect(found[1].further == [""])
        #expect(!Self.conditionals(in: text + "\nlet three = 3")[0].isWholeFile)
    }
}

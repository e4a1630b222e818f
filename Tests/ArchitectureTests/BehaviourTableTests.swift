// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Testing

/// Holds the table of docs/architecture.md that says where each behaviour stands to the tree.
@Suite("The table of behaviours in docs/architecture.md")
struct BehaviourTableTests {
    /// A row: a file below Sources, and the name in it at which a reader begins.
    struct Row: Sendable, Hashable, CustomStringConvertible {
        var file: String
        var name: String
        var description: String { "\(file), \(name)" }
    }

    static func rows(in page: String) -> [Row] {
        page.matches(of: /\n\|[^\n]*?\| `([\w\/+]+\.swift)` \| `(\w+)` \|/).map {
            Row(file: String($0.output.1), name: String($0.output.2))
        }
    }

    private static let rows: [Row] = {
        let page = try? String(
            contentsOf: ImportTableTests.root.appending(path: "docs/architecture.md"),
            encoding: .utf8
        )
        return rows(in: page ?? "")
    }()

    /// Modules whose every folder has a row.
    private static let covered = [
        "Holdfast", "HoldfastSemantics", "HoldfastStorage", "HoldfastSimulation", "HoldfastTesting", "HoldfastProxy",
        "HoldfastTool",
    ]

    @Test("Each row names a file and a declaration in that file")
    func places() throws {
        #expect(Self.rows.count > 60)
        for row in Self.rows {
            let url = ImportTableTests.root.appending(path: "Sources/\(row.file)")
            let text = try? String(contentsOf: url, encoding: .utf8)
            let pattern = try Regex("\\b(func|struct|class|enum|extension|protocol|actor|var|let) \(row.name)\\b")
            #expect(text?.contains(pattern) == true, "\(row)")
        }
    }

    @Test("Each folder of a module has a row", arguments: covered)
    func folders(_ module: String) throws {
        let root = ImportTableTests.root.appending(path: "Sources").path + "/"
        let folders = Set(
            try ImportTableTests.sourceFiles(of: module).map { file in
                file.path.dropFirst(root.count).split(separator: "/").dropLast().joined(separator: "/")
            }
        )
        let named = Set(Self.rows.map { $0.file.split(separator: "/").dropLast().joined(separator: "/") })
        // Holdfast's own folder holds its re-exports alone, and the tool's its entry.
        #expect(folders.subtracting(named).subtracting(["Holdfast", "HoldfastTool"]).isEmpty)
    }

    @Test("The parser finds the rows of the table and nothing else")
    func reader() {
        let page = """
            | what | file | begin at |
            |---|---|---|
            | a | `A/B+C.swift` | `d` |
            | a | `A/B` | `d` |
            """
        #expect(Self.rows(in: page) == [Row(file: "A/B+C.swift", name: "d")])
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Testing

/// Holds the tree to the sizes that docs/architecture.md allows: files of one idea, folders that a glance takes in.
@Suite("The shape of the tree")
struct ShapeTests {
    private static let roots = ["Sources", "Tests", "Benchmarks", "docs", ".ci"]

    /// The files below a folder of the repository, as paths from its root; what begins with a dot is passed over.
    private static func files(below root: String) -> [String] {
        Pages.files(below: root) { path in !path.split(separator: "/").contains { $0.hasPrefix(".") } }
    }

    /// How many lines each Swift file below a folder has.
    private static func lengths(below root: String) throws -> [(path: String, lines: Int)] {
        try files(below: root).filter { $0.hasSuffix(".swift") }.map { path in
            let text = try Data(contentsOf: ImportTableTests.root.appending(path: path))
            return (path, text.count { $0 == UInt8(ascii: "\n") })
        }
    }

    @Test("No folder has more than 12 files", arguments: roots)
    func folders(_ root: String) {
        let files = Self.files(below: root)
        #expect(!files.isEmpty)
        let counts = Dictionary(grouping: files) { $0.split(separator: "/").dropLast().joined(separator: "/") }
        for (folder, files) in counts.sorted(by: { $0.key < $1.key }) {
            #expect(files.count <= 12, "\(folder) has \(files.count) files; give each theme a folder of its own")
        }
    }

    @Test("No Swift file has more than 300 lines", arguments: ["Sources", "Tests", "Benchmarks"])
    func longest(_ root: String) throws {
        for (path, lines) in try Self.lengths(below: root) {
            #expect(lines <= 300, "\(path) has \(lines) lines; a file that long is two ideas")
        }
    }

    @Test("Half of the source files have 130 lines at most, and 95 of 100 have 300 at most")
    func sources() throws {
        let lines = try Self.lengths(below: "Sources").map(\.lines).sorted()
        try #require(!lines.isEmpty)
        #expect(lines[lines.count / 2] <= 130)
        #expect(lines[lines.count * 95 / 100] <= 300)
    }
}

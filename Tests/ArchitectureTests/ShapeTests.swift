// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Testing

/// Holds the tree to the size that docs/architecture.md allows: folders that a glance takes in.
@Suite("The shape of the tree")
struct ShapeTests {
    private static let roots = ["Sources", "Tests", "Benchmarks", "docs", ".ci"]

    /// The files below a folder of the repository, as paths from its root; what begins with a dot is passed over.
    private static func files(below root: String) -> [String] {
        Pages.files(below: root) { path in !path.split(separator: "/").contains { $0.hasPrefix(".") } }
    }

    @Test("No folder has more than 25 files", arguments: roots)
    func folders(_ root: String) {
        let files = Self.files(below: root)
        #expect(!files.isEmpty)
        let counts = Dictionary(grouping: files) { $0.split(separator: "/").dropLast().joined(separator: "/") }
        for (folder, files) in counts.sorted(by: { $0.key < $1.key }) {
            #expect(files.count <= 25, "\(folder) has \(files.count) files; give each theme a folder of its own")
        }
    }
}

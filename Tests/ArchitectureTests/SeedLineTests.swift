// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Testing

/// Every Given/When/Then line of the four systems that the typed clients come from has a test that bears its id.
@Suite("Lines of the seed systems")
struct SeedLineTests {
    /// The tables and how many lines each has: P in-process services, S HttpService, E WebServiceProxy, D endpoints.
    private static let tables = [("P", 28), ("S", 40), ("E", 28), ("D", 28)]

    /// The ids in the display names of tests, and in the cases of those that are parameterized.
    private static func named() throws -> Set<String> {
        var ids: Set<String> = []
        for folder in ["HoldfastServicesTests", "HoldfastTests", "HoldfastXMLTests"] {
            let root = ImportTableTests.root.appending(path: "Tests/\(folder)")
            guard let files = FileManager.default.enumerator(atPath: root.path) else { continue }
            for case let path as String in files where path.hasSuffix(".swift") {
                let text = try String(contentsOf: root.appending(path: path), encoding: .utf8)
                for line in text.split(whereSeparator: \.isNewline) where line.contains("\"") {
                    for match in line.matches(of: /[PSED]-T[0-9]+/) { ids.insert(String(match.output)) }
                }
            }
        }
        return ids
    }

    /// The ids that a page of docs/decisions names as lines that cannot hold.
    private static func excused() throws -> Set<String> {
        let folder = ImportTableTests.root.appending(path: "docs/decisions")
        var ids: Set<String> = []
        let pages = FileManager.default.enumerator(atPath: folder.path)?.compactMap { $0 as? String } ?? []
        for page in pages where page.hasSuffix(".md") {
            let text = try String(contentsOf: folder.appending(path: page), encoding: .utf8)
            for line in text.split(whereSeparator: \.isNewline)
            where line.hasPrefix("- cannot hold: ") {
                for match in line.matches(of: /[PSED]-T[0-9]+/) { ids.insert(String(match.output)) }
            }
        }
        return ids
    }

    @Test(
        "Every line has a test that names it or is excused in docs/decisions, which excuses at most ten",
        arguments: tables
    )
    func covered(_ table: String, count: Int) throws {
        let named = try Self.named()
        let excused = try Self.excused()
        let missing = (1...count).map { "\(table)-T\($0)" }.filter { !named.contains($0) && !excused.contains($0) }
        #expect(missing.isEmpty)
        #expect(excused.count <= 10)
    }
}

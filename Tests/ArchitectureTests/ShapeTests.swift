// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Testing

/// Holds the tree to a shape that a reader finds the way in: folders, levels, labels. `.ci/shape` prints the same figures and more.
@Suite("The shape of the tree")
struct ShapeTests {
    private static let roots = ["Sources", "Tests", "Benchmarks", "docs", ".ci"]
    private static let modules = ImportTableTests.permitted.keys.sorted()

    /// The files below a folder of the repository, as paths from its root; what begins with a dot is passed over.
    private static func files(below root: String) -> [String] {
        Pages.files(below: root) { path in !path.split(separator: "/").contains { $0.hasPrefix(".") } }
    }

    /// The folders of a module below its own, each with its count of files.
    private static func folders(of module: String) throws -> [String: Int] {
        let root = ImportTableTests.root.appending(path: "Sources/\(module)").path + "/"
        return try ImportTableTests.sourceFiles(of: module).reduce(into: [:]) { folders, file in
            let path = file.path.dropFirst(root.count).split(separator: "/").dropLast()
            if !path.isEmpty { folders[path.joined(separator: "/"), default: 0] += 1 }
        }
    }

    /// What `.ci/shape` says is reached where a goal is not: those modules may not get worse.
    private static let reached: [String: Double] = {
        let script = try? String(contentsOf: ImportTableTests.root.appending(path: ".ci/shape"), encoding: .utf8)
        let lines = (script ?? "").matches(of: /\n    "([^"\n]+)": ([0-9.]+),/)
        return Dictionary(lines.map { (String($0.output.1), Double($0.output.2) ?? 0) }) { first, _ in first }
    }()

    @Test("No folder has more than 25 files", arguments: roots)
    func folders(_ root: String) {
        let files = Self.files(below: root)
        #expect(!files.isEmpty)
        let counts = Dictionary(grouping: files) { $0.split(separator: "/").dropLast().joined(separator: "/") }
        for (folder, files) in counts.sorted(by: { $0.key < $1.key }) {
            #expect(files.count <= 25, "\(folder) has \(files.count) files; give each theme a folder of its own")
        }
    }

    @Test("Each folder in a module has at least three files and lies at most two levels deep", arguments: modules)
    func levels(_ module: String) throws {
        let folders = try Self.folders(of: module)
        let small = folders.filter { $0.value < 3 }.keys.sorted()
        let deep = folders.keys.filter { $0.split(separator: "/").count > 2 }.sorted()
        #expect(Double(small.count) <= Self.reached["folders with one or two files: \(module)"] ?? 0, "\(small)")
        #expect(Double(deep.count) <= Self.reached["folders below the second level: \(module)"] ?? 0, "\(deep)")
    }

    @Test("At most one function in fifty has two or more unlabeled parameters", arguments: modules)
    func labels(_ module: String) throws {
        let counts = try ImportTableTests.sourceFiles(of: module).flatMap { file in
            Self.unlabelledParameters(in: try String(contentsOf: file, encoding: .utf8))
        }
        guard !counts.isEmpty else { return }
        let share = (1000 * Double(counts.count { $0 >= 2 }) / Double(counts.count)).rounded() / 10
        #expect(
            share <= Self.reached["two or more unlabelled parameters, %: \(module)"] ?? 2,
            "\(share) %; `.ci/shape --list` names them"
        )
    }

    @Test(
        "A file named Type+Topic holds a conformance or a bridge, not a part of one of the module's own types",
        arguments: modules
    )
    func parts(_ module: String) throws {
        let files = try ImportTableTests.sourceFiles(of: module)
        let texts = try files.map { try String(contentsOf: $0, encoding: .utf8) }
        let declared = Set(
            texts.flatMap { text in
                text.matches(of: /\n *(?:[a-z@]+ )*(?:struct|class|enum|actor|protocol) (\w+)/).map(\.output.1)
            }
        )
        let parts = zip(files, texts).filter { file, text in
            guard file.lastPathComponent.contains("+") else { return false }
            let extended = text.matches(of: /\n *(?:[a-z@]+ )*extension ([\w.]+)(:?)/)
            let isConformance = extended.contains { !$0.output.2.isEmpty }
            let isBridge = extended.contains { !declared.contains($0.output.1.split(separator: ".")[0]) }
            return !isConformance && !isBridge
        }.map(\.0.lastPathComponent).sorted()
        #expect(Double(parts.count) <= Self.reached["files Type+Part: \(module)"] ?? 0, "\(parts)")
    }

    /// Of each function and initializer, how many parameters have no label.
    static func unlabelledParameters(in text: String) -> [Int] {
        let lines = text.split(whereSeparator: \.isNewline).filter { !$0.drop { $0 == " " }.hasPrefix("//") }
        let code = lines.joined(separator: "\n")
        return code.matches(of: /(?:\bfunc +`?\w+`?|[ \n]init[?!]?) *(?:<[^(]*>)? *\(/).map { found in
            var depth = 1
            var isStart = true
            var count = 0
            var rest = code[found.range.upperBound...]
            while depth > 0, let sign = rest.popFirst() {
                switch sign {
                case "(", "[", "{": depth += 1
                case ")", "]", "}": depth -= 1
                case ",": if depth == 1 { isStart = true }
                case " ", "\n": continue
                case "_": if depth == 1, isStart, rest.first == " " { count += 1 }
                // An attribute stands before the label.
                case "@": rest = rest.drop { $0 != " " }; continue
                default: break
                }
                if sign != "," { isStart = false }
            }
            return count
        }
    }

    @Test("The parser counts parameters without a label")
    func reader() {
        let text = """
            struct A {
                // func no(_ a: Int, _ b: Int)
                init(_ a: Int, b: (Int, _ c: Int) -> Void = { _, _ in }) {}
                func one<T>(_ a: T, _ b: [Int: Int], c: Int) {}
                func two(
                    a b: Int,
                    @Builder _ d: () -> Void
                ) {}
                let three = { (_ a: Int, _ b: Int) in a }
            }
            """
        #expect(Self.unlabelledParameters(in: text) == [1, 2, 1])
    }
}

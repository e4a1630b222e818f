// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Testing

/// Holds the commands on pages to the manifests: `swift run` and `swift build` name products and traits that there are.
@Suite("Pages and their commands")
struct CommandLineTests {
    /// A command of SwiftPM as a page has it.
    struct Command: Equatable {
        var isOfBenchmarks = false
        var traits: [String] = []
        var product: String?

        /// Nil where the words are no such command.
        init?(_ words: [String]) {
            guard let verb = words.first, ["run", "build"].contains(verb) else { return nil }
            var rest = words.dropFirst()
            while let word = rest.popFirst() {
                switch word {
                case "-c", "--scratch-path", "--configuration": rest = rest.dropFirst()
                case "--package-path": isOfBenchmarks = rest.popFirst()?.hasSuffix("Benchmarks") == true
                case "--traits": traits = rest.popFirst()?.split(separator: ",").map(String.init) ?? []
                case "--product": product = rest.popFirst()
                case _ where word.hasPrefix("-"): continue
                default:
                    // Whatever follows is the program's own.
                    product = verb == "run" ? word : nil
                    return
                }
            }
        }
    }

    /// All commands in a line of a page, be they in a block or in the text.
    static func commands(in line: some StringProtocol) -> [Command] {
        line.components(separatedBy: "swift ").dropFirst().compactMap { part in
            let words = part.prefix { !"`#&|;".contains($0) }.split(separator: " ").map(String.init)
            return Command(words)
        }
    }

    private static func names(_ pattern: Regex<(Substring, Substring)>, of manifest: String) throws -> Set<String> {
        let url = ImportTableTests.root.appending(path: manifest)
        let text = try String(contentsOf: url, encoding: .utf8)
        return Set(text.matches(of: pattern).map { String($0.output.1) })
    }

    @Test("The programs and traits in commands exist in the manifests")
    func names() throws {
        // A target of a program that no product names has one of its own name.
        let executable = /\.executable(?:Target)?\(\s*name: "([^"]+)"/
        let own = try Self.names(executable, of: "Package.swift")
        let benchmarks = try Self.names(executable, of: "Benchmarks/Package.swift")
        let traits = try Self.names(/\.trait\(\s*name: "([^"]+)"/, of: "Package.swift")
        var count = 0
        // The change log tells what was there in its day.
        let pages = try Pages.all().filter { $0 != "CHANGELOG.md" }
        for path in pages {
            let text = try String(contentsOf: ImportTableTests.root.appending(path: path), encoding: .utf8)
            for command in text.split(whereSeparator: \.isNewline).flatMap({ Self.commands(in: $0) }) {
                count += 1
                for trait in command.traits { #expect(traits.contains(trait), "\(path): trait \(trait)") }
                guard let product = command.product else { continue }
                let known = command.isOfBenchmarks ? benchmarks : own
                #expect(known.contains(product), "\(path): there is no program \(product)")
            }
        }
        #expect(count > 20)
    }

    @Test("The parser finds programs, packages and traits")
    func reader() {
        let line = "`swift build && swift run --traits Tool,Redis holdfast proxy` or `swift run` # swift"
        let commands = Self.commands(in: line)
        #expect(commands.map(\.product) == [nil, "holdfast", nil])
        #expect(commands.map(\.traits) == [[], ["Tool", "Redis"], []])
        let benchmark = Self.commands(in: "swift run -c release --package-path ../a/Benchmarks storm --quick")
        #expect(benchmark.map(\.product) == ["storm"])
        #expect(benchmark.map(\.isOfBenchmarks) == [true])
    }
}

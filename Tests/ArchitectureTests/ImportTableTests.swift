// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Testing

/// Reads Sources and holds it to the table of docs/architecture.md.
@Suite("The import table")
struct ImportTableTests {
    /// What each module may import beside the standard library; explicit, module by module.
    static let permitted: [String: Set<String>] = [
        "HoldfastSemantics": [],
        "HoldfastStorage": ["Glibc", "Darwin", "Musl", "Synchronization"],
        "Holdfast": [
            "HoldfastSemantics", "HoldfastStorage", "Foundation", "FoundationNetworking", "Synchronization", "Dispatch",
        ],
        "HoldfastServices": [
            "Holdfast", "HoldfastSemantics", "HoldfastStorage", "Foundation", "FoundationNetworking", "Synchronization",
        ],
        "HoldfastTesting": [
            "Holdfast", "HoldfastSemantics", "HoldfastStorage", "Foundation", "FoundationNetworking", "Synchronization",
            // The sockets of the loopback server.
            "Dispatch", "Glibc", "Darwin", "Musl",
        ],
        "HoldfastSimulation": [
            "Holdfast", "HoldfastSemantics", "HoldfastStorage", "Foundation", "FoundationNetworking", "Synchronization",
            // Plots have logarithmic axes.
            "Glibc", "Darwin", "Musl",
        ],
        "HoldfastAsyncHTTPClient": [
            "Holdfast", "HoldfastSemantics", "HoldfastStorage", "Foundation", "FoundationNetworking", "Synchronization",
            "Dispatch", "Glibc", "Darwin", "Musl",
            "AsyncHTTPClient", "NIOCore", "NIOPosix", "NIOHTTP1", "NIOHTTP2", "NIOHPACK", "NIOSSL", "Logging",
            "Tracing",
        ],
        "HoldfastHTTPTypes": [
            "Holdfast", "HoldfastSemantics", "HoldfastStorage", "Foundation", "FoundationNetworking", "Synchronization",
            "HTTPTypes",
        ],
        "HoldfastObservability": [
            "Holdfast", "HoldfastSemantics", "HoldfastStorage", "Foundation", "FoundationNetworking", "Synchronization",
            "Logging", "Metrics", "Tracing",
        ],
        "HoldfastProxy": [
            "Holdfast", "HoldfastSemantics", "HoldfastStorage", "Foundation", "FoundationNetworking", "Synchronization",
            "Dispatch", "Glibc", "Darwin", "Musl", "NIOCore", "NIOHPACK", "NIOHTTP2", "NIOPosix", "NIOSSL", "NIOTLS",
        ],
        "HoldfastRedis": [
            "Holdfast", "HoldfastSemantics", "HoldfastStorage", "Foundation", "Synchronization", "Dispatch", "Glibc",
            "Darwin", "Musl", "CHiredis",
        ],
        "HoldfastTool": [
            "HoldfastCommand", "Holdfast", "HoldfastSemantics", "HoldfastStorage", "HoldfastAsyncHTTPClient",
            "HoldfastProxy", "HoldfastRedis", "HoldfastSimulation", "Foundation", "FoundationNetworking",
            "Synchronization", "Dispatch",
            "Glibc", "Darwin",
            "Musl", "ArgumentParser", "AsyncHTTPClient", "NIOCore", "NIOPosix", "NIOHTTP1",
        ],
        "HoldfastCrypto": [
            "HoldfastSemantics", "HoldfastStorage", "Holdfast", "HoldfastServices", "Foundation", "Crypto", "CryptoKit",
        ],
        "HoldfastXML": [
            "HoldfastSemantics", "HoldfastStorage", "Holdfast", "HoldfastServices", "Foundation", "XMLCoder",
        ],
        "HoldfastCommand": ["Foundation", "Synchronization", "Dispatch"],
        "WeatherExample": [
            "HoldfastCommand", "Holdfast", "HoldfastSemantics", "HoldfastStorage", "HoldfastAsyncHTTPClient",
            "HoldfastHTTPTypes",
            "Foundation", "FoundationNetworking", "Synchronization", "Dispatch", "Glibc", "Darwin", "Musl",
            "AsyncHTTPClient", "NIOCore", "NIOHTTP1", "HTTPTypes",
        ],
        "Quickstart": [
            "HoldfastCommand", "Holdfast", "HoldfastSemantics", "HoldfastStorage", "HoldfastServices", "Foundation",
            "FoundationNetworking",
            "Synchronization", "Dispatch", "Glibc", "Darwin", "Musl",
        ],
    ]

    /// Folders of C, which hold no Swift.
    static let systemLibraries: Set<String> = ["CHiredis"]

    static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    static func sourceFiles(of module: String) throws -> [URL] {
        let folder = root.appending(path: "Sources/\(module)")
        guard let paths = FileManager.default.enumerator(atPath: folder.path) else { return [] }
        // What a catalog shows is compiled by tests and by `.ci/documentation`, and no part of the module.
        return paths.compactMap { $0 as? String }.filter { $0.hasSuffix(".swift") && !$0.contains(".docc/") }
            .map { folder.appending(path: $0) }
    }

    @Test("Every folder of Sources has a row in the table, and every row has a folder")
    func modules() throws {
        let found = try FileManager.default.contentsOfDirectory(atPath: Self.root.appending(path: "Sources").path)
            .filter { !$0.hasPrefix(".") }
        #expect(Set(found) == Set(Self.permitted.keys).union(Self.systemLibraries))
    }

    @Test("Folder names differ by more than letter case")
    func folderCase() throws {
        let found = try FileManager.default.contentsOfDirectory(atPath: Self.root.appending(path: "Sources").path)
        #expect(Set(found.map { $0.lowercased() }).count == found.count)
    }

    @Test("A module imports only what the table permits", arguments: permitted.keys.sorted())
    func imports(_ module: String) throws {
        let files = try Self.sourceFiles(of: module)
        #expect(!files.isEmpty)
        for file in files {
            for imported in try Self.imports(in: String(contentsOf: file, encoding: .utf8)) {
                #expect(
                    Self.permitted[module]?.contains(imported.module) == true,
                    "\(module)/\(file.lastPathComponent) imports \(imported.module)"
                )
                #expect(
                    imported.hasAccessLevel,
                    "\(module)/\(file.lastPathComponent): the import of \(imported.module) has no access level"
                )
            }
        }
    }

    @Test("The import parser finds every form of import")
    func reader() {
        let text = """
            import A
            public import B
              internal import struct C.D
            @testable import E
            @preconcurrency private import F
            // import G
            let important = 1
            """
        #expect(Self.imports(in: text).map(\.module) == ["A", "B", "C", "E", "F"])
        #expect(Self.imports(in: text).map(\.hasAccessLevel) == [false, true, true, false, true])
    }

    static func imports(in text: String) -> [(module: String, hasAccessLevel: Bool)] {
        let levels: Set<Substring> = ["public", "package", "internal", "fileprivate", "private"]
        let kinds: Set<Substring> = ["struct", "class", "enum", "protocol", "typealias", "func", "var", "let"]
        return text.split(whereSeparator: \.isNewline).compactMap { line in
            let words = line.split(whereSeparator: \.isWhitespace)
            guard let index = words.firstIndex(of: "import"), index + 1 < words.count,
                words[..<index].allSatisfy({ $0.hasPrefix("@") || levels.contains($0) })
            else { return nil }
            let name = kinds.contains(words[index + 1]) && index + 2 < words.count ? words[index + 2] : words[index + 1]
            return (
                String(name.split(separator: ".").first ?? name),
                words[..<index].contains { levels.contains($0) }
            )
        }
    }
}

/// Rules of the house that a glance at the tree can hold.
@Suite("The house rules")
struct HouseRuleTests {
    @Test(
        "Every unchecked conformance has a comment that justifies it",
        arguments: ImportTableTests.permitted.keys.sorted()
    )
    func escapeHatches(_ module: String) throws {
        for file in try ImportTableTests.sourceFiles(of: module) {
            let lines = try String(contentsOf: file, encoding: .utf8).split(
                omittingEmptySubsequences: false,
                whereSeparator: \.isNewline
            )
            for (number, line) in lines.enumerated()
            where line.contains("@unchecked Sendable") || line.contains("nonisolated(unsafe)") {
                let before = lines[max(0, number - 6)..<number]
                #expect(
                    before.contains { $0.contains("Proof:") },
                    "\(file.lastPathComponent):\(number + 1) needs a comment that begins with 'Proof:'"
                )
            }
        }
    }

    @Test(
        "No file uses a force unwrap, a forced cast or a forced try",
        arguments: ImportTableTests.permitted.keys.sorted()
    )
    func traps(_ module: String) throws {
        for file in try ImportTableTests.sourceFiles(of: module) {
            let text = try String(contentsOf: file, encoding: .utf8)
            for word in ["try!", "fatalError(", "as!"] {
                // `stopProgram`, for mistakes in a program's own code.
                let count = file.lastPathComponent == "FieldName.swift" && word == "fatalError(" ? 1 : 0
                #expect(text.ranges(of: word).count == count, "\(file.lastPathComponent) contains \(word)")
            }
        }
    }
}

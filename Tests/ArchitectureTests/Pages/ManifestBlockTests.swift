// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Testing

/// Holds the blocks of pages that belong into a manifest to the manifest of this package: its products, traits and platforms.
@Suite("Pages and their manifest blocks")
struct ManifestBlockTests {
    private static func manifest() throws -> String {
        try String(contentsOf: ImportTableTests.root.appending(path: "Package.swift"), encoding: .utf8)
    }

    private static func blocks() throws -> [(path: String, text: String)] {
        try Pages.all().flatMap { path in
            try Page(at: path).blocks.filter { $0.language == "swift manifest" }
                .map { (path, $0.lines.joined(separator: "\n")) }
        }
    }

    @Test("The products and traits that pages name exist in the package")
    func names() throws {
        let manifest = try Self.manifest()
        let products = Set(
            manifest.matches(of: /\.(?:library|executable)\(name: "([^"]+)"/).map { String($0.output.1) }
        )
        let traits = Set(manifest.matches(of: /\.trait\(\s*name: "([^"]+)"/).map { String($0.output.1) })
        #expect(products.contains("Holdfast") && traits.contains("Crypto"))
        let blocks = try Self.blocks()
        #expect(blocks.count > 4)
        for (path, text) in blocks {
            for match in text.matches(of: /\.product\(name: "([^"]+)", package: "holdfast"\)/) {
                #expect(products.contains(String(match.output.1)), "\(path) names a product \(match.output.1)")
            }
            for list in text.matches(of: /traits: \[([^\]]*)\]/) {
                for match in list.output.1.matches(of: /"([^"]+)"/) {
                    #expect(traits.contains(String(match.output.1)), "\(path) names a trait \(match.output.1)")
                }
            }
        }
    }

    @Test("The platforms and tools version on pages are those of the package")
    func versions() throws {
        let manifest = try Self.manifest()
        let blocks = try Self.blocks()
        for (path, text) in blocks {
            for match in text.matches(of: /\.(?:macOS|iOS|tvOS|watchOS|visionOS)\(\.v\d+\)/) {
                #expect(manifest.contains(match.output), "\(path) names the platform \(match.output)")
            }
            for match in text.matches(of: /swift-tools-version: [0-9.]+/) {
                #expect(manifest.contains(match.output), "\(path) names \(match.output)")
            }
        }
    }

    @Test("No block marked as Swift code contains parts of a manifest")
    func fences() throws {
        for path in try Pages.all() {
            for block in try Page(at: path).blocks where block.language == "swift" {
                #expect(!block.lines.contains { $0.contains(".package(") }, "\(path)")
            }
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    import ArgumentParser
    import Foundation
    import Testing

    @testable import HoldfastTool

    @Suite("ToolVersion")
    struct ToolVersionTests {
        @Test("The version is the newest release of CHANGELOG.md, and what --version prints")
        func newest() throws {
            let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
                .deletingLastPathComponent().deletingLastPathComponent()
            let text = try String(contentsOf: root.appending(path: "CHANGELOG.md"), encoding: .utf8)
            let newest = try #require(text.firstMatch(of: /\n## (\d+\.\d+\.\d+) – \d{4}-\d{2}-\d{2}\n/)?.output.1)
            #expect(ToolVersion.text == String(newest))
            #expect(HoldfastTool.configuration.version == ToolVersion.text)
            #expect(ToolVersion.product == "holdfast/\(newest)")
        }
    }
#endif

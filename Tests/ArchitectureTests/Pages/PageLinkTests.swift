// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Testing

/// Holds the pages together: no link leads nowhere, and no page lies where nobody comes by.
@Suite("Pages and their links")
struct PageLinkTests {
    @Test("Every relative link points to a file, and to an anchor if it names one", arguments: try Pages.all())
    func links(_ path: String) throws {
        for link in try Page(at: path).relativeLinks {
            let file = ImportTableTests.root.appending(path: link.path)
            guard FileManager.default.fileExists(atPath: file.path) else {
                Issue.record("\(path) links to \(link.written), and there is no \(link.path)")
                continue
            }
            if let anchor = link.anchor, link.path.hasSuffix(".md") {
                #expect(
                    try Page(at: link.path).anchors.contains(anchor),
                    "\(path) links to \(link.written), and \(link.path) has no such heading"
                )
            }
        }
    }

    @Test("Every page of docs can be reached from its index, and the index from README.md")
    func reachable() throws {
        var found: Set<String> = []
        var next = ["docs/README.md"]
        while let path = next.popLast() {
            guard found.insert(path).inserted else { continue }
            next += try Page(at: path).relativeLinks.map(\.path).filter {
                $0.hasPrefix("docs/") && $0.hasSuffix(".md") && !found.contains($0)
            }
        }
        #expect(Set(try Pages.ofDocs()).subtracting(found).sorted() == [])
        #expect(try Page(at: "README.md").relativeLinks.contains { $0.path == "docs/README.md" })
    }

    @Test("A folder of pages holds at most twelve files")
    func folders() throws {
        let paths = try Pages.files(below: "docs", endings: [""]).filter { path in
            var isFolder: ObjCBool = false
            let file = ImportTableTests.root.appending(path: path)
            return FileManager.default.fileExists(atPath: file.path, isDirectory: &isFolder) && !isFolder.boolValue
        }
        let folders = Dictionary(grouping: paths) { $0.split(separator: "/").dropLast().joined(separator: "/") }
        // The records of the API are no pages: one a product.
        for (folder, files) in folders where folder != "docs/api" { #expect(files.count <= 12, "\(folder)") }
    }

    @Test("Every page that code, a script or the manifest names exists")
    func mentions() throws {
        let files =
            try ["Sources", "Tests", "Benchmarks/Sources", "Benchmarks/Tests"]
            .flatMap { try Pages.files(below: $0, endings: [".swift", ".sh", ".py", ".md"]) }
            // Scripts have no ending.
            + Pages.files(below: ".ci", endings: [""]) + ["Package.swift", "Benchmarks/Package.swift"]
        for file in files {
            let text = try String(contentsOf: ImportTableTests.root.appending(path: file), encoding: .utf8)
            for match in text.matches(of: /docs\/[A-Za-z0-9\/_-]+\.(md|py|json)/) {
                let page = ImportTableTests.root.appending(path: String(match.output.0))
                #expect(
                    FileManager.default.fileExists(atPath: page.path),
                    "\(file) names \(match.output.0), which is not there"
                )
            }
        }
    }

    @Test("The parser finds links, anchors and blocks, and ignores what only looks like them in code")
    func reader() {
        let page = Page(
            path: "pages/a/page.md",
            text: """
                # What `x(y)` is, and why
                See [one](../b.md#c), [two](#d), ![three](e/f.svg), [four](https://example.com/g) and `[five](six)`.
                ## What [it](it.md) is
                ## What it is
                ```swift
                let a = b[0](1)

                    # no heading
                ```
                ```swift original
                let c = 2
                ```
                [seven]: ./../../h.md
                """
        )
        #expect(page.anchors == ["what-xy-is-and-why", "what-it-is", "what-it-is-1"])
        #expect(
            page.relativeLinks.map(\.path) == [
                "pages/b.md", "pages/a/page.md", "pages/a/e/f.svg", "pages/a/it.md", "h.md",
            ]
        )
        #expect(page.relativeLinks.map(\.anchor) == ["c", "d", nil, nil, nil])
        #expect(page.blocks.map(\.language) == ["swift", "swift original"])
        #expect(page.blocks.first?.lines == ["let a = b[0](1)", "# no heading"])
    }
}

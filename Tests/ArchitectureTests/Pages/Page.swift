// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Synchronization

/// A page of Markdown: what it links to, which anchors it has, and the code on it.
struct Page {
    /// A fenced block: what stands behind its fence, and its lines without indentation and without blank ones.
    struct Block: Equatable {
        var language: String
        var lines: [String] = []
    }

    /// From the root of the repository, with slashes.
    let path: String
    private(set) var blocks: [Block] = []
    /// The targets of its links as they are written, those of images included.
    private(set) var links: [String] = []
    /// What `#…` may name on it, as GitHub derives it from headings.
    private(set) var anchors: Set<String> = []

    init(path: String, text: String) {
        self.path = path
        var open: Block?
        for line in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline) {
            let words = line.trimmingCharacters(in: .whitespaces)
            if words.hasPrefix("```") {
                if let block = open {
                    blocks.append(block)
                    open = nil
                } else {
                    open = Block(language: String(words.dropFirst(3)).trimmingCharacters(in: .whitespaces))
                }
            } else if open != nil {
                if !words.isEmpty { open?.lines.append(words) }
            } else {
                if line.hasPrefix("#") { addAnchor(of: words) }
                links += Self.links(in: words)
            }
        }
    }

    /// The pages read so far: many tests ask for each.
    private static let read = Mutex<[String: Page]>([:])

    init(at path: String) throws {
        if let page = Self.read.withLock({ $0[path] }) {
            self = page
            return
        }
        let text = try String(contentsOf: ImportTableTests.root.appending(path: path), encoding: .utf8)
        self.init(path: path, text: text)
        Self.read.withLock { [self] in $0[path] = self }
    }

    private mutating func addAnchor(of heading: String) {
        let title = heading.drop { $0 == "#" }.trimmingCharacters(in: .whitespaces)
            .replacing(/\[([^\]]*)\]\([^)]*\)/) { String($0.output.1) }
        let anchor = String(
            title.lowercased().compactMap { character -> Character? in
                if character == " " { return "-" }
                return character.isLetter || character.isNumber || "-_".contains(character) ? character : nil
            }
        )
        var unique = anchor
        var count = 0
        while anchors.contains(unique) {
            count += 1
            unique = "\(anchor)-\(count)"
        }
        anchors.insert(unique)
    }

    private static func links(in line: String) -> [String] {
        let prose = line.replacing(/`[^`]*`/, with: "code")
        return prose.matches(of: /\]\(([^)\s]+)\)/).map { String($0.output.1) }
            + prose.matches(of: /^\[[^\]]+\]:\s+(\S+)/).map { String($0.output.1) }
    }

    /// The links that stay inside the repository: the page or file from its root, empty for the page itself, and the anchor.
    var relativeLinks: [(written: String, path: String, anchor: String?)] {
        links.filter { $0.firstMatch(of: /^[a-z][a-z0-9+.-]*:/) == nil }.map { link in
            let parts = link.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            let anchor = parts.count == 2 ? parts[1] : nil
            guard !parts[0].isEmpty else { return (link, path, anchor) }
            var steps = path.split(separator: "/").dropLast()
            for step in parts[0].split(separator: "/") where step != "." {
                if step == "..", !steps.isEmpty { steps.removeLast() } else { steps.append(step) }
            }
            return (link, steps.joined(separator: "/"), anchor)
        }
    }
}

/// The pages of the repository.
enum Pages {
    /// Folders of tools and builds.
    private static let passedOver: Set<String> = [".git", ".build", "Fixtures"]

    /// All files below a folder of the root with one of these endings, as paths from the root.
    static func files(below folder: String, endings: [String]) throws -> [String] {
        files(below: folder) { path in
            endings.contains { path.hasSuffix($0) }
                && !path.split(separator: "/").contains { name in
                    passedOver.contains(String(name)) || name.hasPrefix(".build")
                }
        }.sorted()
    }

    /// The files below a folder of the root whose paths from that folder are wanted, as paths from the root.
    static func files(below folder: String, where isWanted: (String) -> Bool) -> [String] {
        let root = ImportTableTests.root.appending(path: folder)
        let paths = FileManager.default.enumerator(atPath: root.path)?.compactMap { $0 as? String } ?? []
        return paths.filter { path in
            var isFolder: ObjCBool = false
            return isWanted(path)
                && FileManager.default.fileExists(atPath: root.appending(path: path).path, isDirectory: &isFolder)
                && !isFolder.boolValue
        }.map { "\(folder)/\($0)" }
    }

    /// The pages of the root, like README.md.
    static func ofRoot() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: ImportTableTests.root.path)
            .filter { $0.hasSuffix(".md") }.sorted()
    }

    static func ofDocs() throws -> [String] { try files(below: "docs", endings: [".md"]) }

    /// Every page that somebody may open on its own.
    static func all() throws -> [String] {
        try ofRoot() + ofDocs() + files(below: "Benchmarks", endings: [".md"])
    }
}

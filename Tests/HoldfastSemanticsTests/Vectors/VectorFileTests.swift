// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastTesting
import Testing

/// An empty vector file would let every vector test pass, so the groups are counted first.
@Suite struct VectorFileTests {
    @Test func canonicalGroupsAreThere() throws {
        let vectors = try #require(VectorFile.canonical)
        let found = [
            "uri": vectors.uri.vectors.count, "iri_mapping": vectors.iriMapping.vectors.count,
            "must_equal": vectors.mustEqual.vectors.count, "must_differ": vectors.mustDiffer.vectors.count,
            "may_merge": vectors.mayMerge.vectors.count, "query_options": vectors.queryOptions.vectors.count,
            "no_vary_search": vectors.noVarySearch.vectors.count, "vary": vectors.vary.vectors.count,
            "content_type": vectors.contentType.vectors.count, "body": vectors.body.vectors.count,
            "primary_key": vectors.primaryKey.vectors.count,
        ]
        // A file from outside may hold any part of the groups; that it holds something is all there is to know of it.
        guard VectorFile.isOwn else {
            #expect(found.values.contains { $0 > 0 }, "HOLDFAST_VECTORS names a file without vectors")
            return
        }
        var groups = vectors.counts
        groups["total"] = nil
        #expect(Set(groups.keys) == Set(found.keys), "a group of the file is run by no test")
        for (group, complete) in groups {
            let count = try #require(found[group])
            #expect(count * 10 >= complete * 6 && count <= complete, "\(group): \(count) of \(complete)")
        }
        #expect(vectors.uri.vectors.contains { $0.reject != nil })
        #expect(vectors.body.vectors.contains { $0.isFallback })
        #expect(vectors.noVarySearch.vectors.contains { $0.isEquivalent })
        #expect(vectors.noVarySearch.vectors.contains { !$0.isEquivalent })
        #expect(
            (vectors.uri.vectors + vectors.iriMapping.vectors).allSatisfy {
                ($0.canonical == nil) != ($0.reject == nil)
            }
        )
    }

    @Test("HOLDFAST_VECTORS names a folder, or one file whose name gives its kind")
    func location() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("vectors-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        func read(_ file: String, _ path: String?) -> String {
            VectorFile.location(of: file, named: path).resolvingSymlinksInPath().path
        }
        let own = read("canonical-vectors.json", nil)
        #expect(FileManager.default.fileExists(atPath: own))
        #expect(read("backoff-vectors.json", folder.path).hasSuffix("\(folder.lastPathComponent)/backoff-vectors.json"))
        for (name, kind) in [("held-back.json", "canonical"), ("retry-after-2.json", "retry-after")] {
            let file = folder.appendingPathComponent(name)
            try Data("{}".utf8).write(to: file)
            #expect(read("\(kind)-vectors.json", file.path) == file.resolvingSymlinksInPath().path)
            #expect(read("backoff-vectors.json", file.path) == read("backoff-vectors.json", nil))
        }
        #expect(read("canonical-vectors.json", "/no/such/file").hasSuffix("/no/such/file"))
    }

    @Test("A group that a file lacks is empty")
    func missingGroups() throws {
        let text = #"{"must_equal": {"vectors": [["a", "b"]]}}"#
        let vectors = try JSONDecoder().decode(CanonicalVectors.self, from: Data(text.utf8))
        #expect(vectors.mustEqual.vectors == [["a", "b"]])
        #expect(vectors.uri.vectors.isEmpty && vectors.counts.isEmpty)
    }

    @Test(.enabled(if: VectorFile.isOwn)) func retryGroupsAreThere() throws {
        #expect(try #require(VectorFile.retryAfter).cases.count >= 20)
        let series = try #require(VectorFile.backoff).stateless
        #expect(series.contains { $0.id == "full-jitter" && $0.cases.count >= 30 })
    }

    @Test func seededSourceRepeats() {
        var one = SeededGenerator(seed: 5)
        var other = SeededGenerator(seed: 5)
        #expect((0..<8).map { _ in one.next() } == (0..<8).map { _ in other.next() })
    }

    @Test func seededTextUsesItsAlphabet() {
        var source = SeededGenerator(seed: 5)
        let texts = (0..<50).map { _ in source.text(from: ["ab"], upTo: 9) }
        #expect(texts.contains { $0.contains("ab") })
        #expect(Set(texts).count > 5)
    }

    @Test func noonIsNoon() {
        #expect(date(0) == "Thu, 17 Sep 2026 12:00:00 GMT")
    }
}

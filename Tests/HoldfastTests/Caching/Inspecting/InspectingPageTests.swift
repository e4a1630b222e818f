// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastStorage
import HoldfastTesting
import Testing

/// Runs the snippets of docs/operating/inspecting.md.
@Suite("The page on inspecting", .timeLimit(.minutes(20)))
struct InspectingPageTests {
    /// The snippets as they stand on the page, indented to their place.
    private func listing(_ cache: HTTPCache) async throws {
        for try await info in cache.entries() {
            let freshness = info.isFresh ? "fresh for \(info.freshnessLeft) s" : "stale for \(-info.freshnessLeft) s"
            print(info.status, info.target, info.bodyLength, freshness)
        }
    }

    private func choosing(_ cache: HTTPCache) async throws -> Int {
        var wasted = 0
        for try await info in cache.entries(.matching { $0.hits == 0 && $0.age > 86_400 }) {
            wasted += info.storedBytes ?? 0
        }
        return wasted
    }

    private func exporting(_ cache: HTTPCache, _ url: URL, _ file: FileHandle) async throws {
        for try await info in cache.entries(.url(url)) {
            guard let exported = try await cache.export(info) else { continue }
            print(exported.head.status, exported.head.fields[.contentType] ?? "")
            for try await chunk in exported.message {
                try chunk.withUnsafeBytes { try file.write(contentsOf: $0) }
            }
        }
    }

    private func verifying(_ cache: HTTPCache) async throws -> VerificationReport {
        let report = try await cache.verify { progress in
            print(Int(progress.fraction * 100), "%")
        }
        for finding in report.damage {
            print(finding.target?.description ?? "unknown", finding.message)
        }
        return report
    }

    private func packing(_ cache: HTTPCache) async throws -> CompactionReport {
        let packed = try await cache.compact()
        print(packed.bytesFreed)
        return packed
    }

    @Test("The snippets do what the page says")
    func snippets() async throws {
        let bench = CacheBench([
            .respond(200, ["Cache-Control": "max-age=60", "Content-Type": "text/plain"], body: "abc")
        ])
        try await bench.load()
        try await listing(bench.cache)
        #expect(try await choosing(bench.cache) == 0)
        let path = FileManager.default.temporaryDirectory.appending(path: "holdfast-\(UUID().uuidString)")
        #expect(FileManager.default.createFile(atPath: path.path, contents: nil))
        defer { try? FileManager.default.removeItem(at: path) }
        let file = try FileHandle(forWritingTo: path)
        try await exporting(bench.cache, #require(URL(string: "http://origin.example/a")), file)
        try file.close()
        let written = try String(contentsOf: path, encoding: .utf8)
        #expect(written.hasPrefix("HTTP/1.1 200 \r\n"))
        #expect(written.hasSuffix("\r\n\r\nabc"))
        #expect(try await verifying(bench.cache).isClean)
        #expect(try await packing(bench.cache).bytesFreed == 0)
    }

    @Test("Each line of the page's snippets is in this file")
    func lines() throws {
        let here = URL(filePath: #filePath)
        let root = (0..<5).reduce(here) { url, _ in url.deletingLastPathComponent() }
        let page = try String(contentsOf: root.appending(path: "docs/operating/inspecting.md"), encoding: .utf8)
        let code = try Set(trimmedLines(of: String(contentsOf: here, encoding: .utf8)))
        var isSwift = false
        var count = 0
        for line in trimmedLines(of: page) {
            if line.hasPrefix("```") {
                isSwift = line == "```swift"
            } else if isSwift, !line.isEmpty {
                count += 1
                #expect(code.contains(line), "\(line)")
            }
        }
        #expect(count > 20)
    }

    private func trimmedLines(of text: String) -> [String] {
        text.split(separator: "\n", omittingEmptySubsequences: false).map { $0.trimmingCharacters(in: .whitespaces) }
    }
}

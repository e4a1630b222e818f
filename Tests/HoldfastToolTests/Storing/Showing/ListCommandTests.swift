// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    import ArgumentParser
    import Foundation
    import HoldfastCommand
    import HoldfastSemantics
    import HoldfastStorage
    import HoldfastTestKit
    import HoldfastTesting
    import Testing

    @testable import HoldfastTool

    @Suite("holdfast cache ls", .timeLimit(.minutes(20)))
    struct ListCommandTests {
        private static func list(_ directory: CacheDirectory, _ arguments: [String]) async throws -> RecordedConsole {
            let recorded = RecordedConsole()
            let command = try ListCommand.parse(["-d", directory.path] + arguments)
            try await command.run(on: recorded.console, now: directory.clock.timestamp)
            return recorded
        }

        /// The URLs of a table's rows, behind the host.
        private static func paths(_ console: RecordedConsole) -> [String] {
            console.lines.dropFirst().map { line in
                String(line.prefix { $0 != " " }.replacing("https://", with: ""))
            }
        }

        @Test(
            "A row for each variant, without credentials in URLs, beside a process with the cache open and afterwards",
            arguments: [true, false]
        )
        func table(held: Bool) async throws {
            let directory = try CacheDirectory()
            let store = try await directory.open()
            try await directory.sample(store)
            if !held { await store.close() }
            let before = try directory.state()
            let listed = try await Self.list(directory, ["--sort", "url"])
            #expect(
                listed.lines.map { $0.split(separator: "  ").map { $0.trimmingCharacters(in: .whitespaces) } } == [
                    ["URL", "STATUS", "SIZE", "AGE", "FRESHNESS", "TAGS", "VARIANT"],
                    ["https://api.example/item", "200", "11 B", "1m 40s", "fresh 58m 20s", "accept: application/json"],
                    ["https://api.example/item", "200", "5 B", "1m 40s", "fresh 58m 20s", "accept: image/png"],
                    ["https://api.example/news?page=2", "200", "8 B", "1m 40s", "stale 40s", "front,news", "personal"],
                    ["https://cdn.example/large", "200", "300 kB", "1m 40s", "fresh 23h 58m", "news"],
                ]
            )
            #expect(!listed.output.contains("secret"))
            #expect(try directory.state() == before)
            if held { await store.close() }
        }

        @Test(
            "Filters",
            arguments: [
                (["--host", "API.example"], 3), (["--host", "*.example"], 4), (["--host", "*.api.example"], 3),
                (["--host", "xapi.example"], 0), (["--prefix", "https://api.example/news"], 1),
                (["--prefix", "https://api.example/new"], 0), (["--prefix", "https://api.example/new*"], 1),
                (["--prefix", "https://api.example/*"], 3), (["--prefix", "https://api.example"], 3),
                (["--fresh"], 3),
                (["--stale"], 1), (["--tag", "news"], 2), (["--tag", "news", "--tag", "front"], 1),
                (["--older-than", "100s"], 0), (["--older-than", "99s"], 4), (["--larger-than", "11"], 1),
                (["--larger-than", "7"], 3), (["--url", "https://api.example/item"], 2),
                (["--url", "https://api.example/item", "--url", "HTTPS://cdn.example:443/large"], 3),
                (["--fresh", "--host", "cdn.example"], 1), (["--limit", "2"], 2),
            ]
        )
        func filters(_ arguments: [String], _ count: Int) async throws {
            let directory = try await CacheDirectory.closed()
            let listed = try await Self.list(directory, arguments)
            #expect(Self.paths(listed).count == count, "\(listed.output)")
        }

        @Test(
            "Orders",
            arguments: [
                ("size", ["cdn.example/large", "api.example/item"]),
                ("freshness", ["api.example/news?page=2", "api.example/item"]),
                ("url", ["api.example/item", "api.example/item"]),
                ("age", ["api.example/item", "api.example/item"]),
            ]
        )
        func orders(_ order: String, _ first: [String]) async throws {
            let directory = try await CacheDirectory.closed()
            let listed = try await Self.list(directory, ["--sort", order, "--limit", "2"])
            #expect(Self.paths(listed) == first)
        }

        @Test("By default the order is by URL")
        func standardOrder() async throws {
            let directory = try await CacheDirectory.closed()
            #expect(
                Self.paths(try await Self.list(directory, [])) == [
                    "api.example/item", "api.example/item", "api.example/news?page=2", "cdn.example/large",
                ]
            )
        }

        @Test("JSON is an array of one object a line, and an empty one if nothing matches")
        func json() async throws {
            let directory = try await CacheDirectory.closed()
            let listed = try await Self.list(directory, ["--json", "--sort", "url"])
            #expect(listed.lines.count == 6)
            let rows = try #require(try listed.json() as? [[String: Any]])
            #expect(rows.map { $0["url"] as? String }.last == "https://cdn.example/large")
            #expect(rows.map { $0["isFresh"] as? Bool } == [true, true, false, true])
            #expect(rows[2]["tags"] as? [String] == ["front", "news"])
            #expect(rows[2]["storedAt"] as? String == "2023-11-14T22:13:20Z")
            #expect(rows[0]["varies"] as? [String: String] == ["accept": "application/json"])
            #expect(rows[3]["bodyBytes"] as? Int == 300_000)
            #expect(rows[3]["hits"] is NSNull)
            #expect(try await Self.list(directory, ["--json", "--host", "none.example"]).output == "[]\n")
        }

        @Test("A directory that is not a cache gives one line and status 1, and nothing is created there")
        func noCache() async throws {
            let directory = try CacheDirectory()
            let refused = try await failure { _ = try await Self.list(directory, []) }
            #expect(refused?.exitStatus == 1)
            #expect(refused?.description.contains(directory.path) == true)
            #expect(!FileManager.default.fileExists(atPath: directory.path))
            try Data().write(to: URL(fileURLWithPath: directory.path))
            #expect(try await failure { _ = try await Self.list(directory, []) }?.exitStatus == 1)
        }

        @Test("Encrypted entries are reported on standard error")
        func sealed() async throws {
            let directory = try CacheDirectory()
            let store = try await directory.open(seal: MirrorSeal())
            try await directory.sample(store)
            await store.close()
            let listed = try await Self.list(directory, [])
            #expect(listed.output.isEmpty)
            #expect(listed.error == "holdfast: 4 encrypted entries were skipped, because their key is missing\n")
        }

        @Test(
            "An invalid command line is refused before anything is opened",
            arguments: [
                ["--fresh", "--stale"], ["--prefix", "no url"], ["--url", "ftp://a.example/"], ["--limit", "0"],
                ["--sort", "taste"], ["--older-than", "soon"],
            ]
        )
        func usage(_ arguments: [String]) {
            #expect(throws: (any Error).self) { try ListCommand.parse(["-d", "/nowhere"] + arguments) }
        }
    }

    /// Hides nothing, and keeps a seal's promises otherwise.
    struct MirrorSeal: StoreSeal {
        let keyID: UInt32 = 3
        let overhead = 0

        func seal(_ bytes: ByteChunk, context: [UInt8]) throws(StoreError) -> [UInt8] { bytes.array }

        func open(_ bytes: ByteChunk, keyID: UInt32, context: [UInt8]) throws(StoreError) -> [UInt8] { bytes.array }
    }
#endif

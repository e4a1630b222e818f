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

    @Suite("holdfast cache show and stats", .timeLimit(.minutes(20)))
    struct ShowCommandTests {
        private static func show(_ directory: CacheDirectory, _ arguments: [String]) async throws -> RecordedConsole {
            let recorded = RecordedConsole()
            let command = try ShowCommand.parse(["-d", directory.path] + arguments)
            try await command.run(on: recorded.console, now: directory.clock.timestamp)
            return recorded
        }

        @Test("Each variant with its head, and its freshness by RFC 9111 §4.2.1")
        func heads() async throws {
            let directory = try await CacheDirectory.closed()
            let shown = try await Self.show(directory, ["https://api.example/item"])
            #expect(shown.output.contains("(variant 1)"))
            #expect(shown.output.contains("(variant 2)"))
            let fresh =
                "fresh for 58m 20s: its lifetime is 1h, by max-age (RFC 9111 §5.2.2.1), its age is 1m 40s (RFC 9111 §4.2.3)"
            #expect(shown.output.contains(fresh), "\(shown.output)")
            #expect(shown.output.contains("answers requests with accept: image/png (Vary, RFC 9111 §4.1)"))
            #expect(shown.output.contains("  HTTP/1.1 200\n"))
            #expect(shown.output.contains("  Age: 100\n"))
            let stale = try await Self.show(directory, ["https://api.example/news?page=2"])
            #expect(stale.output.contains("stale for 40s: its lifetime was 1m, by max-age"))
            #expect(stale.output.contains("tags: front, news"))
            #expect(!stale.output.contains("secret"))
        }

        @Test("Bodies byte for byte, only one variant, and in JSON as text or Base64")
        func bodies() async throws {
            let directory = try await CacheDirectory.closed()
            let large = try await Self.show(directory, ["https://cdn.example/large", "--body"])
            #expect(large.output.hasSuffix(String(repeating: "0123456789", count: 30_000) + "\n"))
            let json = try await Self.show(directory, ["https://api.example/item", "--body", "--json"])
            let rows = try #require(try json.json() as? [[String: Any]])
            #expect(rows.count == 2)
            #expect(rows.compactMap { $0["body"] as? String } == ["{\"a\": \"ä\"}"])
            #expect(
                rows.compactMap { $0["bodyBase64"] as? String } == [Data("\u{1}\u{2}png".utf8).base64EncodedString()]
            )
            let freshness = rows[0]["freshness"] as? [String: Any]
            #expect(freshness?["section"] as? String == "RFC 9111 §5.2.2.1")
            #expect(freshness?["lifetime"] as? Int == 3_600)
            let one = try await Self.show(directory, ["https://api.example/item", "--variant", "2"])
            #expect(!one.output.contains("(variant 1)"))
        }

        @Test("If nothing is stored, it prints one line with status 1")
        func nothing() async throws {
            let directory = try await CacheDirectory.closed()
            let none = try await failure { _ = try await Self.show(directory, ["https://api.example/none"]) }
            #expect(none == CommandFailure("nothing is stored for https://api.example/none"))
            let variant = try await failure {
                _ = try await Self.show(directory, ["https://cdn.example/large", "--variant", "2"])
            }
            #expect(variant?.description == "no variant 2 of 1 is stored for https://cdn.example/large")
            #expect(throws: (any Error).self) { try ShowCommand.parse(["-d", directory.path, "item"]) }
        }

        @Test("Control characters for the terminal are not shown as they are")
        func harmless() async throws {
            let directory = try CacheDirectory()
            let store = try await directory.open()
            let fields: HeaderFields = ["Cache-Control": "max-age=60", "X-Odd": "a\u{9B}2Jb"]
            try await directory.fill(store, [.init(url: "https://a.example/", fields: fields, body: "")])
            await store.close()
            #expect(try await !Self.show(directory, ["https://a.example/"]).output.unicodeScalars.contains("\u{9B}"))
        }

        @Test("Totals and histograms, for people and for programs")
        func stats() async throws {
            let directory = try await CacheDirectory.closed()
            func stats(_ arguments: [String]) async throws -> RecordedConsole {
                let recorded = RecordedConsole()
                let command = try StatsCommand.parse(["-d", directory.path] + arguments)
                try await command.run(on: recorded.console, now: directory.clock.timestamp)
                return recorded
            }
            let drawn = try await stats([])
            #expect(drawn.lines.first == "entries    4 (3 fresh, 1 stale or to confirm)")
            #expect(drawn.output.contains("open in    no process\n"))
            #expect(drawn.output.contains("  < 1 kB   3 ████"))
            #expect(drawn.output.contains("  api.example 3 ████"))
            #expect(drawn.lines.allSatisfy { $0.count <= 80 })
            let json = try #require(try await stats(["--json"]).json() as? [String: Any])
            let totals = json["totals"] as? [String: Any]
            #expect(totals?["entries"] as? Int == 4)
            #expect(totals?["bodyBytes"] as? Int == 300_024)
            #expect(totals?["holder"] is NSNull)
            let store = try await directory.open()
            let pid = ProcessInfo.processInfo.processIdentifier
            #expect(try await stats([]).output.contains("open in    process \(pid)\n"))
            await store.close()
        }

        @Test("A damaged variant does not hide the others")
        func damagedVariant() async throws {
            let directory = try await CacheDirectory.closed()
            let body = Data("{\"a\": \"ä\"}".utf8)
            for name in FileManager.default.enumerator(atPath: directory.path)?.compactMap({ $0 as? String }) ?? [] {
                let url = URL(fileURLWithPath: directory.path + "/" + name)
                guard var bytes = try? Data(contentsOf: url), let place = bytes.range(of: body) else { continue }
                bytes[place.lowerBound] ^= 4
                try bytes.write(to: url)
            }
            let shown = try await Self.show(directory, ["https://api.example/item"])
            #expect(shown.output.contains("accept: image/png"))
            #expect(shown.error.contains("was left out"))
        }
    }
#endif

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    import ArgumentParser
    import Foundation
    import HoldfastCommand
    import HoldfastTestKit
    import Testing

    @testable import HoldfastTool

    @Suite("holdfast replay of an access log", .timeLimit(.minutes(20)))
    struct AccessLogReplayTests {
        /// Six requests that are replayed, one whose answer is not kept, three that are not looked up, and a broken line.
        static let log = """
            192.0.2.1 - - [10/Oct/2025:13:55:00 +0000] "GET /a HTTP/1.1" 200 100
            192.0.2.1 - - [10/Oct/2025:13:55:01 +0000] "GET /b HTTP/1.1" 200 300 "-" "agent \\"x\\""
            192.0.2.2 - - [10/Oct/2025:13:55:02 +0000] "GET /a HTTP/1.1" 200 100
            192.0.2.2 - - [10/Oct/2025:13:55:03 +0000] "GET /c HTTP/1.1" 200 100
            garbage
            192.0.2.2 - frank [10/Oct/2025:13:55:04 +0000] "GET /b HTTP/1.1" 200 300
            192.0.2.2 - - [10/Oct/2025:13:55:05 +0000] "POST /a HTTP/1.1" 200 5
            192.0.2.2 - - [10/Oct/2025:13:55:06 +0000] "HEAD /a HTTP/1.1" 200 -
            192.0.2.2 - - [10/Oct/2025:13:55:07 +0000] "GET /d HTTP/1.1" 302 154
            192.0.2.2 - - [10/Oct/2025:13:55:08 +0000] "GET /a HTTP/1.1" 304 -
            192.0.2.2 - - [10/Oct/2025:13:55:09 +0000] "-" 408 0

            """

        private static func near(_ value: Double?, _ expected: Double) -> Bool {
            value.map { abs($0 - expected) < 0.000_001 } ?? false
        }

        @Test("Results computed manually: LRU of 400 bytes has one hit in seven, of 500 three")
        func byHand() async throws {
            let folder = try TestFolder()
            let file = try folder.file("access.log", Self.log)
            let found = try await ReplayOutput([
                file, "--assume-fresh-for", "forever", "--sizes", "400,500,1000", "--policies", "lru,sieve,belady",
            ])
            #expect(found.count("requests") == 10)
            #expect(found.count("looked-up") == 7)
            #expect(found.count("objects") == 3)
            #expect(found.count("working-set-bytes") == 500)
            #expect(found.count("malformed") == 1)
            #expect(Self.near(found.value("object-hit-ratio", "@400", "lru"), 1.0 / 7))
            #expect(Self.near(found.value("byte-hit-ratio", "@400", "lru"), 100.0 / 1154))
            #expect(Self.near(found.value("object-hit-ratio", "@500", "lru"), 3.0 / 7))
            #expect(Self.near(found.value("byte-hit-ratio", "@500", "lru"), 500.0 / 1154))
            #expect(Self.near(found.value("object-hit-ratio", "@1000", "sieve"), 3.0 / 7))
            // Who knows that nobody asks for /c again keeps the other two.
            #expect(Self.near(found.value("object-hit-ratio", "@400", "belady"), 2.0 / 7))
            #expect(Self.near(found.value("object-hit-ratio", "@unbounded", "unbounded"), 3.0 / 7))
            #expect(found.malformed.count == 1 && found.malformed.first?.contains("line 5") == true)
        }

        @Test("In words it says what was replayed, all of it or about how much, and what was assumed of errors")
        func words() async throws {
            let folder = try TestFolder()
            let file = try folder.file("access.log", Self.log)
            func text(_ words: [String]) async throws -> String {
                let recorded = RecordedConsole()
                let command = try ReplayCommand.parse([file, "--sizes", "400", "--policies", "lru"] + words)
                try await command.run(on: recorded.console)
                // As one line, however it is broken.
                return recorded.output.split(whereSeparator: \.isWhitespace).joined(separator: " ")
            }
            let plain = try await text([])
            #expect(plain.contains("replayed: 3 objects with"), "\(plain)")
            #expect(plain.contains("404 and other errors are not kept"), "\(plain)")
            let kept = try await text(["--assume-errors-fresh-for", "5m"])
            #expect(kept.contains("404 and similar for 5"), "\(kept)")
        }

        @Test("Rules by route apply: not stored, a lifetime of their own, query parameters left out of the key")
        func rules() async throws {
            let folder = try TestFolder()
            let paths = ["/never", "/never", "/short", "/short", "/q?utm_a=1", "/q?utm_a=2", "/long", "/long"]
            let lines = paths.enumerated().map {
                "192.0.2.1 - - [10/Oct/2025:13:55:\($0 * 5 + 10) +0000] \"GET \($1) HTTP/1.1\" 200 100\n"
            }
            let file = try folder.file("access.log", lines.joined())
            let rules = try folder.file(
                "rules.json",
                """
                {"rules": [
                  {"paths": ["/never"], "neverStore": true}, {"paths": ["/short"], "lifetime": "2s"},
                  {"paths": ["/q"], "query": {"ignoredNames": ["utm_*"]}},
                  {"contentTypes": ["image/*"], "neverStore": true}
                ]}
                """
            )
            let options = ["--sizes", "1kB", "--policies", "lru"]
            let plain = try await ReplayOutput([file] + options)
            #expect(Self.near(plain.value("object-hit-ratio", "@unbounded", "unbounded"), 3.0 / 8))
            let ruled = try await ReplayOutput([file, "--rules", rules] + options)
            #expect(Self.near(ruled.value("object-hit-ratio", "@unbounded", "unbounded"), 2.0 / 8))
            #expect(ruled.count("objects") == 3)
            let broken = try folder.file("broken.json", #"{"rules": [{"path": ["/a"]}]}"#)
            await #expect(throws: CommandFailure.self) { try await ReplayOutput([file, "--rules", broken]) }
        }

        @Test("A response is fresh for as long as assumed, and the next revalidation renews it")
        func expires() async throws {
            let folder = try TestFolder()
            let lines = [0, 2, 3, 5].map {
                "192.0.2.1 - - [10/Oct/2025:13:55:0\($0) +0000] \"GET /a HTTP/1.1\" 200 100\n"
            }
            let file = try folder.file("access.log", lines.joined())
            let found = try await ReplayOutput([
                file, "--assume-fresh-for", "3s", "--sizes", "1kB", "--policies", "lru",
            ])
            #expect(Self.near(found.value("object-hit-ratio", "@1kB", "lru"), 2.0 / 4))
            #expect(Self.near(found.value("expired-ratio", "@1kB", "lru"), 1.0 / 4))
            #expect(Self.near(found.value("object-hit-ratio", "@unbounded", "unbounded"), 2.0 / 4))
            #expect(found.assumptions.contains { $0.contains("fresh for 3s") })
        }

        @Test("Errors are kept only if that is assumed")
        func errors() async throws {
            let folder = try TestFolder()
            let line = "192.0.2.1 - - [10/Oct/2025:13:55:00 +0000] \"GET /x HTTP/1.1\" 404 10\n"
            let file = try folder.file("access.log", line + line)
            let usual = try await ReplayOutput([file, "--sizes", "1kB", "--policies", "lru"])
            #expect(usual.value("object-hit-ratio", "@1kB", "lru") == 0)
            let kept = try await ReplayOutput([
                file, "--sizes", "1kB", "--policies", "lru", "--assume-errors-fresh-for", "10s",
            ])
            #expect(kept.value("object-hit-ratio", "@1kB", "lru") == 0.5)
        }

        @Test(
            "The text says what was read, what was not kept and why, and what was assumed, and has a row for each size"
        )
        func text() async throws {
            let folder = try TestFolder()
            let file = try folder.file("access.log", Self.log)
            let collected = RecordedConsole()
            try await ReplayCommand.parse([file, "--sizes", "400,500"]).run(on: collected.console)
            let text = collected.output
            for part in [
                "access.log: 10 requests, 2025-10-10 13:55:00 to 2025-10-10 13:55:09 UTC", "not understood: 1",
                "line 5: no [time] in it: garbage", "GET 7, HEAD 1, POST 1, none 1", "1  no request line",
                "looked up: 7", "no-freshness (RFC 9111 §3), status 302", "Assumed:", "fresh for 1h",
                "400 B", "500 B", "density", "lru",
            ] {
                #expect(text.contains(part), "\(part)")
            }
            #expect(collected.error.isEmpty)
        }

        @Test("Several files form one log, and --plot draws it")
        func several() async throws {
            let folder = try TestFolder()
            let (first, second) = (try folder.file("a.log", Self.log), try folder.file("b.log", Self.log))
            let plot = folder.path("curve.svg")
            let collected = RecordedConsole()
            try await ReplayCommand.parse([first, second, "--plot", plot]).run(on: collected.console)
            #expect(collected.output.contains("a.log and 1 file more: 20 requests"))
            let svg = String(decoding: try Data(contentsOf: URL(fileURLWithPath: plot)), as: UTF8.self)
            #expect(svg.hasPrefix("<svg") && svg.contains("density") && svg.contains("cache size"))
        }

        @Test("A link stays a link when --plot writes the file that it leads to")
        func plotThroughLink() async throws {
            let folder = try TestFolder()
            let log = try folder.file("a.log", Self.log)
            let link = folder.path("link.svg")
            try FileManager.default.createSymbolicLink(
                atPath: link,
                withDestinationPath: try folder.file("real.svg", "")
            )
            try await ReplayCommand.parse([log, "--plot", link]).run(on: RecordedConsole().console)
            #expect(try FileManager.default.destinationOfSymbolicLink(atPath: link) == folder.path("real.svg"))
            #expect(try String(contentsOfFile: folder.path("real.svg"), encoding: .utf8).hasPrefix("<svg"))
        }

        @Test("A few zero bytes at the start of a log are bad lines, not another format")
        func zeros() async throws {
            let folder = try TestFolder()
            let collected = RecordedConsole()
            try await ReplayCommand.parse([try folder.file("a.log", "\0\0\n" + Self.log)]).run(on: collected.console)
            #expect(collected.output.contains("10 requests"), "\(collected.output)")
        }

        @Test(
            "If a log cannot be replayed, it prints one line and exits with a status",
            arguments: [
                (["no-such-file.log"], 1, "does not exist"), (["TEXT"], 1, "nothing could be read as"),
                (["EMPTY"], 1, "no requests"),
                (["GZIP"], 1, "zcat"), (["LOG", "--sizes", "much"], 64, "--sizes"),
                (["LOG", "--policies", "best"], 64, "no policy"),
                (["LOG", "--keep", "3"], 64, "--keep"), (["LOG", "HAR"], 64, "several formats"),
                (["BROKENHAR"], 1, "not a HAR"), (["CUTHAR"], 1, "at byte 37, line 2"),
                (["LOG", "--plot", "/no/such/folder/x.svg"], 1, "cannot write"), (["BINARY"], 1, "not text"),
            ] as [([String], Int32, String)]
        )
        func fails(_ words: [String], _ status: Int32, _ part: String) async throws {
            let folder = try TestFolder()
            let files = [
                "TEXT": try folder.file("t.log", "one\ntwo\n"), "EMPTY": try folder.file("e.log", ""),
                "LOG": try folder.file("l.log", Self.log), "HAR": try folder.file("h.har", #"{"log":{"entries":[]}}"#),
                "BROKENHAR": try folder.file("b.har", "{}"), "GZIP": folder.path("g.log"),
                "CUTHAR": try folder.file("c.har", "{\"log\": {\"entries\": [\n{\"request\": {\"u"),
                "BINARY": try folder.file("x.log", "a\0b\n"),
            ]
            try Data([0x1F, 0x8B, 8, 0]).write(to: URL(fileURLWithPath: folder.path("g.log")))
            let command = try ReplayCommand.parse(words.map { files[$0] ?? $0 })
            let collected = RecordedConsole()
            let failure = await #expect(throws: CommandFailure.self) { try await command.run(on: collected.console) }
            #expect(failure?.exitStatus == status)
            #expect(failure?.description.contains(part) == true, "\(failure?.description ?? "")")
            #expect(collected.output.isEmpty)
        }

        @Test("Lifetimes of rules and of errors count although all else is fresh forever")
        func foreverButSome() async throws {
            let folder = try TestFolder()
            let asked = [
                (10, "/short", 200), (15, "/short", 200), (20, "/gone", 404), (35, "/gone", 404), (40, "/a", 200),
                (55, "/a", 200),
            ]
            let lines = asked.map {
                "192.0.2.1 - - [10/Oct/2025:13:55:\($0.0) +0000] \"GET \($0.1) HTTP/1.1\" \($0.2) 100\n"
            }
            let file = try folder.file("access.log", lines.joined())
            let rules = try folder.file("rules.json", #"{"rules": [{"paths": ["/short"], "lifetime": "2s"}]}"#)
            let found = try await ReplayOutput([
                file, "--assume-fresh-for", "forever", "--assume-errors-fresh-for", "10s", "--rules", rules, "--sizes",
                "1kB",
                "--policies", "lru",
            ])
            #expect(Self.near(found.value("object-hit-ratio", "@unbounded", "unbounded"), 1.0 / 6))
            #expect(Self.near(found.value("expired-ratio", "@1kB", "lru"), 2.0 / 6))
        }
    }
#endif

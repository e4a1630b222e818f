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

    @Suite("holdfast cache export", .timeLimit(.minutes(20)))
    struct ExportCommandTests {
        private static func export(_ directory: CacheDirectory, _ arguments: [String]) async throws -> RecordedConsole {
            let recorded = RecordedConsole()
            let command = try ExportCommand.parse(["-d", directory.path] + arguments)
            try await command.run(on: recorded.console, now: directory.clock.timestamp)
            return recorded
        }

        private static func entries(_ data: Data) throws -> [[String: Any]] {
            let archive = try JSONSerialization.jsonObject(with: data) as? [String: Any]
            let log = try #require(archive?["log"] as? [String: Any])
            #expect(log["version"] as? String == "1.2")
            #expect((log["creator"] as? [String: Any])?["name"] as? String == "holdfast")
            return try #require(log["entries"] as? [[String: Any]])
        }

        private static func content(_ entry: [String: Any]) -> [String: Any] {
            (entry["response"] as? [String: Any])?["content"] as? [String: Any] ?? [:]
        }

        @Test("A HAR 1.2 with every required member, bodies as text or Base64")
        func archive() async throws {
            let directory = try await CacheDirectory.closed()
            let entries = try Self.entries(try await Self.export(directory, []).bytes)
            #expect(entries.count == 4)
            var bodies: [String: String] = [:]
            for entry in entries {
                for member in ["startedDateTime", "time", "request", "response", "cache", "timings"] {
                    #expect(entry[member] != nil, "\(member)")
                }
                let request = try #require(entry["request"] as? [String: Any])
                let response = try #require(entry["response"] as? [String: Any])
                for member in [
                    "method", "url", "httpVersion", "cookies", "headers", "queryString", "headersSize", "bodySize",
                ] {
                    #expect(request[member] != nil, "\(member)")
                }
                for member in [
                    "status", "statusText", "httpVersion", "cookies", "headers", "content", "redirectURL",
                    "headersSize",
                    "bodySize",
                ] {
                    #expect(response[member] != nil, "\(member)")
                }
                let content = Self.content(entry)
                let type = try #require(content["mimeType"] as? String)
                bodies[type] = content["text"] as? String
                #expect((content["encoding"] as? String == "base64") == ["image/png", "x-unknown"].contains(type))
            }
            #expect(bodies["text/plain"] == "old news")
            #expect(bodies["application/json"] == "{\"a\": \"ä\"}")
            #expect(bodies["image/png"] == Data("\u{1}\u{2}png".utf8).base64EncodedString())
            #expect(Data(base64Encoded: bodies["x-unknown"] ?? "")?.count == 300_000)
            let text = try await Self.export(directory, ["--host", "api.example", "--stale"])
            let query = (try Self.entries(text.bytes).first?["request"] as? [String: Any])?["queryString"]
            #expect(query as? [[String: String]] == [["name": "page", "value": "2"]])
            #expect(!text.output.contains("secret"))
        }

        @Test("Bodies are left out on request, and if they are too long")
        func withoutBodies() async throws {
            let directory = try await CacheDirectory.closed()
            let none = try Self.entries(try await Self.export(directory, ["--no-bodies"]).bytes)
            #expect(none.allSatisfy { Self.content($0)["text"] == nil })
            let short = try Self.entries(try await Self.export(directory, ["--body-limit", "1kB"]).bytes)
            #expect(short.count { Self.content($0)["text"] == nil } == 1)
            #expect(short.compactMap { Self.content($0)["size"] as? Int }.max() == 300_000)
        }

        @Test("A file belongs to its owner alone and is complete, and an empty archive is valid")
        func file() async throws {
            let directory = try await CacheDirectory.closed()
            let path = directory.path(beside: "all.har")
            let told = try await Self.export(directory, ["-o", path])
            #expect(told.output.isEmpty)
            #expect(told.error == "4 responses written to \(path)\n")
            #expect(try Self.entries(try Data(contentsOf: URL(fileURLWithPath: path))).count == 4)
            let attributes = try FileManager.default.attributesOfItem(atPath: path)
            #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == 0o600)
            #expect(!FileManager.default.fileExists(atPath: path + ".part"))
            #expect(try Self.entries(try await Self.export(directory, ["--host", "none.example"]).bytes).isEmpty)
            let refused = try await failure { _ = try await Self.export(directory, ["-o", path + "/none/x.har"]) }
            #expect(refused?.exitStatus == 1)
        }

        @Test("An existing file is replaced only with --force")
        func overwriting() async throws {
            let directory = try await CacheDirectory.closed()
            let path = directory.path(beside: "precious")
            try Data("precious".utf8).write(to: URL(fileURLWithPath: path))
            let refused = try await failure { _ = try await Self.export(directory, ["-o", path]) }
            #expect(refused == CommandFailure("\(path) already exists; use --force to replace it"))
            #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == Data("precious".utf8))
            _ = try await Self.export(directory, ["-o", path, "--force"])
            #expect(try Self.entries(try Data(contentsOf: URL(fileURLWithPath: path))).count == 4)
        }

        @Test("A damaged body loses its own text and nothing else")
        func damaged() async throws {
            let directory = try await CacheDirectory.closed()
            try directory.damageBlob()
            let entries = try Self.entries(try await Self.export(directory, []).bytes)
            #expect(entries.count == 4)
            #expect(entries.count { Self.content($0)["comment"] != nil } == 1)
        }
    }
#endif

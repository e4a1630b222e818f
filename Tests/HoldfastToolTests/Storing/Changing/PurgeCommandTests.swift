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

    @Suite("holdfast cache purge", .timeLimit(.minutes(20)))
    struct PurgeCommandTests {
        private static func purge(
            _ directory: CacheDirectory,
            _ arguments: [String],
            answer: Bool? = nil
        ) async throws -> RecordedConsole {
            let recorded = RecordedConsole()
            let command = try PurgeCommand.parse(["-d", directory.path] + arguments)
            try await command.run(on: recorded.console, now: directory.clock.timestamp) { _ in answer }
            return recorded
        }

        private static func count(_ directory: CacheDirectory) async throws -> Int {
            let reader = try await DiskStoreReader.open(directory: directory.path)
            return reader.statistics.entryCount
        }

        @Test(
            "Entries that match all filters are removed, and a dry run lists them and removes nothing",
            arguments: [
                (["--url", "https://api.example/item"], 2), (["--prefix", "https://api.example/"], 3),
                (["--tag", "news"], 2), (["--stale"], 1), (["--older-than", "1m"], 4), (["--larger-than", "1kB"], 1),
                (["--host", "api.example", "--fresh"], 2), (["--tag", "none"], 0),
            ]
        )
        func selections(_ arguments: [String], _ removed: Int) async throws {
            let directory = try await CacheDirectory.closed()
            let before = try directory.state()
            let told = try await Self.purge(directory, arguments + ["--dry-run"])
            #expect(told.output.hasPrefix("would remove \(removed) of 4 entries"))
            #expect(try directory.state() == before)
            #expect(try await Self.purge(directory, arguments).output == "removed \(removed) of 4 entries\n")
            #expect(try await Self.count(directory) == 4 - removed)
        }

        @Test("Removing everything needs a confirmation", arguments: [true, false, nil] as [Bool?])
        func everything(answer: Bool?) async throws {
            let directory = try await CacheDirectory.closed()
            let refused = try await failure { _ = try await Self.purge(directory, ["--all"], answer: answer) }
            #expect(refused?.exitStatus == (answer == true ? nil : answer == nil ? 64 : 1))
            #expect(try await Self.count(directory) == (answer == true ? 0 : 4))
            _ = try await Self.purge(directory, ["--all", "--yes"])
            #expect(try await Self.count(directory) == 0)
        }

        @Test("While a process has the cache open, a purge is refused in one line with its process ID")
        func locked() async throws {
            let directory = try CacheDirectory()
            let store = try await directory.open()
            try await directory.sample(store)
            let refused = try await failure { _ = try await Self.purge(directory, ["--stale"]) }
            #expect(refused?.exitStatus == 1)
            #expect(refused?.description.contains("\(ProcessInfo.processInfo.processIdentifier)") == true)
            #expect(refused?.description.contains("\n") == false)
            #expect(store.statistics.entryCount == 4)
            #expect(try await Self.purge(directory, ["--stale", "--dry-run"]).output.hasPrefix("would remove 1 of 4"))
            await store.close()
        }

        @Test("A purge evicts nothing from a cache that is nearly full")
        func keepsTheRest() async throws {
            let directory = try CacheDirectory()
            let store = try await directory.open()
            let fields: HeaderFields = ["Cache-Control": "max-age=60"]
            for number in 0..<400 {
                let body = String(repeating: "x", count: 30_000)
                try await directory.fill(store, [.init(url: "https://a.example/\(number)", fields: fields, body: body)])
            }
            let count = store.statistics.entryCount
            await store.close()
            _ = try await Self.purge(directory, ["--url", "https://a.example/399"])
            #expect(try await Self.count(directory) == count - 1)
        }

        @Test("Nothing is created if there is no cache, and a purge needs a filter")
        func nothing() async throws {
            let directory = try CacheDirectory()
            #expect(try await failure { _ = try await Self.purge(directory, ["--stale"]) }?.exitStatus == 1)
            #expect(!FileManager.default.fileExists(atPath: directory.path))
            #expect(throws: (any Error).self) { try PurgeCommand.parse(["-d", directory.path]) }
            #expect(throws: (any Error).self) { try PurgeCommand.parse(["-d", directory.path, "--all", "--stale"]) }
        }

        @Test("Encrypted entries match no filter, which is said; --all removes them")
        func sealed() async throws {
            let directory = try CacheDirectory()
            let store = try await directory.open(seal: MirrorSeal())
            try await directory.sample(store)
            await store.close()
            let told = try await Self.purge(directory, ["--host", "api.example"])
            #expect(told.output == "removed 0 of 4 entries\n")
            #expect(told.error == "holdfast: 4 encrypted entries were skipped, because their key is missing\n")
            #expect(try await Self.purge(directory, ["--all", "--yes"]).error.isEmpty)
            #expect(try await Self.count(directory) == 0)
        }
    }
#endif

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

    extension CacheDirectory {
        /// Flips a bit in the body of the large response.
        func damageBlob() throws {
            let name = try #require(try FileManager.default.contentsOfDirectory(atPath: path + "/blobs").first)
            let url = URL(fileURLWithPath: path + "/blobs/" + name)
            var bytes = try Data(contentsOf: url)
            bytes[70_000] ^= 4
            try bytes.write(to: url)
        }
    }

    @Suite("holdfast cache verify", .timeLimit(.minutes(20)))
    struct VerifyCommandTests {
        private static func verify(_ directory: CacheDirectory, _ arguments: [String] = []) async throws
            -> (RecordedConsole, CommandFailure?)
        {
            let recorded = RecordedConsole(
                outputIsTerminal: !arguments.contains("--json"),
                errorIsTerminal: !arguments.contains("--json")
            )
            let command = try VerifyCommand.parse(["-d", directory.path] + arguments)
            let refused = try await failure { try await command.run(on: recorded.console) }
            return (recorded, refused)
        }

        @Test("An undamaged cache: status 0, and a bar on a terminal")
        func whole() async throws {
            let directory = try await CacheDirectory.closed()
            let (console, refused) = try await Self.verify(directory)
            #expect(refused == nil)
            #expect(console.output == "4 entries checked, 300 kB of bodies; 0 damaged\n")
            #expect(console.error.contains("[#") || console.error.contains("[."))
        }

        @Test("Damage: status 2, a finding with its URL, and nothing removed")
        func damaged() async throws {
            let directory = try await CacheDirectory.closed()
            try directory.damageBlob()
            let before = try directory.state()
            for _ in 0..<2 {
                let (console, refused) = try await Self.verify(directory, ["--json"])
                #expect(refused?.exitStatus == 2)
                #expect(refused?.description == "1 found damaged")
                let report = try #require(try console.json() as? [String: Any])
                #expect(report["entriesDamaged"] as? Int == 1)
                #expect((report["damage"] as? [[String: Any]])?.first?["url"] as? String == "https://cdn.example/large")
            }
            #expect(try directory.state() == before)
            let (console, _) = try await Self.verify(directory)
            #expect(console.lines.first?.hasPrefix("https://cdn.example/large: The entry in ") == true)
        }

        @Test("Beside a process that has the cache open")
        func held() async throws {
            let directory = try CacheDirectory()
            let store = try await directory.open()
            try await directory.sample(store)
            #expect(try await Self.verify(directory).1 == nil)
            await store.close()
        }
    }
#endif

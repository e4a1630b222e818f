// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool && os(Linux)
    import Foundation
    import Glibc
    import HoldfastTesting
    import Testing

    /// `holdfast cache purge` while a proxy has the directory open.
    @Suite("A purge asks the proxy that has the cache open", .timeLimit(.minutes(20)))
    struct HolderPurgeTests {
        private static let token = "0123456789abcdef0123"

        /// A proxy with a cache on disk that has answered three requests.
        private struct Bench {
            let origin: LoopbackServer
            let folder: TestFolder
            let cache: String
            let proxy: ToolProcess
            let port: Int
            let own: String

            init(_ options: (TestFolder) throws -> [String]) async throws {
                origin = try LoopbackServer.start { request in
                    LoopbackReply(
                        fields: [
                            ("Cache-Control", request.path == "/short" ? "max-age=0" : "max-age=600"),
                            ("ETag", "\"v\""),
                            ("Surrogate-Key", request.path.hasPrefix("/news") ? "news" : "other"),
                        ],
                        body: String(repeating: "x", count: request.path == "/news/2" ? 5_000 : 5)
                    )
                }
                own = "http://127.0.0.1:\(origin.port)"
                folder = try TestFolder()
                cache = folder.path("cache")
                proxy = try Bench.proxy(cache, own, try options(folder))
                port = try await proxy.port()
                try await fill()
            }

            static func proxy(_ cache: String, _ origin: String, _ options: [String]) throws -> ToolProcess {
                try ToolProcess(
                    ["proxy", "--listen", "127.0.0.1:0", "--origin", origin, "--retry", "none", "--disk", cache]
                        + options
                )
            }

            static let targets = ["/news/1", "/news/2", "/short", "/other"]

            func fill() async throws {
                for target in Self.targets { _ = try await RawExchange.get(target, port: port) }
            }

            func purge(_ arguments: [String], of cache: String? = nil) async throws -> (
                output: String, error: String, status: Int32
            ) {
                let tool = try ToolProcess(["cache", "purge", "-d", cache ?? self.cache] + arguments)
                let status = try await tool.status()
                return (tool.outputText, tool.errorText, status)
            }

            var note: String { cache + "/admin.json" }
        }

        @Test(
            "What the command names goes, as in a directory that nobody has open",
            arguments: ["tcp", "unix", "token", "another address of this machine"]
        )
        func purging(_ kind: String) async throws {
            let bench = try await Bench { folder in
                switch kind {
                case "unix": ["--admin", "unix:" + folder.path("admin socket")]
                case "token": ["--admin", "0.0.0.0:0", "--admin-token", try folder.file("token", Self.token + "\n")]
                case "tcp": ["--admin", "0"]
                default: ["--admin", "127.0.0.2:0"]
                }
            }
            defer { bench.origin.stop() }
            for (arguments, gone) in [
                (["--prefix", bench.own + "/news"], ["/news/1", "/news/2"]),
                (["--prefix", bench.own + "/new*", "--larger-than", "1kB"], ["/news/2"]),
                (["--url", bench.own + "/other", "--url", bench.own + "/news/1"], ["/news/1", "/other"]),
                (["--tag", "news", "--fresh"], ["/news/1", "/news/2"]),
                (["--host", "elsewhere.example"], []), (["--stale"], ["/short"]), (["--all", "--yes"], Bench.targets),
            ] as [([String], [String])] {
                let before = bench.origin.requests.count
                let answer = try await bench.purge(arguments)
                #expect(answer.output.hasPrefix("removed \(gone.count) of "), "\(arguments) \(answer)")
                #expect(
                    answer.output.hasSuffix(" entries through process \(bench.proxy.pid), which has the cache open\n")
                )
                #expect(answer.status == 0)
                try await bench.fill()
                let asked = bench.origin.requests[before...].filter { $0.values(of: "If-None-Match").isEmpty }
                #expect(asked.map(\.target) == gone, "\(arguments)")
            }
            #expect(try await bench.proxy.end() == 0)
            #expect(!FileManager.default.fileExists(atPath: bench.note))
        }

        @Test("The note is its owner's alone and holds no token; another token is refused in one line")
        func note() async throws {
            let bench = try await Bench { folder in
                ["--admin", "127.0.0.1:0", "--admin-token", try folder.file("token", Self.token)]
            }
            defer { bench.origin.stop() }
            let attributes = try FileManager.default.attributesOfItem(atPath: bench.note)
            #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == 0o600)
            #expect(try !String(contentsOfFile: bench.note, encoding: .utf8).contains(Self.token))
            let other = try bench.folder.file("other", "fedcba98765432100123")
            let refused = try await bench.purge(["--stale", "--admin-token", other])
            #expect(refused.status == 1 && refused.error.contains("needs another token"), "\(refused)")
            #expect(refused.error.split(separator: "\n").count == 1)
            #expect(try await bench.proxy.end() == 0)
        }

        @Test(
            "What a crashed proxy left misleads nobody: not without a holder, not with another one, not at a port that was given away"
        )
        func stale() async throws {
            let bench = try await Bench { _ in ["--admin", "0"] }
            defer { bench.origin.stop() }
            let left = try Data(contentsOf: URL(filePath: bench.note))
            bench.proxy.signal(SIGKILL)
            _ = try await bench.proxy.status()
            let direct = try await bench.purge(["--url", bench.own + "/other"])
            #expect(direct.output.hasPrefix("removed 1 of ") && direct.output.hasSuffix(" entries\n"), "\(direct)")

            let other = try Bench.proxy(bench.cache, bench.own, [])
            _ = try await other.port()
            #expect(!FileManager.default.fileExists(atPath: bench.note))
            try left.write(to: URL(filePath: bench.note))
            for _ in 1...2 {
                let refused = try await bench.purge(["--url", bench.own + "/news/1"])
                #expect(refused.status == 1)
                #expect(refused.error.contains("Process \(other.pid) "), "\(refused)")
                #expect(refused.error.contains("A proxy with --admin would do the purge itself"))
                try? FileManager.default.removeItem(atPath: bench.note)
            }
            #expect(try await other.end() == 0)

            let third = try Bench.proxy(bench.cache, bench.own, ["--admin", "0"])
            _ = try await third.port()
            var note = try #require(
                try JSONSerialization.jsonObject(with: Data(contentsOf: URL(filePath: bench.note))) as? [String: Any]
            )
            let right = note
            note["instance"] = "0"
            try JSONSerialization.data(withJSONObject: note).write(to: URL(filePath: bench.note))
            let impostor = try await bench.purge(["--all", "--yes"])
            #expect(
                impostor.status == 1 && impostor.error.contains("409 The request is for another process."),
                "\(impostor)"
            )
            note = right
            note["address"] = "http://127.0.0.1:1"
            try JSONSerialization.data(withJSONObject: note).write(to: URL(filePath: bench.note))
            let unreachable = try await bench.purge(["--all", "--yes"])
            #expect(unreachable.status == 1)
            #expect(
                unreachable.error.contains("It cannot be reached for the purge at http://127.0.0.1:1: "),
                "\(unreachable)"
            )
            #expect(try await third.end() == 0)
        }
    }
#endif

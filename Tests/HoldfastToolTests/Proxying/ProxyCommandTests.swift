// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    import ArgumentParser
    import Foundation
    import Holdfast
    import HoldfastCommand
    @testable import HoldfastProxy
    import HoldfastSemantics
    import HoldfastTestKit
    import HoldfastTesting
    import Synchronization
    import Testing

    @testable import HoldfastTool

    @Suite("holdfast proxy", .timeLimit(.minutes(20)))
    struct ProxyCommandTests {
        private func command(_ arguments: String...) throws -> ProxyCommand {
            try ProxyCommand.parse(arguments)
        }

        @Test(
            "So many clients are served that descriptors are left for a tunnel of each, the origin, the store and refusals",
            arguments: [
                (10_000, 64, 0, 8), (10_000, 1_024, 0, 320), (10_000, 1_024, 320, 200), (10_000, 30_000, 0, 10_000),
                (5, 1_024, 264, 5), (10, 1, 0, 1), (10, 100, 264, 1), (10, -1, 264, 10),
            ]
        )
        func descriptors(_ wanted: Int, _ openFiles: Int, _ store: Int, _ served: Int) {
            #expect(ProxyCommand.connections(wanted, openFiles: openFiles, store: store) == served)
        }

        @Test(
            "Listening addresses as people write them",
            arguments: [
                ("127.0.0.1:8080", "127.0.0.1", 8080), ("8081", "127.0.0.1", 8081), (":0", "127.0.0.1", 0),
                ("[::1]:80", "::1", 80),
                ("0.0.0.0:65535", "0.0.0.0", 65_535), ("localhost:9", "localhost", 9),
                ("unix:/run/x.sock", "unix:/run/x.sock", 0), ("systemd", "systemd", 0),
            ]
        )
        func listens(_ text: String, _ host: String, _ port: Int) {
            let address = ListenAddress(argument: text)
            #expect(address?.host == host)
            #expect(address?.port == port)
        }

        @Test(
            "Invalid listening addresses are refused",
            arguments: [
                "", ":", "host:", "host", "127.0.0.1:65536", "::1:80", "[::1]", "a b:80", "http://x:80", "x:+1", "x:-1",
            ]
        )
        func noAddress(_ text: String) {
            #expect(ListenAddress(argument: text) == nil)
        }

        @Test(
            "An invalid command line gives one line and status 64",
            arguments: [
                [], ["--origin", "http://x", "--forward"], ["--origin", "x"], ["--origin", "http://x/path"],
                ["--origin", "http://127.0.0.1:8080"], ["--origin", "http://x", "--open-forward-proxy"],
                ["--origin", "http://x", "--origin", "http://localhost:8080"],
                ["--origin", "http://x", "--origin", "http://[::1]:8081", "--listen", "[::1]:8081"],
                ["--origin", "http://x", "--allow-host", "y"], ["--forward", "--listen", "0.0.0.0:80"],
                ["--origin", "http://x", "--via", "a b"], ["--origin", "http://x", "--max-connections", "0"],
                ["--origin", "http://x", "--header-limit", "10"], ["--origin", "http://x", "--admin", "0.0.0.0:9"],
                ["--origin", "http://x", "--admin-token", "x"], ["--origin", "http://x", "--listen", "systemd"],
                ["--origin", "http://x", "--log-file", "x"], ["--origin", "http://x", "--header-lines", "0"],
                ["--origin", "http://x", "--client-scheme", "ftp"], ["--forward", "--host", "keep"],
                ["--origin", "http://x", "--cache-status", "a,b"], ["--origin", "ftp://x"],
                ["--origin", "http://x", "--disk-size", "1GB"], ["--forward", "--allow-host", "http://x"],
                ["--forward", "--allow-host", "a.example", "--allow-host", "h:99999"],
                ["--forward", "--allow-host", ""],
                ["--forward", "--allow-host", "x:y"], ["--forward", "--allow-host", "127.0.0.1/8"],
            ]
        )
        func refused(_ arguments: [String]) async throws {
            let command = try ProxyCommand.parse(arguments)
            let failure = #expect(throws: CommandFailure.self) { try command.proxyConfiguration() }
            #expect(failure?.exitStatus == 64)
            #expect(failure?.description.contains("\n") == false)
        }

        @Test(
            "So do invalid values",
            arguments: [
                ["--mode", "public"], ["--retry", "often"], ["--memory", "lots"], ["--timeout", "soon"],
                ["--listen", "nowhere"],
                ["--log", "all"], ["--client-address", "x"], ["--admin", "x"], ["--host", "mine"], ["--no-such-option"],
                ["word"],
            ]
        )
        func unreadable(_ arguments: [String]) {
            let error = #expect(throws: (any Error).self) {
                try ProxyCommand.parse(["--origin", "http://x"] + arguments)
            }
            #expect(error.map { ProxyCommand.exitCode(for: $0).rawValue } == 64)
        }

        @Test("The options are passed to the configuration")
        func options() throws {
            let all = try command(
                "--forward",
                "--listen",
                "[::1]:9",
                "--open-forward-proxy",
                "--allow-host",
                "a",
                "--allow-host",
                ".b",
                "--deny-private",
                "--via",
                "edge",
                "--timeout",
                "0",
                "--client-address",
                "forwarded",
                "--max-connections",
                "5",
                "--header-limit",
                "2KiB",
                "--client-idle",
                "0",
                "--mode",
                "private",
                "--cache-status",
                "edge"
            )
            let configuration = try all.proxyConfiguration()
            #expect(configuration.host == "::1")
            #expect(configuration.port == 9)
            var rules = ForwardRules()
            rules.isOpen = true
            rules.allowedHosts = ["a", ".b"]
            rules.deniesPrivateAddresses = true
            #expect(configuration.role == .forward(rules))
            #expect(configuration.viaName == "edge")
            #expect(configuration.answerTimeout == nil)
            #expect(configuration.clientAddressFields == .forwarded)
            #expect(configuration.limits.connections == 5)
            #expect(configuration.limits.headBytes == 2_048)
            #expect(configuration.limits.idleTimeout == .seconds(86_400))
            #expect(all.cacheOptions.mode == .private)
            #expect(all.cacheOptions.cacheName == "edge")
            let bare = try command("--origin", "http://x")
            #expect(try bare.proxyConfiguration().answerTimeout == .seconds(60))
            #expect(bare.cacheOptions.mode == .shared)
        }

        @Test(
            "It says where it listens, serves, logs, drains and closes the directory, which another process can then open"
        )
        func serves() async throws {
            let directory = FileManager.default.temporaryDirectory.appending(path: "holdfast-\(UUID().uuidString)")
            defer { try? FileManager.default.removeItem(at: directory) }
            let origin = try LoopbackServer.start { _ in
                LoopbackReply(fields: [("Cache-Control", "max-age=600")], body: "body")
            }
            defer { origin.stop() }
            for turn in 1...2 {
                let written = RecordedConsole()
                let command = try command(
                    "--origin",
                    "http://127.0.0.1:\(origin.port)",
                    "--listen",
                    "127.0.0.1:0",
                    "--disk",
                    directory.path,
                    "--log",
                    "access"
                )
                let (endings, ending) = AsyncStream<Void>.makeStream()
                async let run: Void = command.run(on: written.console, until: endings)
                try await written.errors.wait(for: 1)
                #expect(written.error.hasPrefix("listening on http://127.0.0.1:"))
                let port = try #require(written.error.split(separator: ":").last.flatMap { Int($0.filter(\.isNumber)) })
                let url = try #require(URL(string: "http://127.0.0.1:\(port)/x?\"y"))
                let response = try await Pipeline(transport: OriginTransport()).data(from: url)
                #expect(response.0 == Data("body".utf8))
                if turn == 1 {
                    let second = try self.command(
                        "--origin",
                        "http://x",
                        "--listen",
                        "127.0.0.1:0",
                        "--disk",
                        directory.path
                    )
                    let locked = await #expect(throws: CommandFailure.self) {
                        try await second.run(on: RecordedConsole().console, until: AsyncStream { $0.finish() })
                    }
                    #expect(locked?.exitStatus == 1)
                    #expect(locked?.description.hasPrefix("--disk ") == true)
                    let taken = try self.command("--origin", "http://x", "--listen", "127.0.0.1:\(port)")
                    let failure = await #expect(throws: CommandFailure.self) {
                        try await taken.run(on: RecordedConsole().console, until: AsyncStream { $0.finish() })
                    }
                    #expect(
                        failure
                            == CommandFailure(
                                "cannot listen on 127.0.0.1:\(port): the port is in use; choose another one"
                            )
                    )
                }
                ending.yield()
                try await run
                #expect(written.output.hasPrefix("127.0.0.1 - - ["))
                #expect(written.output.contains("] \"GET /x?%22y HTTP/1.1\" 200 4 \"-\" "))
            }
            #expect(origin.requests.count == 1)
        }

        @Test("Nothing that a client sends ends a log line or a quoted string in it")
        func lines() {
            let record = ProxyRecordSample.record(target: "/a\"\u{85}\\b", userAgent: "x\" 200 \u{7F}")
            let line = ProxyLog.line(record, kind: .access)
            #expect(
                line
                    == "- - - [14/Nov/2023:22:13:20 +0000] \"GET /a\\x22\\x85\\x5Cb HTTP/1.1\" 200 4 \"-\" \"x\\x22 200 \\x7F\""
            )
            #expect(
                ProxyLog.line(record, kind: .decisions) == "GET /a\\x22\\x85\\x5Cb 200 1500ms 2 sent, not from a cache"
            )
            let json = ProxyLog.line(record, kind: .json)
            #expect(json.hasPrefix("{\"time\":\"2023-11-14T22:13:20.000Z\",\"client\":null,\"method\":\"GET\","))
            #expect(json.contains("\"status\":200,\"bytes\":4,\"complete\":true,\"cache\":null,"))
            #expect(json.contains("\"ms\":1500,\"origin_ms\":1200,\"attempts\":2,"))
            #expect(!json.contains("\n"))
        }

        #if !Redis
            @Test("--redis names the trait it needs")
            func redis() async throws {
                let command = try command("--origin", "http://x", "--redis", "redis://x")
                let failure = await #expect(throws: CommandFailure.self) { try await command.makeCache() }
                #expect(failure?.exitStatus == 64)
            }
        #endif
    }

    private enum ProxyRecordSample {
        static func record(target: String, userAgent: String) -> ProxyRecord {
            ProxyRecord(
                method: .get,
                target: target,
                version: "1.1",
                clientAddress: nil,
                userAgent: userAgent,
                referer: nil,
                status: .ok,
                bodyBytes: 4,
                decision: nil,
                source: .network(attempts: 2),
                attempts: 2,
                originDuration: .milliseconds(1_200),
                start: Timestamp(secondsSinceEpoch: 1_700_000_000),
                duration: .milliseconds(1_500)
            )
        }
    }
#endif

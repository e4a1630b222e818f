// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool && os(Linux)
    import Foundation
    import HoldfastTesting
    import Testing

    /// SIGHUP: the rules are read anew.
    @Suite("Rules that are read anew", .timeLimit(.minutes(20)))
    struct ReloadTests {
        /// A proxy whose rules a test writes anew.
        private struct Bench {
            let origin: LoopbackServer
            let folder: TestFolder
            let proxy: ToolProcess
            let port: Int

            init(_ rules: String, _ options: [String] = [], origin: LoopbackServer? = nil) async throws {
                let origin =
                    try origin
                    ?? LoopbackServer.start { request in
                        LoopbackReply(fields: [("Cache-Control", "max-age=600")], body: "body \(request.target)")
                    }
                self.origin = origin
                folder = try TestFolder()
                proxy = try ToolProcess(
                    [
                        "proxy", "--listen", "127.0.0.1:0", "--origin", "http://127.0.0.1:\(origin.port)", "--rules",
                        try folder.file("rules", rules),
                    ] + options
                )
                port = try await proxy.port()
            }

            /// Writes the file, and waits until the proxy has said something of it for the `count`th time.
            func reload(_ rules: String, count: Int, says text: String) async throws {
                _ = try folder.file("rules", rules)
                proxy.signal(SIGHUP)
                while proxy.errorText.components(separatedBy: text).count <= count { await Task.yield() }
            }

            func get(_ target: String) async throws -> String { try await RawExchange.get(target, port: port) }
        }

        private static let ignoring = #"{"rules": [{"paths": ["/q"], "query": {"ignoredNames": ["u"]}}]}"#

        @Test(
            "A file that is right is in force for the next request, a wrong one is told with its place and changes nothing"
        )
        func reread() async throws {
            let bench = try await Bench(#"{"rules": [{"paths": ["/a"], "neverStore": true}]}"#)
            defer { bench.origin.stop() }
            for _ in 1...2 { _ = try await bench.get("/a") }
            try await bench.reload(
                "{\"rules\": [\n  {\"paths\": [\"/b\"], \"neverStroe\": true}]}",
                count: 1,
                says: "continuing with"
            )
            #expect(bench.proxy.errorText.contains("holdfast: continuing with the old rules: --rules "))
            #expect(bench.proxy.errorText.contains(": line 2, column 21: "), "\(bench.proxy.errorText)")
            _ = try await bench.get("/a")
            #expect(bench.origin.requests.count == 3)
            try await bench.reload(
                #"{"rules": [{"paths": ["/b"], "neverStore": true}]}"#,
                count: 1,
                says: " are in force\n"
            )
            for target in ["/a", "/a", "/b", "/b"] { _ = try await bench.get(target) }
            #expect(bench.origin.requests.map(\.target) == ["/a", "/a", "/a", "/a", "/b", "/b"])
            try FileManager.default.removeItem(atPath: bench.folder.path("rules"))
            bench.proxy.signal(SIGHUP)
            try await bench.proxy.says(" cannot be read. ")
            _ = try await bench.get("/a")
            #expect(bench.origin.requests.count == 6)
            #expect(try await bench.proxy.end() == 0)
        }

        @Test(
            "What was stored under other keys is removed, whatever the store; the rest stays, and figures go on",
            arguments: [false, true]
        )
        func keys(onDisk: Bool) async throws {
            let folder = try TestFolder()
            let options = ["--admin", "0"] + (onDisk ? ["--disk", folder.path("cache")] : [])
            let bench = try await Bench(Self.ignoring, options)
            defer { bench.origin.stop() }
            for target in ["/q?u=1", "/q?u=2", "/other"] { _ = try await bench.get(target) }
            #expect(bench.origin.requests.map(\.target) == ["/q?u=1", "/other"])
            try await bench.reload(
                #"{"rules": []}"#,
                count: 1,
                says: "; the keys of some routes changed, so 1 of their responses were removed\n"
            )
            #expect(try await bench.get("/q").hasSuffix("body /q"))
            _ = try await bench.get("/other")
            #expect(bench.origin.requests.map(\.target) == ["/q?u=1", "/other", "/q"])
            let admin = try bench.proxy.adminPort()
            let text = try await RawExchange.get("/metrics", port: admin, ["Host: 127.0.0.1:\(admin)"])
            for line in [
                "holdfast_responses_total{code=\"200\"} 5", "holdfast_cache_requests_total{result=\"hit\"} 2",
                "holdfast_cache_stored_total 3", "holdfast_origin_attempts_total 3",
            ] { #expect(text.contains("\n\(line)\n"), "\(line) is not in \(text)") }
            // A purge goes by the rules that are in force.
            let order = RawExchange.request("POST", "/purge?url=/q?u=2", ["Host: 127.0.0.1:\(admin)"])
            #expect(try await RawExchange.ask(port: admin, order).hasSuffix("{\"purged\":0,\"soft\":false}\n"))
            #expect(try await bench.proxy.end() == 0)
        }

        @Test("A request under way is answered whole, and leaves nothing behind where keys have changed")
        func underWay() async throws {
            let gate = LoopbackGate()
            let origin = try LoopbackServer.start { request in
                LoopbackReply(
                    fields: [("Cache-Control", "max-age=600")],
                    steps: request.target == "/q?u=1"
                        ? [.send("body "), .pause(gate), .send(request.target)] : [.send("body \(request.target)")]
                )
            }
            let bench = try await Bench(Self.ignoring, origin: origin)
            defer { bench.origin.stop() }
            async let slow = bench.get("/q?u=1")
            try await gate.reached()
            try await bench.reload(#"{"rules": []}"#, count: 1, says: " are in force")
            #expect(try await bench.get("/q").hasSuffix("body /q"))
            gate.open()
            #expect(try await slow.contains("/q?u=1"))
            #expect(try await bench.get("/q").hasSuffix("body /q"))
            #expect(origin.requests.map(\.target).count { $0 == "/q" } == 1)
            #expect(try await bench.proxy.end() == 0)
        }
    }
#endif

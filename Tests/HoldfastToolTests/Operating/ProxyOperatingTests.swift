// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool && os(Linux)
    import Foundation
    import Glibc
    import HoldfastTesting
    import Testing

    /// What an operator meets: rights, signals, full disks, exhausted descriptors, and what the proxy says of them.
    @Suite("Operating the proxy", .timeLimit(.minutes(20)))
    struct ProxyOperatingTests {
        private static let withoutRights = [
            "setpriv", "--reuid=65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all",
        ]
        private static let fewDescriptors = ["prlimit", "--nofile=128"]
        private static let tooFewDescriptors = ["prlimit", "--nofile=127"]
        private static let raisableDescriptors = ["prlimit", "--nofile=64:512"]

        private func origin() throws -> LoopbackServer {
            try LoopbackServer.start { request in
                LoopbackReply(fields: [("Cache-Control", "max-age=600"), ("Seen", request.target)], body: "body")
            }
        }

        private func proxy(
            _ origin: LoopbackServer,
            _ options: [String] = [],
            wrapper: [String] = []
        ) throws -> ToolProcess {
            try ToolProcess(
                ["proxy", "--listen", "127.0.0.1:0", "--origin", "http://127.0.0.1:\(origin.port)"] + options,
                wrapper: wrapper
            )
        }

        @Test(
            "It runs as a user without capabilities",
            .enabled(if: ToolProcess.has(withoutRights), "skipped: this user cannot take capabilities away")
        )
        func unprivileged() async throws {
            let origin = try origin()
            defer { origin.stop() }
            let proxy = try proxy(origin, wrapper: Self.withoutRights)
            let answer = try await RawExchange.get("/x", port: proxy.port())
            #expect(answer.hasPrefix("HTTP/1.1 200 "), "\(answer)")
            #expect(try await proxy.end() == 0)
        }

        @Test(
            "A target is sent byte for byte, and a stored response is used only if all parsers agree on the target",
            arguments: [
                ("/a?filter[name]=x", 1), ("/a[1]/b|c?d|e", 1), ("/a?q={x}^`", 1), ("/a?q=\"<>\\", 2), ("/a?q=<b>", 2),
                ("/100%", 2), ("/%zz?a=%", 2), ("/%6Eews", 2), ("/a%2fb", 1), ("/a%2Fb", 1),
            ]
        )
        func targets(_ target: String, _ sendings: Int) async throws {
            let origin = try origin()
            defer { origin.stop() }
            let proxy = try proxy(origin)
            let port = try await proxy.port()
            for _ in 1...2 {
                let answer = try await RawExchange.get(target, port: port)
                #expect(answer.hasPrefix("HTTP/1.1 200 "), "\(answer)")
            }
            #expect(origin.requests.map(\.target) == Array(repeating: target, count: sendings))
            #expect(try await proxy.end() == 0)
        }

        @Test("holdfast get accepts a URL as people type it", arguments: ["/a?filter[name]=x|y", "/100%", "/a[1]"])
        func typed(_ target: String) async throws {
            let origin = try origin()
            defer { origin.stop() }
            let tool = try ToolProcess(["get", "--no-cache", "http://127.0.0.1:\(origin.port)\(target)"])
            #expect(try await tool.status() == 0)
            #expect(origin.requests.count == 1)
        }

        @Test(
            "A signal that ends holdfast get leaves no part of a file; nohup keeps SIGHUP from ending it",
            arguments: [
                (SIGINT, 130, "--default-signal=HUP"), (SIGTERM, 130, "--default-signal=HUP"),
                (SIGHUP, 130, "--default-signal=HUP"), (SIGHUP, 0, "--ignore-signal=HUP"),
            ] as [(Int32, Int32, String)]
        )
        func interrupted(_ number: Int32, _ status: Int32, _ option: String) async throws {
            let gate = LoopbackGate()
            let origin = try LoopbackServer.start { _ in
                LoopbackReply(steps: [.send("first"), .pause(gate), .send("second")])
            }
            defer { origin.stop() }
            let folder = try TestFolder()
            let tool = try ToolProcess(
                ["get", "--no-cache", "-o", folder.path("body"), "http://127.0.0.1:\(origin.port)/x"],
                wrapper: [option]
            )
            try await gate.reached()
            while folder.names.isEmpty { await Task.yield() }
            tool.signal(number)
            if status == 0 { gate.open() }
            #expect(try await tool.status() == status)
            #expect(folder.names == (status == 0 ? ["body"] : []))
        }

        @Test("If standard output fails, the tool ends with status 1 and a sentence")
        func fullOutput() async throws {
            let origin = try origin()
            defer { origin.stop() }
            let tool = try ToolProcess(
                ["get", "--no-cache", "http://127.0.0.1:\(origin.port)/x"],
                outputPath: "/dev/full"
            )
            #expect(try await tool.status() == 1)
            #expect(tool.errorText == "holdfast: cannot write standard output: No space left on device\n")
        }

        @Test("The cause of a 502 is in the log of failures")
        func cause() async throws {
            // A port that was just free may be another test's by now; nobody listens at this one.
            let proxy = try ToolProcess([
                "proxy", "--listen", "127.0.0.1:0", "--origin", "http://127.0.0.1:1", "--retry", "none",
            ])
            let answer = try await RawExchange.get("/gone", port: proxy.port())
            try #require(answer.hasPrefix("HTTP/1.1 502 "), "\(answer)")
            try await proxy.says("GET /gone 502")
            try await proxy.says("Connection refused")
            #expect(try await proxy.end() == 0)
        }

        @Test("A request that is refused unread is in the log too")
        func refused() async throws {
            let origin = try origin()
            defer { origin.stop() }
            let proxy = try proxy(origin)
            let answer = try await RawExchange.ask(port: proxy.port(), "GET / HTTP/9.9\r\n\r\n")
            #expect(answer.hasPrefix("HTTP/1.1 505 "), "\(answer)")
            try await proxy.says("505")
            #expect(try await proxy.end() == 0)
        }

        @Test("SIGHUP ends nothing")
        func hangUp() async throws {
            let origin = try origin()
            defer { origin.stop() }
            let proxy = try proxy(origin)
            let port = try await proxy.port()
            for _ in 1...3 {
                proxy.signal(SIGHUP)
                let answer = try await RawExchange.get("/x", port: port)
                #expect(answer.hasPrefix("HTTP/1.1 200 "), "\(answer)")
            }
            #expect(try await proxy.end() == 0)
        }

        @Test(
            "Without a free descriptor it says so, tries again after a second, and continues when there is one",
            .enabled(if: ToolProcess.has(fewDescriptors), "skipped: there is no prlimit")
        )
        func descriptors() async throws {
            let gate = LoopbackGate()
            let origin = try LoopbackServer.start { request in
                LoopbackReply(before: request.target == "/slow" ? [.pause(gate)] : [], steps: [.send("body")])
            }
            defer { origin.stop() }
            let proxy = try proxy(origin, ["--log", "none", "--memory", "0"], wrapper: Self.fewDescriptors)
            let port = try await proxy.port()
            let before = proxy.processorTime
            // Those that are served take a descriptor each for the origin too, and those that are refused hold theirs.
            let slow = HeldConnections(port: port, count: 32, text: "GET /slow HTTP/1.1\r\nHost: x\r\n\r\n")
            try await gate.reached()
            let held = HeldConnections(port: port, count: 100)
            try await proxy.says("no file descriptors are left")
            // Nothing becomes free for a while, so it tries again, and not before a second has passed.
            func reports() -> [Substring] {
                proxy.errorText.split(separator: "\n").filter { $0.contains("no file descriptors are left") }
            }
            while reports().count < 2 { await Task.yield() }
            let format = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
            let times = try reports().prefix(2).map { try format.parse(String($0.prefix(24))) }
            #expect(times[1].timeIntervalSince(times[0]) > 0.9, "\(reports())")
            gate.open()
            slow.close()
            held.close()
            let answer = try await RawExchange.get("/x", port: port)
            #expect(answer.hasPrefix("HTTP/1.1 200 "), "\(answer)")
            // A busy loop would have used a processor for all of that time.
            #expect(proxy.processorTime - before < 70)
            #expect(try await proxy.end() == 0)
        }

        @Test(
            "It raises the limit of open files as far as it may, and says how many it needs if that is not enough",
            .enabled(if: ToolProcess.has(fewDescriptors), "skipped: there is no prlimit")
        )
        func fileLimit() async throws {
            let origin = try origin()
            defer { origin.stop() }
            let raised = try proxy(origin, wrapper: Self.raisableDescriptors)
            let port = try await raised.port()
            let limits = try String(contentsOfFile: "/proc/\(raised.pid)/limits", encoding: .utf8)
            let line = try #require(limits.split(separator: "\n").first { $0.hasPrefix("Max open files") })
            #expect(line.split(separator: " ").dropFirst(3).prefix(2) == ["512", "512"], "\(line)")
            let answer = try await RawExchange.get("/x", port: port)
            #expect(answer.hasPrefix("HTTP/1.1 200 "), "\(answer)")
            #expect(try await raised.end() == 0)

            let refused = try proxy(origin, wrapper: Self.tooFewDescriptors)
            _ = try #require(try await refused.refusal())
            #expect(
                refused.errorText.hasPrefix(
                    "holdfast: this process may open only 127 files, and a proxy needs at least"
                ),
                "\(refused.errorText)"
            )
            #expect(try await refused.status() == 1)
        }

        @Test("If a directory cannot be created, the message names the cause")
        func noDirectory() async throws {
            let tool = try ToolProcess(["proxy", "--origin", "http://x", "--disk", "/proc/nope/x"])
            #expect(try await tool.status() == 1)
            #expect(tool.errorText.contains("No such file or directory"), "\(tool.errorText)")
        }

        @Test("A head with too many lines is reported as that, on both sides, and an option allows more")
        func heads() async throws {
            let origin = try LoopbackServer.start { _ in
                LoopbackReply(fields: (0..<300).map { ("X-\($0)", "y") }, body: "body")
            }
            defer { origin.stop() }
            let strict = try proxy(origin, ["--retry", "none"])
            let answer = try await RawExchange.get("/x", port: strict.port())
            #expect(answer.hasPrefix("HTTP/1.1 502 "))
            #expect(answer.contains("more than 256 header field lines"), "\(answer)")
            try await strict.says("--header-lines")
            #expect(try await strict.end() == 0)
            let patient = try proxy(origin, ["--header-lines", "400"])
            let port = try await patient.port()
            let many = (0..<200).map { "Y-\($0): z" }
            #expect(try await RawExchange.get("/x", port: port, many).hasPrefix("HTTP/1.1 200 "))
            #expect(try await patient.end() == 0)
        }
    }
#endif

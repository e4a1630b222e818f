// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool && os(Linux)
    import Foundation
    import Glibc
    import HoldfastTesting
    import Synchronization
    import Testing

    /// What the origin is told, which of several is asked, and how the service manager and the log's keeper speak with the proxy.
    /// A switch that several threads see.
    private final class Flag: Sendable {
        private let state = Mutex(true)

        var value: Bool {
            get { state.withLock { $0 } }
            set { state.withLock { $0 = newValue } }
        }
    }

    @Suite("Origins, logs and the service manager", .timeLimit(.minutes(20)))
    struct OriginTests {
        private func origin(_ name: String = "body") throws -> LoopbackServer {
            try LoopbackServer.start { request in
                let host = request.values(of: "Host").first ?? ""
                return request.path == "/moved"
                    ? LoopbackReply(302, fields: [("Location", "http://\(host)/there?a")], body: "")
                    : LoopbackReply(fields: [("Cache-Control", "max-age=600")], body: "\(name) for \(host)")
            }
        }

        private func proxy(_ origins: [LoopbackServer], _ options: [String] = []) throws -> ToolProcess {
            let named = origins.flatMap { ["--origin", "http://127.0.0.1:\($0.port)"] }
            return try ToolProcess(["proxy", "--listen", "127.0.0.1:0"] + named + options)
        }

        @Test("By default the origin's own Host is sent, all names share one copy, and the origin's URLs become paths")
        func ownHost() async throws {
            let origin = try origin()
            defer { origin.stop() }
            let proxy = try proxy([origin])
            let port = try await proxy.port()
            for host in ["a.example", "b.example"] {
                let answer = try await RawExchange.get("/x", port: port, ["Host: \(host)"])
                #expect(answer.hasSuffix("body for 127.0.0.1:\(origin.port)"), "\(answer)")
            }
            #expect(origin.requests.count == 1)
            let moved = try await RawExchange.get("/moved", port: port, ["Host: a.example"])
            #expect(moved.contains("\r\nLocation: /there?a\r\n"), "\(moved)")
            #expect(try await proxy.end() == 0)
        }

        @Test("--host keep: the client's Host, one copy for each, and Location unchanged")
        func keptHost() async throws {
            let origin = try origin()
            defer { origin.stop() }
            let proxy = try proxy([origin], ["--host", "keep"])
            let port = try await proxy.port()
            for host in ["a.example", "b.example", "A.example:80"] {
                let answer = try await RawExchange.get("/x", port: port, ["Host: \(host)"])
                #expect(answer.hasSuffix("body for \(host.prefix(1).lowercased()).example"), "\(answer)")
            }
            #expect(origin.requests.count == 2)
            let moved = try await RawExchange.get("/moved", port: port, ["Host: a.example"])
            #expect(moved.contains("\r\nLocation: http://a.example/there?a\r\n"), "\(moved)")
            #expect(try await RawExchange.get("/x", port: port, ["Host: a@b"]).hasPrefix("HTTP/1.1 400 "))
            #expect(try await proxy.end() == 0)
        }

        @Test(
            "The origin is told host and scheme, the client's claims about them are dropped, and hosts are kept apart"
        )
        func told() async throws {
            let origin = try origin()
            defer { origin.stop() }
            let proxy = try proxy([origin], ["--client-address", "x-forwarded-for", "--client-scheme", "https"])
            let port = try await proxy.port()
            for host in ["a.example", "b.example"] {
                let lies = ["Host: \(host)", "X-Forwarded-Host: evil.example", "X-Forwarded-Proto: gopher"]
                _ = try await RawExchange.get("/x", port: port, lies)
            }
            #expect(origin.requests.map { $0.values(of: "X-Forwarded-Host") } == [["a.example"], ["b.example"]])
            #expect(origin.requests.allSatisfy { $0.values(of: "X-Forwarded-Proto") == ["https"] })
            #expect(origin.requests.allSatisfy { $0.values(of: "Host") == ["127.0.0.1:\(origin.port)"] })
            #expect(origin.requests.allSatisfy { $0.values(of: "X-Forwarded-For") == ["127.0.0.1"] })
            #expect(try await proxy.end() == 0)
        }

        @Test("Several origins take turns; a failed one costs no client a response and is skipped")
        func turns() async throws {
            let (first, second) = (try origin("first"), try origin("second"))
            defer { first.stop() }
            defer { second.stop() }
            let proxy = try proxy([first, second], ["--memory", "0", "--admin", "0"])
            let port = try await proxy.port()
            for number in 1...4 { _ = try await RawExchange.get("/\(number)", port: port) }
            #expect(first.requests.count == 2 && second.requests.count == 2)
            second.stop()
            for number in 5...16 {
                let answer = try await RawExchange.get("/\(number)", port: port)
                #expect(answer.hasPrefix("HTTP/1.1 200 "), "\(answer)")
                #expect(answer.hasSuffix("first for 127.0.0.1:\(first.port)"))
            }
            let admin = try proxy.adminPort()
            let text = try await RawExchange.get("/metrics", port: admin, ["Host: 127.0.0.1:\(admin)"])
            #expect(text.contains("holdfast_origin_up{origin=\"http://127.0.0.1:\(second.port)\"} 0"), "\(text)")
            #expect(text.contains("holdfast_origin_up{origin=\"http://127.0.0.1:\(first.port)\"} 1"))
            #expect(try await proxy.end() == 0)
        }

        @Test("--check: one that does not pass is asked by nobody, is seen in figures and readiness, and comes back")
        func checks() async throws {
            let isWell = [Flag(), Flag()]
            let origins = try (0...1).map { number in
                try LoopbackServer.start { request in
                    guard request.path == "/up" else { return LoopbackReply(body: "origin \(number)") }
                    return isWell[number].value ? LoopbackReply(204, body: "") : LoopbackReply(500, body: "")
                }
            }
            defer { for origin in origins { origin.stop() } }
            let proxy = try proxy(
                origins,
                ["--memory", "0", "--admin", "0", "--check", "/up?now", "--check-interval", "1s"]
            )
            let port = try await proxy.port()
            let admin = try proxy.adminPort()
            func ask(_ target: String) async throws -> String {
                try await RawExchange.get(target, port: admin, ["Host: 127.0.0.1:\(admin)"])
            }
            func names(_ number: Int) -> String { "{origin=\"http://127.0.0.1:\(origins[number].port)\"" }
            func wait(for text: String) async throws { while try await !ask("/metrics").contains(text) {} }
            try await wait(for: "holdfast_origin_checks_total\(names(1)),result=\"pass\"} 1")
            isWell[1].value = false
            try await wait(for: "holdfast_origin_check_up\(names(1))} 0")
            try await proxy.says(
                "the check GET /up?now of http://127.0.0.1:\(origins[1].port) fails, so the origin is not used: 500"
            )
            for _ in 1...4 { #expect(try await RawExchange.get("/x", port: port).hasSuffix("origin 0")) }
            let text = try await ask("/metrics")
            #expect(text.contains("\nholdfast_origin_up\(names(0))} 1\nholdfast_origin_up\(names(1))} 0\n"), "\(text)")
            #expect(try await ask("/readyz").hasPrefix("HTTP/1.1 200 "))
            isWell[0].value = false
            try await wait(for: "holdfast_origin_check_up\(names(0))} 0")
            #expect(try await ask("/readyz").hasSuffix("\r\n\r\nEvery origin is failing.\n"))
            #expect(try await RawExchange.get("/x", port: port).hasPrefix("HTTP/1.1 200 "))
            isWell[1].value = true
            try await wait(for: "holdfast_origin_check_up\(names(1))} 1")
            #expect(try await ask("/readyz").hasPrefix("HTTP/1.1 200 "))
            #expect(try await RawExchange.get("/x", port: port).hasSuffix("origin 1"))
            let asked = try #require(origins[0].requests.first { $0.path == "/up" })
            #expect(asked.target == "/up?now" && asked.values(of: "User-Agent") == ["holdfast-check"])
            #expect(try await proxy.end() == 0)
        }

        @Test("JSON lines go to a file, which SIGHUP reopens; a full disk is reported once")
        func logs() async throws {
            let origin = try origin()
            defer { origin.stop() }
            let folder = try TestFolder()
            let (path, moved) = (folder.path("log"), folder.path("log.1"))
            let proxy = try proxy([origin], ["--log", "json", "--log-file", path])
            let port = try await proxy.port()
            _ = try await RawExchange.get("/one", port: port)
            func lines(_ path: String, _ count: Int) async throws -> [[String: Any]] {
                // The line is written after the answer, by another thread.
                while true {
                    let text = (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
                    let lines = text.split(separator: "\n")
                    if lines.count >= count, text.hasSuffix("\n") {
                        return try lines.map {
                            try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
                        }
                    }
                    await Task.yield()
                }
            }
            let line = try #require(try await lines(path, 1).first)
            #expect(line["target"] as? String == "/one" && line["status"] as? Int == 200)
            #expect(line["client"] as? String == "127.0.0.1" && line["attempts"] as? Int == 1)
            #expect(line["cache"] as? String == "miss" && line["reason"] as? String == "not-stored (RFC 9111 §4)")
            #expect(line["bytes"] as? Int == "body for 127.0.0.1:\(origin.port)".utf8.count)
            #expect(line["origin_ms"] is Int && line["time"] is String)
            try FileManager.default.moveItem(atPath: path, toPath: moved)
            proxy.signal(SIGHUP)
            while !FileManager.default.fileExists(atPath: path) { await Task.yield() }
            _ = try await RawExchange.get("/one", port: port)
            #expect(try await lines(path, 1).first?["cache"] as? String == "hit")
            #expect(try await lines(moved, 1).count == 1)
            #expect(try await proxy.end() == 0)

            let full = try self.proxy([origin], ["--log", "json", "--log-file", "/dev/full"])
            let answer = try await RawExchange.get("/one", port: full.port())
            #expect(answer.hasPrefix("HTTP/1.1 200 "))
            try await full.says("cannot write the log /dev/full: No space left on device")
            #expect(try await full.end() == 0)
        }

        @Test("--rules: a file's rules for paths apply, and an invalid file is refused with the position")
        func rules() async throws {
            let origin = try LoopbackServer.start { LoopbackReply(body: "body \($0.target)") }
            defer { origin.stop() }
            let folder = try TestFolder()
            let file = try folder.file("rules", #"{"rules": [{"paths": ["/kept/*"], "lifetime": "5m"}]}"#)
            let proxy = try proxy([origin], ["--rules", file])
            let port = try await proxy.port()
            for target in ["/kept/a", "/kept/a", "/other", "/other"] {
                #expect(try await RawExchange.get(target, port: port).hasSuffix("body \(target)"))
            }
            #expect(origin.requests.map(\.target) == ["/kept/a", "/other", "/other"])
            #expect(try await proxy.end() == 0)
            let wrong = try self.proxy([origin], ["--rules", try folder.file("wrong", "{\n\"rule\": []}")])
            #expect(try await wrong.status() == 64)
            #expect(
                wrong.errorText.hasPrefix("holdfast: --rules ") && wrong.errorText.contains("line 2"),
                "\(wrong.errorText)"
            )
        }

        @Test("A body that breaks off at the origin is reported with its cause")
        func broken() async throws {
            let origin = try LoopbackServer.start { _ in
                LoopbackReply(framing: .length(100), steps: [.send("part"), .close])
            }
            defer { origin.stop() }
            let proxy = try proxy([origin])
            _ = try await RawExchange.get("/x", port: proxy.port())
            try await proxy.says("GET /x was interrupted after 4 bytes")
            #expect(try await proxy.end() == 0)
        }

        @Test("systemd passes a socket and is notified when the proxy is ready and when it stops")
        func serviceManager() async throws {
            let origin = try origin()
            defer { origin.stop() }
            let folder = try TestFolder()
            let path = folder.path("notify")
            let handing = """
                import os, socket, sys
                s = socket.socket()
                s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                s.bind(("127.0.0.1", 0))
                s.listen()
                print("port", s.getsockname()[1], file=sys.stderr, flush=True)
                os.dup2(s.fileno(), 3)
                os.set_inheritable(3, True)
                os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1")
                os.execvp(sys.argv[1], sys.argv[1:])
                """
            let notices = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
            defer { close(notices) }
            var address = sockaddr_un()
            address.sun_family = sa_family_t(AF_UNIX)
            withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix(107)) }
            let bound = withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    bind(notices, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
                }
            }
            try #require(bound == 0)
            let proxy = try ToolProcess(
                ["proxy", "--listen", "systemd", "--origin", "http://127.0.0.1:\(origin.port)"],
                wrapper: ["python3", "-c", handing],
                environment: ["NOTIFY_SOCKET": path]
            )
            try await proxy.says("listening on systemd\n")
            let told = proxy.errorText.split(separator: "\n").first?.split(separator: " ").last.flatMap { Int($0) }
            let port = try #require(told)
            #expect(try await RawExchange.get("/x", port: port).hasPrefix("HTTP/1.1 200 "))
            #expect(try await proxy.end() == 0)
            var buffer = [UInt8](repeating: 0, count: 100)
            var notes: [String] = []
            for _ in 1...2 {
                let count = recv(notices, &buffer, buffer.count, 0)
                notes.append(String(decoding: buffer.prefix(max(0, count)), as: UTF8.self))
            }
            #expect(notes == ["READY=1", "STOPPING=1"])
        }
    }
#endif

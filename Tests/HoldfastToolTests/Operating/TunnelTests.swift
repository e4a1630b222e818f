// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool && os(Linux)
    import Foundation
    import HoldfastTesting
    import Testing

    /// CONNECT to hosts that are named, and WebSocket through a reverse proxy.
    @Suite("Tunnels", .timeLimit(.minutes(20)))
    struct TunnelTests {
        private func connect(_ authority: String, _ inner: String = "") -> String {
            "CONNECT \(authority) HTTP/1.1\r\nHost: \(authority)\r\n\r\n" + inner
        }

        @Test("A tunnel to an allowed host carries bytes both ways; an unreachable one gives a 502")
        func tunnel() async throws {
            let origin = try LoopbackServer.start { LoopbackReply(body: "inner \($0.target)") }
            defer { origin.stop() }
            let gone = 1
            let own = "127.0.0.1:\(origin.port)"
            let proxy = try ToolProcess([
                "proxy", "--forward", "--listen", "0", "--allow-host", own, "--allow-host", "127.0.0.1:\(gone)",
                "--log",
                "json",
            ])
            let port = try await proxy.port()
            let answer = try await RawExchange.ask(port: port, connect(own, RawExchange.request("GET", "/a?b")))
            #expect(answer.hasPrefix("HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 "), "\(answer)")
            #expect(answer.hasSuffix("inner /a?b"))
            #expect(
                try await RawExchange.ask(port: port, connect("127.0.0.1:\(gone)", RawExchange.request("GET", "/")))
                    .hasPrefix("HTTP/1.1 502 ")
            )
            try await proxy.prints("\"method\":\"CONNECT\",\"target\":\"\(own)\",\"status\":200,")
            try await proxy.prints("\"method\":\"CONNECT\",\"target\":\"127.0.0.1:\(gone)\",\"status\":502,")
            #expect(try await proxy.end() == 0)
        }

        @Test(
            "No tunnel leads to other hosts",
            arguments: [
                ([], "127.0.0.1"), (["--allow-host", "a.example"], "127.0.0.1"),
                (["--allow-host", "127.0.0.1"], "127.0.0.1"),
            ]
        )
        func refused(_ options: [String], _ host: String) async throws {
            let origin = try LoopbackServer.start { _ in LoopbackReply(body: "inner") }
            defer { origin.stop() }
            let proxy = try ToolProcess(["proxy", "--forward", "--listen", "0"] + options)
            let port = try await proxy.port()
            let text = connect("\(host):\(origin.port)", RawExchange.request("GET", "/"))
            #expect(try await RawExchange.ask(port: port, text).hasPrefix("HTTP/1.1 501 "))
            #expect(origin.requests.isEmpty)
            #expect(try await proxy.end() == 0)
        }

        private static let upgrade = ["Connection: keep-alive, Upgrade", "Upgrade: websocket", "Sec-WebSocket-Key: x"]

        @Test(
            "WebSocket passes a reverse proxy; an origin that refuses it answers as usual, and no other protocol passes"
        )
        func webSocket() async throws {
            let origin = try LoopbackServer.start { request in
                guard request.path == "/ws", request.values(of: "Upgrade") == ["websocket"] else {
                    return LoopbackReply(body: "plain \(request.values(of: "Upgrade"))")
                }
                let hint = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
                let head = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                return LoopbackReply(before: [.raw(hint + head + "Sec-WebSocket-Accept: y\r\n\r\nframes"), .close])
            }
            defer { origin.stop() }
            let proxy = try ToolProcess([
                "proxy", "--listen", "0", "--origin", "http://127.0.0.1:\(origin.port)", "--retry", "none",
            ])
            let port = try await proxy.port()
            func ask(_ target: String, _ fields: [String]) async throws -> String {
                let lines = ["GET \(target) HTTP/1.1", "Host: a"] + fields + ["", ""]
                return try await RawExchange.ask(port: port, lines.joined(separator: "\r\n"))
            }
            let opened = try await ask("/ws", Self.upgrade)
            #expect(opened.hasPrefix("HTTP/1.1 101 Switching Protocols\r\n"), "\(opened)")
            #expect(opened.contains("\r\nUpgrade: websocket\r\n") && opened.contains("\r\nConnection: Upgrade\r\n"))
            #expect(opened.contains("Sec-WebSocket-Accept: y\r\n") && opened.hasSuffix("\r\n\r\nframes"))
            #expect(origin.requests.first?.values(of: "Sec-WebSocket-Key") == ["x"])
            let tabbed = try await ask("/ws", ["Connection: keep-alive,\tUpgrade\t", "Upgrade: websocket"])
            #expect(tabbed.hasPrefix("HTTP/1.1 101 "), "\(tabbed)")
            let apart = try await ask("/ws", ["Connection: up grade, close", "Upgrade: websocket"])
            #expect(apart.hasSuffix("plain []"), "\(apart)")
            #expect(try await ask("/none", Self.upgrade + ["Connection: close"]).hasSuffix("plain []"))
            let other = try await ask("/ws", ["Connection: Upgrade, HTTP2-Settings, close", "Upgrade: h2c"])
            #expect(other.hasSuffix("plain []"), "\(other)")
            #expect(try await proxy.end() == 0)
        }

        @Test("WebSocket passes to one of several origins, also if the one whose turn it is cannot be reached")
        func severalOrigins() async throws {
            let origin = try LoopbackServer.start { _ in
                let head = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                return LoopbackReply(before: [.raw(head + "\r\nframes"), .close])
            }
            defer { origin.stop() }
            let proxy = try ToolProcess([
                "proxy", "--listen", "0", "--origin", "http://127.0.0.1:1", "--origin",
                "http://127.0.0.1:\(origin.port)",
            ])
            let port = try await proxy.port()
            let lines = ["GET /ws HTTP/1.1", "Host: a"] + Self.upgrade + ["", ""]
            for _ in 1...3 {
                let answer = try await RawExchange.ask(port: port, lines.joined(separator: "\r\n"))
                #expect(answer.hasPrefix("HTTP/1.1 101 ") && answer.hasSuffix("frames"), "\(answer)")
            }
            #expect(try await proxy.end() == 0)
        }

        @Test(
            "WebSocket passes a forward proxy to hosts that are named, at port 80 or the one named with them, and as any other GET elsewhere",
            arguments: [
                ([], false), (["127.0.0.1"], false), (["localhost:PORT"], false), (["127.0.0.1:PORT"], true),
                (["a.example", "127.0.0.1:PORT"], true),
            ]
        )
        func forwardedWebSocket(_ hosts: [String], _ passes: Bool) async throws {
            let origin = try LoopbackServer.start { request in
                guard request.values(of: "Upgrade") == ["websocket"] else {
                    return LoopbackReply(body: "plain \(request.values(of: "Upgrade"))")
                }
                let head = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                return LoopbackReply(before: [.raw(head + "\r\nframes"), .close])
            }
            defer { origin.stop() }
            let named = hosts.flatMap { ["--allow-host", $0.replacing("PORT", with: "\(origin.port)")] }
            let proxy = try ToolProcess(
                ["proxy", "--forward", "--listen", "0", "--retry", "none", "--log", "json"] + named
            )
            let port = try await proxy.port()
            func ask(_ url: String, _ fields: [String]) async throws -> String {
                let lines =
                    ["GET \(url) HTTP/1.1", "Host: other.example", "Proxy-Authorization: Basic eDp5"] + fields + [
                        "", "",
                    ]
                return try await RawExchange.ask(port: port, lines.joined(separator: "\r\n"))
            }
            let url = "http://127.0.0.1:\(origin.port)/ws?a=b"
            let answer = try await ask(url, Self.upgrade + (passes ? [] : ["Connection: close"]))
            if passes {
                #expect(answer.hasPrefix("HTTP/1.1 101 ") && answer.hasSuffix("\r\n\r\nframes"), "\(answer)")
                let sent = try #require(origin.requests.first)
                #expect(sent.target == "/ws?a=b" && sent.values(of: "Host") == ["127.0.0.1:\(origin.port)"])
                #expect(sent.values(of: "Proxy-Authorization").isEmpty && sent.values(of: "Via").count == 1)
                try await proxy.prints("\"status\":101,")
                // Itself is refused, no matter who is named.
                let own = try await ask("http://127.0.0.1:\(port)/", Self.upgrade + ["Connection: close"])
                #expect(own.hasPrefix("HTTP/1.1 508 "), "\(own)")
                // A loop is seen as that.
                let via = sent.values(of: "Via")[0]
                #expect(
                    try await ask(url, Self.upgrade + ["Via: \(via)", "Connection: close"]).hasPrefix("HTTP/1.1 508 ")
                )
            } else if hosts.isEmpty || hosts == ["127.0.0.1"] {
                #expect(answer.hasSuffix("plain []"), "\(answer)")
            } else {
                #expect(answer.hasPrefix("HTTP/1.1 403 "), "\(answer)")
                #expect(origin.requests.isEmpty)
            }
            #expect(
                try await ask("wss://127.0.0.1:\(origin.port)/", Self.upgrade + ["Connection: close"]).hasPrefix(
                    "HTTP/1.1 "
                )
            )
            #expect(try await proxy.end() == 0)
        }
    }
#endif

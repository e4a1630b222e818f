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

        @Test("A tunnel to a host that is named carries bytes both ways; one that is gone is a 502")
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
            #expect(try await proxy.end() == 0)
        }

        @Test(
            "No tunnel leads elsewhere",
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
            "WebSocket passes a reverse proxy; an origin that grants none answers as ever, and no other protocol passes"
        )
        func webSocket() async throws {
            let origin = try LoopbackServer.start { request in
                guard request.path == "/ws", request.values(of: "Upgrade") == ["websocket"] else {
                    return LoopbackReply(body: "plain \(request.values(of: "Upgrade"))")
                }
                let head = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                return LoopbackReply(before: [.raw(head + "Sec-WebSocket-Accept: y\r\n\r\nframes"), .close])
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
            #expect(try await ask("/none", Self.upgrade + ["Connection: close"]).hasSuffix("plain []"))
            let other = try await ask("/ws", ["Connection: Upgrade, HTTP2-Settings, close", "Upgrade: h2c"])
            #expect(other.hasSuffix("plain []"), "\(other)")
            #expect(try await proxy.end() == 0)
        }
    }
#endif

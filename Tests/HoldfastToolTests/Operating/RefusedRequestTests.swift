// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool && os(Linux)
    import Foundation
    import HoldfastTesting
    import Testing

    /// Requests that the proxy refuses before it handles them: they are in the log and in the figures like all others.
    @Suite("Refused requests", .timeLimit(.minutes(20)))
    struct RefusedRequestTests {
        private static let long = String(repeating: "y", count: 70_000)

        @Test(
            "A request that is refused unread is a line of the log, with the reason, and counts as a response",
            arguments: [
                ("GET / HTTP/9.9\r\n\r\n", 505, nil), ("nonsense\r\n\r\n", 400, nil),
                ("GET / HTTP/1.1\r\n\r\n", 400, nil), ("GET / HTTP/1.1\r\nHost: x\r\nX: \(long)\r\n\r\n", 431, nil),
                ("GET /\(long) HTTP/1.1\r\nHost: x\r\n\r\n", 414, nil),
                ("GET /x HTTP/1.1\r\nHost: x\r\nExpect: what\r\n\r\n", 417, "/x"),
                ("POST /y HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400, "/y"),
            ] as [(String, Int, String?)]
        )
        func logged(_ request: String, _ status: Int, _ target: String?) async throws {
            let origin = try LoopbackServer.start { _ in LoopbackReply(body: "body") }
            defer { origin.stop() }
            let proxy = try ToolProcess([
                "proxy", "--listen", "127.0.0.1:0", "--origin", "http://127.0.0.1:\(origin.port)", "--admin", "0",
                "--retry", "none", "--log", "json",
            ])
            let port = try await proxy.port()
            let admin = try proxy.adminPort()
            let answer = try await RawExchange.ask(port: port, request)
            #expect(answer.hasPrefix("HTTP/1.1 \(status) "), "\(answer.prefix(200))")
            let figures = try await RawExchange.get("/metrics", port: admin, ["Host: 127.0.0.1:\(admin)"])
            try #require(figures.contains("\nholdfast_responses_total{code=\"\(status)\"} 1\n"), "\(figures)")
            try await proxy.prints("}\n")
            let lines = proxy.outputText.split(separator: "\n")
            #expect(lines.count == 1)
            let line = try #require(
                try JSONSerialization.jsonObject(with: Data((lines.first ?? "").utf8)) as? [String: Any]
            )
            #expect(line["status"] as? Int == status && line["client"] as? String == "127.0.0.1")
            #expect(line["target"] as? String == target && (line["method"] is NSNull) == (target == nil))
            #expect((line["reason"] as? String)?.hasSuffix(".") == true, "\(lines)")
            #expect(try await proxy.end() == 0)
        }

        @Test("A connection over the limit is a line of the log too, and an access log has a hyphen for the request")
        func overLimit() async throws {
            let origin = try LoopbackServer.start { _ in LoopbackReply(body: "body") }
            defer { origin.stop() }
            let proxy = try ToolProcess([
                "proxy", "--listen", "127.0.0.1:0", "--origin", "http://127.0.0.1:\(origin.port)", "--admin", "0",
                "--max-connections", "1", "--log", "access",
            ])
            let port = try await proxy.port()
            let admin = try proxy.adminPort()
            let held = HeldConnections(port: port, count: 1)
            defer { held.close() }
            var answer = ""
            // The one that is held may come to the server second.
            while !answer.hasPrefix("HTTP/1.1 503 ") {
                answer = try await RawExchange.get("/x", port: port)
            }
            let figures = try await RawExchange.get("/metrics", port: admin, ["Host: 127.0.0.1:\(admin)"])
            try #require(figures.contains("\nholdfast_responses_total{code=\"503\"} 1\n"), "\(figures)")
            try await proxy.prints("] \"-\" 503 ")
            held.close()
            #expect(try await proxy.end() == 0)
        }
    }
#endif

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import HoldfastProxy
    import HoldfastSemantics
    import Testing

    @Suite("Request heads (RFC 9112 §3)")
    struct RequestMessageTests {
        @Test(
            "Targets keep their form and spelling (B2), methods theirs (A3)",
            arguments: [
                ("GET /a%2Fb/../c?d=%e4&&d#".replacing("#", with: ""), RequestTarget.Form.origin),
                ("M-SEARCH //x", .origin), ("get /é→", .origin), ("!#$%&'*+-.^_`|~09 /\\\"<>{}|^`", .origin),
                ("GET http://x.example:80/?q", .absolute), ("FOO urn+x.y-z1://h", .absolute),
                ("OPTIONS *", .asterisk), ("CONNECT x.example:443", .authority), ("CONNECT [::1]:443", .authority),
            ]
        )
        func targets(line: String, form: RequestTarget.Form) throws {
            let bytes = Array("\(line) HTTP/1.1\r\nHost: x\r\n\r\n".utf8)
            let heads = ReadHeads(bytes)
            #expect(heads.fault == nil)
            let message = try #require(heads.messages.first)
            #expect("\(message.method) \(message.target.text)" == line)
            #expect(message.target.form == form)
            #expect(message.version == .http11)
        }

        @Test(
            "Request lines that are refused",
            arguments: [
                ("GET", 400), ("GET /", 400), ("GET  / HTTP/1.1", 400), ("GET / HTTP/1.1 ", 400),
                (" GET / HTTP/1.1", 400),
                ("GET / HTTP/1.1\t", 400), ("GET\t/ HTTP/1.1", 400), ("GET / /x HTTP/1.1", 400),
                ("G(T / HTTP/1.1", 400),
                ("/ HTTP/1.1", 400), ("GET /\u{1} HTTP/1.1", 400), ("GET /\u{7F} HTTP/1.1", 400),
                ("GET /#a HTTP/1.1", 400),
                ("GET a/b HTTP/1.1", 400), ("GET ?a HTTP/1.1", 400), ("GET * HTTP/1.1", 400),
                ("GET http:///a HTTP/1.1", 400),
                ("GET http:a HTTP/1.1", 400), ("GET 1x://a HTTP/1.1", 400), ("GET x.example:80 HTTP/1.1", 400),
                ("CONNECT / HTTP/1.1", 400), ("CONNECT x.example HTTP/1.1", 400), ("CONNECT :80 HTTP/1.1", 400),
                ("CONNECT u@x:80 HTTP/1.1", 400), ("CONNECT x: HTTP/1.1", 400), ("CONNECT x:65536 HTTP/1.1", 400),
                ("GET / HTTP/1.2", 505), ("GET / HTTP/2.0", 505), ("PRI * HTTP/2.0", 505), ("GET / HTTP/0.9", 505),
                ("GET / HTTP/1.10", 400), ("GET / http/1.1", 400), ("GET / HTTP/11", 400), ("GET / HTTP/1.", 400),
                ("GET / HTTP1.1", 400), ("GET / ICY/1.1", 400), ("GET /\u{E9} HTTP/1.1", 400),
            ]
        )
        func badLines(line: String, status: Int) {
            let heads = ReadHeads("\(line)\r\nHost: x\r\n\r\n")
            #expect(heads.messages.isEmpty)
            #expect(heads.fault?.status.rawValue == status)
        }

        @Test(
            "HTTP/1.1 needs exactly one valid Host (RFC 9112 §3.2)",
            arguments: [
                ("HTTP/1.1", "Host: x", true), ("HTTP/1.1", "host:", true), ("HTTP/1.1", "Host: x.example:8080", true),
                ("HTTP/1.1", "Host: [::1]:80", true), ("HTTP/1.1", "Host: [v1.x]", false),
                ("HTTP/1.1", "Host: x%20y", true),
                ("HTTP/1.1", "Host: 10.0.0.1:", true), ("HTTP/1.0", "X: y", true), ("HTTP/1.1", "X: y", false),
                ("HTTP/1.1", "Host: x\r\nHost: x", false), ("HTTP/1.0", "Host: x\r\nhOST: y", false),
                ("HTTP/1.1", "Host: x y", false), ("HTTP/1.1", "Host: u@x", false), ("HTTP/1.1", "Host: x/y", false),
                ("HTTP/1.1", "Host: x:y", false), ("HTTP/1.1", "Host: x:65536", false),
                ("HTTP/1.1", "Host: x:000080", false),
                ("HTTP/1.1", "Host: [::1", false), ("HTTP/1.1", "Host: [::1]x", false),
                ("HTTP/1.1", "Host: x%2", false),
                ("HTTP/1.1", "Host: ::1", false), ("HTTP/1.1", "Host: é", false), ("HTTP/1.1", "Host: x?y", false),
            ]
        )
        func hosts(version: String, lines: String, isGood: Bool) {
            let heads = ReadHeads("GET / \(version)\r\n\(lines)\r\n\r\n")
            #expect(heads.messages.count == (isGood ? 1 : 0))
            #expect(heads.fault?.status.rawValue == (isGood ? nil : 400))
        }

        @Test("Limits: 414 for the target, 431 for lines and bytes")
        func limits() {
            let limits = HeadLimits(bytes: 1000, fieldLines: 4, target: 20)
            let path = "/" + String(repeating: "a", count: 19)
            let good = ReadHeads("GET \(path) HTTP/1.1\r\nHost: x\r\nA:\r\nB:\r\nC:\r\n\r\n", limits: limits)
            #expect(good.messages.count == 1)
            let vectors = [
                ("GET \(path)a HTTP/1.1\r\nHost: x\r\n\r\n", 414),
                ("GET / HTTP/1.1\r\nHost: x\r\nA:\r\nB:\r\nC:\r\nD:\r\n\r\n", 431),
                ("GET / HTTP/1.1\r\nHost: x\r\nA: \(String(repeating: "a", count: 1000))\r\n\r\n", 431),
                ("GET /\(String(repeating: "a", count: 2000))", 414),
            ]
            for (text, status) in vectors {
                #expect(ReadHeads(text, limits: limits).fault?.status.rawValue == status)
            }
        }

        @Test("One empty line before a request is skipped, a second one is refused (RFC 9112 §2.2)")
        func emptyLines() {
            #expect(ReadHeads("\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n").messages.count == 1)
            #expect(ReadHeads("\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n").fault?.status == 400)
        }

        @Test(
            "A head whose request line has no end is refused",
            arguments: ["", "\r", "GET / HTTP/1.1", "GET / HTTP/1.1\r"]
        )
        func withoutLineEnd(_ text: String) {
            #expect(throws: MessageFault.self) { try Array(text.utf8).withUnsafeBytes { try RequestMessage($0) } }
        }

        @Test("Field values are ISO 8859-1, as they came")
        func values() {
            let message = ReadHeads("GET / HTTP/1.0\r\nX-A: \u{E4}\u{FF}\r\nX-A:\r\n\r\n").messages.first
            #expect(message?.version == .http10)
            #expect(message?.fields.values(of: "X-A") == ["\u{E4}\u{FF}", ""])
        }
    }
#endif

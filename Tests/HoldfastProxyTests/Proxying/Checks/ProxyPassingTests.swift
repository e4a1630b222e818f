// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import Holdfast
    import HoldfastProxy
    import HoldfastTesting
    import Testing

    /// The requirements of PROXY-REQUIREMENTS as bytes on real sockets: what goes through.
    @Suite("Through the proxy, byte for byte", .timeLimit(.minutes(20)))
    struct ProxyPassingTests {
        @Test(
            "A2, A3, B1: any method arrives with its content",
            arguments: ["PUT", "POST", "DELETE", "M-SEARCH", "get"]
        )
        func methods(_ method: String) async throws {
            try await ProxyBench.with { bench in
                let path = bench.lay(LoopbackReply(201, body: "body"))
                let client = try await bench.client()
                #expect(try await client.ask(path, method: method, body: "abc").status == 201)
                #expect(bench.seen(path).first?.method == method)
                #expect(bench.seen(path).first?.text == "abc")
                #expect(try await client.ask(path).text == "body")
            }
        }

        @Test("A8: HEAD, 204 and 304 have no content and keep the connection in sync")
        func empty() async throws {
            try await ProxyBench.with { bench in
                let client = try await bench.client()
                let head = try await client.ask(bench.lay(LoopbackReply(body: "body")), method: "HEAD")
                #expect(head.status == 200)
                #expect(head["Content-Length"] == "4")
                for status in [204, 304] {
                    let reply = LoopbackReply(
                        status,
                        fields: status == 304 ? [("Content-Length", "10")] : [],
                        framing: .bare
                    )
                    #expect(try await client.ask(bench.lay(reply)).status == status)
                }
                #expect(try await client.ask(bench.lay(LoopbackReply(body: "next"))).text == "next")
            }
        }

        @Test("B2: path and query arrive verbatim, through a gateway and a forward proxy", arguments: [false, true])
        func target(_ isForward: Bool) async throws {
            try await ProxyBench.with(isForward: isForward) { bench in
                let path = bench.lay(LoopbackReply())
                let target = path + "?test=b%41c&x=1,2&y=|{}\"\u{E9}"
                let prefix = isForward ? "http://127.0.0.1:\(bench.origin.port)" : ""
                let answer = try await bench.ask(prefix + target)
                #expect(answer.status == 200)
                #expect(bench.seen(path).first?.target == target)
                #expect(bench.seen(path).first?.values(of: "Host") == ["127.0.0.1:\(bench.origin.port)"])
            }
        }

        @Test("B3, B5: end-to-end request fields arrive unchanged, hop-by-hop fields do not")
        func requestFields() async throws {
            try await ProxyBench.with { bench in
                let path = bench.lay(LoopbackReply())
                let given = [
                    "Test-ID: x", "Req-Num: 3", "Pragma: foo", "Cache-Control: nothing-to-see-here",
                    "Authorization: FOO",
                    "Cookie: a=b", "Range: bytes=-5", "If-None-Match: \"abcdef\"", "Foo: 1,2",
                    "Accept-Language: eN, De",
                ]
                _ = try await bench.ask(path, given + ["Connection: keep-alive, Secret", "Secret: 1", "TE: trailers"])
                let seen = try #require(bench.seen(path).first)
                for line in given {
                    let parts = line.split(separator: ": ", maxSplits: 1).map(String.init)
                    #expect(seen.values(of: parts[0]) == [parts[1]])
                }
                for name in ["Secret", "TE"] { #expect(seen.values(of: name).isEmpty) }
            }
        }

        @Test(
            "A4: statuses pass unchanged, with their content",
            arguments: [203, 299, 301, 302, 307, 308, 401, 404, 407, 499, 500, 503, 599, 999]
        )
        func statuses(_ status: Int) async throws {
            try await ProxyBench.with { bench in
                let answer = try await bench.ask(bench.lay(LoopbackReply(status, body: "body")))
                #expect(answer.status == status)
                #expect(answer.text == "body")
            }
        }

        @Test("B12, B13: redirects are not followed and challenges not answered")
        func handedUp() async throws {
            try await ProxyBench.with { bench in
                let path = bench.lay(LoopbackReply(302, fields: [("Location", "/elsewhere")], body: "body"))
                let redirect = try await bench.ask(path)
                #expect(redirect["Location"] == "/elsewhere")
                let asked = bench.lay(LoopbackReply(401, fields: [("WWW-Authenticate", "Basic realm=x")], body: "body"))
                #expect(try await bench.ask(asked)["WWW-Authenticate"] == "Basic realm=x")
                #expect(bench.seen("/elsewhere").isEmpty)
                #expect(bench.seen(asked).count == 1)
            }
        }

        @Test("A5, A6, B15: unusual response fields pass unchanged, line by line")
        func responseFields() async throws {
            try await ProxyBench.with { bench in
                let given = [
                    ("Date", "foo"), ("Expires", "0"), ("Age", "7200"), ("ETag", "W\"abcdef\""),
                    ("Content-Range", "abc"),
                    ("Cache-Control", "max-age=0"), ("Last-Modified", "Wed, 01 Jan 2020 00:00:00 GMT"),
                    ("Warning", "x"),
                    ("Set-Cookie", "a=b"), ("Set-Cookie", "c=d"), ("Vary", ""),
                ]
                let answer = try await bench.ask(bench.lay(LoopbackReply(fields: given, framing: .automatic)))
                for (name, value) in given where name != "Set-Cookie" { #expect(answer[name] == value, "\(name)") }
                #expect(answer["Set-Cookie"] == "a=b, c=d")
            }
        }

        @Test("B6, B7: unknown codings are not touched")
        func codings() async throws {
            try await ProxyBench.with { bench in
                let content = bench.lay(LoopbackReply(fields: [("Content-Encoding", "abcdefg")], body: "body"))
                let coded = try await bench.ask(content)
                #expect(coded["Content-Encoding"] == "abcdefg")
                #expect(coded.text == "body")
                let transfer = bench.lay(
                    LoopbackReply(
                        fields: [("Transfer-Encoding", "abcdefg"), ("Connection", "close")],
                        framing: .untilClose,
                        steps: [.send("body")]
                    )
                )
                #expect(try await bench.ask(transfer).text == "body")
            }
        }

        @Test("B9: bytes beyond the announced length are dropped and their connection closed")
        func surplus() async throws {
            try await ProxyBench.with { bench in
                for _ in 0..<5 {
                    let reply = LoopbackReply(framing: .length(4), steps: [.send("body and 22 bytes beyond it")])
                    #expect(try await bench.ask(bench.lay(reply)).text == "body")
                    let paths = (0..<4).map { _ in bench.lay(LoopbackReply(body: "next")) }
                    try await withThrowingTaskGroup { group in
                        for path in paths { group.addTask { try await bench.ask(path).text } }
                        for try await text in group { #expect(text == "next") }
                    }
                }
            }
        }

        @Test("A1: fifty requests can be in progress at a time")
        func fifty() async throws {
            try await ProxyBench.with { bench in
                let gate = LoopbackGate()
                let paths = (0..<50).map { _ in bench.lay(LoopbackReply(before: [.pause(gate)], steps: [.send("body")]))
                }
                try await withThrowingTaskGroup { group in
                    for path in paths { group.addTask { try await bench.ask(path).text } }
                    try await bench.origin.requests(atLeast: 50)
                    gate.open()
                    for try await text in group { #expect(text == "body") }
                }
            }
        }

        @Test("A9, B11: interim responses pass in order, and never from the cache")
        func interim() async throws {
            try await ProxyBench.with { bench in
                let early = LoopbackReply.Step.interim(103, fields: [("Link", "</a.css>"), ("X-My-Header", "test")])
                let fields = [("Cache-Control", "max-age=3600")]
                let path = bench.lay(
                    LoopbackReply(fields: fields, before: [.interim(102), early], steps: [.send("body")])
                )
                let first = try await bench.ask(path)
                #expect(first.interim.map(\.status) == [102, 103])
                #expect(first.interim.last?["X-My-Header"] == "test")
                #expect(first["X-My-Header"] == nil)
                let second = try await bench.ask(path)
                #expect(second.interim.isEmpty)
                #expect(second.text == "body")
                #expect(bench.seen(path).count == 1)
            }
        }
    }
#endif

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import Foundation
    import Holdfast
    import HoldfastSemantics
    import HoldfastTesting
    import Synchronization
    import Testing

    @testable import HoldfastProxy

    /// The requirements of PROXY-REQUIREMENTS as bytes on real sockets: what is answered here.
    @Suite("Responses from the proxy, byte for byte", .timeLimit(.minutes(20)))
    struct ProxyAnsweringTests {
        private static let lasting = ("Cache-Control", "max-age=3600")

        @Test("A7, A11: a fresh response is reused with one Age, its Date and its length")
        func reuse() async throws {
            let clock = ManualClock()
            try await ProxyBench.with(adjust: { $0.clock = clock }) { bench in
                let date = HTTPDate(clock.timestamp).description
                let path = bench.lay(
                    LoopbackReply(
                        fields: [Self.lasting, ("Date", date), ("Age", "30"), ("Set-Cookie", "a=b")],
                        body: "body"
                    )
                )
                #expect(try await bench.ask(path)["Age"] == "30")
                clock.advance(by: .seconds(3))
                let answer = try await bench.ask(path, ["Cache-Control: nothing-to-see-here", "Pragma: foo"])
                #expect(answer.values("Age") == ["33"])
                #expect(answer["Date"] == date)
                #expect(answer["Set-Cookie"] == "a=b")
                #expect(answer["Content-Length"] == "4")
                #expect(answer["Transfer-Encoding"] == nil)
                #expect(bench.seen(path).count == 1)
            }
        }

        @Test("C1: a response without freshness and validator is not reused")
        func bare() async throws {
            try await ProxyBench.with { bench in
                let path = bench.lay(LoopbackReply(body: "body"))
                for _ in 0..<2 { _ = try await bench.ask(path) }
                #expect(bench.seen(path).count == 2)
            }
        }

        @Test("A path with dot segments is sent as it came, and stores nothing under another path's key")
        func dotSegments() async throws {
            try await ProxyBench.with { bench in
                let path = bench.lay(LoopbackReply(fields: [Self.lasting], body: "body"))
                for _ in 0..<2 { _ = try await bench.ask("/a/..\(path)") }
                #expect(bench.seen("/a/..\(path)").count == 2)
                #expect(try await bench.ask(path).text == "body")
                #expect(bench.seen(path).count == 1)
            }
        }

        @Test(
            "What is sent otherwise than a key has it: escapes, dot segments, stray percent signs, and signs of markup",
            arguments: [
                ("/a%", true), ("/a%zz", true), ("/a%41", true), ("/a?q=\"", true), ("/a?q=<", true), ("/a>", true),
                ("/a\\b", true), ("/a?q=^", false), ("/a`", false), ("/{a}", false), ("/ä", true),
                ("/a?b[c]=d|e", false),
                ("/a?q='", false),
                ("/a/../b", true), ("/./b", true), ("/a/%2e%2E/b", true), ("/a/.%2e", true), ("/..", true),
                ("/a.b/c..d", false),
                ("/...", false), ("/a?x=/../", false), ("/%2f..", false), ("/%2F..", false), ("/.well-known/x", false),
                ("/%c3%a9?a=%e2", false), ("/%zz", true), ("/%a", true), ("/%Za", true),
                ("/a?q=%7e", true), ("/a%20b?q=%C3%A4", false), ("//a", false), ("/a?", false), ("*", true),
            ]
        )
        func keyedOtherwise(_ target: String, _ isKeyedOtherwise: Bool) throws {
            let head = try ExactRequestHead(method: .get, origin: "http://origin.example", requestTarget: target)
            #expect(TargetRules.isKeyedOtherwise(head) == isKeyedOtherwise)
        }

        @Test("A12: a stored response has no hop-by-hop field and none that is meant for a proxy")
        func stored() async throws {
            try await ProxyBench.with { bench in
                let names = [
                    "Keep-Alive", "Proxy-Authenticate", "Proxy-Authentication-Info", "Proxy-Authorization",
                    "Proxy-Connection",
                    "TE", "Upgrade", "Trailer",
                ]
                let named = [("Connection", "a, b"), ("a", "1"), ("b", "2"), ("c", "3")]
                let path = bench.lay(
                    LoopbackReply(fields: [Self.lasting] + named + names.map { ($0, "stored") }, body: "body")
                )
                _ = try await bench.ask(path)
                let answer = try await bench.ask(path)
                #expect(bench.seen(path).count == 1)
                #expect(answer["c"] == "3")
                for name in names + ["a", "b"] { #expect(answer[name] == nil, "\(name)") }
            }
        }

        @Test("B4, B8: a 304 with a length freshens the stored response")
        func freshened() async throws {
            let clock = ManualClock()
            try await ProxyBench.with(adjust: { $0.clock = clock }) { bench in
                let first = LoopbackReply(
                    fields: [("Cache-Control", "max-age=1"), ("ETag", "W/\"abc\""), ("Test-Header", "old")],
                    body: "body"
                )
                let second: ProxyBench.Turn = { request in
                    guard request.values(of: "If-None-Match") == ["W/\"abc\""] else { return LoopbackReply(999) }
                    return LoopbackReply(
                        304,
                        fields: [("ETag", "W/\"abc\""), ("Test-Header", "new"), ("Content-Length", "10")],
                        framing: .bare
                    )
                }
                let path = bench.lay({ _ in first }, second)
                let client = try await bench.client()
                _ = try await client.ask(path)
                clock.advance(by: .seconds(3))
                let answer = try await client.ask(path)
                #expect(answer.status == 200)
                #expect(answer.text == "body")
                #expect(answer["Test-Header"] == "new")
                #expect(answer["Content-Length"] == "4")
            }
        }

        @Test("C7: a client's own condition or range is answered from the cache")
        func conditions() async throws {
            try await ProxyBench.with { bench in
                let path = bench.lay(LoopbackReply(fields: [Self.lasting, ("ETag", "\"abc\"")], body: "0123456789"))
                let client = try await bench.client()
                _ = try await client.ask(path)
                let unchanged = try await client.ask(path, ["If-None-Match: \"x\", \"abc\""])
                #expect(unchanged.status == 304)
                #expect(unchanged["ETag"] == "\"abc\"")
                let part = try await client.ask(path, ["Range: bytes=2-4"])
                #expect(part.status == 206)
                #expect(part.text == "234")
                #expect(bench.seen(path).count == 1)
            }
        }

        @Test("B10: a connection that the origin closes while idle does no harm", arguments: ["GET", "PUT"])
        func idle(_ method: String) async throws {
            try await ProxyBench.with { bench in
                for _ in 0..<12 {
                    var reply = LoopbackReply(body: "body")
                    reply.closes = true
                    let answer = try await bench.ask(
                        bench.lay(reply),
                        method: method,
                        body: method == "PUT" ? "x" : nil
                    )
                    #expect(answer.status == 200)
                }
            }
        }

        @Test(
            "A10: an origin that hangs up, resets or does not speak HTTP results in a 502 made by the proxy",
            arguments: ["close", "reset", "no HTTP", "refused"]
        )
        func failures(_ kind: String) async throws {
            try await ProxyBench.with { bench in
                let step: LoopbackReply.Step =
                    switch kind {
                    case "close": .close
                    case "reset": .reset
                    default: .raw("SSH-2.0-x\r\n\r\n")
                    }
                let path = bench.lay(LoopbackReply(before: kind == "no HTTP" ? [step, .close] : [step]))
                if kind == "refused" { bench.origin.stop() }
                let client = try await bench.client()
                let answer = try await client.ask(path)
                #expect(answer.status == 502)
                #expect(answer.text.hasPrefix("holdfast: "))
                #expect(bench.seen(path).count <= 2)
                // The client's connection stays.
                #expect(try await client.ask(path).status == 502)
            }
        }

        @Test(
            "A request whose content turns out to be wrong is recorded once, with the status that the client gets",
            arguments: [("Content-Length: 5\r\n\r\na", 408), ("Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n", 408)]
        )
        func wrongContent(_ rest: String, _ status: Int) async throws {
            let records = Mutex<[ProxyRecord]>([])
            let recorded = CountWatch()
            let adjust: (inout ProxyConfiguration) -> Void = { configuration in
                configuration.limits.stallTimeout = .milliseconds(200)
                configuration.onAnswer = { record in
                    records.withLock { $0.append(record) }
                    recorded.increment()
                }
            }
            try await ProxyBench.with(adjust: adjust) { bench in
                let client = try await bench.client()
                try await client.send("POST /x HTTP/1.1\r\nHost: x\r\n\(rest)")
                #expect(try await client.answer().status == status)
                try await recorded.wait(for: 1)
                #expect(records.withLock { $0 }.map(\.status.rawValue) == [status])
            }
        }

        @Test(
            "In shared mode, Cookie and Authorization decide who gets a response, as the page about the proxy says",
            arguments: [
                ("Cookie: a=1", "max-age=60", "Cookie: a=1", true), ("Cookie: a=1", "max-age=60", "Cookie: a=2", false),
                ("Cookie: a=1", "max-age=60", "X: y", false), ("Cookie: a=1", "max-age=60, public", "X: y", true),
                ("Cookie: a=1", "s-maxage=60", "Cookie: a=2", true), ("X: y", "max-age=60", "Cookie: a=1", true),
                ("Cookie: _ga=1", "max-age=60", "X: y", true),
                ("Authorization: Bearer a", "max-age=60", "Authorization: Bearer a", false),
                ("Authorization: Bearer a", "max-age=60, public", "X: y", true),
                ("Authorization: Bearer a", "s-maxage=60", "X: y", true),
                ("Authorization: Bearer a", "max-age=60, must-revalidate", "Authorization: Bearer b", true),
                ("X: y", "max-age=60", "Authorization: Bearer a", true),
            ]
        )
        func whose(_ first: String, _ directives: String, _ second: String, _ isReused: Bool) async throws {
            try await ProxyBench.with { bench in
                let path = bench.lay(LoopbackReply(fields: [("Cache-Control", directives)], body: "body"))
                for field in [first, second] {
                    let answer = try await bench.ask(path, [field])
                    #expect(answer.status == 200)
                }
                #expect(bench.seen(path).count == (isReused ? 1 : 2))
            }
        }

        @Test("C5: a stale response is served if the origin hangs up")
        func disconnected() async throws {
            let clock = ManualClock()
            try await ProxyBench.with(adjust: { $0.clock = clock }) { bench in
                let stored = LoopbackReply(fields: [("Cache-Control", "max-age=1"), ("ETag", "\"a\"")], body: "body")
                let path = bench.lay({ _ in stored }, { _ in LoopbackReply(before: [.close]) })
                _ = try await bench.ask(path)
                clock.advance(by: .seconds(9))
                let answer = try await bench.ask(path)
                #expect(answer.status == 200)
                #expect(answer.values("Age") == ["9"])
            }
        }

        @Test("RFC 9110 §9.3.6: CONNECT and foreign targets are refused, and the connection ends cleanly")
        func refusals() async throws {
            try await ProxyBench.with(isForward: true) { bench in
                let path = try await bench.ask("/path")
                #expect(path.status == 400)
                #expect(try await bench.ask("example.com:443", method: "CONNECT").status == 501)
                let own = try await bench.ask("http://127.0.0.1:\(bench.proxy.port)/")
                #expect(own.status == 508)
            }
        }

        @Test(
            "A forward proxy that denies private addresses checks the connected address, so a name does not deceive it"
        )
        func privateAddresses() async throws {
            var rules = ForwardRules()
            rules.deniesPrivateAddresses = true
            try await ProxyBench.with(isForward: true, adjust: { $0.role = .forward(rules) }) { bench in
                for name in ["127.0.0.1", "localhost", "127.1"] {
                    let answer = try await bench.ask("http://\(name):\(bench.origin.port)/x")
                    #expect(answer.status == 403, "\(name)")
                }
                #expect(bench.origin.requests.isEmpty)
            }
            // As it does behind a name of the world's that leads here, which no test can have.
            try await ProxyBench.with(
                adjust: {
                    $0.transport.admission = { [rules] in try rules.admit("name.example", port: $1, address: $2) }
                },
                { bench in
                    let answer = try await bench.ask("/x")
                    #expect(answer.status == 403)
                    #expect(bench.origin.requests.isEmpty)
                }
            )
        }

        @Test("RFC 9110 §7.6.3, RFC 9211: Via and Cache-Status are sent if configured")
        func names() async throws {
            var options = CacheOptions.shared
            options.cacheName = "edge"
            let cache = HTTPCache.inMemory(options: options)
            try await ProxyBench.with(adjust: {
                $0.viaName = "edge"
                $0.cache = cache
            }) { bench in
                let path = bench.lay(LoopbackReply(fields: [Self.lasting], body: "body"))
                let first = try await bench.ask(path)
                #expect(first["Via"] == "1.1 edge")
                #expect(first["Cache-Status"]?.contains("fwd=uri-miss") == true)
                #expect(bench.seen(path).first?.values(of: "Via") == ["1.1 edge"])
                // What is still being stored is shared as an exchange, and called so.
                await bench.proxy.pipeline.drain()
                let second = try await bench.ask(path)
                #expect(second["Via"] == "1.1 edge")
                #expect(second["Cache-Status"]?.contains(";hit") == true, "\(second["Cache-Status"] ?? "none")")
                #expect(try await bench.ask(path, ["Via: 1.1 edge"]).status == 508)
            }
        }

        @Test("A failing store costs no response, and the failure is reported")
        func failingStore() async throws {
            let told = Mutex<[ProxyFailure]>([])
            let cache = HTTPCache(store: BrokenStore(), options: .shared)
            let adjust: (inout ProxyConfiguration) -> Void = { configuration in
                configuration.cache = cache
                configuration.onFailure = { failure in told.withLock { $0.append(failure) } }
            }
            try await ProxyBench.with(adjust: adjust) { bench in
                let path = bench.lay(LoopbackReply(fields: [("Cache-Control", "max-age=60")], body: "body"))
                let answer = try await bench.ask(path)
                #expect(answer.text == "body")
                await bench.proxy.pipeline.drain()
            }
            let failures = told.withLock { $0 }
            #expect(failures.first?.kind == .store)
            #expect(failures.first?.text.contains("The device is full.") == true)
        }

        @Test("A server that leaves streamed content unanswered is left out like any that does not answer")
        func hangingUploads() async throws {
            let second = try LoopbackServer.start { _ in LoopbackReply(body: "ok") }
            defer { second.stop() }
            let further = [try ProxyOrigin("http://127.0.0.1:\(second.port)")]
            let adjust: (inout ProxyConfiguration) -> Void = { configuration in
                configuration.answerTimeout = .seconds(2)
                configuration.furtherOrigins = further
            }
            try await ProxyBench.with(adjust: adjust) { bench in
                let path = bench.lay(LoopbackReply.never)
                let body = String(repeating: "a", count: 100_000)
                var statuses: [Int] = []
                for _ in 0..<7 { statuses.append(try await bench.ask(path, method: "POST", body: body).status) }
                // The turns are one, two, one, two, one, and from then on only the second's, which a busy machine may hold up too.
                #expect(bench.seen(path).count == 3, "\(statuses)")
                #expect(statuses.count { $0 == 504 } >= 3 && statuses.contains(200), "\(statuses)")
            }
        }
    }
#endif

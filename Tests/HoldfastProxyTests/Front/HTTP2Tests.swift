// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import Foundation
    import Holdfast
    import HoldfastSemantics
    import HoldfastTestKit
    import HoldfastTesting
    import NIOCore
    import NIOHPACK
    import NIOHTTP2
    import Synchronization
    import Testing

    @testable import HoldfastProxy

    /// HTTP/2 towards clients, over real sockets.
    @Suite("HTTP/2 towards clients", .timeLimit(.minutes(20)))
    struct HTTP2Tests {
        /// Runs a test with a proxy that speaks TLS.
        private static func with(
            intake: @escaping @Sendable (LoopbackRequest) -> LoopbackIntake = { _ in .keep },
            adjust: (inout ProxyConfiguration) -> Void = { _ in },
            _ test: (ProxyBench, HTTP2Client) async throws -> Void
        ) async throws {
            let folder = FileManager.default.temporaryDirectory.appending(path: "holdfast-h2-\(UUID().uuidString)")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            defer { try? FileManager.default.removeItem(at: folder) }
            let (certificate, key) = (folder.appending(path: "cert.pem"), folder.appending(path: "key.pem"))
            try Data(LoopbackCertificate.pem.utf8).write(to: certificate)
            try Data(LoopbackCertificate.keyPEM.utf8).write(to: key)
            let full: (inout ProxyConfiguration) -> Void = { configuration in
                configuration.certificate = ProxyCertificate(certificatePath: certificate.path, keyPath: key.path)
                adjust(&configuration)
            }
            try await ProxyBench.with(intake: intake, adjust: full) { bench in
                let client = try await HTTP2Client.connect(port: bench.proxy.port)
                try await test(bench, client)
                client.close()
            }
        }

        @Test("Requests side by side on one connection are answered by cache and origin as those of HTTP/1.1")
        func answers() async throws {
            try await Self.with(adjust: { $0.viaName = "edge" }) { bench, client in
                let path = bench.lay(
                    LoopbackReply(
                        fields: [
                            ("Cache-Control", "max-age=60"), ("X-Word", "caf\u{E9}"), ("X-Letter", "\u{E9}"),
                            ("Keep-Alive", "timeout=5"),
                        ],
                        body: "body"
                    )
                )
                let first = try await client.get(path, [("cookie", "a=1"), ("cookie", "b=2"), ("x-word", "caf\u{E9}")])
                #expect(first.status == "200" && first.text == "body" && first.isWhole && first.reset == nil)
                #expect(first.heads[0]["content-length"] == ["4"] && first.heads[0]["x-word"] == ["caf\u{E9}"])
                #expect(first.heads[0]["x-letter"] == ["\u{E9}"])
                #expect(first.heads[0]["keep-alive"].isEmpty && first.heads[0]["connection"].isEmpty)
                let sent = try #require(bench.seen(path).first)
                #expect(sent.values(of: "Cookie") == ["a=1; b=2"] && sent.values(of: "Via") == ["2.0 edge"])
                #expect(sent.values(of: "Host") == ["127.0.0.1:\(bench.origin.port)"])
                let more = try await withThrowingTaskGroup(of: HTTP2Client.Answer.self) { group in
                    for _ in 0..<50 { group.addTask { try await client.get(path) } }
                    return try await group.reduce(into: []) { $0.append($1) }
                }
                #expect(more.count == 50 && more.allSatisfy { $0.status == "200" && $0.text == "body" && $0.isWhole })
                // One for the cookies, and one for all the others.
                #expect(bench.seen(path).count == 2)
                let head = try await client.ask(HTTP2Client.head("HEAD", path))
                #expect(head.status == "200" && head.body.isEmpty && head.heads[0]["content-length"] == ["4"])
                #expect(bench.proxy.statistics.connectionsAccepted == 1)
            }
        }

        @Test("Content with a length, without one, and with trailers, which are dropped", arguments: [true, false])
        func content(hasLength: Bool) async throws {
            try await Self.with { bench, client in
                let path = bench.lay { LoopbackReply(body: "got \($0.body.count)") }
                let pieces = Array(repeating: String(repeating: "x", count: 10_000), count: 30)
                let fields = hasLength ? [("content-length", "300000")] : []
                let answer = try await client.ask(HTTP2Client.head("POST", path, fields), body: pieces)
                #expect(answer.status == "200" && answer.text == "got 300000")
                let trailed = try await client.ask(
                    HTTP2Client.head("POST", path, fields),
                    body: pieces,
                    trailers: HPACKHeaders([("x-sum", "1")])
                )
                #expect(trailed.text == "got 300000")
                #expect(bench.seen(path).allSatisfy { $0.values(of: "X-Sum").isEmpty })
                #expect(bench.seen(path)[0].values(of: "Content-Length") == (hasLength ? ["300000"] : []))
            }
        }

        @Test("A client that takes nothing holds the origin back, and no other stream; then it gets all of it")
        func backPressure() async throws {
            try await Self.with { bench, client in
                let (length, gauge) = (64 << 20, ByteGauge())
                let large = bench.lay(
                    LoopbackReply(fields: [("Cache-Control", "no-store")], steps: [.pattern(length, gauge: gauge)])
                )
                let small = bench.lay(LoopbackReply(body: "small"))
                let (stream, answer) = try await client.open(reads: false)
                let head = HTTP2Frame.FramePayload.headers(
                    .init(headers: HTTP2Client.head("GET", large), endStream: true)
                )
                try await stream.writeAndFlush(head)
                try await gauge.wait(for: 1 << 16)
                for _ in 0..<20 { #expect(try await client.get(small).text == "small") }
                #expect(gauge.count < length)
                try await stream.setOption(.autoRead, value: true).get()
                stream.read()
                let whole = try await answer.get()
                #expect(whole.body.count == length && whole.isWhole)
            }
        }

        @Test("An answer that breaks off resets its stream, and the others go on")
        func brokenOff() async throws {
            try await Self.with { bench, client in
                let path = bench.lay(LoopbackReply(framing: .length(100), steps: [.send("part"), .close]))
                let answer = try await client.get(path)
                #expect(answer.status == "200" && !answer.isWhole && answer.reset == .internalError)
                #expect(try await client.get(bench.lay(LoopbackReply(body: "next"))).text == "next")
            }
        }

        @Test("A client that resets a stream breaks the exchange with the origin off")
        func reset() async throws {
            try await Self.with { bench, client in
                let gate = LoopbackGate()
                let path = bench.lay(
                    LoopbackReply(fields: [("Cache-Control", "no-store")], steps: [.send("part"), .pause(gate)])
                )
                let (stream, answer) = try await client.open()
                let head = HTTP2Frame.FramePayload.headers(
                    .init(headers: HTTP2Client.head("GET", path), endStream: true)
                )
                try await stream.writeAndFlush(head)
                try await gate.reached()
                stream.close(promise: nil)
                _ = try await answer.get()
                #expect(try await bench.origin.exchangeEnds(atLeast: 1).map(\.endedBy) == [.peer])
                gate.open()
                #expect(try await client.get(bench.lay(LoopbackReply(body: "next"))).text == "next")
            }
        }

        @Test("A client that leaves before the answer is there is no failure of the origin")
        func left() async throws {
            let failures = Mutex<[ProxyFailure]>([])
            let answered = CountWatch()
            let adjust: (inout ProxyConfiguration) -> Void = { configuration in
                configuration.onFailure = { failure in failures.withLock { $0.append(failure) } }
                configuration.onAnswer = { _ in answered.increment() }
            }
            try await Self.with(adjust: adjust) { bench, client in
                let gate = LoopbackGate()
                let path = bench.lay(LoopbackReply(before: [.pause(gate)]))
                let (stream, _) = try await client.open()
                let head = HTTP2Frame.FramePayload.headers(
                    .init(headers: HTTP2Client.head("GET", path), endStream: true)
                )
                try await stream.writeAndFlush(head)
                try await gate.reached()
                stream.close(promise: nil)
                try await answered.wait(for: 1)
                gate.open()
                #expect(failures.withLock { $0 }.isEmpty)
            }
        }

        @Test("One malformed request resets its stream, and what shares the connection with it goes on")
        func malformed() async throws {
            try await Self.with { bench, client in
                let gate = LoopbackGate()
                let path = bench.lay(LoopbackReply(steps: [.send("slow "), .pause(gate), .send("end")]))
                async let slow = client.get(path)
                try await gate.reached()
                for fields in [
                    [("content-length", "4")], [("content-length", "6")], [("x", "a\r\nb: c")],
                    [("connection", "close")],
                ] {
                    let answer = try await client.ask(HTTP2Client.head("POST", "/x", fields), body: ["12345"])
                    #expect(answer.status == nil || answer.status == "400")
                }
                gate.open()
                #expect(try await slow.text == "slow end")
            }
        }

        @Test("A drain tells the client to go, lets what is under way end, and takes nothing new")
        func drain() async throws {
            try await Self.with { bench, client in
                let gate = LoopbackGate()
                let path = bench.lay(LoopbackReply(steps: [.send("slow "), .pause(gate), .send("end")]))
                async let slow = client.get(path)
                try await gate.reached()
                let proxy = bench.proxy
                let drained = Task { await proxy.drain(within: .seconds(3_600)) }
                try await client.goAways.wait(for: 2)
                gate.open()
                let answer = try await slow
                #expect(answer.text == "slow end" && answer.isWhole)
                try await client.channel.closeFuture.get()
                await drained.value
                #expect(proxy.statistics.connectionsOpen == 0)
            }
        }

        @Test("A drain ends a connection that lies idle")
        func idle() async throws {
            try await Self.with { bench, client in
                #expect(try await client.get(bench.lay(LoopbackReply(body: "a"))).text == "a")
                await bench.proxy.drain(within: .seconds(3_600))
                try await client.channel.closeFuture.get()
                #expect(bench.proxy.statistics.connectionsOpen == 0)
            }
        }

        @Test("Rapid resets end the connection, and nobody else's")
        func flood() async throws {
            try await Self.with { bench, client in
                let path = bench.lay(LoopbackReply(body: "a"))
                let victim = try await HTTP2Client.connect(port: bench.proxy.port)
                for _ in 0..<1_000 where client.channel.isActive {
                    guard let (stream, _) = try? await client.open() else { break }
                    let head = HTTP2Frame.FramePayload.headers(
                        .init(headers: HTTP2Client.head("GET", path), endStream: true)
                    )
                    stream.write(head, promise: nil)
                    stream.writeAndFlush(HTTP2Frame.FramePayload.rstStream(.cancel), promise: nil)
                }
                try await client.channel.closeFuture.get()
                #expect(try await victim.get(path).text == "a")
                victim.close()
            }
        }

        @Test(
            "What HTTP/1.1 would read otherwise than HTTP/2 reaches no origin",
            arguments: [
                ("GET", "/a b", []), ("GET", "/a\r\nx: y", []), ("GET", "a", []), ("GET", "http://evil.example/", []),
                ("GET", "", []), ("G ET", "/", []), ("GET /x HTTP/1.1\r\nHost: y\r\n\r\nGET", "/", []),
                ("GET", "/", [("host", "other.example")]), ("GET", "/", [("x", "a\r\nb: c")]),
                ("GET", "/", [("x", "a\nb")]),
                ("GET", "/", [("x", "a\0b")]), ("GET", "/", [("x: y\r\nz", "b")]), ("GET", "/", [("x ", "b")]),
                ("GET", "/", [("connection", "close")]), ("POST", "/", [("transfer-encoding", "chunked")]),
                ("GET", "/", [("upgrade", "h2c")]), ("GET", "/", [("X-Upper", "a")]),
                ("POST", "/", [("content-length", "5"), ("content-length", "6")]),
                ("POST", "/", [("content-length", "-1")]),
                ("POST", "/", [("content-length", "4")]), ("CONNECT", "/", []), ("GET", "/", [("expect", "what")]),
            ] as [(String, String, [(String, String)])]
        )
        func smuggling(_ method: String, _ path: String, _ fields: [(String, String)]) async throws {
            try await Self.with { bench, client in
                let answer = try await client.ask(
                    HTTP2Client.head(method, path, fields),
                    body: method == "POST" ? ["12345"] : nil
                )
                #expect(answer.status == nil || answer.status?.hasPrefix("4") == true || answer.status == "501")
                // What is sent before its content turns out to be wrong is no request that came whole.
                #expect(bench.origin.requests.isEmpty)
                let other = try await HTTP2Client.connect(port: bench.proxy.port)
                #expect(try await other.get(bench.lay(LoopbackReply(body: "a"))).text == "a")
                other.close()
            }
        }

        /// Fields whose values have this length altogether, in text that HPACK does not shorten.
        private static func fields(_ length: Int) -> [(String, String)] {
            stride(from: 0, to: length, by: 4_000).map { ("x-\($0)", String(repeating: "~", count: 4_000)) }
        }

        @Test(
            "The first request of a connection may have as large a head as over HTTP/1.1, before any settings are known"
        )
        func firstHead() async throws {
            try await Self.with { bench, _ in
                let path = bench.lay(LoopbackReply(body: "a"))
                let client = try await HTTP2Frames(port: bench.proxy.port)
                var first = HTTP2Frames.preface
                first.writeImmutableBuffer(try client.get(path, stream: 1, Self.fields(40_000)))
                try await client.send(first)
                let answer = try #require(try await client.status())
                #expect(answer.status == "200" && answer.stream == 1)
                #expect(bench.seen(path).first?.values(of: "x-36000").first?.count == 4_000)
                // The client's own acknowledgement comes late and harms nothing.
                try await client.send(HTTP2Frames.acknowledgement)
                try await client.send(try client.get(path, stream: 3))
                #expect(try #require(try await client.status()).status == "200")
            }
        }

        @Test("A head over the limit gets a 431 on its own stream, and the other streams continue")
        func largeHead() async throws {
            let records = Mutex<[ProxyRecord]>([])
            let adjust: (inout ProxyConfiguration) -> Void = { configuration in
                configuration.onAnswer = { record in records.withLock { $0.append(record) } }
            }
            try await Self.with(adjust: adjust) { bench, _ in
                let gate = LoopbackGate()
                let slow = bench.lay(LoopbackReply(before: [.pause(gate)]))
                let client = try await HTTP2Frames(port: bench.proxy.port)
                var first = HTTP2Frames.preface
                first.writeImmutableBuffer(try client.get(slow, stream: 1))
                try await client.send(first)
                try await gate.reached()
                try await client.send(try client.get("/large", stream: 3, Self.fields(100_000)))
                let refused = try #require(try await client.status())
                #expect(refused.status == "431" && refused.stream == 3)
                gate.open()
                let answer = try #require(try await client.status())
                #expect(answer.status == "200" && answer.stream == 1)
                #expect(bench.seen("/large").isEmpty)
                let record = try #require(records.withLock { $0.first })
                #expect(record.status == 431 && record.target == "/large" && record.version == "2.0")
                #expect(record.refusal?.contains("longer than 65536 bytes") == true)
            }
        }

        @Test("A head beyond everything that is read ends the connection, and nobody else's")
        func endlessHead() async throws {
            try await Self.with { bench, other in
                let client = try await HTTP2Frames(port: bench.proxy.port)
                var first = HTTP2Frames.preface
                first.writeImmutableBuffer(try client.get("/large", stream: 1, Self.fields(600_000)))
                try? await client.send(first)
                #expect(await (try? client.status()) == nil)
                #expect(try await other.get(bench.lay(LoopbackReply(body: "a"))).text == "a")
            }
        }

        @Test("Heads that are too large or have too many lines are refused or end the connection; others are served")
        func limits() async throws {
            try await Self.with(adjust: { $0.limits.headLines = 50 }) { bench, client in
                let many = (0..<60).map { ("x-\($0)", "y") }
                #expect(try await client.get("/", many).status == "431")
                let large = (0..<20).map { ("x-\($0)", String(repeating: "y", count: 8_000)) }
                let answer = try? await client.get("/", large)
                #expect(answer?.status == nil || answer?.status == "431")
                #expect(bench.origin.requests.isEmpty)
                let other = try await HTTP2Client.connect(port: bench.proxy.port)
                #expect(try await other.get(bench.lay(LoopbackReply(body: "a"))).text == "a")
                other.close()
            }
        }

        @Test("Content that ends with the connection and not with its stream never reaches the origin as complete")
        func brokenUpload() async throws {
            try await Self.with { bench, _ in
                let path = bench.lay(LoopbackReply(body: "got it"))
                var encoder = HPACKEncoder(allocator: ByteBufferAllocator())
                var block = ByteBuffer()
                try encoder.encode(headers: HTTP2Client.head("POST", path), to: &block)
                var first = HTTP2Frames.preface
                first.writeImmutableBuffer(HTTP2Frames.frame(HTTP2Frames.headers, flags: 4, stream: 1, payload: block))
                first.writeImmutableBuffer(
                    HTTP2Frames.frame(HTTP2Frames.data, flags: 0, stream: 1, payload: ByteBuffer(string: "half"))
                )
                let client = try await HTTP2Frames(port: bench.proxy.port)
                try await client.send(first)
                _ = try await bench.origin.heads(atLeast: 1)
                client.bytes.close()
                try await bench.origin.exchangeEnds(atLeast: 1)
                #expect(bench.seen(path).isEmpty)
            }
        }

        @Test("A response whose head HTTP/2 cannot carry is a 502 on its own stream, and the other streams continue")
        func largeAnswerHead() async throws {
            let records = Mutex<[ProxyRecord]>([])
            let adjust: (inout ProxyConfiguration) -> Void = { configuration in
                configuration.onAnswer = { record in records.withLock { $0.append(record) } }
            }
            try await Self.with(adjust: adjust) { bench, client in
                let gate = LoopbackGate()
                let slow = bench.lay(LoopbackReply(before: [.pause(gate)]))
                let large = bench.lay(LoopbackReply(fields: Self.fields(20_000), body: "a"))
                async let other = client.get(slow)
                try await gate.reached()
                #expect(try await client.get(large).status == "502")
                #expect(records.withLock { $0 }.map(\.status.rawValue) == [502])
                let unread = bench.lay(LoopbackReply(fields: Self.fields(20_000), body: "a"))
                let head = try await client.ask(HTTP2Client.head("HEAD", unread))
                #expect(head.status == "502" && head.body.isEmpty)
                // Not small, but it fits.
                let fitting = bench.lay(LoopbackReply(fields: Self.fields(8_000), body: "a"))
                #expect(try await client.get(fitting).status == "200")
                gate.open()
                #expect(try await other.status == "200")
            }
        }
    }
#endif

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import Foundation
    import Holdfast
    import HoldfastSemantics
    import HoldfastStorage
    import HoldfastTesting
    import Synchronization
    import Testing

    @testable import HoldfastProxy

    #if canImport(FoundationNetworking)
        import FoundationNetworking
    #endif

    @Suite("ProxyHandler", .timeLimit(.minutes(20)))
    struct ProxyHandlerTests {
        private let bench = ProxyHandlerBench()

        @Test("The origin gets the exact head, joined fields and content, and no hop-by-hop field")
        func request() async throws {
            let transport = HeadRecorder()
            var handler = try bench.handler(transport, asksByHost: true)
            handler.via = ViaField(name: "edge")
            handler.clientAddress = .xForwardedFor
            let request = ProxiedRequest(
                method: "M-search",
                target: "/a%2fb?x=%41|",
                version: "1.0",
                fields: [
                    "Host": "proxy", "Accept": "a", "accept": "b", "Connection": "x-secret", "X-Secret": "1",
                    "Content-Length": "3", "X-Forwarded-For": "10.0.0.1",
                ],
                body: .bytes(ByteChunk([1, 2, 3])),
                clientAddress: "192.0.2.9"
            )
            let response = await handler.answer(request)
            #expect(response.status == .ok)
            #expect(response.fields[.via] == "1.1 edge")
            let sent = try #require(transport.sent.first)
            #expect(sent.method == "M-search")
            #expect(sent.target == "/a%2fb?x=%41|")
            #expect(
                sent.fields == [
                    "Accept": "a, b", "Via": "1.0 edge", "X-Forwarded-For": "10.0.0.1, 192.0.2.9",
                    "X-Forwarded-Host": "proxy", "X-Forwarded-Proto": "http",
                ]
            )
            #expect(sent.body == [1, 2, 3])
        }

        @Test(
            "The origin is told the host of the key: that of an absolute target, whatever Host says (RFC 9112 §3.2.2)",
            arguments: [
                ("http://shop.example/p", "evil.example", "shop.example"),
                ("http://SHOP.example:80/p", "x", "shop.example"),
                ("/p", "SHOP.example:80", "shop.example"), ("/p", "shop.example:81", "shop.example:81"),
                ("/p", "", nil),
            ] as [(String, String, String?)]
        )
        func requestedHost(_ target: String, _ host: String, _ told: String?) async throws {
            for kind in [ClientAddressFields.xForwardedFor, .forwarded] {
                let transport = HeadRecorder()
                var handler = try bench.handler(transport, asksByHost: true)
                handler.clientAddress = kind
                let claims: HeaderFields = [
                    "Host": host, "Forwarded": "host=evil.example;proto=https", "X-Forwarded-Host": "evil.example",
                ]
                _ = await handler.answer(ProxiedRequest(method: .get, target: target, fields: claims))
                let fields = try #require(transport.sent.first).fields
                if kind == .xForwardedFor {
                    #expect(fields["X-Forwarded-Host"] == told)
                } else {
                    let named = told.map { ";host=\"\($0)\"" } ?? ""
                    #expect(fields["Forwarded"] == "for=unknown\(named);proto=http")
                }
            }
        }

        @Test(
            "A response to another spelling than that of the key is not stored, and nothing stored answers that spelling",
            arguments: [("/%6Eews", "/news"), ("/a/../news", "/news"), ("/100%", "/100%25")]
        )
        func otherSpelling(_ sent: String, _ key: String) async throws {
            let fields: HeaderFields = ["Cache-Control": "max-age=60"]
            let transport = ScriptedTransport([.respond(200, fields, body: "body")], repeatsLastStep: true)
            let handler = try bench.handler(transport, cache: .inMemory(options: .shared))
            for (target, sendings) in [(sent, 1), (sent, 2), (key, 3), (key, 3), (sent, 4)] {
                _ = try await bench.text(await handler.answer(ProxiedRequest(method: .get, target: target)))
                #expect(transport.sent.count == sendings)
            }
        }

        @Test(
            "The origin's own URL in Location becomes a path, unless a browser would read that as another host",
            arguments: [
                ("/a?b", "/a?b"), ("", "/"), ("?q", "/?q"), ("/a//b\\c", "/a//b\\c"), ("//evil.example/", nil),
                ("/\\evil.example/", nil), ("/\t/evil.example/", nil), ("/\t\t\\evil.example/", nil), ("\\evil", nil),
            ] as [(String, String?)]
        )
        func location(_ rest: String, _ path: String?) async throws {
            let location = "http://origin.example" + rest
            var handler = try bench.handler(ScriptedTransport([.respond(302, ["Location": location])]))
            handler.hiddenOrigins = [try ProxyOrigin("http://origin.example")]
            let response = await handler.answer(ProxiedRequest(method: .get, target: "/"))
            #expect(response.fields[.location] == path ?? location)
        }

        @Test("A tunnel is recorded with the time until it was there, however long it lasts")
        func tunnelTime() async throws {
            let origin = try LoopbackServer.start { _ in LoopbackReply() }
            defer { origin.stop() }
            let authority = "127.0.0.1:\(origin.port)"
            var rules = ForwardRules()
            rules.allowedHosts = [authority]
            var configuration = OriginTransport.Configuration()
            configuration.admission = { [clock = bench.clock] _, _, _ in clock.advance(by: .seconds(2)) }
            let transport = OriginTransport(configuration: configuration)
            let records = Mutex<[ProxyRecord]>([])
            var handler = try bench.handler(transport, role: .forward(rules))
            handler.transport = transport
            handler.onAnswer = { record in records.withLock { $0.append(record) } }
            let target = try Array(authority.utf8).withUnsafeBytes { try RequestTarget($0, method: .connect) }
            let offer = await handler.tunnel(ClientRequest(method: .connect, target: target, fields: HeaderFields()))
            guard case .open(let other, _, let ended) = offer else {
                Issue.record("There is no tunnel: \(offer)")
                return
            }
            let opened = bench.clock.timestamp
            bench.clock.advance(by: .seconds(3_600))
            ended(7, false)
            other.close()
            await transport.shutdown()
            let record = try #require(records.withLock { $0 }.first)
            #expect(record.duration == .seconds(2) && record.start == opened)
            #expect(record.bodyBytes == 7 && !record.isComplete)
        }

        @Test("A12, A5: what the client gets")
        func response() async throws {
            let fields: HeaderFields = [
                "Connection": "a", "A": "1", "Set-Cookie": "x", "Set-Cookie": "y", "Keep-Alive": "z", "Age": "7200",
                "Date": "foo",
            ]
            let handler = try bench.handler(ScriptedTransport([.respond(999, fields, body: "body")]))
            let response = await handler.answer(ProxiedRequest(method: .get, target: "/"))
            #expect(response.status.rawValue == 999)
            #expect(
                response.fields.map { "\($0.name.rawName): \($0.value)" } == [
                    "Set-Cookie: x", "Set-Cookie: y", "Age: 7200", "Date: foo",
                ]
            )
            #expect(try await bench.text(response) == "body")
        }

        @Test(
            "A10: for a failure, the proxy makes a response of its own",
            arguments: [
                (ServiceError.Code.connect, 502), (.resolve, 502), (.connectionLost, 502), (.protocolError, 502),
                (.tls, 502),
                (.certificate, 502), (.offline, 502), (.bodyTooLarge, 502), (.other, 502), (.timeout, 504),
                (.deadlineExceeded, 504), (.badRequest, 400), (.unsupported, 501), (.circuitOpen, 503),
                (.throttled, 503),
                (.tooManyInFlight, 503),
            ]
        )
        func failures(_ code: ServiceError.Code, _ status: Int) async throws {
            var error = ServiceError(code, "secret words of the library", progress: .notSent)
            error.retryAfter = .milliseconds(2_100)
            let records = Mutex<[ProxyRecord]>([])
            var handler = try bench.handler(ScriptedTransport([.fail(error)]))
            handler.onAnswer = { record in records.withLock { $0.append(record) } }
            let response = await handler.answer(ProxiedRequest(method: .get, target: "/"))
            #expect(response.status.rawValue == status)
            #expect(response.fields[.contentType] == "text/plain; charset=utf-8")
            #expect(response.fields[.retryAfter] == (status == 503 ? "3" : nil))
            let text = try await bench.text(response)
            #expect(text.hasPrefix("holdfast: ") && text.hasSuffix("\n") && !text.contains("secret"))
            #expect(text.contains("[\(code)]") || code == .other)
            #expect(records.withLock { $0.map(\.attempts) } == [1])
        }

        @Test("A10: an origin that stays silent is given up in time, and one that takes 5 s is not")
        func silence() async throws {
            let handler = try bench.handler(
                ScriptedTransport([.silence, .respond(200, body: "late").delayed(by: .seconds(5))])
            )
            for (number, status) in [504, 200].enumerated() {
                async let response = handler.answer(ProxiedRequest(method: .get, target: "/"))
                try await bench.clock.waitForSleeps(number + 1)
                bench.clock.advance(by: .seconds(status == 504 ? 9 : 5))
                #expect(await response.status.rawValue == status)
            }
        }

        @Test("An upload may take longer than the time limit for a response, unless the origin stops reading")
        func uploads() async throws {
            let source = TwoPartSource()
            let handler = try bench.handler(HeadRecorder(answering: false))
            let request = ProxiedRequest(method: .put, target: "/", body: .oneShot(length: 2, source))
            async let answer = handler.answer(request)
            // The client takes a minute for its second byte.
            try await source.asked.wait(for: 2)
            try await bench.clock.waitForSleeps(1)
            bench.clock.advance(by: .seconds(60))
            source.release()
            // All is sent, and the origin does not answer: it sleeps, and so does who watches it.
            try await source.asked.wait(for: 3)
            try await bench.clock.waitForSleeps(3)
            bench.clock.advance(by: .seconds(30))
            #expect(await answer.status == .gatewayTimeout)
        }

        @Test("A9: interim responses pass without their hop-by-hop fields")
        func interim() async throws {
            let early = ResponseHead(status: .earlyHints, fields: ["Link": "</a>", "Connection": "x", "X": "1"])
            let handler = try bench.handler(
                ScriptedTransport([ScriptedTransport.Step.respond().after(interim: [early])])
            )
            let received = Mutex<[ResponseHead]>([])
            var request = ProxiedRequest(method: .get, target: "/")
            request.sendInterim = { head in received.withLock { $0.append(head) } }
            _ = await handler.answer(request)
            #expect(received.withLock { $0 } == [ResponseHead(status: .earlyHints, fields: ["Link": "</a>"])])
        }

        @Test("A loop is detected by Via and stopped")
        func loop() async throws {
            let transport = ScriptedTransport([.respond()])
            var handler = try bench.handler(transport)
            handler.via = ViaField(name: "edge")
            let response = await handler.answer(
                ProxiedRequest(method: .get, target: "/", fields: ["Via": "1.1 a, 1.1 edge, 1.1 b"])
            )
            #expect(response.status == .loopDetected)
            #expect(transport.sent.isEmpty)
        }

        @Test("RFC 9110 §7.6.2: TRACE and OPTIONS are answered here if Max-Forwards is 0")
        func maxForwards() async throws {
            let transport = ScriptedTransport([.respond()], repeatsLastStep: true)
            let handler = try bench.handler(transport)
            let traced = await handler.answer(
                ProxiedRequest(method: .trace, target: "/x", fields: ["Max-Forwards": "0", "Cookie": "s"])
            )
            #expect(traced.fields[.contentType] == "message/http")
            #expect(try await bench.text(traced) == "TRACE /x HTTP/1.1\r\nMax-Forwards: 0\r\n\r\n")
            #expect(
                await handler.answer(ProxiedRequest(method: .options, target: "*", fields: ["Max-Forwards": "0"]))
                    .status
                    == .ok
            )
            #expect(transport.sent.isEmpty)
            _ = await handler.answer(ProxiedRequest(method: .options, target: "*", fields: ["Max-Forwards": "2"]))
            #expect(transport.sent.first?.request.value(forHTTPHeaderField: "Max-Forwards") == "1")
        }

        @Test(
            "A gateway passes the origin's 407, a forward proxy does not, because clients would take it for the proxy's"
        )
        func proxyCredentials() async throws {
            let challenge = ScriptedTransport.Step.respond(407, ["Proxy-Authenticate": "Basic realm=x"], body: "body")
            let passed = try await bench.handler(ScriptedTransport([challenge])).answer(
                ProxiedRequest(method: .get, target: "/")
            )
            #expect(passed.status == .proxyAuthenticationRequired)
            #expect(passed.fields[.proxyAuthenticate] != nil)
            let kept = try await bench.handler(ScriptedTransport([challenge]), role: .forward()).answer(
                ProxiedRequest(method: .get, target: "http://a.example/")
            )
            #expect(kept.status == .badGateway)
            #expect(kept.fields[.proxyAuthenticate] == nil)
        }

        @Test("The cache's own 504 says why, and every response can be recorded")
        func records() async throws {
            let records = Mutex<[ProxyRecord]>([])
            let fields: HeaderFields = ["Cache-Control": "max-age=60"]
            let transport = ScriptedTransport([.respond(200, fields, body: "body")])
            var handler = try bench.handler(transport, cache: .inMemory(options: .shared))
            handler.onAnswer = { record in records.withLock { $0.append(record) } }
            let lone = await handler.answer(
                ProxiedRequest(method: .get, target: "/a", fields: ["Cache-Control": "only-if-cached"])
            )
            #expect(lone.status == .gatewayTimeout)
            #expect(try await bench.text(lone).contains("no usable response is stored"))
            _ = try await bench.text(await handler.answer(ProxiedRequest(method: .get, target: "/b")))
            let hit = await handler.answer(
                ProxiedRequest(
                    method: .get,
                    target: "http://whoever/b",
                    fields: ["User-Agent": "x"],
                    clientAddress: "::1"
                )
            )
            #expect(hit.fields[.age] == "0")
            let seen = records.withLock { $0 }
            #expect(seen.map(\.status.rawValue) == [504, 200, 200])
            #expect(seen.map(\.attempts) == [0, 1, 0])
            #expect(seen.map(\.bodyBytes).last == 4)
            #expect(seen.map { $0.decision?.outcome } == [.unsatisfiable, .miss, .hit])
            #expect(seen.last?.userAgent == "x")
            #expect(seen.last?.clientAddress == "::1")
            #expect(transport.sent.count == 1)
        }

        /// What the handler of a cache records.
        private func recording(
            _ transport: any Transport,
            _ calls: (ProxyHandler) async throws -> Void
        ) async throws -> [ProxyRecord] {
            let records = Mutex<[ProxyRecord]>([])
            var handler = try bench.handler(transport, cache: .inMemory(options: .shared))
            handler.onAnswer = { record in records.withLock { $0.append(record) } }
            try await calls(handler)
            return records.withLock { $0 }
        }

        @Test("A long hit in memory counts as delivered as far as it was taken, as any other body does")
        func longHit() async throws {
            let body = String(repeating: "x", count: 200_000)
            let transport = ScriptedTransport([.respond(200, ["Cache-Control": "max-age=60"], body: body)])
            let records = try await recording(transport) { handler in
                let request = ProxiedRequest(method: .get, target: "/a")
                _ = try await bench.text(await handler.answer(request))
                let hit = await handler.answer(request)
                #expect(hit.body.length == 200_000)
                #expect(try await hit.body.source?.next()?.count == 64 << 10)
                hit.body.discard()
                #expect(try await bench.text(await handler.answer(request)) == body)
            }
            #expect(records.map(\.bodyBytes) == [200_000, 64 << 10, 200_000])
            #expect(records.map(\.isComplete) == [true, false, true])
        }

        @Test("A client that leaves before the head is recorded as 499 with nothing delivered")
        func leftEarly() async throws {
            let records = try await recording(ScriptedTransport([.silence])) { handler in
                let task = Task { await handler.answer(ProxiedRequest(method: .get, target: "/a")) }
                task.cancel()
                _ = await task.value
            }
            #expect(records.map(\.status.rawValue) == [499])
            #expect(records.map(\.bodyBytes) == [0] && records.map(\.isComplete) == [false])
        }

        @Test("A stale response after a failure is recorded with the attempts that failed")
        func staleAttempts() async throws {
            let fields: HeaderFields = ["Cache-Control": "max-age=1, stale-if-error=60"]
            let transport = ScriptedTransport([
                .respond(200, fields, body: "body"), .respond(503), .fail(.connect, progress: .notSent),
            ])
            let records = try await recording(transport) { handler in
                let request = ProxiedRequest(method: .get, target: "/a")
                for _ in 0..<3 {
                    let text = try await bench.text(await handler.answer(request))
                    #expect(text == "body")
                    bench.clock.advance(by: .seconds(2))
                }
            }
            #expect(records.map(\.source) == [.network(attempts: 1), .stale, .stale])
            #expect(records.map(\.attempts) == [1, 1, 1])
            #expect(records.allSatisfy { $0.originDuration != nil })
        }

        @Test("RFC 9110 §6.6.1: a response without Date is forwarded with the time of its receipt")
        func date() async throws {
            let handler = try bench.handler(ScriptedTransport([.respond(200, ["A": "1"], body: "body")]))
            let response = await handler.answer(ProxiedRequest(method: .post, target: "/"))
            #expect(response.fields[.date] == HTTPDate(bench.clock.timestamp).description)
        }
    }

    /// Takes down what reaches a transport, as it would be sent.
    private final class HeadRecorder: Transport {
        struct Sent: Sendable {
            let method: String
            let target: String
            let fields: [String: String]
            let body: [UInt8]
        }

        private let isAnswering: Bool
        private let heads = Mutex<[Sent]>([])

        init(answering: Bool = true) {
            isAnswering = answering
        }

        var sent: [Sent] { heads.withLock { $0 } }

        func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
            let head = try #require(context.exactHead(for: request))
            var content: [UInt8] = []
            switch body.form {
            case .bytes(let bytes): content = bytes.array
            case .oneShot(_, let source): content = try await ResponseBody(source).collect().array
            default: break
            }
            let sent = Sent(
                method: head.method.rawValue,
                target: head.requestTarget,
                fields: request.allHTTPHeaderFields ?? [:],
                body: content
            )
            heads.withLock { $0.append(sent) }
            if !isAnswering { try await context.clock.sleep(until: context.clock.now.advanced(by: .seconds(100_000))) }
            return Response(status: .ok)
        }
    }

    /// One byte at once, one when it is let, and the end.
    private final class TwoPartSource: ByteSource {
        let asked = CountWatch()
        private let released = CountWatch()

        func release() { released.increment() }

        func next() async throws -> ByteChunk? {
            asked.increment()
            switch asked.count {
            case 1: return ByteChunk([1])
            case 2:
                try await released.wait(for: 1)
                return ByteChunk([2])
            default: return nil
            }
        }

        func cancel() {}
    }
#endif

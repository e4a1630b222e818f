// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import Foundation
    import Holdfast
    import HoldfastSemantics
    import HoldfastStorage
    import HoldfastTesting
    import NIOCore
    import NIOPosix
    import Testing

    @testable import HoldfastProxy

    #if canImport(FoundationNetworking)
        import FoundationNetworking
    #endif

    @Suite("The connections of OriginTransport", .timeLimit(.minutes(20)))
    struct OriginConnectionTests {
        private static func send(
            _ transport: OriginTransport,
            _ url: URL,
            _ method: String = "GET",
            body: RequestBody = .none,
            context: CallContext = CallContext()
        ) async throws -> String {
            var request = URLRequest(url: url)
            request.httpMethod = method
            let response = try await transport.send(request, body: body, context: context)
            return String(decoding: try await response.body.collect(), as: UTF8.self)
        }

        /// A server whose first connection breaks at its second request.
        private static func staleServer(_ step: LoopbackReply.Step) throws -> LoopbackServer {
            try LoopbackServer.start { request in
                request.connection == 0 && request.path != "/first"
                    ? LoopbackReply(before: [step]) : LoopbackReply(body: request.path)
            }
        }

        @Test(
            "B10: a request is sent again once if its reused connection broke before a response",
            arguments: [true, false]
        )
        func stale(resets: Bool) async throws {
            let origin = try Self.staleServer(resets ? .reset : .close)
            let transport = OriginTransport()
            #expect(try await Self.send(transport, origin.url("/first")) == "/first")
            let text = try await Self.send(transport, origin.url("/second"), "PUT", body: .data(Data("x".utf8)))
            #expect(text == "/second")
            #expect(origin.requests.map(\.connection) == [0, 0, 1])
            await transport.shutdown()
        }

        @Test(
            "An upgrade is requested of the next server if one cannot be reached, and counts as any exchange does",
            arguments: [(101, 4, [true, false]), (503, 3, [false, true])]
        )
        func upgrades(_ status: Int, _ requests: Int, _ areUp: [Bool]) async throws {
            let origin = try LoopbackServer.start { _ in
                LoopbackReply(before: [.raw("HTTP/1.1 \(status) x\r\n\r\n"), .close])
            }
            defer { origin.stop() }
            let origins = try [origin.port, 1].map { try ProxyOrigin("http://127.0.0.1:\($0)") }
            let group = OriginGroup(origins, keepsHost: false)
            var configuration = OriginTransport.Configuration()
            configuration.origins = group
            let transport = OriginTransport(configuration: configuration)
            let clock = ManualClock()
            let request = try OutgoingRequest(URLRequest(url: origin.url("/ws")), exact: nil)
            for _ in 0..<requests {
                let (channel, head) = try await transport.upgrade(request, within: nil, clock: clock)
                #expect(head?.status.rawValue == status)
                channel.close()
            }
            #expect(group.standings(at: clock.now).map(\.isUp) == areUp)
            #expect(origin.requests.count == requests)
            await transport.shutdown()
        }

        @Test(
            "It is not sent again if that may do harm, if the body is gone, or if this is switched off",
            arguments: 0..<4
        )
        func notResent(_ number: Int) async throws {
            let origin = try Self.staleServer(.close)
            var configuration = OriginTransport.Configuration()
            configuration.resendsAfterStaleConnection = number != 0
            let transport = OriginTransport(configuration: configuration)
            _ = try await Self.send(transport, origin.url("/first"))
            var options = CallOptions()
            if number == 3 { options.isIdempotent = false }
            let body: RequestBody = number == 2 ? .oneShot(length: 9, PieceSource(["one", "two", "six"])) : .none
            let context = CallContext(options: options)
            let error = await #expect(throws: ServiceError.self) {
                try await Self.send(
                    transport,
                    origin.url("/x"),
                    number == 1 ? "POST" : "PUT",
                    body: body,
                    context: context
                )
            }
            #expect(error?.code == .connectionLost)
            #expect(error?.connectionReused == true)
            #expect(error?.progress == .bodySent)
            #expect(origin.requests.count == 2)
            await transport.shutdown()
        }

        @Test("A first connection that breaks is an error at once")
        func firstConnection() async throws {
            let origin = try LoopbackServer.start { _ in LoopbackReply(before: [.close]) }
            let transport = OriginTransport()
            let error = await #expect(throws: ServiceError.self) { try await Self.send(transport, origin.url("/")) }
            #expect(error?.connectionReused == false)
            #expect(origin.requests.count == 1)
            await transport.shutdown()
        }

        @Test("A connection that the server closed while it was idle is not used")
        func closedWhileIdle() async throws {
            let gate = LoopbackGate()
            let origin = try LoopbackServer.start { request in
                request.path == "/first"
                    ? LoopbackReply(steps: [.send("a"), .pause(gate), .close]) : LoopbackReply(body: "b")
            }
            let transport = OriginTransport()
            _ = try await Self.send(transport, origin.url("/first"))
            gate.open()
            try await origin.connectionEnds(atLeast: 1)
            let body = RequestBody.data(Data("x".utf8))
            // The end may still be on its way here, and a POST is not sent twice: an answer or an honest error.
            do {
                #expect(try await Self.send(transport, origin.url("/"), "POST", body: body) == "b")
            } catch let error as ServiceError {
                #expect(error.connectionReused)
            }
            #expect(try await Self.send(transport, origin.url("/")) == "b")
            await transport.shutdown()
        }

        @Test("wantsNewConnection, and the connection counts")
        func counts() async throws {
            let origin = try LoopbackServer.start { LoopbackReply(body: $0.path) }
            let transport = OriginTransport()
            for _ in 0..<3 { _ = try await Self.send(transport, origin.url("/")) }
            #expect(transport.connections.opened == 1)
            #expect(transport.connections.reused == 2)
            #expect(transport.connections.idle == 1)
            await transport.shutdown()
            #expect(transport.connections.open == 0)
            let error = await #expect(throws: ServiceError.self) { try await Self.send(transport, origin.url("/")) }
            #expect(error?.code == .unsupported)
            #expect(error?.progress == .notSent)
        }

        @Test(
            "Waiting for a connection ends with the deadline or the task; the next waiter gets the freed connection"
        )
        func line() async throws {
            let gate = LoopbackGate()
            let origin = try LoopbackServer.start { request in
                request.path == "/held"
                    ? LoopbackReply(before: [.pause(gate)], steps: [.send("held")]) : LoopbackReply(body: "x")
            }
            var configuration = OriginTransport.Configuration()
            configuration.connectionsPerOrigin = 1
            let transport = OriginTransport(configuration: configuration)
            async let held = Self.send(transport, origin.url("/held"))
            try await gate.reached()
            let clock = ManualClock()
            let late = Task {
                let context = CallContext(clock: clock, deadline: clock.now.advanced(by: .seconds(1)))
                return try await Self.send(transport, origin.url("/late"), context: context)
            }
            let dropped = Task { try await Self.send(transport, origin.url("/dropped")) }
            let patient = Task { try await Self.send(transport, origin.url("/patient")) }
            while transport.connections.waiting < 3 { await Task.yield() }
            dropped.cancel()
            await #expect(throws: CancellationError.self) { try await dropped.value }
            clock.advance(by: .seconds(2))
            let error = await #expect(throws: ServiceError.self) { try await late.value }
            #expect(error?.code == .timeout)
            #expect(error?.progress == .notSent)
            gate.open()
            #expect(try await held == "held")
            #expect(try await patient.value == "x")
            #expect(origin.requests.map(\.path) == ["/held", "/patient"])
            #expect(origin.connectionCount == 1)
            await transport.shutdown()
        }

        @Test("A small unread rest is read and the connection kept; with a long rest the connection is closed")
        func drain() async throws {
            let origin = try LoopbackServer.start { request in
                let count = request.path == "/long" ? 10 << 20 : 20_000
                return LoopbackReply(framing: .length(count), steps: [.pattern(count)])
            }
            let transport = OriginTransport()
            var response: Response? = try await transport.send(
                URLRequest(url: origin.url("/long")),
                body: .none,
                context: CallContext()
            )
            response?.body.discard()
            response = nil
            try await origin.connectionEnds(atLeast: 1)
            #expect(transport.connections.open == 0)
            await transport.shutdown()
        }

        @Test("An untrusted certificate is refused, and nothing is sent")
        func untrusted() async throws {
            let origin = try await TLSOrigin.start(LoopbackScript { _ in LoopbackReply() })
            let transport = OriginTransport()
            let error = await #expect(throws: ServiceError.self) { try await Self.send(transport, origin.url("/")) }
            #expect(error?.code == .certificate)
            #expect(error?.progress == .notSent)
            #expect(transport.connections.open == 0)
            await transport.shutdown()
            await origin.stop()
        }

        @Test("A host name that the certificate lacks is refused; its address is not")
        func wrongName() async throws {
            let origin = try await TLSOrigin.start(LoopbackScript { _ in LoopbackReply(body: "x") })
            let transport = OriginTransport(configuration: try .trustingLoopback())
            let port = origin.url("/").port ?? 0
            #expect(try await Self.send(transport, try #require(URL(string: "https://127.0.0.1:\(port)/"))) == "x")
            let error = await #expect(throws: ServiceError.self) {
                try await Self.send(transport, try #require(URL(string: "https://127.0.0.2:\(port)/")))
            }
            // Nobody listens there on some systems, and elsewhere the certificate does not name it.
            #expect(error?.code == .certificate || error?.code == .connect)
            await transport.shutdown()
            await origin.stop()
        }

        #if os(Linux)
            @Test("1,000 resets by the origin leave no file descriptor open")
            func resets() async throws {
                let origin = try LoopbackServer.start { request in
                    switch (request.number % 3, request.path) {
                    case (0, _): LoopbackReply(before: [.reset])
                    case (1, _): LoopbackReply(framing: .length(100_000), steps: [.pattern(70_000), .reset])
                    default: LoopbackReply(framing: .chunked, steps: [.pattern(1_000), .reset])
                    }
                }
                let transport = OriginTransport()
                await withTaskGroup(of: Void.self) { group in
                    for _ in 0..<8 {
                        group.addTask {
                            for _ in 0..<125 {
                                await #expect(throws: ServiceError.self) {
                                    try await Self.send(transport, origin.url("/"), "POST")
                                }
                            }
                        }
                    }
                }
                #expect(origin.requests.count == 1_000)
                #expect(transport.connections.open == 0)
                // Each loop has then closed what it was told to.
                for loop in MultiThreadedEventLoopGroup.singleton.makeIterator() { try await loop.submit {}.get() }
                #expect(try Self.descriptors(to: origin.port) == 0)
                await transport.shutdown()
            }

            /// How many sockets of anybody's lead to this port of 127.0.0.1.
            private static func descriptors(to port: UInt16) throws -> Int {
                let table = try String(contentsOfFile: "/proc/self/net/tcp", encoding: .utf8)
                let wanted = ":" + (String(UInt32(port) + 0x10000, radix: 16, uppercase: true).dropFirst())
                return table.split(separator: "\n").dropFirst().count { line in
                    let columns = line.split(separator: " ")
                    return columns.count > 9 && columns[2].hasSuffix(wanted) && columns[9] != "0"
                }
            }
        #endif

        @Test("A connection whose handshake gets no answer in time is closed")
        func silentHandshake() async throws {
            let ended = CountWatch()
            let listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .childChannelInitializer { channel in
                    channel.closeFuture.whenComplete { _ in ended.increment() }
                    return channel.eventLoop.makeSucceededVoidFuture()
                }
                .bind(host: "127.0.0.1", port: 0).get()
            let port = try #require(listener.localAddress?.port)
            var configuration = OriginTransport.Configuration()
            configuration.connectTimeout = .milliseconds(200)
            let transport = OriginTransport(configuration: configuration)
            let url = try #require(URL(string: "https://127.0.0.1:\(port)/"))
            let error = await #expect(throws: ServiceError.self) { try await Self.send(transport, url) }
            #expect(error?.code == .connect)
            try await ended.wait(for: 1)
            await transport.shutdown()
            try await listener.close()
        }

        @Test("Waiting for the content to open ends with the deadline")
        func slowContent() async throws {
            let origin = try LoopbackServer.start { _ in LoopbackReply(body: "x") }
            let transport = OriginTransport()
            let clock = ManualClock()
            let (asked, given) = (CountWatch(), CountWatch())
            var request = URLRequest(url: origin.url("/"))
            request.httpMethod = "POST"
            let call = Task { [request] in
                let context = CallContext(clock: clock, deadline: clock.now.advanced(by: .seconds(1)))
                let body = RequestBody.factory {
                    asked.increment()
                    // Deaf to cancellation, as some producers are.
                    await Task { try? await given.wait(for: 1) }.value
                    return PieceSource(["x"])
                }
                return try await transport.send(request, body: body, context: context).status
            }
            try await asked.wait(for: 1)
            clock.advance(by: .seconds(2))
            let error = await #expect(throws: ServiceError.self) { try await call.value }
            #expect(error?.code == .timeout)
            #expect(error?.progress == .notSent)
            #expect(origin.requests.isEmpty)
            given.increment()
            await transport.shutdown()
        }
    }
#endif

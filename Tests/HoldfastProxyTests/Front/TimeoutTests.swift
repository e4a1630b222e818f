// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import Holdfast
    @testable import HoldfastProxy
    import HoldfastStorage
    import HoldfastTesting
    import NIOCore
    import NIOEmbedded
    import Synchronization
    import Testing

    @Suite("Timeouts for clients, on a manual clock", .timeLimit(.minutes(20)))
    struct TimeoutTests {
        private static let get = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"

        @Test("A connection on which nothing arrives is closed silently")
        func silence() async throws {
            let connection = try await TestingConnection { _ in .text("a") }
            await connection.advance(by: .seconds(29))
            #expect(connection.isOpen)
            await connection.advance(by: .seconds(2))
            #expect(!connection.isOpen)
            #expect(try await connection.sent() == "")
        }

        @Test("A head that arrives byte by byte gets a 408 when its time is up, however steadily the bytes come")
        func slowHead() async throws {
            let connection = try await TestingConnection { _ in .text("a") }
            await connection.advance(by: .seconds(20))
            for _ in 0..<29 {
                try await connection.arrive("G")
                await connection.advance(by: .seconds(1))
            }
            #expect(try await connection.sent() == "")
            await connection.advance(by: .seconds(2))
            let answer = try await connection.sent()
            #expect(answer.hasPrefix("HTTP/1.1 408 Request Timeout\r\nDate: "))
            #expect(answer.contains("\r\nConnection: close\r\n"))
            await connection.advance(by: .seconds(6))
            #expect(!connection.isOpen)
        }

        @Test("An idle connection is closed silently, and not before its time")
        func idle() async throws {
            let connection = try await TestingConnection { _ in .text("a") }
            for _ in 0..<5 {
                try await connection.arrive(Self.get)
                #expect(try await connection.sent() == "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na")
                await connection.advance(by: .seconds(74))
                #expect(connection.isOpen)
            }
            await connection.advance(by: .seconds(2))
            #expect(!connection.isOpen)
            #expect(try await connection.sent() == "")
        }

        @Test("Content that stops arriving gets a 408; content that trickles does not")
        func stalledContent() async throws {
            let connection = try await TestingConnection { request in
                .text((try? await ResponseBody.content(of: request.body)) ?? "failed")
            }
            try await connection.arrive("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n")
            for _ in 0..<4 {
                await connection.advance(by: .seconds(59))
                try await connection.arrive("a")
            }
            #expect(try await connection.sent() == "")
            await connection.advance(by: .seconds(61))
            #expect(try await connection.sent().hasPrefix("HTTP/1.1 408 "))
            await connection.advance(by: .seconds(6))
            #expect(!connection.isOpen)
        }

        @Test("A client that reads slowly slows the body down, and is cut when its time is up")
        func stalledAnswer() async throws {
            let source = Mutex(CountingSource?.none)
            let connection = try await TestingConnection { _ in
                Response(status: 200, body: source.withLock { $0 }.map { ResponseBody($0) } ?? ResponseBody())
            }
            let channel = connection.channel
            let body = CountingSource(chunk: 1000, onPull: { if $0 == 3 { channel.isWritable = false } })
            source.withLock { $0 = body }
            try await connection.setWritable(false)
            try await connection.arrive(Self.get)
            // Not even the head has gone.
            #expect(body.pulled == 0)
            try await connection.setWritable(true)
            #expect(body.pulled == 3)
            await connection.advance(by: .seconds(59))
            #expect(body.pulled == 3)
            #expect(connection.isOpen)
            await connection.advance(by: .seconds(2))
            #expect(!connection.isOpen)
            #expect(body.isCancelled)
        }

        @Test("A client that never closes its side after a refusal is disconnected in the end")
        func lingering() async throws {
            let connection = try await TestingConnection { _ in .text("a") }
            try await connection.arrive("nonsense\r\n\r\n")
            #expect(try await connection.sent().hasPrefix("HTTP/1.1 400 Bad Request\r\n"))
            for _ in 0..<4 {
                try await connection.arrive("more of it")
                await connection.advance(by: .seconds(1))
            }
            await connection.advance(by: .seconds(2))
            #expect(!connection.isOpen)
        }

        @Test("A handler has no time limit")
        func slowHandler() async throws {
            let gate = CountWatch()
            let connection = try await TestingConnection { _ in
                try? await gate.wait(for: 1)
                return .text("a")
            }
            try await connection.arrive(Self.get)
            await connection.advance(by: .hours(1))
            #expect(connection.isOpen)
            #expect(connection.counters.requestsUnderWay == 1)
            gate.increment()
            let answer = try await connection.channel.waitForOutboundWrite(as: ByteBuffer.self)
            #expect(String(buffer: answer).hasSuffix("\r\n\r\na"))
        }
    }
#endif

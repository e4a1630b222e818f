// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import Holdfast
    import HoldfastProxy
    import HoldfastSemantics
    import HoldfastStorage
    import HoldfastTesting
    import NIOCore
    import NIOPosix
    import Testing

    @Suite("Responses on the wire", .timeLimit(.minutes(20)))
    struct AnswerTests {
        private struct Broken: Error {}

        @Test("HEAD, 204 and 304 leave the connection in sync (A8)")
        func inStep() async throws {
            try await withServer { request in
                switch request.target.text {
                case "/204": .text("x", status: 204)
                case "/304": .text("x", status: 304, fields: ["Content-Length": "36"])
                default: .text("12345")
                }
            } _: { server in
                let answers = try await RawClient.exchange(
                    "HEAD / HTTP/1.1\r\nHost: x\r\n\r\nGET /204 HTTP/1.1\r\nHost: x\r\n\r\n"
                        + "GET /304 HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
                    with: server
                )
                #expect(
                    answers == "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n"
                        + "HTTP/1.1 304 Not Modified\r\nContent-Length: 36\r\n\r\n"
                        + "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\n12345"
                )
            }
        }

        @Test("Streams are sent with their length, in chunks, and to HTTP/1.0 until the close")
        func streams() async throws {
            try await withServer { request in
                let source = CountingSource(chunk: 3, limit: 2)
                return Response(
                    status: 200,
                    body: request.target.text == "/known" ? ResponseBody(source, length: 6) : ResponseBody(source)
                )
            } _: { server in
                let client = try await RawClient.connect(to: server)
                try await client.send("GET /known HTTP/1.1\r\nHost: x\r\n\r\n")
                #expect(try await client.answer() == "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nxxxxxx")
                try await client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                #expect(
                    try await client.answer()
                        == "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nxxx\r\n3\r\nxxx\r\n0\r\n\r\n"
                )
                client.bytes.close()
                #expect(
                    try await RawClient.exchange("GET / HTTP/1.0\r\n\r\n", with: server)
                        == "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nxxxxxx"
                )
            }
        }

        @Test(
            "A body that fails, or is longer or shorter than announced, is cut so that the client notices",
            arguments: ["/fails", "/short", "/long", "/chunks"]
        )
        func cuts(path: String) async throws {
            try await withServer { request in
                let body =
                    switch request.target.text {
                    case "/fails": ResponseBody(CountingSource(chunk: 3, limit: 1, error: Broken()), length: 6)
                    case "/short": ResponseBody(CountingSource(chunk: 3, limit: 1), length: 6)
                    case "/long": ResponseBody(CountingSource(chunk: 4, limit: 2), length: 6)
                    default: ResponseBody(CountingSource(chunk: 3, limit: 1, error: Broken()))
                    }
                return Response(status: 200, body: body)
            } _: { server in
                let client = try await RawClient.connect(to: server)
                defer { client.bytes.close() }
                try await client.send("GET \(path) HTTP/1.1\r\nHost: x\r\n\r\n")
                let answer = try await client.rest()
                if path == "/chunks" {
                    #expect(!answer.hasSuffix("0\r\n\r\n"))
                } else {
                    #expect(
                        answer.split(separator: "\r\n\r\n").last.map { $0.count < 6 || $0.hasPrefix("HTTP") } == true
                    )
                }
            }
        }

        @Test("Cutting a response that is delimited by the close resets the connection")
        func resets() async throws {
            try await withServer { _ in
                Response(status: 200, body: ResponseBody(CountingSource(chunk: 3, limit: 1, error: Broken())))
            } _: { server in
                await #expect(throws: ChannelFault.self) {
                    _ = try await RawClient.exchange("GET / HTTP/1.0\r\n\r\n", with: server)
                }
            }
        }

        @Test("A large body in memory arrives whole, in slices", arguments: [65_536, 65_537, 5_000_000])
        func large(count: Int) async throws {
            let bytes = ByteChunk((0..<count).map { UInt8(truncatingIfNeeded: $0 ^ $0 >> 8) })
            try await withServer { _ in
                Response(status: 200, body: ResponseBody(bytes))
            } _: { server in
                let client = try await RawClient.connect(to: server)
                defer { client.bytes.close() }
                try await client.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                var all = ByteBuffer()
                while let more = try await client.bytes.read() { all.writeImmutableBuffer(more) }
                let head = "HTTP/1.1 200 OK\r\nContent-Length: \(count)\r\nConnection: close\r\n\r\n"
                #expect(all.readString(length: head.utf8.count) == head)
                #expect(ByteChunk(copying: all.readableBytesView) == bytes)
            }
        }

        @Test(
            "A client that does not read stops an endless body, which stays within the kernel's buffers"
        )
        func backPressure() async throws {
            let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
            let source = CountingSource(chunk: 65_536)
            let handler = ClosureHandler { request in
                request.target.text == "/endless" ? Response(status: 200, body: ResponseBody(source)) : .text("a")
            }
            let server = try await HTTPServer.start(at: .host("127.0.0.1", port: 0), group: group, handler: handler)
            let client = try await RawClient.connect(to: server, receiveBuffer: 65_536)
            try await client.send("GET /endless HTTP/1.1\r\nHost: x\r\n\r\n")
            try await source.pulls.wait(for: 2)
            // On the same event loop: a body without back-pressure would leave these no turn, or be far ahead of them.
            let other = try await RawClient.connect(to: server)
            for _ in 0..<200 {
                try await other.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                _ = try await other.answer()
            }
            #expect(source.pulled < 400)
            client.bytes.vanish()
            try await source.cancellations.wait(for: 1)
            other.bytes.close()
            await server.close()
            try await group.shutdownGracefully()
        }

        /// A piece, and then nothing until its reader is cancelled.
        private final class HeldSource: ByteSource {
            private let pulls = CountWatch()

            func next() async throws -> ByteChunk? {
                pulls.increment()
                if pulls.count == 1 { return ByteChunk(copying: "abc".utf8) }
                try await pulls.wait(for: .max)
                return nil
            }

            func cancel() {}
        }

        @Test("A response that is delimited by the close is reset if the drain time ends within it")
        func cutByDrain() async throws {
            let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
            let handler = ClosureHandler { _ in Response(status: 200, body: ResponseBody(HeldSource())) }
            let server = try await HTTPServer.start(at: .host("127.0.0.1", port: 0), group: group, handler: handler)
            let client = try await RawClient.connect(to: server)
            try await client.send("GET / HTTP/1.0\r\n\r\n")
            var text = ""
            while !text.hasSuffix("abc") { text += String(buffer: try #require(try await client.bytes.read())) }
            await server.drain(within: .milliseconds(1))
            await #expect(throws: ChannelFault.self) { _ = try await client.rest() }
            client.bytes.close()
            try await group.shutdownGracefully()
        }
    }
#endif

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import Foundation
    import Holdfast
    import HoldfastProxy
    import HoldfastSemantics
    import HoldfastStorage
    import HoldfastTesting
    import NIOCore
    import NIOEmbedded
    import Testing

    @Suite("How connections end", .timeLimit(.minutes(20)))
    struct ConnectionEndTests {
        private static let get = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"

        @Test("A client that disconnects cancels the work for it", arguments: ["closes", "resets", "half-closes"])
        func leaving(how: String) async throws {
            let begun = CountWatch()
            let cancelled = CountWatch()
            let never = CountWatch()
            try await withServer { _ in
                begun.increment()
                do { try await never.wait(for: 1) } catch { cancelled.increment() }
                return .text("a")
            } _: { server in
                for round in 1...20 {
                    let client = try await RawClient.connect(to: server)
                    try await client.send(Self.get)
                    try await begun.wait(for: round)
                    switch how {
                    case "closes": client.bytes.close()
                    case "resets": client.bytes.vanish()
                    default: client.bytes.closeOutput()
                    }
                    try await cancelled.wait(for: round)
                    if how == "half-closes" {
                        #expect(try await client.rest() == "")
                        client.bytes.close()
                    }
                }
            }
        }

        @Test("A client that goes while an endless response is sent to it ends that")
        func goesWithinResponse() async throws {
            let source = CountingSource(chunk: 1_000)
            try await withServer { _ in
                Response(status: 200, body: ResponseBody(source))
            } _: { server in
                let client = try await RawClient.connect(to: server)
                try await client.send(Self.get)
                try await source.pulls.wait(for: 1)
                client.bytes.close()
                try await source.cancellations.wait(for: 1)
            }
        }

        @Test("A client that disconnects during its content fails the reader of that content")
        func leavingWithinContent() async throws {
            let outcome = CountWatch()
            try await withServer { request in
                if (try? await ResponseBody.content(of: request.body)) == nil { outcome.increment() }
                return .text("a")
            } _: { server in
                let client = try await RawClient.connect(to: server)
                try await client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nab")
                client.bytes.closeOutput()
                try await outcome.wait(for: 1)
                client.bytes.close()
            }
        }

        @Test("A client that has closed its side when its request is read still gets its response")
        func sendsAndCloses() async throws {
            let connection = try await TestingConnection { .text($0.target.text) }
            let channel = connection.channel
            try await channel.testingEventLoop.executeInContext {
                channel.pipeline.fireChannelRead(
                    ByteBuffer(string: "GET /1 HTTP/1.1\r\nHost: x\r\n\r\nGET /2 HTTP/1.1\r\nHost: x\r\n\r\n")
                )
                channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
            }
            await connection.settle()
            let sent = try await connection.sent()
            #expect(sent.contains("/1HTTP/1.1 200 OK"))
            #expect(sent.hasSuffix("/2"))
            #expect(!connection.isOpen)
        }

        @Test(
            "Bytes that are not a request get an error response, and the connection is closed",
            arguments: [
                ("GET /\r\n\r\n", "400"), ("GET / HTTP/1.1\r\n\r\n", "400"), ("GET / HTTP/1.1\nHost: x\n\n", "400"),
                ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "505"), ("\u{16}\u{3}\u{1}", "400"),
                ("GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", "501"),
                ("GET /\(String(repeating: "a", count: 70_000)) HTTP/1.1\r\nHost: x\r\n\r\n", "414"),
                ("GET / HTTP/1.1\r\nHost: x\r\nA: \(String(repeating: "a", count: 70_000))\r\n\r\n", "431"),
            ]
        )
        func refusals(text: String, status: String) async throws {
            try await withServer { _ in
                .text("a")
            } _: { server in
                let answer = try await RawClient.exchange(text + Self.get, with: server)
                #expect(answer.hasPrefix("HTTP/1.1 \(status) "))
                #expect(answer.contains("\r\nConnection: close\r\n"))
                #expect(answer.contains("\r\nContent-Type: text/plain"))
                #expect(answer.hasSuffix(".\n") || answer.hasSuffix("?\n"))
                #expect(answer.components(separatedBy: "HTTP/1.1 \(status)").count == 2)
                #expect(server.statistics.requestsBegun == 0)
            }
        }

        @Test("A complete response is sent before the refusal of the next request")
        func refusalInOrder() async throws {
            try await withServer { _ in
                .text("a")
            } _: { server in
                let answers = try await RawClient.exchange(Self.get + "nonsense\r\n\r\n", with: server)
                #expect(answers.hasPrefix("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\naHTTP/1.1 400 "))
            }
        }

        @Test("HTTP/1.0 closes unless it asks for keep-alive, and needs no Host")
        func http10() async throws {
            try await withServer { _ in
                .text("a")
            } _: { server in
                let answer = try await RawClient.exchange("GET / HTTP/1.0\r\n\r\n", with: server)
                #expect(answer == "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\na")
                let client = try await RawClient.connect(to: server)
                defer { client.bytes.close() }
                for _ in 0..<2 {
                    try await client.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
                    #expect(
                        try await client.answer()
                            == "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: keep-alive\r\n\r\na"
                    )
                }
            }
        }
    }
#endif

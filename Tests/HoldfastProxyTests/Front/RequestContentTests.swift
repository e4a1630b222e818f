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
    import Testing

    @Suite("Request content", .timeLimit(.minutes(20)))
    struct RequestContentTests {
        @Sendable private static func echo(_ request: ClientRequest) async -> Response {
            do {
                let form =
                    switch request.body.form {
                    case .none: "none"
                    case .bytes: "bytes"
                    case .oneShot(let length, _): "stream \(length.map { "\($0)" } ?? "?")"
                    default: "?"
                    }
                return .text("\(form): \(try await ResponseBody.content(of: request.body))")
            } catch {
                return .text("failed", status: 502)
            }
        }

        @Test("Small content that came with the head is bytes, anything else a stream")
        func forms() async throws {
            try await withServer(Self.echo) { server in
                let client = try await RawClient.connect(to: server)
                defer { client.bytes.close() }
                let vectors = [
                    ("GET / HTTP/1.1\r\nHost: x\r\n\r\n", "", "none: "),
                    ("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", "", "none: "),
                    ("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc", "", "bytes: abc"),
                    ("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "", "bytes: "),
                    (
                        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n2\r\nbc\r\n0\r\n\r\n",
                        "", "bytes: abc"
                    ),
                ]
                for (head, rest, text) in vectors {
                    try await client.send(head + rest)
                    #expect(try await client.answer().hasSuffix("\r\n\r\n" + text))
                }
            }
        }

        @Test(
            "A client that expects 100 gets it when its content is requested, and not before (RFC 9110 §10.1.1)"
        )
        func continues() async throws {
            let gate = CountWatch()
            try await withServer { request in
                try? await gate.wait(for: 1)
                return await Self.echo(request)
            } _: { server in
                let client = try await RawClient.connect(to: server)
                defer { client.bytes.close() }
                try await client.send("PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nExpect: 100-Continue\r\n\r\n")
                #expect(!client.bytes.hasInputOrEnded)
                gate.increment()
                #expect(try await client.answer() == "HTTP/1.1 100 Continue\r\n\r\n")
                try await client.send("abc")
                #expect(try await client.answer().hasSuffix("stream 3: abc"))
                // The connection is in step.
                try await client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                #expect(try await client.answer().hasSuffix("none: "))
            }
        }

        @Test("Expected content that nobody requests is not sent, so the connection ends; other expectations get 417")
        func refusesExpectations() async throws {
            try await withServer { _ in
                .text("no", status: 413)
            } _: { server in
                let head = "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n"
                let refused = try await RawClient.exchange(head + "Expect: 100-continue\r\n\r\n", with: server)
                #expect(refused == "HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno")
                let unknown = try await RawClient.exchange(head + "Expect: magic\r\n\r\nabc", with: server)
                #expect(unknown.hasPrefix("HTTP/1.1 417 Expectation Failed\r\n"))
                #expect(server.statistics.requestsBegun == 1)
            }
        }

        @Test("A little unread content is discarded, and the connection is kept")
        func dropsUnread() async throws {
            try await withServer { _ in
                .text("a")
            } _: { server in
                let client = try await RawClient.connect(to: server)
                defer { client.bytes.close() }
                try await client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 40000\r\n\r\n")
                #expect(try await client.answer() == "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na")
                try await client.send(String(repeating: "b", count: 40_000))
                try await client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                #expect(try await client.answer().hasSuffix("\r\n\r\na"))
                #expect(server.statistics.connectionsAccepted == 1)
            }
        }

        @Test(
            "Unread content of unknown length costs the connection, and the response says so (RFC 9112 §9.6)",
            arguments: [10, 200_000]
        )
        func closesAfterChunks(length: Int) async throws {
            try await withServer { _ in
                .text("a")
            } _: { server in
                let client = try await RawClient.connect(to: server)
                defer { client.bytes.close() }
                try await client.send("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
                let answer = Task { try await client.answer() }
                try? await client.send(
                    String(length, radix: 16) + "\r\n" + String(repeating: "b", count: length) + "\r\n"
                )
                #expect(try await answer.value == "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\na")
                // Content that has ended before the response begins costs nothing.
                try? await client.send("0\r\n\r\n")
                #expect(try await client.rest() == "")
            }
        }

        @Test("Much unread content costs the connection, but the client can read the response")
        func lingers() async throws {
            try await withServer { _ in
                .text("too much", status: 413)
            } _: { server in
                let client = try await RawClient.connect(to: server)
                defer { client.bytes.close() }
                try await client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 900000000\r\n\r\n")
                let answer = Task { try await client.rest() }
                for _ in 0..<20 { try? await client.send(String(repeating: "b", count: 10_000)) }
                let text = try await answer.value
                #expect(
                    text == "HTTP/1.1 413 Content Too Large\r\nContent-Length: 8\r\nConnection: close\r\n\r\ntoo much"
                )
            }
        }

        @Test("Invalid chunks get a 400 whatever the handler says, and nothing after them is read")
        func badChunks() async throws {
            try await withServer(Self.echo) { server in
                let answer = try await RawClient.exchange(
                    "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcde\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",
                    with: server
                )
                #expect(answer.hasPrefix("HTTP/1.1 400 Bad Request\r\n"))
                #expect(answer.components(separatedBy: "HTTP/1.1 ").count == 2)
                let client = try await RawClient.connect(to: server)
                defer { client.bytes.close() }
                try await client.send("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
                try await client.send("1\r\na\r\nnonsense")
                #expect(try await client.rest().hasPrefix("HTTP/1.1 400 "))
            }
        }

        @Test("Unread content stays with the client that sends it")
        func backPressure() async throws {
            let begun = CountWatch()
            let gate = CountWatch()
            try await withServer { request in
                guard case .oneShot(_, let source) = request.body.form else { return .text("?") }
                begun.increment()
                try? await gate.wait(for: 1)
                var received = 0
                while let chunk = try? await source.next() { received += chunk.count }
                return .text("\(received)")
            } _: { server in
                let client = try await RawClient.connect(to: server)
                defer { client.bytes.close() }
                try await client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 67108864\r\n\r\n")
                let slice = ByteBuffer(repeating: 0, count: 1 << 20)
                let sent = CountWatch()
                try await withThrowingTaskGroup(of: Void.self) { group in
                    group.addTask {
                        for _ in 0..<64 {
                            try await client.bytes.write(slice)
                            sent.increment()
                        }
                    }
                    try await begun.wait(for: 1)
                    #expect(sent.count < 64)
                    gate.increment()
                    try await group.waitForAll()
                }
                #expect(try await client.answer().hasSuffix("\r\n\r\n67108864"))
            }
        }
    }
#endif

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastTesting
import Testing

@Suite("LoopbackServer", .timeLimit(.minutes(20)))
struct LoopbackServerTests {
    private static let ok = "HTTP/1.1 200 \r\nContent-Length: 2\r\n\r\nok"

    @Test("Requests on one connection are answered in order and recorded as they came")
    func requests() async throws {
        let server = try LoopbackServer.start { LoopbackReply(fields: [("X-A", "1"), ("X-A", "2")], body: $0.text) }
        let answer = try await RawClient.exchange(
            "POST /a?b HTTP/1.1\r\nHost: h\r\nx-y:  z \r\nContent-Length: 3\r\n\r\none"
                + "\r\nPUT /c HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\ntw\r\n1\r\no\r\n0\r\nT: t\r\n\r\n",
            with: server
        )
        let head = "HTTP/1.1 200 \r\nX-A: 1\r\nX-A: 2\r\nContent-Length: 3\r\n\r\n"
        #expect(answer == "\(head)one\(head)two")
        let requests = server.requests
        #expect(requests.map(\.method) == ["POST", "PUT"])
        #expect(requests.map(\.target) == ["/a?b", "/c"])
        #expect(requests.map(\.path) == ["/a", "/c"])
        #expect(requests.map(\.text) == ["one", "two"])
        #expect(requests.map(\.bodyLength) == [3, 3])
        #expect(requests.map(\.number) == [0, 1])
        #expect(requests[0].values(of: "X-Y") == ["z"])
        #expect(requests[0].fields[0] == LoopbackField("Host", value: "h"))
        #expect(try await server.connectionEnds(atLeast: 1).map(\.endedBy) == [.peer])
        #expect(server.exchangeEnds.map(\.endedBy) == [.completion, .completion])
        #expect(server.exchangeEnds.map(\.target) == ["/a?b", "/c"])
    }

    @Test(
        "A malformed request gets a 400, and the connection ends",
        arguments: [
            "nonsense\r\n\r\n", "GET / HTTP/1.1\r\nno colon\r\n\r\n", "GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
            "GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n", "PUT / HTTP/1.1\r\nContent-Length: 11\r\n\r\n12345678901",
            "PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            "PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n6\r\n123456\r\n5\r\n12345\r\n0\r\n\r\n",
            "PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n",
        ]
    )
    func malformed(_ text: String) async throws {
        let server = try LoopbackServer.start(bodyLimit: 10) { _ in LoopbackReply(body: "ok") }
        let answer = try await RawClient.exchange(text, with: server)
        #expect(answer.hasPrefix("HTTP/1.1 400 "))
        #expect(server.requests.isEmpty)
    }

    @Test("The connection ends if the client or its version asks for it")
    func close() async throws {
        for ending in ["HTTP/1.1\r\nConnection: x, Close\r\n\r\n", "HTTP/1.0\r\n\r\n"] {
            let server = try LoopbackServer.start { _ in LoopbackReply(body: "ok") }
            #expect(try await RawClient.exchange("GET / \(ending)GET / HTTP/1.1\r\n\r\n", with: server) == Self.ok)
            #expect(try await server.connectionEnds(atLeast: 1).map(\.endedBy) == [.server])
        }
    }

    @Test("Expect: 100-continue is answered before the content is read, and interim steps before the head")
    func interim() async throws {
        let server = try LoopbackServer.start { _ in
            var reply = LoopbackReply(body: "ok")
            reply.before = [.interim(103, fields: [("Link", "</a>")])]
            return reply
        }
        let answer = try await RawClient.exchange(
            "PUT / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nx",
            with: server
        )
        #expect(answer == "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 \r\nLink: </a>\r\n\r\n\(Self.ok)")
    }

    @Test("Responses are framed as scripted, and statuses without content have none")
    func framings() async throws {
        let server = try LoopbackServer.start { request in
            switch request.path {
            case "/chunked": LoopbackReply(framing: .chunked, steps: [.send("ab"), .send(""), .send("c")])
            case "/length": LoopbackReply(framing: .length(9), steps: [.send("abc")])
            case "/bare": LoopbackReply(framing: .bare, steps: [.raw("abc")])
            case "/204": LoopbackReply(204, body: "abc")
            default: LoopbackReply(framing: .untilClose, steps: [.send("abc")])
            }
        }
        func answer(_ path: String, _ method: String = "GET") async throws -> String {
            try await RawClient.exchange("\(method) \(path) HTTP/1.1\r\n\r\n", with: server)
        }
        #expect(
            try await answer("/chunked")
                == "HTTP/1.1 200 \r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n"
        )
        #expect(try await answer("/length") == "HTTP/1.1 200 \r\nContent-Length: 9\r\n\r\nabc")
        #expect(try await answer("/bare") == "HTTP/1.1 200 \r\n\r\nabc")
        #expect(try await answer("/204") == "HTTP/1.1 204 \r\n\r\n")
        #expect(try await answer("/") == "HTTP/1.1 200 \r\n\r\nabc")
        #expect(try await answer("/chunked", "HEAD") == "HTTP/1.1 200 \r\nTransfer-Encoding: chunked\r\n\r\n")
    }

    @Test("A stopped server refuses connections, and stopping it twice does nothing")
    func stop() async throws {
        let server = try LoopbackServer.start { _ in .never }
        server.stop()
        server.stop()
        await #expect(throws: (any Error).self) { try await RawClient.exchange("GET / HTTP/1.1\r\n\r\n", with: server) }
    }

    @Test("A script can cut the connection: the exchange was ended by the server, and is recorded once")
    func brokenOff() async throws {
        let server = try LoopbackServer.start { _ in
            LoopbackReply(framing: .length(5), steps: [.send("ab"), .close, .send("c")])
        }
        let answer = try await RawClient.exchange("GET / HTTP/1.1\r\n\r\n", with: server)
        #expect(answer == "HTTP/1.1 200 \r\nContent-Length: 5\r\n\r\nab")
        #expect(try await server.exchangeEnds(atLeast: 1).map(\.endedBy) == [.server])
    }

    @Test("Connections beyond the limit are closed at once")
    func limit() async throws {
        let gate = LoopbackGate()
        let server = try LoopbackServer.start(connectionLimit: 1) { _ in
            LoopbackReply(before: [.pause(gate)], steps: [.send("ok")])
        }
        async let first = RawClient.exchange("GET / HTTP/1.1\r\nConnection: close\r\n\r\n", with: server, ends: false)
        try await gate.reached()
        let second = try? await RawClient.exchange("GET / HTTP/1.1\r\n\r\n", with: server)
        #expect(second?.isEmpty ?? true)
        gate.open()
        #expect(try await first == Self.ok)
        #expect(server.connectionCount == 1)
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import Holdfast
    import HoldfastProxy
    import HoldfastSemantics
    import Synchronization
    import Testing

    @Suite("Interim responses (RFC 9110 §15.2, A9)", .timeLimit(.minutes(20)))
    struct InterimTests {
        private static func answer(_ request: ClientRequest) async -> Response {
            for status in [100, 101, 102, 200, 103] {
                request.sendInterim(ResponseHead(status: StatusCode(status), fields: ["Link": "\(status)", "X": "é"]))
            }
            return .text("a")
        }

        @Test("They are sent before the final response with all their fields, except 100 and 101")
        func order() async throws {
            try await withServer {
                await Self.answer($0)
            } _: { server in
                let client = try await RawClient.connect(to: server)
                defer { client.bytes.close() }
                for _ in 0..<2 {
                    try await client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                    for head in ["102 Processing", "103 Early Hints"] {
                        #expect(
                            try await client.answer(isHead: true).hasPrefix(
                                "HTTP/1.1 \(head)\r\nLink: \(head.prefix(3))\r\nX: "
                            )
                        )
                    }
                    #expect(try await client.answer() == "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na")
                }
            }
        }

        @Test("Sent from another thread, they keep their order")
        func otherThreads() async throws {
            try await withServer { request in
                await Task.detached { request.sendInterim(ResponseHead(status: 103)) }.value
                return .text("a")
            } _: { server in
                let client = try await RawClient.connect(to: server)
                defer { client.bytes.close() }
                for _ in 0..<50 {
                    try await client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                    #expect(try await client.answer() == "HTTP/1.1 103 Early Hints\r\n\r\n")
                    #expect(try await client.answer().hasSuffix("\r\n\r\na"))
                }
            }
        }

        @Test("None is sent after the final response of its request")
        func late() async throws {
            let kept = Kept()
            try await withServer { request in
                kept.request.withLock { $0?.sendInterim(ResponseHead(status: 103)) }
                kept.request.withLock { $0 = request }
                return .text("a")
            } _: { server in
                let client = try await RawClient.connect(to: server)
                defer { client.bytes.close() }
                for _ in 0..<3 {
                    try await client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                    #expect(try await client.answer() == "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na")
                }
            }
        }

        @Test("HTTP/1.0 gets none, and no client gets more than 32")
        func bounds() async throws {
            try await withServer { request in
                if request.version == .http11 {
                    for _ in 0..<100 { request.sendInterim(ResponseHead(status: 102)) }
                }
                return await request.version == .http10 ? Self.answer(request) : .text("a")
            } _: { server in
                #expect(
                    try await RawClient.exchange("GET / HTTP/1.0\r\n\r\n", with: server)
                        == "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\na"
                )
                let client = try await RawClient.connect(to: server)
                defer { client.bytes.close() }
                for _ in 0..<2 {
                    try await client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                    for _ in 0..<32 { #expect(try await client.answer() == "HTTP/1.1 102 Processing\r\n\r\n") }
                    #expect(try await client.answer().hasSuffix("\r\n\r\na"))
                }
            }
        }
    }

    /// A request that outlives its answer.
    private final class Kept: Sendable {
        let request = Mutex(ClientRequest?.none)
    }
#endif

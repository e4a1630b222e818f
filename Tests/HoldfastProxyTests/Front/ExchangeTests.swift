// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import Holdfast
    import HoldfastProxy
    import HoldfastSemantics
    import HoldfastStorage
    import HoldfastTesting
    import Testing

    @Suite("Exchanges with the server", .timeLimit(.minutes(20)))
    struct ExchangeTests {
        @Test("A connection carries one exchange after the other")
        func keepsAlive() async throws {
            try await withServer {
                .text("\($0.method) \($0.target.text)")
            } _: { server in
                let client = try await RawClient.connect(to: server)
                for path in ["/a", "/b"] {
                    try await client.send("GET \(path) HTTP/1.1\r\nHost: x\r\n\r\n")
                    #expect(try await client.answer() == "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nGET \(path)")
                }
                #expect(server.statistics.connectionsAccepted == 1)
                #expect(server.statistics.requestsBegun == 2)
                client.bytes.close()
            }
        }

        @Test("Pipelined requests of any method are answered in order (A3), each with its content (A2)")
        func pipelines() async throws {
            try await withServer { request in
                let content = (try? await ResponseBody.content(of: request.body)) ?? "?"
                return .text("\(request.method) \(content)")
            } _: { server in
                let requests =
                    "\r\nPOST /1 HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"
                    + "M-SEARCH /2 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nde\r\n1\r\nf\r\n0\r\nT: u\r\n\r\n"
                    + "get /3 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
                let answers = try await RawClient.exchange(requests, with: server)
                #expect(
                    answers == "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nPOST abc"
                        + "HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nM-SEARCH def"
                        + "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nget "
                )
            }
        }
    }

    extension ResponseBody {
        /// The content of a request, read whole.
        static func content(of body: RequestBody) async throws -> String {
            let chunk: ByteChunk
            switch body.form {
            case .bytes(let bytes): chunk = bytes
            case .oneShot(_, let source): chunk = try await ResponseBody(source).collect()
            default: chunk = ByteChunk()
            }
            return String(decoding: chunk, as: UTF8.self)
        }
    }
#endif

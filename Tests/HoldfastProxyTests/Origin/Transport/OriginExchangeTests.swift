// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import Foundation
    import Holdfast
    import HoldfastSemantics
    import HoldfastStorage
    import HoldfastTesting
    import NIOCore
    import Synchronization
    import Testing

    @testable import HoldfastProxy

    #if canImport(FoundationNetworking)
        import FoundationNetworking
    #endif

    @Suite("What OriginTransport sends and returns", .timeLimit(.minutes(20)))
    struct OriginExchangeTests {
        @Test("A3, B2: the exact method and target are sent, and Host comes first")
        func exactHead() async throws {
            let origin = try LoopbackServer.start { _ in LoopbackReply(body: "x") }
            let transport = OriginTransport()
            let authority = "http://127.0.0.1:\(origin.port)"
            for (method, target) in [("M-SEARCH", "/a%2fb/../c?q=%7e&r=|"), ("get", "/é"), ("OPTIONS", "*")] {
                let method = try #require(RequestMethod(validating: method))
                var options = CallOptions()
                options.exactHead = try ExactRequestHead(method: method, origin: authority, requestTarget: target)
                let request = try #require(options.exactHead).makeRequest()
                let context = CallContext(options: options)
                _ = try await transport.send(request, body: .data(Data("abc".utf8)), context: context).body.collect()
                let arrived = try #require(origin.requests.last)
                #expect(arrived.method == method.rawValue)
                #expect(arrived.target == target)
                #expect(arrived.text == "abc")
            }
            let fields = origin.requests[0].fields
            #expect(fields.map(\.name) == ["Host", "Content-Length"])
            #expect(fields[0].value == "127.0.0.1:\(origin.port)")
            await transport.shutdown()
        }

        @Test("The given Host is sent, and nothing is added or changed")
        func fields() async throws {
            let origin = try LoopbackServer.start { _ in LoopbackReply() }
            let transport = OriginTransport()
            var request = URLRequest(url: origin.url("/"))
            request.setValue("example.com", forHTTPHeaderField: "Host")
            request.setValue("17", forHTTPHeaderField: "Content-Length")
            request.setValue("gzip", forHTTPHeaderField: "Transfer-Encoding")
            request.setValue("a, b", forHTTPHeaderField: "X-List")
            _ = try await transport.send(request, body: .none, context: CallContext()).body.collect()
            let lines = origin.requests[0].fields.map { "\($0.name): \($0.value)" }
            #expect(lines == ["Host: example.com", "X-List: a, b", "Content-Length: 0"])
            await transport.shutdown()
        }

        @Test("A request that could be read as two is refused, and nothing is sent")
        func smuggling() async throws {
            let origin = try LoopbackServer.start { _ in LoopbackReply() }
            let transport = OriginTransport()
            for value in ["a\r\nX: y", "a\nX: y", "a\r", "a\0b"] {
                // Some of Foundation's own kinds refuse such a value first, and then the field is not there.
                let request = try? OutgoingRequest(Self.request(origin.url("/"), field: value), exact: nil)
                let head = request.map { String(buffer: $0.head(.none, allocator: ByteBufferAllocator())) }
                #expect(head == nil || head == "GET / HTTP/1.1\r\nHost: 127.0.0.1:\(origin.port)\r\n\r\n")
            }
            var request = URLRequest(url: origin.url("/"))
            request.httpMethod = "GET / HTTP/1.1\r\nX:"
            let sent = request
            let error = await #expect(throws: ServiceError.self) {
                try await transport.send(sent, body: .none, context: CallContext())
            }
            #expect(error?.code == .badRequest)
            #expect(error?.progress == .notSent)
            #expect(origin.connectionCount == 0)
            await transport.shutdown()
        }

        private static func request(_ url: URL, field: String) -> URLRequest {
            var request = URLRequest(url: url)
            request.setValue(field, forHTTPHeaderField: "X-A")
            return request
        }

        @Test("B15: field values pass byte for byte")
        func latin1() async throws {
            let origin = try LoopbackServer.start { request in
                LoopbackReply(before: [.raw("HTTP/1.1 200 OK\r\nETag: \"\u{E9}\"\r\nContent-Length: 0\r\n\r\n")])
            }
            let transport = OriginTransport()
            let response = try await transport.send(
                URLRequest(url: origin.url("/")),
                body: .none,
                context: CallContext()
            )
            // The server wrote UTF-8: two bytes, and so two scalars.
            #expect(response.fields["ETag"] == "\"\u{C3}\u{A9}\"")
            var head = try OutgoingRequest(Self.request(origin.url("/"), field: "\u{E9}"), exact: nil).head(
                .none,
                allocator: .init()
            )
            #expect(head.readBytes(length: head.readableBytes)?.contains(0xE9) == true)
            await transport.shutdown()
        }

        @Test("A4, A9, B11: interim responses, status 999, and bytes that follow them in one segment")
        func interim() async throws {
            let origin = try LoopbackServer.start { _ in
                LoopbackReply(before: [
                    .raw(
                        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 P\r\n\r\nHTTP/1.1 103 E\r\nLink: </a>\r\n\r\n"
                            + "HTTP/1.1 999 X\r\nContent-Length: 4\r\n\r\nbody"
                    ), .never,
                ])
            }
            let transport = OriginTransport()
            let seen = Mutex<[Int]>([])
            var options = CallOptions()
            options.onInterimResponse = { head in seen.withLock { $0.append(head.status.rawValue) } }
            let response = try await transport.send(
                URLRequest(url: origin.url("/")),
                body: .none,
                context: CallContext(options: options)
            )
            #expect(response.status == 999)
            #expect(response.body.bytesInMemory?.array == Array("body".utf8))
            #expect(seen.withLock { $0 } == [102, 103])
            #expect(transport.connections.idle == 1)
            await transport.shutdown()
        }

        @Test(
            "Responses that cannot be trusted are refused",
            arguments: [
                "NONSENSE", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
                "HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n", String(repeating: "HTTP/1.1 102 P\r\n\r\n", count: 33),
                "HTTP/1.1 200 OK\r\n" + String(repeating: "X: y\r\n", count: 300) + "\r\n",
            ]
        )
        func protocolErrors(_ answer: String) async throws {
            let origin = try LoopbackServer.start { _ in LoopbackReply(before: [.raw(answer), .never]) }
            let transport = OriginTransport()
            let error = await #expect(throws: ServiceError.self) {
                try await transport.send(URLRequest(url: origin.url("/")), body: .none, context: CallContext())
            }
            #expect(error?.code == .protocolError)
            #expect(error?.progress == .bodySent)
            #expect(transport.connections.open == 0)
            await transport.shutdown()
        }

        @Test("B7: a body with an unknown Transfer-Encoding is read until the close, unchanged")
        func unknownCoding() async throws {
            let origin = try LoopbackServer.start { _ in
                LoopbackReply(before: [.raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: apetix\r\n\r\n5\r\nhello"), .close])
            }
            let transport = OriginTransport()
            let response = try await transport.send(
                URLRequest(url: origin.url("/")),
                body: .none,
                context: CallContext()
            )
            #expect(try await String(decoding: response.body.collect(), as: UTF8.self) == "5\r\nhello")
            await transport.shutdown()
        }

        @Test("B9: bytes after Content-Length are no error, and the connection is never used again")
        func surplus() async throws {
            let origin = try LoopbackServer.start { request in
                LoopbackReply(before: [.raw("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbodyHTTP/1.1 200 OK\r\n\r\n")])
            }
            let transport = OriginTransport()
            for _ in 0..<3 {
                let response = try await transport.send(
                    URLRequest(url: origin.url("/")),
                    body: .none,
                    context: CallContext()
                )
                #expect(try await String(decoding: response.body.collect(), as: UTF8.self) == "body")
            }
            #expect(Set(origin.requests.map(\.connection)).count == 3)
            #expect(transport.connections.open == 0)
            await transport.shutdown()
        }

        @Test(
            "A response that arrives before the end of the content is returned, and sending stops",
            arguments: [413, 200]
        )
        func early(status: Int) async throws {
            let port = try await EarlyAnswer.start(status: status)
            let transport = OriginTransport()
            let source = EndlessSource()
            var request = URLRequest(url: try #require(URL(string: "http://127.0.0.1:\(port)/")))
            request.httpMethod = "POST"
            let response = try await transport.send(request, body: .oneShot(source), context: CallContext())
            #expect(response.status.rawValue == status)
            #expect(try await String(decoding: response.body.collect(), as: UTF8.self) == "early")
            try await source.ended.wait(for: 1)
            #expect(transport.connections.open == 0)
            await transport.shutdown()
        }
    }
#endif

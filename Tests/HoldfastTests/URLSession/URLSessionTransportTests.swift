// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastStorage
import HoldfastTesting
import Synchronization
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("URLSessionTransport: requests and heads", .timeLimit(.minutes(20)))
struct URLSessionTransportTests {
    enum BodyForm: String, CaseIterable, Sendable {
        case none, bytes, emptyBytes, file, factory, largeFactory, oneShot, largeOneShot, requestStream
    }

    @Test(
        "A redirect to an invalid port is returned, and such a URL is never requested",
        arguments: [0, 65_536, 99_999]
    )
    func badPort(_ port: Int) async throws {
        let server = try LoopbackServer.start { _ in
            LoopbackReply(302, fields: [("Location", "http://127.0.0.1:\(port)/")])
        }
        let pipeline = Pipeline(transport: URLSessionTransport())
        if port > 0 {
            let response = try await pipeline.send(URLRequest(url: server.url("/")))
            #expect(response.status == 302)
        }
        let url = try #require(URL(string: "http://127.0.0.1:\(port)/"))
        let error = try await #require(throws: ServiceError.self) { try await pipeline.send(URLRequest(url: url)) }
        #expect(error.code == .badRequest)
        #expect(error.progress == .notSent)
    }

    @Test("Every body form arrives byte for byte", arguments: BodyForm.allCases)
    func bodyForms(_ form: BodyForm) async throws {
        let server = try LoopbackServer.start { LoopbackReply(bytes: $0.body) }
        let transport = URLSessionTransport()
        let small = patternedBytes(1_000)
        let large = patternedBytes(3 << 20)
        let pieces = stride(from: 0, to: large.count, by: 100_000).map {
            ByteChunk(Array(large[$0..<min($0 + 100_000, large.count)]))
        }
        var request = URLRequest(url: server.url("/echo"))
        request.httpMethod = form == .none ? "GET" : "POST"
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("holdfast-test-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: file) }
        let body: RequestBody
        var expected = small
        switch form {
        case .none:
            body = .none
            expected = []
        case .bytes:
            body = .bytes(ByteChunk(small))
        case .emptyBytes:
            body = .bytes(ByteChunk())
            expected = []
        case .file:
            try Data(small).write(to: file)
            body = .file(file)
        case .factory:
            body = .factory(length: 1_000) { ChunkSource([ByteChunk(small)]) }
        case .largeFactory:
            body = .factory { ChunkSource(pieces) }
            expected = large
        case .oneShot:
            body = .oneShot(ChunkSource([ByteChunk(small)]))
        case .largeOneShot:
            body = .oneShot(length: large.count, ChunkSource(pieces))
            expected = large
        case .requestStream:
            request.httpBodyStream = InputStream(data: Data(small))
            request.setValue("1000", forHTTPHeaderField: "Content-Length")
            body = RequestBody(.requestStream)
        }
        let response = try await transport.send(request, body: body, context: CallContext())
        #expect(response.status == 200)
        #expect(response.url == request.url)
        #expect(response.source == .network(attempts: 1))
        #expect(try await response.body.collect().array == expected)
        let received = try #require(server.requests.first)
        #expect(received.body == expected)
        #expect(received.method == request.httpMethod)
        #expect(server.requests.count == 1)
        let framings = received.values(of: "Content-Length") + received.values(of: "Transfer-Encoding")
        switch form {
        case .none: #expect(framings == [])
        case .requestStream: #expect(framings == ["chunked"], "RFC 9112 §6.1: never both framings")
        default: #expect(framings == ["\(expected.count)"])
        }
    }

    @Test("A body in the request itself is not sent unless requested")
    func ownBodyIsNotRead() async throws {
        let server = try LoopbackServer.start { LoopbackReply(bytes: $0.body) }
        var request = URLRequest(url: server.url())
        request.httpMethod = "POST"
        request.httpBody = Data("own".utf8)
        let response = try await URLSessionTransport().send(request, body: .none, context: CallContext())
        #expect(try await response.text() == "")
        #expect(request.httpBody == Data("own".utf8))
    }

    @Test("A body stream that fails, or is longer or shorter than declared, sends nothing", arguments: [nil, 2, 4])
    func unreadableBody(length: Int?) async throws {
        let server = try LoopbackServer.start { _ in LoopbackReply() }
        let source = ChunkSource([ByteChunk([1, 2, 3])], fails: length == nil)
        let error = await #expect(throws: ServiceError.self) {
            try await URLSessionTransport().send(server.url(), method: "PUT", body: .oneShot(length: length, source))
        }
        #expect(error?.code == .badRequest)
        #expect(error?.progress == .notSent)
        #expect(source.isCancelled)
        #expect(server.requests.isEmpty)
    }

    @Test("Header fields of the request arrive; repeated response lines are joined, and none is lost")
    func repeatedFields() async throws {
        let server = try LoopbackServer.start { _ in
            LoopbackReply(fields: [("X-One", "1"), ("X-One", "2"), ("Vary", "a"), ("Vary", "b"), ("ETag", "\"e\"")])
        }
        let response = try await URLSessionTransport().send(server.url("/p?q=%20x"), fields: ["X-Mine": "m"])
        #expect(response.fields["X-One"] == "1, 2")
        #expect(response.fields["Vary"] == "a, b")
        #expect(response.fields["ETag"] == "\"e\"")
        #expect(server.requests.first?.target == "/p?q=%20x")
        #expect(server.requests.first?.values(of: "X-Mine") == ["m"])
    }

    @Test("HEAD, 204 and 304 have no body, whatever Content-Length says", arguments: ["HEAD", "204", "304"])
    func bodiless(_ kind: String) async throws {
        let server = try LoopbackServer.start { request in
            switch request.path {
            case "/204": LoopbackReply(204)
            case "/304": LoopbackReply(304, fields: [("Content-Length", "5"), ("ETag", "\"a\"")])
            default: LoopbackReply(fields: [("ETag", "\"a\"")], body: "hello")
            }
        }
        let transport = URLSessionTransport()
        for _ in 1...2 {
            let response = try await transport.send(server.url("/\(kind)"), method: kind == "HEAD" ? "HEAD" : "GET")
            #expect(response.body.bytesInMemory?.isEmpty == true)
            if kind == "HEAD" { #expect(response.fields["Content-Length"] == "5") }
        }
        #expect(server.requests.count == 2)
    }

    @Test("A redirect is returned with its body, and not followed", arguments: [301, 302, 303, 307, 308])
    func redirect(_ status: Int) async throws {
        let server = try LoopbackServer.start { _ in
            LoopbackReply(status, fields: [("Location", "/elsewhere")], body: "moved")
        }
        let response = try await URLSessionTransport().send(server.url())
        #expect(response.status.rawValue == status)
        #expect(response.fields["Location"] == "/elsewhere")
        #expect(try await response.text() == "moved")
        #expect(server.requests.count == 1)
    }

    @Test("No hidden cache answers, not even one in the configuration")
    func noHiddenCache() async throws {
        let server = try LoopbackServer.start {
            LoopbackReply(fields: [("Cache-Control", "max-age=600")], body: "\($0.number)")
        }
        let configuration = URLSessionConfiguration.default
        configuration.urlCache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: nil)
        configuration.requestCachePolicy = .returnCacheDataElseLoad
        let transport = URLSessionTransport(configuration: configuration)
        #expect(try await transport.send(server.url()).text() == "0")
        #expect(try await transport.send(server.url()).text() == "1")
        #expect(configuration.urlCache != nil, "the caller's own configuration is left alone")
    }

    @Test(
        "A 401 is returned as it came, whatever its challenge",
        arguments: ["Basic realm=\"x\"", "Bearer", "Digest realm=\"x\", nonce=\"n\""]
    )
    func unauthorized(_ challenge: String) async throws {
        let server = try LoopbackServer.start { request in
            LoopbackReply(
                401,
                fields: [("WWW-Authenticate", challenge)],
                body: request.method == "HEAD" ? "" : "denied"
            )
        }
        let transport = URLSessionTransport()
        let response = try await transport.send(server.url())
        #expect(response.status == 401)
        #expect(response.fields["WWW-Authenticate"] == challenge)
        #expect(try await response.text() == "denied")
        let posted = try await transport.send(server.url(), method: "POST", body: .data(Data("x".utf8)))
        #expect(posted.status == 401)
        #expect(try await transport.send(server.url(), method: "HEAD").status == 401)
        #expect(server.requests.count == 3, "no credential is tried behind the caller's back")
    }

    #if !canImport(Darwin)
        @Test("Linux: interim responses are reported in order, RFC 9110 §15.2")
        func interim() async throws {
            let server = try LoopbackServer.start { _ in
                LoopbackReply(
                    before: [.interim(103, fields: [("Link", "</a>")]), .interim(102)],
                    steps: [.send("done")]
                )
            }
            let heads = Mutex<[ResponseHead]>([])
            var options = CallOptions()
            options.onInterimResponse = { head in heads.withLock { $0.append(head) } }
            let response = try await URLSessionTransport().send(server.url(), context: CallContext(options: options))
            #expect(response.status == 200)
            #expect(try await response.text() == "done")
            let seen = heads.withLock { $0 }
            #expect(seen.map(\.status.rawValue) == [103, 102])
            #expect(seen.first?.fields["Link"] == "</a>")
        }
    #endif

    @Test("An invalidated transport ends running exchanges in order and refuses new ones")
    func invalidate() async throws {
        let gate = LoopbackGate()
        let server = try LoopbackServer.start { _ in
            LoopbackReply(framing: .chunked, steps: [.send("a"), .pause(gate), .send("b")])
        }
        let transport = URLSessionTransport()
        let response = try await transport.send(server.url())
        transport.invalidate()
        transport.invalidate()
        let error = await #expect(throws: ServiceError.self) { try await transport.send(server.url()) }
        #expect(error?.code == .unsupported)
        #expect(error?.progress == .notSent)
        gate.open()
        #expect(try await response.text() == "ab")
    }

    @Test("A response outlives its transport")
    func droppedTransport() async throws {
        let gate = LoopbackGate()
        let server = try LoopbackServer.start { _ in
            LoopbackReply(framing: .chunked, steps: [.send("a"), .pause(gate), .send("b")])
        }
        let response = try await URLSessionTransport().send(server.url())
        gate.open()
        #expect(try await response.text() == "ab")
    }

    @Test("Many concurrent exchanges stay separate, and connections are reused")
    func concurrent() async throws {
        let server = try LoopbackServer.start { LoopbackReply(body: $0.target) }
        let transport = URLSessionTransport()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<100 {
                group.addTask {
                    let text = try await transport.send(server.url("/\(number)")).text()
                    #expect(text == "/\(number)")
                }
            }
            try await group.waitForAll()
        }
        #expect(server.requests.count == 100)
        #expect(server.connectionCount < 100)
    }

    @Test(
        "Any timeout is one that Foundation can take",
        arguments: [.infinity, .greatestFiniteMagnitude, 1e16, .nan, -1e30, 0, 0.5]
    )
    func timeouts(_ timeout: TimeInterval) async throws {
        let server = try LoopbackServer.start { _ in LoopbackReply(body: "x") }
        let configuration = URLSessionConfiguration.ephemeral
        configuration.timeoutIntervalForRequest = timeout
        for transport in [URLSessionTransport(), URLSessionTransport(configuration: configuration)] {
            var request = URLRequest(url: server.url())
            request.timeoutInterval = timeout
            #expect(try await Pipeline(transport: transport).data(for: request).0 == Data("x".utf8))
            request = URLRequest(url: server.url())
            #expect(try await Pipeline(transport: transport).data(for: request).0 == Data("x".utf8))
            transport.invalidate()
        }
    }

    @Test(
        "The content frames the request, whatever Content-Length a caller sets (RFC 9112 §6.3)",
        arguments: ["5", "50"]
    )
    func contentLength(_ length: String) async throws {
        let server = try LoopbackServer.start { _ in LoopbackReply() }
        let client = Pipeline(transport: URLSessionTransport())
        for content in ["hello world", ""] {
            var request = URLRequest(url: server.url())
            request.httpMethod = "POST"
            request.setValue(length, forHTTPHeaderField: "Content-Length")
            _ = try await client.upload(for: request, from: Data(content.utf8))
            #expect(server.requests.last?.values(of: "Content-Length") == ["\(content.utf8.count)"])
        }
        var request = URLRequest(url: server.url())
        request.setValue(length, forHTTPHeaderField: "Content-Length")
        _ = try await client.data(for: request)
        #expect(server.requests.last?.values(of: "Content-Length") == [])
        #expect(server.requests.count == 3)
    }

    @Test("A scheme in upper case is the same scheme (RFC 3986 §3.1)")
    func upperCaseScheme() async throws {
        let server = try LoopbackServer.start { _ in LoopbackReply(body: "x") }
        let url = try #require(
            URL(string: server.url("/a?b=%20c").absoluteString.replacing("http://", with: "HTTP://"))
        )
        let client = Pipeline(transport: URLSessionTransport())
        #expect(try await client.data(for: URLRequest(url: url)).0 == Data("x".utf8))
        #expect(server.requests.map(\.path) == ["/a"])
    }

    @Test(
        "A method that is no token is refused before anything is sent",
        arguments: ["GET / HTTP/1.1\r\nX: y\r\n\r\nGET", "G T", "G\0"]
    )
    func methods(_ method: String) async throws {
        let server = try LoopbackServer.start { _ in LoopbackReply() }
        var request = URLRequest(url: server.url())
        request.httpMethod = method
        // Foundation may refuse the name itself, and keep GET.
        guard request.httpMethod == method else { return }
        let refused = request
        let error = await #expect(throws: ServiceError.self) {
            try await Pipeline(transport: URLSessionTransport()).data(for: refused)
        }
        #expect(error?.code == .badRequest && error?.progress == .notSent)
        #expect(server.requests.isEmpty)
    }
}

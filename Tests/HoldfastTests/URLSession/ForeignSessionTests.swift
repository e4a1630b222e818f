// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastStorage
import HoldfastTesting
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("URLSessionTransport over an existing session", .timeLimit(.minutes(20)))
struct ForeignSessionTests {
    private let session = URLSession(configuration: .ephemeral)

    @Test("GET, POST and file upload")
    func exchanges() async throws {
        let server = try LoopbackServer.start { LoopbackReply(fields: [("X-Method", $0.method)], bytes: $0.body) }
        let transport = URLSessionTransport(session: session)
        let got = try await transport.send(server.url())
        #expect(got.status == 200)
        #expect(got.fields["X-Method"] == "GET")
        let posted = try await transport.send(server.url(), method: "POST", body: .data(Data("content".utf8)))
        #expect(try await posted.text() == "content")
        let large = patternedBytes(3 << 20)
        let put = try await transport.send(server.url(), method: "PUT", body: .oneShot(ChunkSource([ByteChunk(large)])))
        #expect(put.fields["X-Method"] == "PUT")
        #expect(try await put.body.collect().array == large)
    }

    @Test("A redirect is returned, not followed, and the session still follows redirects for others")
    func redirect() async throws {
        let server = try LoopbackServer.start { request in
            request.path == "/" ? LoopbackReply(302, fields: [("Location", "/there")]) : LoopbackReply(body: "there")
        }
        let response = try await URLSessionTransport(session: session).send(server.url())
        #expect(response.status == 302)
        #expect(response.fields["Location"] == "/there")
        #expect(server.requests.count == 1)
        let (data, _) = try await session.data(from: server.url())
        #expect(data == Data("there".utf8))
    }

    @Test("A 401 with a Basic challenge is returned and nothing hangs")
    func unauthorized() async throws {
        let server = try LoopbackServer.start { _ in
            LoopbackReply(401, fields: [("WWW-Authenticate", "Basic realm=\"x\"")])
        }
        let response = try await URLSessionTransport(session: session).send(server.url())
        #expect(response.status == 401)
        #expect(response.fields["WWW-Authenticate"] == "Basic realm=\"x\"")
    }

    @Test("A call can be cancelled while the head is awaited, and the session stays usable")
    func cancelled() async throws {
        let server = try LoopbackServer.start { $0.path == "/never" ? .never : LoopbackReply(body: "on") }
        let transport = URLSessionTransport(session: session)
        let task = Task { try await transport.send(server.url("/never")) }
        try await server.requests(atLeast: 1)
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        try await server.connectionEnds(atLeast: 1)
        #expect(try await transport.send(server.url()).text() == "on")
        transport.invalidate()
        #expect(try await session.data(from: server.url()).0 == Data("on".utf8))
    }

    @Test("Errors are mapped, and the session's headers are implicit")
    func errorsAndFields() async throws {
        let server = try LoopbackServer.start { _ in LoopbackReply(before: [.reset]) }
        let configuration = URLSessionConfiguration.ephemeral
        configuration.httpAdditionalHeaders = ["X-Session": "s"]
        let transport = URLSessionTransport(session: URLSession(configuration: configuration))
        #expect(transport.implicitFields(for: URLRequest(url: server.url()))["X-Session"] == "s")
        let error = await #expect(throws: ServiceError.self) { try await transport.send(server.url()) }
        #expect(error?.code == .connectionLost)
        #expect(server.requests.first?.values(of: "X-Session") == ["s"])
    }

    @Test("A request's own cookies are sent, or whose the response is is hidden, so nothing is stored")
    func cookies() async throws {
        let server = try LoopbackServer.start { LoopbackReply(body: $0.values(of: "Cookie").joined()) }
        let cookie = HTTPCookie(properties: [.name: "sid", .value: "1", .domain: "127.0.0.1", .path: "/"])
        session.configuration.httpCookieStorage?.setCookie(try #require(cookie))
        let transport = URLSessionTransport(session: session)
        var request = URLRequest(url: server.url())
        let plain = try await transport.send(request, body: .none, context: CallContext())
        #expect(presented(plain)?["Cookie"] == "sid=1")
        #expect(try await plain.text() == "sid=1")
        request.setValue("own=2", forHTTPHeaderField: "Cookie")
        let own = try await transport.send(request, body: .none, context: CallContext())
        #if canImport(Darwin)
            #expect(presented(own) == nil)
        #else
            #expect(presented(own)?["Cookie"] == "own=2")
            #expect(try await own.text() == "own=2")
        #endif
        request.setValue(nil, forHTTPHeaderField: "Cookie")
        request.httpShouldHandleCookies = false
        let none = try await transport.send(request, body: .none, context: CallContext())
        #expect(try await none.text() == "")
        #expect(presented(none)?["Cookie"] == nil)
    }

    private func presented(_ response: Response) -> HeaderFields? {
        response.presentation.presented?.fields
    }
}

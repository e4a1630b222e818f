// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastSemantics
import HoldfastTesting
import Testing

@testable import Holdfast

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("Cookies of intercepted sessions that share a pipeline", .timeLimit(.minutes(20)))
struct InterceptedCookiesTests {
    private static func server() throws -> LoopbackServer {
        try LoopbackServer.start { request in
            request.path == "/login"
                ? LoopbackReply(fields: [("Set-Cookie", "sid=first; Path=/")])
                : LoopbackReply(body: request.values(of: "Cookie").joined())
        }
    }

    @Test("What one session was given is not sent for another, nor for one that wants no cookies")
    func apart() async throws {
        let server = try Self.server()
        let pipeline = Pipeline(transport: URLSessionTransport())
        defer { pipeline.stopIntercepting() }
        let first = InterceptedClient(pipeline)
        _ = try await first.get(server.url("/login"))
        #expect(try await first.get(server.url("/home")).text == "sid=first")
        #expect(try await InterceptedClient(pipeline).get(server.url("/home")).text == "")
        let without = InterceptedClient(pipeline, configure: { $0.httpShouldSetCookies = false })
        #expect(try await without.get(server.url("/home")).text == "")
    }

    @Test("Cookies that a redirect sets are sent on for the same session, and kept by it alone")
    func redirected() async throws {
        let server = try LoopbackServer.start { request in
            switch request.path {
            case "/login": LoopbackReply(302, fields: [("Location", "/home"), ("Set-Cookie", "sid=new; Path=/")])
            case "/away": LoopbackReply(302, fields: [("Location", "/narrow/home")])
            default: LoopbackReply(body: request.values(of: "Cookie").joined())
            }
        }
        let pipeline = Pipeline(transport: URLSessionTransport())
        defer { pipeline.stopIntercepting() }
        let first = InterceptedClient(pipeline)
        #expect(try await first.get(server.url("/login")).text == "sid=new")
        #expect(try await first.get(server.url("/home")).text == "sid=new")
        let second = InterceptedClient(pipeline)
        #expect(try await second.get(server.url("/away")).text == "")
        let narrow = HTTPCookie(properties: [.domain: "127.0.0.1", .path: "/narrow", .name: "n", .value: "1"])
        second.session.configuration.httpCookieStorage?.setCookie(try #require(narrow))
        #expect(try await second.get(server.url("/away")).text == "n=1")
    }

    @Test("A Cookie field of the caller's own goes along with a redirect as it stands")
    func own() async throws {
        let server = try LoopbackServer.start { request in
            request.path == "/login"
                ? LoopbackReply(302, fields: [("Location", "/home"), ("Set-Cookie", "sid=new; Path=/")])
                : LoopbackReply(body: request.values(of: "Cookie").joined())
        }
        let pipeline = Pipeline(transport: URLSessionTransport())
        defer { pipeline.stopIntercepting() }
        let client = InterceptedClient(pipeline)
        var request = URLRequest(url: server.url("/login"))
        request.setValue("mine=1", forHTTPHeaderField: "Cookie")
        #expect(try await client.send(request).text == "mine=1")
        #expect(client.session.configuration.httpCookieStorage?.cookies(for: server.url())?.map(\.value) == ["new"])
    }

    @Test("Cookies of attempts that were repeated, and of a 304, are kept as well")
    func beneath() async throws {
        let server = try LoopbackServer.start { request in
            switch request.number {
            case 0: LoopbackReply(503, fields: [("Set-Cookie", "a=0")])
            case 1: LoopbackReply(body: "done")
            case 2: LoopbackReply(fields: [("ETag", "\"a\""), ("Cache-Control", "no-cache")], body: "text")
            default: LoopbackReply(304, fields: [("ETag", "\"a\""), ("Set-Cookie", "b=3")])
            }
        }
        let pipeline = Pipeline(
            transport: URLSessionTransport(),
            cache: .inMemory(),
            retrierFactory: .backoff(.atOnce)
        )
        defer { pipeline.stopIntercepting() }
        let client = InterceptedClient(pipeline)
        let storage = try #require(client.session.configuration.httpCookieStorage)
        #expect(try await client.get(server.url("/repeated")).text == "done")
        for names in [["a"], ["a", "b"]] {
            #expect(try await client.get(server.url("/kept")).text == "text")
            #expect(storage.cookies(for: server.url("/kept"))?.map(\.name).sorted() == names)
        }
        #expect(server.requests.last?.values(of: "If-None-Match") == ["\"a\""])
    }
}

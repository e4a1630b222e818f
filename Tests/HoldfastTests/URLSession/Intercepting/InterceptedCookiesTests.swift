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

    @Test("A session's cookies are not sent for another session, nor for one that wants no cookies")
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

    @Test("The caller's own Cookie field is forwarded unchanged with a redirect")
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

    @Test("From stored responses of every hop, a session keeps the cookies that it does not have yet")
    func stored() async throws {
        let server = try LoopbackServer.start { request in
            let fields = [("Set-Cookie", "n=\(request.number)"), ("Cache-Control", "max-age=600")]
            return request.path == "/hop"
                ? LoopbackReply(302, fields: fields + [("Location", "/page"), ("Set-Cookie", "hop=1")])
                : LoopbackReply(fields: fields, body: "page")
        }
        let pipeline = Pipeline(transport: URLSessionTransport(), cache: .inMemory())
        defer { pipeline.stopIntercepting() }
        for held in [nil, nil, "newer"] {
            let client = InterceptedClient(pipeline)
            let storage = try #require(client.session.configuration.httpCookieStorage)
            if let held {
                let properties: [HTTPCookiePropertyKey: Any] = [
                    .domain: "127.0.0.1", .path: "/", .name: "n", .value: held,
                ]
                storage.setCookie(try #require(HTTPCookie(properties: properties)))
            }
            // Its cookies are no part of what it asks for, so that it is answered as the others are.
            var request = URLRequest(url: server.url("/hop"))
            request.httpShouldHandleCookies = false
            #expect(try await client.send(request).text == "page")
            let cookies = (storage.cookies ?? []).map { "\($0.name)=\($0.value)" }.sorted()
            #expect(cookies == ["hop=1", "n=\(held ?? "1")"])
        }
        #expect(server.requests.count == 2)
    }

    @Test("A stored response returns no removed cookie to a session, and no private one to another")
    func gone() async throws {
        let server = try LoopbackServer.start { request in
            let control = request.path == "/private" ? "private, max-age=600" : "max-age=600"
            return LoopbackReply(fields: [("Set-Cookie", "sid=S1"), ("Cache-Control", control)], body: "page")
        }
        let pipeline = Pipeline(transport: URLSessionTransport(), cache: .inMemory())
        defer { pipeline.stopIntercepting() }
        let (first, second) = (InterceptedClient(pipeline), InterceptedClient(pipeline))
        for path in ["/page", "/private"] {
            var request = URLRequest(url: server.url(path))
            // Its cookies are no part of what it asks for, so that the second call is a hit.
            request.httpShouldHandleCookies = false
            let storage = try #require(first.session.configuration.httpCookieStorage)
            #expect(try await first.send(request).text == "page")
            let held = try #require(storage.cookies?.first { $0.name == "sid" })
            storage.deleteCookie(held)
            #expect(try await first.send(request).text == "page")
            #expect(storage.cookies?.contains { $0.name == "sid" } != true)
            let other = try #require(second.session.configuration.httpCookieStorage)
            #expect(try await second.send(request).text == "page")
            #expect((other.cookies?.contains { $0.name == "sid" } ?? false) == (path == "/page"))
            for cookie in other.cookies ?? [] { other.deleteCookie(cookie) }
        }
        #expect(server.requests.count == 2)
    }

    @Test("A session that joins another one's exchange keeps the cookies it sets")
    func joined() async throws {
        let gate = LoopbackGate()
        let server = try LoopbackServer.start { _ in
            LoopbackReply(
                fields: [("Set-Cookie", "n=new"), ("Cache-Control", "max-age=600")],
                before: [.pause(gate)],
                steps: [.send("page")]
            )
        }
        let started = CountWatch()
        var configuration = PipelineConfiguration()
        configuration.observers = [StartWatch(started: started)]
        let pipeline = Pipeline(transport: URLSessionTransport(), cache: .inMemory(), configuration: configuration)
        defer { pipeline.stopIntercepting() }
        let clients = [InterceptedClient(pipeline), InterceptedClient(pipeline)]
        let calls = clients.map { client in Task { try await client.get(server.url("/page")).text } }
        // One that has not joined by then is answered from the store, and keeps them as well.
        try await started.wait(for: 2)
        gate.open()
        for call in calls { #expect(try await call.value == "page") }
        #expect(server.requests.count == 1)
        for client in clients {
            let storage = try #require(client.session.configuration.httpCookieStorage)
            #expect(storage.cookies?.map(\.value) == ["new"])
        }
    }

    @Test("Cookies of repeated attempts, and of a 304, are kept too")
    func below() async throws {
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

/// Counts the calls that have begun.
private struct StartWatch: EventObserver {
    let started: CountWatch

    func observe(_ event: ServiceEvent) {
        if event.name == .callStarted { started.increment() }
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastTesting
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The whole of it over real sockets: URLSession, cache, retries.
@Suite("An ordinary URLSession client, wrapped", .timeLimit(.minutes(20)))
struct WrappedClientTests {
    static func pipeline(
        _ cache: HTTPCache?,
        _ retrierFactory: any RetrierFactory = NilRetrier.Factory(),
        _ configure: (URLSessionConfiguration) -> Void = { _ in }
    ) -> Pipeline {
        let configuration = URLSessionConfiguration.ephemeral
        configure(configuration)
        return Pipeline(
            transport: URLSessionTransport(configuration: configuration),
            cache: cache,
            retrierFactory: retrierFactory
        )
    }

    @Test("A fresh response is loaded once, a stale one revalidated by a 304 that the server sees")
    func cached() async throws {
        let server = try LoopbackServer.start { request in
            if request.path == "/tag" {
                if request.values(of: "If-None-Match") == ["\"v1\""] { return LoopbackReply(304) }
                return LoopbackReply(fields: [("Cache-Control", "no-cache"), ("ETag", "\"v1\"")], body: "tagged")
            }
            return LoopbackReply(fields: [("Cache-Control", "max-age=600")], body: "fresh")
        }
        defer { server.stop() }
        let cache = HTTPCache.inMemory()
        let client = Self.pipeline(cache)
        for path in ["/fresh", "/fresh", "/tag", "/tag"] {
            let (data, response) = try await client.data(for: URLRequest(url: server.url(path)))
            #expect(String(decoding: data, as: UTF8.self) == (path == "/tag" ? "tagged" : "fresh"))
            #expect((response as? HTTPURLResponse)?.statusCode == 200)
        }
        #expect(server.requests.map(\.path) == ["/fresh", "/tag", "/tag"])
        #expect(cache.statistics.hits == 1)
        #expect(cache.statistics.revalidated == 1)
    }

    @Test(
        "Two users with credentials in session headers or cookies share a cache and see nothing of each other"
    )
    func users() async throws {
        let server = try LoopbackServer.start { request in
            let user = (request.values(of: "Authorization") + request.values(of: "Cookie")).joined()
            return LoopbackReply(fields: [("Cache-Control", "max-age=600")], body: "for \(user)")
        }
        defer { server.stop() }
        let cache = HTTPCache.inMemory(options: Self.partedOptions)
        var clients: [(String, Pipeline)] = []
        for user in ["alice", "bob"] {
            clients.append(
                (
                    "Bearer \(user)",
                    Self.pipeline(cache) { $0.httpAdditionalHeaders = ["Authorization": "Bearer \(user)"] }
                )
            )
            let cookie = try #require(
                HTTPCookie(properties: [.domain: "127.0.0.1", .path: "/", .name: "sid", .value: user])
            )
            clients.append(("sid=\(user)", Self.pipeline(cache) { $0.httpCookieStorage?.setCookie(cookie) }))
        }
        clients.append(("", Self.pipeline(cache)))
        for _ in 0..<2 {
            for (user, client) in clients {
                let (data, _) = try await client.data(for: URLRequest(url: server.url("/me")))
                #expect(String(decoding: data, as: UTF8.self) == "for \(user)")
            }
        }
        #expect(server.requests.count == clients.count)
    }

    /// For an origin that does not say that it answers cookies differently.
    private static let partedOptions: CacheOptions = {
        var options = CacheOptions()
        options.cookiesMayBorrow = false
        return options
    }()

    @Test("After a response sets a cookie, the responses of that cookie's user are used", arguments: [true, false])
    func loggedIn(originSaysSo: Bool) async throws {
        let server = try LoopbackServer.start { request in
            if request.path == "/login" { return LoopbackReply(204, fields: [("Set-Cookie", "sid=carol; Path=/")]) }
            return LoopbackReply(
                fields: [("Cache-Control", "max-age=600")] + (originSaysSo ? [("Vary", "Cookie")] : []),
                body: request.values(of: "Cookie").first ?? "nobody"
            )
        }
        defer { server.stop() }
        let client = Self.pipeline(HTTPCache.inMemory(options: originSaysSo ? CacheOptions() : Self.partedOptions))
        var seen: [String] = []
        for path in ["/me", "/me", "/login", "/me", "/me"] {
            seen.append(
                String(decoding: try await client.data(for: URLRequest(url: server.url(path))).0, as: UTF8.self)
            )
        }
        #expect(seen == ["nobody", "nobody", "", "sid=carol", "sid=carol"])
        #expect(server.requests.map(\.path) == ["/me", "/login", "/me"])
    }

    @Test("If a cookie comes between lookup and sending, the response is stored for its actual user, or not at all")
    func cookieInBetween() async throws {
        let server = try LoopbackServer.start { request in
            LoopbackReply(
                fields: [("Cache-Control", "max-age=600")],
                body: request.values(of: "Cookie").first ?? "nobody"
            )
        }
        defer { server.stop() }
        let sessionConfiguration = URLSessionConfiguration.ephemeral
        let storage = try #require(sessionConfiguration.httpCookieStorage)
        let cookie = try #require(
            HTTPCookie(properties: [.domain: "127.0.0.1", .path: "/", .name: "user", .value: "bob"])
        )
        var configuration = PipelineConfiguration()
        configuration.observers = [CookieSetter(storage: storage, cookie: cookie)]
        let client = Pipeline(
            transport: URLSessionTransport(configuration: sessionConfiguration),
            cache: .inMemory(),
            configuration: configuration
        )
        let url = server.url("/me")
        #expect(String(decoding: try await client.data(from: url).0, as: UTF8.self) == "user=bob")
        storage.deleteCookie(cookie)
        let anonymous = Pipeline(transport: client.transport, cache: client.cache)
        #expect(String(decoding: try await anonymous.data(from: url).0, as: UTF8.self) == "nobody")
    }

    @Test("A redirect chain is loaded and later answered from the store hop by hop")
    func redirects() async throws {
        let server = try LoopbackServer.start { request in
            switch request.path {
            case "/a":
                LoopbackReply(301, fields: [("Location", "/b"), ("Cache-Control", "max-age=600")], body: "moved")
            case "/b": LoopbackReply(302, fields: [("Location", "/c"), ("Cache-Control", "no-store")], body: "moved")
            default: LoopbackReply(fields: [("Cache-Control", "max-age=600")], body: "end")
            }
        }
        defer { server.stop() }
        let client = Self.pipeline(HTTPCache.inMemory())
        for _ in 0..<2 {
            let response = try await client.send(URLRequest(url: server.url("/a")))
            #expect(response.url == server.url("/c"))
            #expect(try await response.body.data() == Data("end".utf8))
        }
        #expect(server.requests.map(\.path) == ["/a", "/b", "/c", "/b"])
    }

    @Test(
        "Failures are retried: a 503, a reset before the head, then the response; a POST after a reset is not"
    )
    func retried() async throws {
        let server = try LoopbackServer.start { request in
            var busy = LoopbackReply(503, fields: [("Retry-After", "0")], body: "busy")
            busy.closes = true
            return switch (request.method, request.number) {
            case ("GET", 0): busy
            case ("GET", 1), ("POST", _): LoopbackReply(before: [.reset])
            default: LoopbackReply(body: "done")
            }
        }
        defer { server.stop() }
        var rules = RetryRules(backoff: Backoff(base: .milliseconds(1), cap: .milliseconds(5)), maxAttempts: 4)
        rules.throttlingBackoff = rules.backoff
        let client = Self.pipeline(nil, .backoff(rules))
        let response = try await client.send(URLRequest(url: server.url()))
        #expect(try await response.body.data() == Data("done".utf8))
        #expect(response.source == .network(attempts: 3))
        #expect(response.attempts.map(\.status?.rawValue) == [503, nil, 200])
        var post = URLRequest(url: server.url())
        post.httpMethod = "POST"
        post.httpBody = Data("once".utf8)
        await #expect(throws: ServiceError.self) { try await client.data(for: post) }
        #expect(server.requests.filter { $0.method == "POST" }.count == 1)
    }

    @Test("A compressed body is stored and served decoded")
    func compressed() async throws {
        // "hello" in a gzip member.
        let gzipped: [UInt8] = [
            0x1f, 0x8b, 0x08, 0, 0, 0, 0, 0, 0, 0xff, 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0, 0x86, 0xa6, 0x10, 0x36, 5,
            0, 0, 0,
        ]
        let server = try LoopbackServer.start { _ in
            LoopbackReply(
                fields: [("Cache-Control", "max-age=600"), ("Content-Encoding", "gzip"), ("Vary", "Accept-Encoding")],
                bytes: gzipped
            )
        }
        defer { server.stop() }
        let client = Self.pipeline(HTTPCache.inMemory())
        for source in [ResponseSource.network(attempts: 1), .fresh] {
            let response = try await client.send(URLRequest(url: server.url()))
            #expect(try await response.body.data() == Data("hello".utf8))
            #expect(response.source == source)
            #expect(response.contentDecoded)
        }
        #expect(server.requests.count == 1)
    }
}

/// Sets a cookie at the moment between look-up and sending.
private struct CookieSetter: EventObserver {
    let storage: HTTPCookieStorage
    let cookie: HTTPCookie

    func observe(_ event: ServiceEvent) {
        if event.name == .attemptStarted { storage.setCookie(cookie) }
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastSemantics
import HoldfastTesting
import Synchronization
import Testing

@testable import Holdfast

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("An intercepted session keeps the settings of its configuration", .timeLimit(.minutes(20)))
struct InterceptionSettingsTests {
    private static func cookie(_ name: String, _ value: String) throws -> HTTPCookie {
        try #require(HTTPCookie(properties: [.domain: "127.0.0.1", .path: "/", .name: name, .value: value]))
    }

    private func sent(
        _ request: URLRequest,
        configure: (URLSessionConfiguration) -> Void
    ) async throws -> URLRequest {
        let transport = ScriptedTransport([.respond(body: "x")])
        let pipeline = Pipeline(transport: transport)
        defer { pipeline.stopIntercepting() }
        _ = try await InterceptedClient(pipeline, configure: configure).send(request)
        return try #require(transport.sent.first).request
    }

    private let request = URLRequest.plain("http://127.0.0.1:1/")

    @Test("Header fields of the request override the configuration's")
    func headers() async throws {
        var request = request
        request.setValue("own", forHTTPHeaderField: "x-b")
        let sent = try await sent(request) { $0.httpAdditionalHeaders = ["X-A": "a", "X-B": "b", "X-C": 3] }
        #expect(sent.value(forHTTPHeaderField: "X-A") == "a")
        #expect(sent.value(forHTTPHeaderField: "X-B") == "own")
        #expect(sent.value(forHTTPHeaderField: "X-C") == "3")
    }

    @Test("Timeout and cache policy of the configuration apply if the request has the defaults")
    func policies() async throws {
        func configure(_ configuration: URLSessionConfiguration) {
            configuration.timeoutIntervalForRequest = 1700
            configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
        }
        let plain = try await sent(request, configure: configure)
        #expect(plain.timeoutInterval == 1700)
        #expect(plain.cachePolicy == .reloadIgnoringLocalCacheData)
        var request = request
        request.timeoutInterval = 900
        request.cachePolicy = .returnCacheDataElseLoad
        let own = try await sent(request, configure: configure)
        #expect(own.timeoutInterval == 900)
        #expect(own.cachePolicy == .returnCacheDataElseLoad)
    }

    @Test("The pipeline obeys the cache policy: a reload asks again, only-if-cached asks nobody")
    func cachePolicy() async throws {
        let server = try LoopbackServer.start { request in
            LoopbackReply(fields: [("Cache-Control", "max-age=600")], body: "\(request.number)")
        }
        let pipeline = Pipeline(transport: URLSessionTransport(), cache: .inMemory())
        defer { pipeline.stopIntercepting() }
        let client = InterceptedClient(pipeline)
        var request = URLRequest(url: server.url())
        #expect(try await client.send(request).text == "0")
        request.cachePolicy = .reloadIgnoringLocalCacheData
        #expect(try await client.send(request).text == "1")
        request.cachePolicy = .returnCacheDataDontLoad
        #expect(try await client.send(request).text == "1")
        request.url = server.url("/other")
        let error = await #expect(throws: URLError.self) { try await client.send(request) }
        #expect(error?.code == .resourceUnavailable)
        #expect(server.requests.count == 2)
    }

    @Test("A resource timeout limits the call, and so does the pipeline's own limit")
    func resourceTimeout() {
        let configuration = URLSessionConfiguration.ephemeral
        #expect(InterceptionSettings(configuration).callLimit(within: nil)?.duration == nil)
        #expect(InterceptionSettings(configuration).callLimit(within: .seconds(5))?.duration == .seconds(5))
        configuration.timeoutIntervalForResource = 30
        #expect(InterceptionSettings(configuration).callLimit(within: nil)?.duration == .seconds(30))
        #expect(InterceptionSettings(configuration).callLimit(within: .seconds(5))?.duration == .seconds(5))
        #expect(InterceptionSettings(configuration).callLimit(within: .seconds(50))?.duration == .seconds(30))
    }

    @Test("Credentials in header fields and cookies partition the cache")
    func partitions() async throws {
        let server = try LoopbackServer.start { request in
            let user = (request.values(of: "Authorization") + request.values(of: "Cookie")).joined()
            return LoopbackReply(fields: [("Cache-Control", "max-age=600")], body: "for \(user)")
        }
        var options = CacheOptions()
        options.cookiesMayBorrow = false
        let pipeline = Pipeline(transport: URLSessionTransport(), cache: .inMemory(options: options))
        defer { pipeline.stopIntercepting() }
        var clients: [(String, InterceptedClient)] = [("", InterceptedClient(pipeline))]
        for user in ["alice", "bob"] {
            let byField = InterceptedClient(pipeline, configure: { $0.httpAdditionalHeaders = ["Authorization": user] })
            clients.append((user, byField))
            let cookie = try Self.cookie("sid", user)
            let byCookie = InterceptedClient(pipeline, configure: { $0.httpCookieStorage?.setCookie(cookie) })
            clients.append(("sid=\(user)", byCookie))
        }
        for _ in 0..<2 {
            for (user, client) in clients {
                #expect(try await client.get(server.url()).text == "for \(user)")
            }
        }
        #expect(server.requests.count == clients.count)
    }

    @Test("The session's storage supplies cookies and takes new ones; stored responses never replace them")
    func cookies() async throws {
        let server = try LoopbackServer.start { request in
            let fields = [("Set-Cookie", "a=\(request.number + 1)"), ("Cache-Control", "max-age=600")]
            return LoopbackReply(fields: fields, body: request.values(of: "Cookie").joined())
        }
        let pipeline = Pipeline(transport: URLSessionTransport(), cache: .inMemory())
        defer { pipeline.stopIntercepting() }
        let client = InterceptedClient(pipeline)
        let storage = try #require(client.session.configuration.httpCookieStorage)
        #expect(try await client.get(server.url("/1")).text == "")
        #expect(storage.cookies(for: server.url())?.map(\.value) == ["1"])
        #expect(try await client.get(server.url("/2")).text == "a=1")
        #expect(storage.cookies(for: server.url())?.map(\.value) == ["2"])
        let kept = InterceptionSettings(client.session.configuration).cookies(for: URLRequest(url: server.url()))
        let fields: HeaderFields = ["Set-Cookie": "a=stored"]
        for source in [ResponseSource.fresh, .stale, .revalidated, .synthesized] {
            let response = Response(status: 200, fields: fields, url: server.url(), source: source)
            kept.keep(received: response)
            kept.keep(answer: response)
        }
        kept.keep(received: Response(status: 200, fields: fields, url: server.url(), source: .collapsed))
        #expect(storage.cookies(for: server.url())?.map(\.value) == ["2"])
        kept.keep(received: Response(status: 200, fields: fields, url: server.url()))
        #expect(storage.cookies(for: server.url())?.map(\.value) == ["stored"])
        // An attempt of the call's own has kept it.
        kept.keep(answer: Response(status: 200, fields: ["Set-Cookie": "a=late"], url: server.url()))
        #expect(storage.cookies(for: server.url())?.map(\.value) == ["stored"])
        let joined: HeaderFields = ["Set-Cookie": "a=joined"]
        kept.keep(answer: Response(status: 200, fields: joined, url: server.url(), source: .collapsed))
        #expect(storage.cookies(for: server.url())?.map(\.value) == ["joined"])
        // What a stored response set to be removed removes nothing, and is not added.
        for name in ["a", "b"] {
            let removal: HeaderFields = ["Set-Cookie": "\(name)=x; Expires=Thu, 01 Jan 1970 00:00:00 GMT"]
            kept.keep(answer: Response(status: 200, fields: removal, url: server.url(), source: .fresh))
        }
        #expect(storage.cookies?.map(\.value) == ["joined"])
        // Of one call, a later hop's stand above what an earlier one has added.
        for value in ["1", "2"] {
            let fields: HeaderFields = ["Set-Cookie": "c=\(value)"]
            kept.keep(answer: Response(status: 200, fields: fields, url: server.url(), source: .fresh))
        }
        #expect(storage.cookies?.first { $0.name == "c" }?.value == "2")
        let over: HeaderFields = ["Set-Cookie": "c=; Max-Age=0"]
        kept.keep(received: Response(status: 200, fields: over, url: server.url()))
        #expect(storage.cookies?.map(\.name) == ["a"])
    }

    @Test("Cookies that a redirect sets are sent on and kept, also if the transport has the session's storage")
    func cookiesOfRedirects() async throws {
        let server = try LoopbackServer.start { request in
            request.path == "/login"
                ? LoopbackReply(302, fields: [("Location", "/home"), ("Set-Cookie", "sid=new; path=/")])
                : LoopbackReply(body: request.values(of: "Cookie").joined())
        }
        let configuration = URLSessionConfiguration.ephemeral
        let storage = try #require(configuration.httpCookieStorage)
        storage.setCookie(try Self.cookie("sid", "old"))
        let pipeline = Pipeline(transport: URLSessionTransport(configuration: configuration))
        defer { pipeline.stopIntercepting() }
        let session = URLSession(configuration: configuration.intercepted(by: pipeline))
        #expect(try await session.data(from: server.url("/login")).0 == Data("sid=new".utf8))
        #expect(server.requests.first?.values(of: "Cookie") == ["sid=old"])
        #expect(storage.cookies(for: server.url())?.map(\.value) == ["new"])
    }

    @Test("A configuration that wants no cookies sends none and keeps none")
    func withoutCookies() async throws {
        let server = try LoopbackServer.start { request in
            LoopbackReply(fields: [("Set-Cookie", "a=1")], body: request.values(of: "Cookie").joined())
        }
        let pipeline = Pipeline(transport: URLSessionTransport())
        defer { pipeline.stopIntercepting() }
        let cookie = try Self.cookie("sid", "x")
        let client = InterceptedClient(
            pipeline,
            configure: { configuration in
                configuration.httpShouldSetCookies = false
                configuration.httpCookieAcceptPolicy = .never
                configuration.httpCookieStorage?.setCookie(cookie)
            }
        )
        #expect(try await client.get(server.url()).text == "")
        #expect(client.session.configuration.httpCookieStorage?.cookies?.map(\.name) == ["sid"])
    }
}

extension URLRequest {
    fileprivate static func plain(_ text: String) -> URLRequest {
        guard let url = URL(string: text) else { preconditionFailure("not a URL: \(text)") }
        return URLRequest(url: url)
    }
}

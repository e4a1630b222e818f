// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastTesting
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("A session's own headers on a hop to another origin", .timeLimit(.minutes(20)))
struct ForeignHopFieldsTests {
    private static let bound = [
        "Authorization": "Bearer s", "X-Api-Key": "k", "Cookie": "id=1", "Proxy-Authorization": "Basic p",
    ]

    private static var configuration: URLSessionConfiguration {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.httpAdditionalHeaders = bound.merging(["Accept-Language": "de"]) { first, _ in first }
        return configuration
    }

    /// Two servers, of which the first redirects `/away` to the second, and the second `/b` back to the first.
    private static func servers() throws -> (first: LoopbackServer, second: LoopbackServer) {
        let second = try LoopbackServer.start { request in
            request.path == "/back"
                ? LoopbackReply(302, fields: [("Location", request.values(of: "X-Back").joined())])
                : LoopbackReply(fields: [("Cache-Control", "max-age=600")], body: "second")
        }
        let away = second.url("/b").absoluteString
        let back = second.url("/back").absoluteString
        let first = try LoopbackServer.start { request in
            switch request.path {
            case "/away": LoopbackReply(302, fields: [("Location", away)])
            case "/round": LoopbackReply(302, fields: [("Location", back)])
            case "/near": LoopbackReply(302, fields: [("Location", "/home")])
            default: LoopbackReply(body: "home")
            }
        }
        return (first, second)
    }

    @Test(
        "Fields that may hold a credential stay with the origin where the call began",
        arguments: [false, true],
        [false, true]
    )
    func crossing(isForeignSession: Bool, isBoundAtRequest: Bool) async throws {
        let (first, second) = try Self.servers()
        let transport =
            isForeignSession
            ? URLSessionTransport(session: URLSession(configuration: Self.configuration))
            : URLSessionTransport(configuration: Self.configuration)
        var request = URLRequest(url: first.url("/away"))
        // What the request says itself goes along, whatever the session says.
        if isBoundAtRequest { request.setValue("own", forHTTPHeaderField: "x-api-key") }
        _ = try await Pipeline(transport: transport).send(request)
        let start = try #require(first.requests.first)
        let end = try #require(second.requests.first)
        for (name, value) in Self.bound {
            let isOwn = isBoundAtRequest && name == "X-Api-Key"
            #expect(start.values(of: name) == [isOwn ? "own" : value])
            #if canImport(Darwin)
                #expect(end.values(of: name).allSatisfy { $0 == (isOwn ? "own" : "") })
            #else
                #expect(end.values(of: name) == (isOwn ? ["own"] : []))
            #endif
        }
        #expect(end.values(of: "Accept-Language") == ["de"])
    }

    @Test("Within the origin, and back at it, they are sent", arguments: ["/near", "/round"], [false, true])
    func near(_ path: String, isForeignSession: Bool) async throws {
        let (first, second) = try Self.servers()
        let transport =
            isForeignSession
            ? URLSessionTransport(session: URLSession(configuration: Self.configuration))
            : URLSessionTransport(configuration: Self.configuration)
        var request = URLRequest(url: first.url(path))
        request.setValue(first.url("/home").absoluteString, forHTTPHeaderField: "X-Back")
        let response = try await Pipeline(transport: transport).send(request)
        #expect(try await response.text() == "home")
        #expect(first.requests.count == 2)
        for (name, value) in Self.bound { #expect(first.requests.last?.values(of: name) == [value]) }
        #expect(second.requests.allSatisfy { $0.values(of: "Authorization").allSatisfy { $0.isEmpty } })
    }

    @Test("The cache keys a hop by what is sent to it, so the response is stored as sent without a credential")
    func keyed() async throws {
        let (first, second) = try Self.servers()
        let cache = HTTPCache.inMemory()
        for isForeignSession in [false, true] {
            let transport =
                isForeignSession
                ? URLSessionTransport(session: URLSession(configuration: Self.configuration))
                : URLSessionTransport(configuration: Self.configuration)
            let response = try await Pipeline(transport: transport, cache: cache).send(
                URLRequest(url: first.url("/away"))
            )
            #expect(try await response.text() == "second")
        }
        #expect(second.requests.count == 1)
        let anonymous = try await Pipeline(transport: URLSessionTransport(), cache: cache).send(
            URLRequest(url: second.url("/b"))
        )
        #expect(anonymous.source == .fresh)
        // Where the call begins there, the session's credential goes there, and divides the cache.
        let transport = URLSessionTransport(configuration: Self.configuration)
        let direct = try await Pipeline(transport: transport, cache: cache).send(URLRequest(url: second.url("/b")))
        #expect(direct.source == .network(attempts: 1))
        #expect(second.requests.last?.values(of: "Authorization") == ["Bearer s"])
    }

    @Test("The same for an intercepted session", arguments: [false, true])
    func intercepted(isBoundAtRequest: Bool) async throws {
        let (first, second) = try Self.servers()
        let pipeline = Pipeline(transport: URLSessionTransport())
        defer { pipeline.stopIntercepting() }
        let session = URLSession(configuration: Self.configuration.intercepted(by: pipeline))
        var request = URLRequest(url: first.url("/away"))
        if isBoundAtRequest { request.setValue("own", forHTTPHeaderField: "X-Api-Key") }
        #expect(try await session.data(for: request).0 == Data("second".utf8))
        let sent = try #require(second.requests.first)
        for (name, value) in Self.bound {
            let isOwn = isBoundAtRequest && name == "X-Api-Key"
            #expect(first.requests.first?.values(of: name) == [isOwn ? "own" : value])
            #expect(sent.values(of: name) == (isOwn ? ["own"] : []))
        }
        #expect(sent.values(of: "Accept-Language") == ["de"])
    }
}

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

@Suite("Anonymous responses may be used for requests with a Cookie in private mode", .timeLimit(.minutes(20)))
struct CookieReuseTests {
    /// Who asks, and whether an entry of an anonymous request may answer.
    enum Asker: String, CaseIterable, Sendable {
        case cookie, authorization, both, userinfo, principal, principalWithCookie

        var request: URLRequest {
            switch self {
            case .cookie, .principalWithCookie: .get("http://h.example/a", ["Cookie": "id=7"])
            case .authorization: .get("http://h.example/a", ["Authorization": "Bearer t"])
            case .both: .get("http://h.example/a", ["Authorization": "Bearer t", "Cookie": "id=7"])
            case .userinfo: .get("http://u:p@h.example/a")
            case .principal: .get("http://h.example/a")
            }
        }

        var options: CallOptions {
            var options = CallOptions()
            if self == .principal || self == .principalWithCookie { options.principal = "7" }
            return options
        }
    }

    @Test("A retry does not ask the origin about another principal's response by its date")
    func retriedValidation() async throws {
        let dated: HeaderFields = ["Cache-Control": "max-age=60", "Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT"]
        let transport = ScriptedTransport([
            .respond(200, ["Cache-Control": "max-age=1", "ETag": "\"own\""], body: "own"), .respond(503),
            .respond(200), .respond(200, dated, body: "guest"), .respond(200, body: "newest"),
        ])
        let bench = CacheBench(transport, retrierFactory: BackoffRetrier.Factory.default)
        let own = URLRequest.get("http://origin.example/", ["Cookie": "s=1"])
        try await bench.load(own)
        bench.clock.advance(by: .seconds(5))
        let call = Task { try await bench.load(own) }
        try await bench.clock.waitForSleeps(1)
        try await bench.load(.request("PUT", "http://origin.example/", ["Cookie": "s=1"]))
        try await bench.load(.get("http://origin.example/"))
        bench.clock.advance(by: .seconds(30))
        #expect(try await call.value.body == "newest")
        #expect(bench.sent("If-None-Match") == [nil, "\"own\"", nil, nil, nil])
        #expect(bench.sent("If-Modified-Since").allSatisfy { $0 == nil })
    }

    @Test(
        "RFC 9111 §4: an anonymous response is used for a Cookie and for no other credential",
        arguments: Asker.allCases
    )
    func borrowing(_ asker: Asker) async throws {
        let bench = CacheBench(.counting())
        try await bench.load(.get("http://h.example/a"))
        let borrowed = asker == .cookie
        #expect(try await bench.load(asker.request, asker.options) == (borrowed ? .fresh("1") : .network("2")))
    }

    @Test("A response stored for a Cookie is used neither for anonymous requests nor for another Cookie")
    func neverBack() async throws {
        let bench = CacheBench(.counting())
        try await bench.load(.get("http://h.example/a", ["Cookie": "id=1"]))
        #expect(try await bench.load(.get("http://h.example/a", ["Cookie": "id=2"])) == .network("2"))
        #expect(try await bench.load(.get("http://h.example/a")) == .network("3"))
        #expect(try await bench.load(.get("http://h.example/a", ["Cookie": "id=1"])) == .fresh("1"))
    }

    @Test(
        "A response that is private, varies by Cookie or is stale is used for anonymous requests only",
        arguments: [
            ["Cache-Control": "private, max-age=60"], ["Cache-Control": "private=\"x\", max-age=60"],
            ["Cache-Control": "max-age=60", "Vary": "Cookie"], ["Cache-Control": "max-age=0", "ETag": "\"a\""],
        ] as [HeaderFields]
    )
    func kept(_ fields: HeaderFields) async throws {
        let bench = CacheBench(.counting { _ in fields })
        try await bench.load(.get("http://h.example/a"))
        #expect(try await bench.load(.get("http://h.example/a", ["Cookie": "id=7"])) == .network("2"))
        #expect(bench.sent("If-None-Match").compactMap { $0 }.isEmpty)
    }

    @Test("A 304 to a request with a Cookie leaves the anonymous entry unchanged, Set-Cookie included")
    func notModified() async throws {
        let fields: HeaderFields = ["Cache-Control": "max-age=60", "ETag": "\"a\""]
        let transport = ScriptedTransport { request in
            request.value(forHTTPHeaderField: "If-None-Match") == nil
                ? .respond(200, fields, body: "one") : .respond(304, ["ETag": "\"a\"", "Set-Cookie": "id=secret"])
        }
        let bench = CacheBench(transport)
        try await bench.load(.get("http://h.example/a"))
        let cookie = URLRequest.get("http://h.example/a", ["Cookie": "id=7", "Cache-Control": "no-cache"])
        #expect(try await bench.load(cookie) == .revalidated("one"))
        let anonymous = try await bench.pipeline.send(.get("http://h.example/a"))
        #expect(anonymous.source == .fresh && anonymous.fields[.setCookie] == nil)
    }

    @Test("A HEAD with a Cookie leaves the anonymous entry unchanged")
    func head() async throws {
        let bench = CacheBench(
            ScriptedTransport { request in
                request.httpMethod == "HEAD"
                    ? .respond(200, ["Cache-Control": "max-age=60", "ETag": "\"b\"", "X-User": "7"])
                    : .respond(200, ["Cache-Control": "max-age=60", "ETag": "\"a\""], body: "one")
            }
        )
        try await bench.load(.get("http://h.example/a"))
        try await bench.load(.request("HEAD", "http://h.example/a", ["Cookie": "id=7", "Cache-Control": "no-cache"]))
        #expect(try await bench.load(.get("http://h.example/a")) == .fresh("one"))
    }

    @Test("An unsafe request with a Cookie removes the anonymous entry too (RFC 9111 §4.4)")
    func invalidation() async throws {
        let bench = CacheBench(.counting())
        try await bench.load(.get("http://h.example/a"))
        try await bench.load(.request("DELETE", "http://h.example/a", ["Cookie": "id=7"]))
        #expect(try await bench.load(.get("http://h.example/a")) == .network("3"))
    }

    @Test("With cookiesMayBorrow off, a request with a Cookie uses only its own partition")
    func switchedOff() async throws {
        var options = CacheOptions()
        options.cookiesMayBorrow = false
        let bench = CacheBench(options: options, .counting())
        try await bench.load(.get("http://h.example/a"))
        #expect(try await bench.load(.get("http://h.example/a", ["Cookie": "id=7"])) == .network("2"))
    }
}

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

@Suite("Ignored cookies do not affect whose response it is, and are never stored", .timeLimit(.minutes(20)))
struct IgnoredCookieTests {
    private static let url = "http://h.example/a"
    private static let fresh: HeaderFields = ["Cache-Control": "max-age=60"]

    private static func get(_ cookie: String?, _ fields: [String: String] = [:]) -> URLRequest {
        var request = URLRequest.get(url, fields)
        request.setValue(cookie, forHTTPHeaderField: "Cookie")
        return request
    }

    private static func setCookies(_ lines: [String], _ others: HeaderFields = fresh) -> HeaderFields {
        others.merging(HeaderFields(lines.map { HeaderFields.Line(name: .setCookie, value: $0) }))
    }

    // MARK: Whose it is

    @Test("A request with only ignored cookies is anonymous", arguments: [CacheOptions.Mode.private, .shared])
    func anonymous(_ mode: CacheOptions.Mode) async throws {
        let bench = CacheBench(.counting(), mode: mode) { _ in
        } options: {
            $0.cookiesMayBorrow = false
        }
        let cookies = ["AWSALB=1", "AWSALB=2; _ga=3", nil]
        #expect(try await bench.load(Self.get(cookies[0])) == .network("1"))
        for cookie in cookies { #expect(try await bench.load(Self.get(cookie)) == .fresh("1")) }
        let listless = CacheBench(.counting(), mode: mode) { _ in
        } options: { options in
            options.cookiesMayBorrow = false
            options.ignoredCookies = []
        }
        for (number, cookie) in cookies.enumerated() {
            #expect(try await listless.load(Self.get(cookie)) == .network("\(number + 1)"))
        }
    }

    @Test("Every cookie is sent")
    func sent() async throws {
        let bench = CacheBench(.counting { _ in ["Cache-Control": "max-age=0", "ETag": "\"a\""] })
        for cookie in ["AWSALB=1; sid=a", "AWSALB=2"] {
            try await bench.load(Self.get(cookie))
            #expect(bench.sent("Cookie").last == cookie)
        }
    }

    @Test(
        "Other cookies still separate users",
        arguments: [
            ("AWSALB=1; sid=a", "sid=a; AWSALB=2", true), ("AWSALB=1; sid=a", "AWSALB=1; sid=b", false),
            // Where a server might read another cookie in what looks like one.
            ("AWSALB=1, sid=a", "AWSALB=1, sid=b", false), ("x=\"1; AWSALB=a; 2\"", "x=\"1; AWSALB=b; 2\"", false),
        ]
    )
    func beside(_ first: String, _ second: String, isSame: Bool) async throws {
        let bench = CacheBench(.counting())
        try await bench.load(Self.get(first))
        #expect(try await bench.load(Self.get(second)) == (isSame ? .fresh("1") : .network("2")))
    }

    @Test("Vary: Cookie uses the other cookies")
    func vary() async throws {
        let bench = CacheBench(.counting { _ in ["Cache-Control": "max-age=60", "Vary": "Cookie"] })
        var options = CallOptions()
        options.principal = "7"
        #expect(try await bench.load(Self.get("theme=dark; _ga=1"), options) == .network("1"))
        #expect(try await bench.load(Self.get("_ga=2; theme=dark"), options) == .fresh("1"))
        #expect(try await bench.load(Self.get("theme=light; _ga=2"), options) == .network("2"))
        #expect(try await bench.load(Self.get("_ga=3"), options) == .network("3"))
        #expect(try await bench.load(Self.get(nil), options) == .fresh("3"))
    }

    @Test("The response is still stored if such a cookie is added below")
    func prepared() async throws {
        let bench = CacheBench(.counting()) { configuration in
            configuration.prepare = [{ request, _ in request.setValue("AWSALB=late", forHTTPHeaderField: "Cookie") }]
        }
        try await bench.load(Self.get(nil))
        #expect(try await bench.load(Self.get(nil)) == .fresh("1"))
    }

    @Test("Removing by a request's credentials uses the cookies that count")
    func removing() async throws {
        let bench = CacheBench(.counting())
        for cookie in ["sid=a; AWSALB=1", "sid=b; AWSALB=1", "AWSALB=1"] { try await bench.load(Self.get(cookie)) }
        try await bench.cache.remove(.principal(of: Self.get("AWSALB=2")))
        #expect(bench.cache.store.statistics.entryCount == 3)
        try await bench.cache.remove(.principal(of: Self.get("AWSALB=2; sid=a")))
        #expect(try await bench.load(Self.get("sid=b")) == .fresh("2"))
        #expect(bench.cache.store.statistics.entryCount == 2)
    }

    @Test("A cache above one that ignores more cookies still knows whose response it got")
    func nested() async throws {
        let transport = ScriptedTransport.counting()
        let inner = Pipeline(transport: transport, cache: .inMemory())
        var options = CacheOptions()
        options.ignoredCookies = []
        let cache = HTTPCache(store: MemoryStore(capacity: 1 << 20), options: options)
        let outer = Pipeline(transport: inner, cache: cache)
        for cookie in ["AWSALB=1", "AWSALB=2"] {
            let response = try await outer.send(Self.get(cookie))
            #expect(response.cacheDecision?.storage == .stored)
            #expect(try await response.body.collect() == ByteChunk(copying: "1".utf8))
        }
        #expect(transport.sent.count == 1)
        #expect(cache.store.statistics.entryCount == 2)
    }

    // MARK: What is stored

    @Test(
        "The requester sees all Set-Cookie lines, and a hit sees the stored ones",
        arguments: [
            ["AWSALB=1; Path=/", "sid=2; Path=/"],
            ["AWSALB=1; Expires=Thu, 01 Jan 2099 00:00:00 GMT; Path=/, sid=2; Path=/"],
        ]
    )
    func stored(_ lines: [String]) async throws {
        let bench = CacheBench(.counting { _ in Self.setCookies(lines) })
        #expect(try await bench.pipeline.send(Self.get(nil)).fields.values(of: .setCookie) == lines)
        let again = try await bench.pipeline.send(Self.get(nil))
        #expect(again.source == .fresh && again.fields.values(of: .setCookie) == ["sid=2; Path=/"])
    }

    @Test("A 304 delivers its cookies to the requester, and the ignored ones are not stored")
    func notModified() async throws {
        let bench = CacheBench(
            ScriptedTransport { request in
                request.value(forHTTPHeaderField: "If-None-Match") == nil
                    ? .respond(
                        200,
                        Self.setCookies(["sid=1"], ["Cache-Control": "max-age=60", "ETag": "\"a\""]),
                        body: "x"
                    )
                    : .respond(304, Self.setCookies(["AWSALB=2"], ["Cache-Control": "max-age=60", "ETag": "\"a\""]))
            }
        )
        try await bench.load(Self.get(nil))
        bench.clock.advance(by: .seconds(61))
        let revalidated = try await bench.pipeline.send(Self.get("AWSALB=1"))
        #expect(revalidated.source == .revalidated)
        #expect(revalidated.fields.values(of: .setCookie) == ["sid=1", "AWSALB=2"])
        let hit = try await bench.pipeline.send(Self.get(nil))
        #expect(hit.source == .fresh && hit.fields.values(of: .setCookie) == ["sid=1"])
    }

    @Test("A HEAD stores none of them")
    func head() async throws {
        let fields: HeaderFields = ["Cache-Control": "max-age=60", "ETag": "\"a\""]
        let bench = CacheBench(
            ScriptedTransport { request in
                request.httpMethod == "HEAD"
                    ? .respond(200, Self.setCookies(["AWSALB=2"], fields.merging(["X-New": "1"])))
                    : .respond(200, fields, body: "x")
            }
        )
        try await bench.load(Self.get(nil))
        try await bench.load(.request("HEAD", Self.url, ["Cookie": "AWSALB=1", "Cache-Control": "no-cache"]))
        let hit = try await bench.pipeline.send(Self.get(nil))
        #expect(hit.source == .fresh && hit.fields["X-New"] == "1" && !hit.fields.contains(.setCookie))
    }

    @Test("A part that completes another delivers them to the requester alone")
    func parts() async throws {
        let bench = CacheBench(
            ScriptedTransport { request in
                let isFirst = request.value(forHTTPHeaderField: "Range") == "bytes=0-4"
                let fields: HeaderFields = [
                    "Cache-Control": "max-age=60", "ETag": "\"a\"",
                    "Content-Range": isFirst ? "bytes 0-4/10" : "bytes 5-9/10",
                ]
                return .respond(206, Self.setCookies(["AWSALB=1"], fields), body: isFirst ? "01234" : "56789")
            }
        )
        let part = try await bench.pipeline.send(Self.get("AWSALB=0", ["Range": "bytes=0-4"]))
        #expect(part.fields.values(of: .setCookie) == ["AWSALB=1"])
        _ = try await part.body.collect()
        let again = try await bench.pipeline.send(Self.get(nil, ["Range": "bytes=0-4"]))
        #expect(again.source == .fresh && !again.fields.contains(.setCookie))
        let whole = try await bench.pipeline.send(Self.get("AWSALB=1"))
        #expect(whole.status == .ok && whole.fields.values(of: .setCookie) == ["AWSALB=1"])
        #expect(try await whole.body.collect() == ByteChunk(copying: "0123456789".utf8))
        let hit = try await bench.pipeline.send(Self.get(nil))
        #expect(hit.source == .fresh && !hit.fields.contains(.setCookie))
        #expect(bench.sends == 2)
    }

    @Test("Callers that share an exchange get none of them")
    func collapsed() async throws {
        let origin = GatedOrigin { _, _ in .answer(200, Self.setCookies(["AWSALB=1", "sid=2"]), "x") }
        let pipeline = Pipeline(transport: origin, cache: .inMemory())
        let calls = ["AWSALB=a", "AWSALB=b"].map { cookie in
            Task { try await pipeline.send(Self.get(cookie)) }
        }
        try await origin.asked.wait(for: 1)
        for _ in 0..<100 { await Task.yield() }
        origin.open(1)
        var seen: [ResponseSource: [String]] = [:]
        for call in calls {
            let response = try await call.value
            seen[response.source] = response.fields.values(of: .setCookie)
        }
        #expect(origin.asked.count == 1)
        #expect(seen[.network(attempts: 1)] == ["AWSALB=1", "sid=2"])
        #expect(seen[.collapsed] == ["sid=2"])
    }
}

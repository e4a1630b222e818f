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

@Suite("Invalidation, redirects and cache control", .timeLimit(.minutes(20)))
struct InvalidationTests {
    static let fields: HeaderFields = ["Cache-Control": "max-age=60"]

    @Test(
        "A successful response to an unsafe method invalidates all variants of its URI (RFC 9111 §4.4)",
        arguments: [
            ("PUT", 204, true), ("POST", 200, true), ("DELETE", 200, true), ("PATCH", 302, true), ("FROB", 200, true),
            ("PUT", 404, false), ("POST", 500, false), ("OPTIONS", 200, false),
        ]
    )
    func unsafeMethods(method: String, status: Int, invalidates: Bool) async throws {
        let transport = ScriptedTransport { request in
            request.httpMethod == "GET"
                ? .respond(200, ["Cache-Control": "max-age=60", "Vary": "Accept"], body: "one") : .respond(status)
        }
        let bench = CacheBench(transport)
        for accept in ["a/a", "b/b"] { try await bench.load(.get("http://h.example/a", ["Accept": accept])) }
        try await bench.load(.request(method, "http://h.example/a"))
        #expect(bench.cache.store.statistics.entryCount == (invalidates ? 0 : 2))
    }

    @Test("What a POST stores at its own URI replaces what it invalidates, and answers a later GET (RFC 9110 §9.3.3)")
    func postForLaterGet() async throws {
        let transport = ScriptedTransport([
            .respond(200, Self.fields, body: "before"),
            .respond(200, ["Cache-Control": "max-age=60", "Content-Location": "/a"], body: "after"),
            .respond(200, ["Cache-Control": "max-age=60", "Content-Location": "/a"], body: "again"),
        ])
        let bench = CacheBench(transport)
        #expect(try await bench.load(.get("http://h.example/a")) == .network("before"))
        #expect(try await bench.load(.request("POST", "http://h.example/a")) == .network("after"))
        #expect(try await bench.load(.get("http://h.example/a")) == .fresh("after"))
        #expect(try await bench.load(.request("POST", "http://h.example/a")) == .network("again"))
        #expect(try await bench.load(.get("http://h.example/a")) == .fresh("again"))
        #expect(bench.cache.store.statistics.entryCount == 1)
    }

    @Test("Location and Content-Location of the same origin are invalidated too, those of another origin are not")
    func locations() async throws {
        let transport = ScriptedTransport { request in
            request.httpMethod == "GET"
                ? .respond(200, Self.fields, body: "one")
                : .respond(201, ["Location": "/b", "Content-Location": "http://other.example/c"])
        }
        let bench = CacheBench(transport)
        for url in ["http://h.example/b", "http://other.example/c"] { try await bench.load(.get(url)) }
        try await bench.load(.request("POST", "http://h.example/a"))
        #expect(try await bench.load(.get("http://h.example/b")) == .network("one"))
        #expect(try await bench.load(.get("http://other.example/c")) == .fresh("one"))
    }

    @Test("An unsafe request with credentials also invalidates the shared partition")
    func sharedPartition() async throws {
        let transport = ScriptedTransport { request in
            request.httpMethod == "GET"
                ? .respond(200, ["Cache-Control": "public, max-age=60"], body: "x") : .respond(204)
        }
        let bench = CacheBench(transport, mode: .shared)
        try await bench.load(.get("http://h.example/"))
        try await bench.load(.request("PUT", "http://h.example/", ["Authorization": "a"]))
        #expect(bench.cache.store.statistics.entryCount == 0)
    }

    @Test("A redirect chain stores each hop under its own URI, with its own freshness")
    func redirectChain() async throws {
        let transport = ScriptedTransport { request in
            switch request.url?.path {
            case "/a":
                .stream(301, ["Location": "/b", "Cache-Control": "max-age=1000"], chunks: ["moved ", "permanently"])
            case "/b": .respond(302, ["Location": "/c", "Cache-Control": "max-age=10"])
            default: .respond(200, ["Cache-Control": "max-age=100"], body: "end")
            }
        }
        let bench = CacheBench(transport)
        #expect(try await bench.load(.get("http://h.example/a")).body == "end")
        await bench.pipeline.drain()
        #expect(bench.cache.store.statistics.entryCount == 3)
        bench.clock.advance(by: .seconds(50))
        let response = try await bench.pipeline.send(.get("http://h.example/a"))
        #expect(response.source == .fresh)
        #expect(response.url?.path == "/c")
        #expect(bench.transport.sent.map { $0.request.url?.path } == ["/a", "/b", "/c", "/b"])
        bench.clock.advance(by: .seconds(100))
        try await bench.load(.get("http://h.example/a"))
        #expect(bench.transport.sent.map { $0.request.url?.path } == ["/a", "/b", "/c", "/b", "/b", "/c"])
        #expect(try await bench.load(.get("http://h.example/c")) == .fresh("end"))
    }

    @Test(
        "URLRequest.cachePolicy and the call's directive",
        arguments: [
            (URLRequest.CachePolicy.useProtocolCachePolicy, 20, CacheBench.Answer.network("new")),
            (.useProtocolCachePolicy, 5, .fresh("old")),
            (.reloadIgnoringLocalCacheData, 5, .network("new")),
            (.reloadIgnoringLocalAndRemoteCacheData, 5, .network("new")),
            (.returnCacheDataElseLoad, 20, .init(status: 200, body: "old", source: .stale)),
            (.returnCacheDataDontLoad, 20, .init(status: 200, body: "old", source: .stale)),
        ]
    )
    func cachePolicy(_ policy: URLRequest.CachePolicy, seconds: Int, expected: CacheBench.Answer) async throws {
        let fields: HeaderFields = ["Cache-Control": "max-age=10"]
        let bench = CacheBench([.respond(200, fields, body: "old"), .respond(200, fields, body: "new")])
        try await bench.load()
        bench.clock.advance(by: .seconds(seconds))
        var request = URLRequest.get()
        request.cachePolicy = policy
        #expect(try await bench.load(request) == expected)
        if expected.body == "new" { #expect(try await bench.load() == .fresh("new")) }
    }

    @Test("reloadRevalidatingCacheData asks the origin although the response is fresh")
    func revalidatingPolicy() async throws {
        let bench = CacheBench([
            .respond(200, ["Cache-Control": "max-age=10", "ETag": "\"v\""], body: "old"), .respond(304),
        ])
        try await bench.load()
        var request = URLRequest.get()
        request.cachePolicy = .reloadRevalidatingCacheData
        #expect(try await bench.load(request) == .revalidated("old"))
    }

    @Test(
        "only-if-cached without anything usable: 504 and no send; by cachePolicy an error, as Foundation documents it"
    )
    func onlyIfCached() async throws {
        let bench = CacheBench([])
        let answer = try await bench.load(.get("http://h.example/", ["Cache-Control": "only-if-cached"]))
        #expect(answer == .init(status: 504, body: "", source: .synthesized))
        var options = CallOptions()
        options.cache = .onlyIfCached
        #expect(try await bench.load(.get(), options).status == 504)
        var request = URLRequest.get()
        request.cachePolicy = .returnCacheDataDontLoad
        await #expect {
            try await bench.load(request)
        } throws: { error in
            (error as? ServiceError)?.code == .resourceUnavailable
                && ((error as? ServiceError)?.cause as? URLError)?.code == .resourceUnavailable
        }
        // What says nothing of the same leaves the policy as it is.
        options.cache = .default
        options.cache.serveStaleAfter = .seconds(1)
        await #expect(throws: ServiceError.self) { try await bench.load(request, options) }
        #expect(bench.sends == 0)
    }

    @Test("An unsafe request cancelled in progress may have been applied, and invalidates (RFC 9111 §4.4)")
    func cancelledUnsafe() async throws {
        let transport = ScriptedTransport([
            .respond(200, Self.fields, body: "old"), .silence, .respond(200, Self.fields, body: "new"),
        ])
        let bench = CacheBench(transport)
        try await bench.load()
        let post = Task { try await bench.load(.request("POST", "http://origin.example/a")) }
        try await transport.waitForSends(2)
        post.cancel()
        await #expect(throws: CancellationError.self) { try await post.value }
        await bench.pipeline.drain()
        #expect(try await bench.load() == .network("new"))
    }

    @Test("Removing by URL, by tag and everything")
    func removing() async throws {
        let bench = CacheBench(ScriptedTransport([.respond(200, Self.fields, body: "x")], repeatsLastStep: true))
        var tagged = CallOptions()
        tagged.tags = ["news"]
        try await bench.load(.get("http://h.example/a"), tagged)
        try await bench.load(.get("http://h.example/b"))
        try await bench.load(.get("http://h.example/b", ["Authorization": "t"]))
        try await bench.load(.get("http://h.example/c"))
        let url = try #require(URL(string: "http://H.example/%62"))
        #expect(try await bench.cache.remove(.url(url)) == 2)
        #expect(try await bench.cache.remove(.tag("news")) == 1)
        #expect(try await bench.load(.get("http://h.example/c")) == .fresh("x"))
        try await bench.cache.remove(.all)
        #expect(bench.cache.store.statistics.entryCount == 0)
    }

    @Test("A Location that is encoded to be followed is invalidated as it is followed")
    func encodedLocation() async throws {
        let transport = ScriptedTransport { request in
            request.httpMethod == "GET"
                ? .respond(200, Self.fields, body: "one") : .respond(303, ["Location": "/list?page[number]=2"])
        }
        let bench = CacheBench(transport)
        try await bench.load(.get("http://h.example/list?page%5Bnumber%5D=2"))
        #expect(try await bench.load(.request("POST", "http://h.example/list")) == .network("one"))
        #expect(bench.sends == 3)
    }
}

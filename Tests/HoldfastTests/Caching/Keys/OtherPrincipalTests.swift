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

@Suite("A miss because of the partition says so", .timeLimit(.minutes(20)))
struct OtherPrincipalTests {
    private static let url = "http://h.example/a"

    private static func get(_ user: String?, _ url: String = url) -> URLRequest {
        .get(url, user.map { ["Authorization": $0] } ?? [:])
    }

    private func reason(_ bench: CacheBench, _ request: URLRequest, _ options: CallOptions = CallOptions()) async throws
        -> CacheReason?
    {
        let response = try await bench.pipeline.send(request, options: options)
        _ = try await response.body.collect()
        return response.cacheDecision?.reason
    }

    @Test("Stored for another principal, and for nobody else")
    func users() async throws {
        let bench = CacheBench(.counting())
        #expect(try await reason(bench, Self.get("alice")) == .notStored)
        #expect(try await reason(bench, Self.get("bob")) == .otherPrincipal)
        #expect(try await reason(bench, Self.get(nil)) == .otherPrincipal)
        #expect(try await reason(bench, Self.get("carol")) == .otherPrincipal)
        #expect(try await reason(bench, Self.get("bob", "http://h.example/b")) == .notStored)
        #expect(try await reason(bench, Self.get("alice")) == .fresh)
        #expect(bench.events.events.contains { $0.cacheDecision?.reason == .otherPrincipal })
    }

    @Test("If nothing may be sent, the 504 says so too")
    func onlyIfCached() async throws {
        let bench = CacheBench(.counting())
        try await bench.load(Self.get("alice"))
        var options = CallOptions()
        options.cache = .onlyIfCached
        #expect(try await reason(bench, Self.get("bob"), options) == .otherPrincipal)
        #expect(try await reason(bench, Self.get("bob", "http://h.example/b"), options) == .notStored)
    }

    @Test("Another variant of the caller's own does not count as another principal's")
    func variants() async throws {
        let bench = CacheBench(.counting { _ in ["Cache-Control": "max-age=60", "Vary": "X-A"] })
        try await bench.load(.get(Self.url, ["X-A": "1"]))
        #expect(try await reason(bench, .get(Self.url, ["X-A": "2"])) == .noVariant)
    }

    @Test("A removed response of the caller's own does not count as stored")
    func gone() async throws {
        let bench = CacheBench(.counting())
        try await bench.load(Self.get("alice"))
        try await bench.load(.request("DELETE", Self.url, ["Authorization": "alice"]))
        #expect(try await reason(bench, Self.get("alice")) == .notStored)
    }

    @Test("A removed shared response was looked up, so it does not count as another principal's")
    func everyones() async throws {
        let bench = CacheBench(.counting { _ in ["Cache-Control": "public, max-age=60"] }, mode: .shared)
        try await bench.load(Self.get("alice"))
        #expect(try await reason(bench, Self.get("bob")) == .fresh)
        try await bench.load(.request("DELETE", Self.url, ["Authorization": "alice"]))
        #expect(try await reason(bench, Self.get("bob")) == .notStored)
    }

    @Test("A purge also forgets who stored")
    func purged() async throws {
        let bench = CacheBench(.counting())
        try await bench.load(Self.get("alice"))
        try await bench.cache.remove(.principal(of: Self.get("alice")))
        #expect(try await reason(bench, Self.get("bob")) == .notStored)
    }

    @Test("After a restart nothing is known until something is stored or freshened")
    func restart() async throws {
        let store = MemoryStore(capacity: 1 << 20)
        let transport = ScriptedTransport { request in
            let fields: HeaderFields = ["Cache-Control": "max-age=60", "ETag": "\"a\""]
            return request.value(forHTTPHeaderField: "If-None-Match") == nil
                ? .respond(200, fields, body: "x") : .respond(304, fields)
        }
        let clock = ManualClock()
        try await CacheBench(transport, store: store, clock: clock).load(Self.get("alice"))
        clock.advance(by: .seconds(61))
        let bench = CacheBench(transport, store: store, clock: clock)
        #expect(try await reason(bench, Self.get("bob", "http://h.example/b")) == .notStored)
        #expect(try await reason(bench, Self.get("alice")) == .stale)
        #expect(try await reason(bench, Self.get("bob")) == .otherPrincipal)
    }

    @Test("Cache-Status does not reveal downstream that another principal requested the URI (RFC 9211 §2)")
    func cacheStatus() async throws {
        let bench = CacheBench(.counting()) { _ in
        } options: {
            $0.cacheName = "c"
        }
        var told: [String?] = []
        for user in ["alice", "bob"] { told.append(try await bench.pipeline.send(Self.get(user)).fields[.cacheStatus]) }
        #expect(told == ["c;fwd=uri-miss;stored", "c;fwd=uri-miss;stored"])
    }
}

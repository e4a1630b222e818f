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

@Suite("CachingServiceHook: what applies beside the time to live", .timeLimit(.minutes(20)))
struct TimeToLiveRulesTests {
    static let url = TimeToLiveBench.url

    @Test(
        "After the ttl a validator is sent if there is one, and a 304 resets the age",
        arguments: [
            ["ETag": "\"v\"", "Cache-Control": "no-store"], ["Last-Modified": "Mon, 01 Jan 2001 00:00:00 GMT"], [:],
        ] as [HeaderFields],
        EachStore.allCases
    )
    func validation(_ fields: HeaderFields, kind: EachStore) async throws {
        let transport = ScriptedTransport { request in
            let isConditional = ["If-None-Match", "If-Modified-Since"].contains {
                request.value(forHTTPHeaderField: $0) != nil
            }
            return isConditional ? .respond(304, ["Cache-Control": "no-store"]) : .respond(200, fields, body: "x")
        }
        try await TimeToLiveBench.with(kind, transport) { bench in
            try await bench.load()
            for _ in 0..<2 {
                bench.clock.advance(by: .milliseconds(600_001))
                #expect(try await bench.load() == (fields.isEmpty ? .network("x") : .revalidated("x")))
                try await bench.restart()
                bench.clock.advance(by: .seconds(600))
                #expect(try await bench.load() == .fresh("x"))
            }
        }
    }

    @Test(
        "The request's cache directives apply",
        arguments: [
            (["Cache-Control": "no-cache"], CacheDirective.default, false),
            (["Cache-Control": "max-age=0"], .default, false), (["Cache-Control": "max-age=9"], .default, false),
            (["Cache-Control": "max-age=10"], .default, true), (["Cache-Control": "no-store"], .default, false),
            (["Cache-Control": "min-fresh=591"], .default, false), (["Cache-Control": "min-fresh=590"], .default, true),
            (["Pragma": "no-cache"], .default, false), ([:], .reload, false), ([:], .revalidate, false),
            ([:], .noStore, false), ([:], CacheDirective(minFresh: .seconds(591)), false), ([:], .onlyIfCached, true),
        ] as [([String: String], CacheDirective, Bool)]
    )
    func requestDirectives(_ fields: [String: String], directive: CacheDirective, isHit: Bool) async throws {
        let step = ScriptedTransport.Step.respond(200, ["Cache-Control": "immutable, max-age=600"], body: "x")
        try await TimeToLiveBench.with(.memory, ScriptedTransport([step], repeatsLastStep: true)) { bench in
            try await bench.load()
            bench.clock.advance(by: .seconds(10))
            var options = CallOptions()
            options.cache = directive
            let answer = try await bench.load(.get(Self.url, fields), options)
            #expect(answer == (isHit ? .fresh("x") : .network("x")))
        }
    }

    @Test("A request with no-store stores nothing")
    func requestNoStore() async throws {
        try await TimeToLiveBench.with(.memory, ScriptedTransport([.respond(200)])) { bench in
            try await bench.load(.get(Self.url, ["Cache-Control": "no-store"]))
            #expect(bench.entryCount == 0)
        }
    }

    @Test("RFC 9111 §4.1: Vary selects, and a response with `Vary: *` is not kept", arguments: EachStore.allCases)
    func variants(kind: EachStore) async throws {
        let transport = ScriptedTransport { request in
            let accept = request.value(forHTTPHeaderField: "Accept") ?? ""
            return .respond(200, ["Vary": request.url?.path == "/star" ? "*" : "Accept"], body: accept)
        }
        try await TimeToLiveBench.with(kind, transport) { bench in
            for accept in ["text/plain", "text/html"] {
                #expect(try await bench.load(.get(Self.url, ["Accept": accept])) == .network(accept))
            }
            try await bench.restart()
            for accept in ["text/plain", "text/html"] {
                #expect(try await bench.load(.get(Self.url, ["Accept": accept])) == .fresh(accept))
            }
            for _ in 0..<2 { #expect(try await bench.load(.get("http://h.example/star")) == .network("")) }
        }
    }

    @Test("After the ttl no stale response replaces a failure, whatever the response allows or demands")
    func failures() async throws {
        for allowed in ["stale-if-error=9999, stale-while-revalidate=9999", "must-revalidate", "no-store", ""] {
            let steps: [ScriptedTransport.Step] = [
                .respond(200, ["Cache-Control": allowed, "ETag": "\"v\""], body: "x"), .respond(503, body: "down"),
                .fail(.connect, progress: .notSent),
            ]
            try await TimeToLiveBench.with(.memory, ScriptedTransport(steps)) { bench in
                try await bench.load()
                bench.clock.advance(by: .seconds(601))
                #expect(try await bench.load() == .network("down", 503))
                await #expect(throws: ServiceError.self) { try await bench.load() }
            }
        }
    }

    @Test(
        "A caller may accept a response after the ttl, unless it forbids being served stale",
        arguments: [
            ("", true), ("max-age=0", true), ("no-store", false), ("must-revalidate", false), ("no-cache", false),
        ]
    )
    func maxStale(_ cacheControl: String, isAccepted: Bool) async throws {
        let step = ScriptedTransport.Step.respond(200, ["Cache-Control": cacheControl], body: "x")
        try await TimeToLiveBench.with(.memory, ScriptedTransport([step], repeatsLastStep: true)) { bench in
            try await bench.load()
            bench.clock.advance(by: .seconds(610))
            var options = CallOptions()
            options.cache = .maxStale(.seconds(10))
            let answer = try await bench.load(.get(Self.url), options)
            #expect(answer.source == (isAccepted ? .stale : .network(attempts: 1)))
        }
    }

    @Test("A HEAD is answered from a GET's response and does not reset its age; one that differs removes it")
    func head() async throws {
        let transport = ScriptedTransport { request in
            let isHead = request.httpMethod == "HEAD"
            return .respond(200, ["ETag": request.url?.query == nil || !isHead ? "\"v\"" : "\"w\""])
        }
        try await TimeToLiveBench.with(.memory, transport) { bench in
            var reload = CallOptions()
            reload.cache = .reload
            try await bench.load()
            bench.clock.advance(by: .seconds(300))
            #expect(try await bench.load(.request("HEAD", Self.url)).source == .fresh)
            #expect(try await bench.load(.request("HEAD", Self.url), reload).source == .network(attempts: 1))
            bench.clock.advance(by: .milliseconds(300_001))
            #expect(try await bench.load().source == .network(attempts: 1))
            try await bench.load(.get(Self.url + "?w"))
            #expect(bench.entryCount == 2)
            try await bench.load(.request("HEAD", Self.url + "?w"), reload)
            #expect(bench.entryCount == 1)
        }
    }

    @Test("RFC 9111 §4.4: an unsafe request removes what is stored for its URI, in any order of arguments")
    func invalidation() async throws {
        let transport = ScriptedTransport([.respond(200, body: "x")], repeatsLastStep: true)
        try await TimeToLiveBench.with(.memory, transport) { bench in
            try await bench.load(.get(Self.url + "?a=1&b=2"))
            try await bench.load(.request("PUT", Self.url + "?b=2&a=1"))
            #expect(try await bench.load(.get(Self.url + "?a=1&b=2")) == .network("x"))
        }
    }

    @Test("An anonymous response is not used for a Cookie, since no server has permitted that")
    func borrowing() async throws {
        let step = ScriptedTransport.Step.respond(200, ["Cache-Control": "public, max-age=600"], body: "x")
        try await TimeToLiveBench.with(.memory, ScriptedTransport([step], repeatsLastStep: true)) { bench in
            try await bench.load()
            #expect(try await bench.load(.get(Self.url, ["Cookie": "id=1"])) == .network("x"))
        }
    }

    @Test("The cache behind the hook can be purged, inspected and measured", arguments: EachStore.allCases)
    func cache(kind: EachStore) async throws {
        let step = ScriptedTransport.Step.respond(200, ["Cache-Control": "no-store", "Age": "50"], body: "x")
        try await TimeToLiveBench.with(kind, ScriptedTransport([step], repeatsLastStep: true)) { bench in
            try await bench.load()
            bench.clock.advance(by: .seconds(600))
            try await bench.load()
            let cache = bench.hook.cache
            #expect(cache.statistics.hits == 1)
            var listed: [CacheEntryInfo] = []
            for try await info in cache.entries(now: bench.clock.timestamp) { listed.append(info) }
            #expect(listed.map(\.age) == [600])
            #expect(listed.map(\.isFresh) == [true])
            let url = try #require(URL(string: Self.url))
            try await cache.remove(.url(url))
            #expect(try await bench.load() == .network("x"))
        }
    }

    @Test("The decision has the age since receipt and the rest of the ttl")
    func decision() async throws {
        let step = ScriptedTransport.Step.respond(200, ["Age": "5000"], body: "x")
        try await TimeToLiveBench.with(.memory, ScriptedTransport([step])) { bench in
            try await bench.load()
            bench.clock.advance(by: .seconds(100))
            let response = try await bench.pipeline.send(.get(Self.url))
            #expect(response.cacheDecision?.outcome == .hit)
            #expect(response.cacheDecision?.age == 100)
            #expect(response.cacheDecision?.freshnessLeft == 500)
        }
    }
}

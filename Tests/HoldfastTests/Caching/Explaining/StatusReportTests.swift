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

@Suite("Cache-Status describes what this cache did (RFC 9211)", .timeLimit(.minutes(20)))
struct StatusReportTests {
    private func bench(
        _ transport: ScriptedTransport,
        _ change: (inout CacheOptions) -> Void = { _ in }
    ) -> CacheBench {
        var options = CacheOptions()
        options.cacheName = "Holdfast"
        change(&options)
        return CacheBench(options: options, transport)
    }

    private func status(
        _ bench: CacheBench,
        _ request: URLRequest = .get(),
        _ directive: CacheDirective = .default
    ) async throws -> String? {
        var options = CallOptions()
        options.cache = directive
        let response = try await bench.pipeline.send(request, options: options)
        _ = try await response.body.collect()
        return response.fields[.cacheStatus]
    }

    @Test("A miss, a hit, a stale response and a 304, one after the other")
    func life() async throws {
        let transport = ScriptedTransport { request in
            let fields: HeaderFields = ["Cache-Control": "max-age=60", "ETag": "\"a\""]
            return request.value(forHTTPHeaderField: "If-None-Match") == nil
                ? .respond(200, fields, body: "x") : .respond(304, fields)
        }
        let bench = bench(transport)
        #expect(try await status(bench) == "Holdfast;fwd=uri-miss;stored")
        bench.clock.advance(by: .seconds(20))
        #expect(try await status(bench) == "Holdfast;hit;ttl=40")
        #expect(
            try await status(bench, .get("http://origin.example/a", ["Cache-Control": "no-cache"]))
                == "Holdfast;fwd=request;fwd-status=304;ttl=60;detail=must-validate"
        )
        bench.clock.advance(by: .seconds(70))
        #expect(try await status(bench) == "Holdfast;fwd=stale;fwd-status=304;ttl=60")
    }

    @Test(
        "RFC 9211 §2.2: why the store was bypassed",
        arguments: [
            ("POST", CacheDirective.default, "Holdfast;fwd=method"),
            ("GET", .reload, "Holdfast;fwd=bypass;stored;detail=reload"),
            ("GET", .noStore, "Holdfast;fwd=bypass;detail=request-no-store"),
        ]
    )
    func bypassed(method: String, directive: CacheDirective, expected: String) async throws {
        let bench = bench(.counting())
        #expect(try await status(bench, .request(method, "http://origin.example/a"), directive) == expected)
    }

    @Test("A stored response that replaces a 503 says so")
    func standIn() async throws {
        let numbers = AnswerNumbers()
        let bench = bench(
            ScriptedTransport { _ in
                numbers.next() == 1
                    ? .respond(200, ["Cache-Control": "max-age=10, stale-if-error=60"], body: "x") : .respond(503)
            }
        )
        _ = try await status(bench)
        bench.clock.advance(by: .seconds(20))
        #expect(try await status(bench) == "Holdfast;fwd=stale;fwd-status=503;ttl=-10;detail=stale-if-error")
    }

    @Test(
        "RFC 9211 §2: entries of other caches stay in order, and this cache's entry from storing is not repeated"
    )
    func upstream() async throws {
        let bench = bench(
            .counting { _ in
                ["Cache-Control": "max-age=60", "Cache-Status": "Origin; hit; ttl=9, \"Edge 1\"; fwd=stale"]
            }
        )
        let first = "Origin;hit;ttl=9, \"Edge 1\";fwd=stale, Holdfast;fwd=uri-miss;stored"
        #expect(try await status(bench) == first)
        for _ in 0..<2 {
            let response = try await bench.pipeline.send(.get())
            #expect(response.cacheStatus?.entries.map(\.cache) == ["Origin", "Edge 1", "Holdfast"])
            #expect(response.cacheStatus?.entries.last?.isHit == true)
        }
    }

    @Test("A 504 made on this side is not a cache's response and has no entry")
    func unsatisfiable() async throws {
        let bench = bench(.counting())
        #expect(try await status(bench, .get(), .onlyIfCached) == nil)
    }

    @Test("Without a name nothing is written; the key appears only on request, and the partition never")
    func optIn() async throws {
        let silent = bench(.counting()) { $0.cacheName = nil }
        #expect(try await status(silent) == nil)
        let telling = bench(.counting()) { $0.showsKeyInCacheStatus = true }
        #expect(
            try await status(telling, .get("http://u:secret@origin.example/a"))
                == "Holdfast;fwd=uri-miss;stored;key=\"GET http://origin.example/a\""
        )
    }
}

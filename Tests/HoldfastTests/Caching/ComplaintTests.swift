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

/// What users of other caches complain about, with the threads; complaints about one feature stand with its tests.
@Suite("What people complain about elsewhere")
struct ComplaintTests {
    private static let ok: HeaderFields = ["Cache-Control": "max-age=60"]

    /// lysine-dev/okhttp#6214, #3041, #8564; requests-cache/requests-cache#399; seanmonstar/reqwest#368
    @Test("okhttp#6214: eight variants of one URI are kept, and a miss for a ninth deletes none")
    func variants() async throws {
        let bench = CacheBench(
            ScriptedTransport { sent in
                let language = sent.value(forHTTPHeaderField: "X-Flavour") ?? ""
                return .respond(200, ["Cache-Control": "max-age=60", "Vary": "X-Flavour"], body: language)
            }
        )
        let flavours = (0..<9).map { "flavour-\($0)" }
        for flavour in flavours {
            #expect(try await bench.load(.get("http://origin.example/a", ["X-Flavour": flavour])) == .network(flavour))
        }
        for flavour in flavours.suffix(8) {
            #expect(try await bench.load(.get("http://origin.example/a", ["X-Flavour": flavour])) == .fresh(flavour))
        }
    }

    /// lysine-dev/okhttp#9365; pkmetski/riffle#592; Alamofire/Alamofire#2371; ktorio/ktor#4337
    @Test(
        "okhttp#9365: one user's response is never returned to another",
        arguments: ["Authorization", "Cookie"],
        [CacheOptions.Mode.private, .shared]
    )
    func users(field: String, mode: CacheOptions.Mode) async throws {
        let transport = ScriptedTransport { sent in
            .respond(200, Self.ok, body: "for \(sent.value(forHTTPHeaderField: field) ?? "nobody")")
        }
        let bench = CacheBench(transport, mode: mode)
        for user in ["Bearer one", "Bearer two", "Bearer one"] {
            let answer = try await bench.load(.get("http://origin.example/me", [field: user]))
            #expect(answer.body == "for \(user)")
        }
    }

    @Test(
        "okhttp#9365: users who call at the same time do not share an exchange",
        arguments: ["Authorization", "Cookie"]
    )
    func usersAtOnce(field: String) async throws {
        let transport = ScriptedTransport { sent in
            .respond(200, Self.ok, body: sent.value(forHTTPHeaderField: field) ?? "nobody")
        }
        let bench = CacheBench(transport)
        try await withThrowingTaskGroup(of: (String, String).self) { group in
            for number in 0..<40 {
                let user = "user-\(number % 4)"
                group.addTask { (user, try await bench.load(.get("http://origin.example/me", [field: user])).body) }
            }
            for try await (user, body) in group { #expect(user == body) }
        }
        #expect(bench.sends == 4)
    }

    /// requests-cache/requests-cache#29, #80, #499; psf/cachecontrol#8; nodejs/undici#5012
    @Test(
        "requests-cache#499, undici#5012: different URLs are different entries",
        arguments: [
            ("http://h.example/?a=1&b=2", "http://h.example/?b=2&a=1"), ("http://h.example/", "http://h.example/?"),
            ("http://h.example/a%2Fb", "http://h.example/a/b"), ("http://h.example/a", "https://h.example/a"),
            ("http://h.example/?q=a+b", "http://h.example/?q=a%20b"), ("http://h.example//a", "http://h.example/a"),
        ]
    )
    func keysThatDiffer(first: String, second: String) async throws {
        let bench = CacheBench(ScriptedTransport { .respond(200, Self.ok, body: $0.url?.absoluteString ?? "") })
        #expect(try await bench.load(.get(first)) == .network(first))
        #expect(try await bench.load(.get(second)) == .network(second))
        #expect(try await bench.load(.get(first)) == .fresh(first))
    }

    @Test(
        "psf/cachecontrol#8: one URL spelled twice is one entry",
        arguments: [
            ("http://H.example/a", "HTTP://h.example:80/a"), ("http://h.example", "http://h.example/#part"),
            ("http://h.example/%7Ea", "http://h.example/~a"), ("http://h.example/a/../b", "http://h.example/b"),
        ]
    )
    func keysThatAreEqual(first: String, second: String) async throws {
        let bench = CacheBench(ScriptedTransport { _ in .respond(200, Self.ok, body: "one") })
        try await bench.load(.get(first))
        #expect(try await bench.load(.get(second)) == .fresh("one"))
    }

    /// Alamofire/Alamofire#292, #526, #712; lysine-dev/okhttp#7501; symfony/symfony#58985
    @Test(
        "Alamofire#292: one property says why a response was not cached",
        arguments: [
            (200, ["Cache-Control": "no-store"], .responseNoStore),
            (200, ["Cache-Control": "max-age=60", "Vary": "*"], .varyStar),
            (302, [:], .noFreshness), (206, [:], .partialContent),
            (599, ["Cache-Control": "must-understand, max-age=60"], .notUnderstood),
        ] as [(Int, HeaderFields, CacheReason)]
    )
    func whyNot(status: Int, fields: HeaderFields, reason: CacheReason) async throws {
        let bench = CacheBench([.respond(status, fields)])
        let response = try await bench.pipeline.send(.get())
        let decision = try #require(response.cacheDecision)
        #expect(decision.outcome == .miss)
        #expect(decision.reason == .notStored)
        #expect(decision.storage == .notStored(reason))
        #expect(!reason.section.isEmpty)
        #expect(bench.cache.statistics.notStored[reason] == 1)
    }

    @Test("symfony#58985: the decision says what happened, by which rule, how old and how fresh")
    func decisions() async throws {
        let bench = CacheBench([
            .respond(200, ["Cache-Control": "max-age=60", "ETag": "\"a\""], body: "x"), .respond(304),
            .respond(204),
        ])
        func decision(_ request: URLRequest = .get(), _ cache: CacheDirective = .default) async throws -> CacheDecision
        {
            var options = CallOptions()
            options.cache = cache
            let response = try await bench.pipeline.send(request, options: options)
            _ = try await response.body.collect()
            return try #require(response.cacheDecision)
        }
        #expect(try await decision().description == "miss: not-stored (RFC 9111 §4); stored")
        bench.clock.advance(by: .seconds(20))
        let hit = try await decision()
        #expect(hit.outcome == .hit && hit.reason == .fresh && hit.age == 20 && hit.freshnessLeft == 40)
        bench.clock.advance(by: .seconds(50))
        let accepted = try await decision(.get(), .maxStale(.seconds(60)))
        #expect(accepted.outcome == .hit && accepted.reason == .acceptedStale && accepted.freshnessLeft == -10)
        let revalidated = try await decision()
        #expect(revalidated.outcome == .revalidated && revalidated.reason == .stale && revalidated.age == 0)
        var post = URLRequest.get()
        post.httpMethod = "POST"
        #expect(try await decision(post).reason == .method)
        let unsatisfiable = try await decision(.get("http://origin.example/other"), .onlyIfCached)
        #expect(unsatisfiable.outcome == .unsatisfiable && unsatisfiable.reason == .notStored)
        #expect(bench.cache.statistics.reasons[.stale] == 1)
        #expect(bench.cache.statistics.reasons[.method] == 1)
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastSemantics
import HoldfastStorage
import HoldfastTesting
import Testing

@testable import Holdfast

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("CachingServiceHook: a cache by time to live only", .timeLimit(.minutes(20)))
struct CachingServiceHookTests {
    /// What a server may say against keeping a response, and none of which counts.
    static let unheeded: [HeaderFields] = [
        [:], ["Cache-Control": "no-store"], ["Cache-Control": "no-cache"], ["Cache-Control": "private, max-age=0"],
        ["Cache-Control": "must-revalidate, max-age=1"], ["Cache-Control": "must-understand, no-store"],
        ["Expires": "0"], ["Pragma": "no-cache"], ["Age": "99999", "Cache-Control": "max-age=60"],
        ["Date": "Mon, 01 Jan 2001 00:00:00 GMT"],
    ]

    @Test(
        "S-T27: two GETs within the ttl are one send and two equal results, whatever the response's freshness",
        arguments: unheeded,
        EachStore.allCases
    )
    func insideTheLifetime(_ fields: HeaderFields, kind: EachStore) async throws {
        try await TimeToLiveBench.with(kind, ScriptedTransport([.respond(200, fields, body: "x")])) { bench in
            #expect(try await bench.load() == .network("x"))
            bench.clock.advance(by: .seconds(300))
            #expect(try await bench.load() == .fresh("x"))
            try await bench.restart()
            bench.clock.advance(by: .seconds(300))
            #expect(try await bench.load() == .fresh("x"))
        }
    }

    @Test(
        "S-T28: a hit while the age is at most the ttl, to the millisecond; the age counts from receipt",
        arguments: [Duration.seconds(600), .milliseconds(1500), .milliseconds(999), .zero, .seconds(-1)],
        EachStore.allCases
    )
    func boundary(_ ttl: Duration, kind: EachStore) async throws {
        let fields: HeaderFields = ["Age": "3600", "Cache-Control": "max-age=86400"]
        let clock = ManualClock(autoAdvances: true)
        let transport = ScriptedTransport(
            [.respond(200, fields, body: "x").delayed(by: .seconds(7))],
            repeatsLastStep: true
        )
        try await TimeToLiveBench.with(kind, transport, ttl: ttl, clock: clock) { bench in
            try await bench.load()
            clock.advance(by: max(ttl, .zero))
            #expect(try await bench.load() == .fresh("x"))
            try await bench.restart()
            #expect(try await bench.load() == .fresh("x"))
            clock.advance(by: .milliseconds(1))
            #expect(try await bench.load() == .network("x"))
            #expect(transport.sent.count == 2)
            // What came the second time is as young as what came the first.
            clock.advance(by: max(ttl, .zero))
            #expect(try await bench.load() == .fresh("x"))
        }
    }

    @Test(
        "S-T29: nothing but GET is cached",
        arguments: ["POST", "PUT", "DELETE", "PATCH", "QUERY", "OPTIONS"],
        EachStore.allCases
    )
    func otherMethods(_ method: String, kind: EachStore) async throws {
        let fields: HeaderFields = ["Cache-Control": "max-age=60", "Content-Location": "/a"]
        let transport = ScriptedTransport([.respond(200, fields, body: "x")], repeatsLastStep: true)
        try await TimeToLiveBench.with(kind, transport) { bench in
            for _ in 0..<2 {
                let answer = try await bench.load(.request(method, TimeToLiveBench.url))
                #expect(answer == .network("x"))
            }
            #expect(transport.sent.count == 2)
            #expect(bench.entryCount == 0)
        }
    }

    @Test("S-T30: the same URL with another Authorization always has another entry", arguments: EachStore.allCases)
    func principals(kind: EachStore) async throws {
        let transport = ScriptedTransport { request in
            let named = ["Authorization", "Cookie", "X-API-Key"].map { request.value(forHTTPHeaderField: $0) ?? "-" }
            return .respond(200, ["Cache-Control": "public, max-age=60"], body: named.joined(separator: " "))
        }
        try await TimeToLiveBench.with(kind, transport) { bench in
            var options = CallOptions()
            options.credentialFields = ["X-API-Key"]
            let askers: [[String: String]] = [
                [:], ["Authorization": "a"], ["Authorization": "b"], ["Cookie": "a"], ["Cookie": "b"],
                ["X-API-Key": "a"], ["X-API-Key": "b"], ["Authorization": "a", "X-API-Key": "a"],
            ]
            var answers: [CacheBench.Answer] = []
            for asker in askers { answers.append(try await bench.load(.get(TimeToLiveBench.url, asker), options)) }
            #expect(Set(answers.map(\.body)).count == askers.count)
            #expect(answers.allSatisfy { $0.source == .network(attempts: 1) })
            try await bench.restart()
            for (asker, answer) in zip(askers, answers) {
                #expect(try await bench.load(.get(TimeToLiveBench.url, asker), options) == .fresh(answer.body))
            }
        }
    }

    @Test(
        "S-T31: the same GET with reordered arguments, other letter case of field names, a port and a fragment",
        arguments: EachStore.allCases
    )
    func equalRequests(kind: EachStore) async throws {
        let transport = ScriptedTransport([.respond(200, ["Vary": "Accept"], body: "one")])
        try await TimeToLiveBench.with(kind, transport) { bench in
            try await bench.load(.get("https://HOST.example:443/a?b=2&a=1&a=3#top", ["Accept": "text/plain"]))
            try await bench.restart()
            for spelling in [
                "https://host.example/a?b=2&a=1&a=3", "https://host.example/a?a=1&b=2&a=3",
                "https://host.example:443/a?a=1&a=3&b=2#end",
            ] {
                #expect(try await bench.load(.get(spelling, ["accept": "text/plain"])) == .fresh("one"))
            }
            #expect(bench.entryCount == 1)
        }
    }

    @Test("S-T32: different requests have separate entries", arguments: EachStore.allCases)
    func differentRequests(kind: EachStore) async throws {
        let transport = ScriptedTransport { .respond(200, body: $0.url?.absoluteString ?? "") }
        try await TimeToLiveBench.with(kind, transport) { bench in
            let urls = ["a=1&a=2", "a=2&a=1", "n", "n=", "v=%2B", "v=+", "page=1", "page=2"].map {
                TimeToLiveBench.url + "?" + $0
            }
            for url in urls { try await bench.load(.get(url)) }
            #expect(transport.sent.count == urls.count)
            try await bench.restart()
            for url in urls { #expect(try await bench.load(.get(url)) == .fresh(url)) }
        }
    }

    /// Takes content that reads as a number.
    private static let number = Acceptance { response in
        let bytes = try await response.body.collect()
        response.body = ResponseBody(bytes)
        guard Int(String(decoding: bytes.array, as: UTF8.self)) != nil else {
            throw ServiceError(.decodingFailed, "no number")
        }
    }

    @Test(
        "S-T33: stored bytes that cannot be decoded as another type are removed, and the call is sent without an error",
        arguments: EachStore.allCases
    )
    func otherResultType(kind: EachStore) async throws {
        let transport = ScriptedTransport([
            .respond(200, body: "text"), .respond(200, body: "7"), .respond(500, body: "down"),
        ])
        try await TimeToLiveBench.with(kind, transport) { bench in
            #expect(try await bench.load() == .network("text"))
            try await bench.restart()
            var options = CallOptions()
            options.acceptance = Self.number
            #expect(try await bench.load(.get(TimeToLiveBench.url), options) == .network("7"))
            #expect(try await bench.load(.get(TimeToLiveBench.url), options) == .fresh("7"))
            // The same bytes serve each type that they can be decoded as.
            #expect(try await bench.load() == .fresh("7"))
            #expect(bench.entryCount == 1)
            // Where the origin has nothing better, what could not be decoded is gone all the same.
            options.acceptance = Acceptance { _ in throw Refused(reason: "no letters") }
            await #expect(throws: Refused(reason: "no letters")) {
                try await bench.load(.get(TimeToLiveBench.url), options)
            }
            #expect(bench.entryCount == 0)
            #expect(transport.sent.count == 3)
        }
    }

    @Test(
        "S-T34: a failing or refused response is not cached",
        arguments: [301, 304, 400, 401, 404, 410, 429, 500, 503],
        EachStore.allCases
    )
    func failures(_ status: Int, kind: EachStore) async throws {
        let fields: HeaderFields = ["Cache-Control": "public, max-age=600"]
        let transport = ScriptedTransport([.respond(status, fields, body: "no")], repeatsLastStep: true)
        try await TimeToLiveBench.with(kind, transport) { bench in
            for _ in 0..<2 {
                let answer = try await bench.load()
                #expect(answer == .network("no", status))
            }
            var options = CallOptions()
            options.acceptance = .successful
            await #expect(throws: ServiceError.self) { try await bench.load(.get(TimeToLiveBench.url), options) }
            #expect(transport.sent.count == 3)
            #expect(bench.entryCount == 0)
        }
    }

    @Test("S-T34: a 2xx that does not decode is not cached", arguments: EachStore.allCases)
    func refused(kind: EachStore) async throws {
        try await TimeToLiveBench.with(kind, ScriptedTransport([.respond(200, body: "text")])) { bench in
            var options = CallOptions()
            options.acceptance = Self.number
            await #expect(throws: ServiceError.self) { try await bench.load(.get(TimeToLiveBench.url), options) }
            #expect(bench.entryCount == 0)
        }
    }

    @Test("S-T35: 100 equal GETs at once and an empty cache: one send for all", arguments: EachStore.allCases)
    func concurrent(kind: EachStore) async throws {
        let origin = GatedOrigin { _, _ in .answer(200, ["Cache-Control": "no-store"], "one") }
        try await TimeToLiveBench.with(kind, origin) { bench in
            let pipeline = bench.pipeline
            let bodies = try await withThrowingTaskGroup(of: ByteChunk.self) { group in
                for _ in 0..<100 {
                    group.addTask { try await pipeline.send(.get(TimeToLiveBench.url)).body.collect() }
                }
                try await origin.asked.wait(for: 1)
                origin.open(100)
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(bodies == Array(repeating: ByteChunk(copying: "one".utf8), count: 100))
            #expect(origin.asked.count == 1)
            let statistics = bench.hook.cache.statistics
            #expect(statistics.misses == 1)
            #expect(statistics.hits + statistics.collapsed == 99)
        }
    }
}

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

@Suite("Controlling freshness and single calls", .timeLimit(.minutes(20)))
struct LifetimeTests {
    static func options(_ directive: CacheDirective) -> CallOptions {
        var options = CallOptions()
        options.cache = directive
        return options
    }

    @Test("A call's lifetime is stored with the entry, through validation and restarts", arguments: EachStore.allCases)
    func given(kind: EachStore) async throws {
        try await kind.with { store in
            let transport = ScriptedTransport { request in
                request.value(forHTTPHeaderField: "If-None-Match") == nil
                    ? .respond(200, ["ETag": "\"v\""], body: "x") : .respond(304)
            }
            let bench = CacheBench(transport, store: store)
            try await bench.load(.get(), Self.options(.lifetime(.seconds(30))))
            for _ in 0..<2 {
                bench.clock.advance(by: .seconds(29))
                #expect(try await bench.load() == .fresh("x"))
                bench.clock.advance(by: .seconds(1))
                #expect(try await bench.load() == .revalidated("x"))
            }
            // A validating call may give another one.
            bench.clock.advance(by: .seconds(30))
            #expect(try await bench.load(.get(), Self.options(.lifetime(.seconds(5)))) == .revalidated("x"))
            bench.clock.advance(by: .seconds(5))
            #expect(try await bench.load() == .revalidated("x"))
        }
    }

    @Test("A call with a lifetime still obeys its cachePolicy")
    func givenWithPolicy() async throws {
        let bench = CacheBench(ScriptedTransport([.respond(200, body: "x")], repeatsLastStep: true))
        let given = Self.options(.lifetime(.seconds(30)))
        var request = URLRequest.get()
        request.cachePolicy = .reloadIgnoringLocalCacheData
        for _ in 0..<2 { #expect(try await bench.load(request, given) == .network("x")) }
        request.cachePolicy = .useProtocolCachePolicy
        #expect(try await bench.load(request) == .fresh("x"))
    }

    @Test("The options' limit makes the cache ask sooner than the server needs")
    func limited() async throws {
        let step = ScriptedTransport.Step.respond(200, ["Cache-Control": "max-age=3600"], body: "x")
        let bench = CacheBench(
            ScriptedTransport([step], repeatsLastStep: true),
            options: { $0.maximumLifetime = .seconds(10) }
        )
        try await bench.load()
        bench.clock.advance(by: .seconds(9))
        #expect(try await bench.load() == .fresh("x"))
        bench.clock.advance(by: .seconds(1))
        #expect(try await bench.load() == .network("x"))
    }

    @Test(
        "Errors are kept for a while only if configured",
        arguments: [(500, true), (403, true), (404, true), (429, false), (401, false)],
        [false, true]
    )
    func negative(example: (status: Int, isHeld: Bool), isOn: Bool) async throws {
        let bench = CacheBench(
            ScriptedTransport([.respond(example.status, body: "no")], repeatsLastStep: true),
            options: { if isOn { $0.negativeLifetime = .seconds(10) } }
        )
        let expected: CacheBench.Answer =
            isOn && example.isHeld ? .fresh("no", example.status) : .network("no", example.status)
        try await bench.load()
        #expect(try await bench.load() == expected)
        bench.clock.advance(by: .seconds(10))
        #expect(try await bench.load() == .network("no", example.status))
    }

    @Test(
        "A failure does not replace a stored success; a 404 does, and one failure replaces another",
        arguments: [(200, 503, false), (200, 404, true), (404, 503, true)]
    )
    func negativeOverStored(first: Int, second: Int, replaces: Bool) async throws {
        let bench = CacheBench(
            ScriptedTransport([
                .respond(first, ["Cache-Control": "max-age=60", "ETag": "\"v\""], body: "first"),
                .respond(second, body: "second"), .respond(304),
            ]),
            options: { $0.negativeLifetime = .seconds(10) }
        )
        try await bench.load()
        bench.clock.advance(by: .seconds(60))
        let response = try await bench.pipeline.send(.get())
        #expect(response.status == StatusCode(second))
        #expect(response.cacheDecision?.storage == (replaces ? .stored : .notStored(.negativeOverStored)))
        #expect(try await bench.load() == (replaces ? .fresh("second", second) : .revalidated("first")))
    }

    @Test(
        "RFC 5861 §4: an error never replaces what may be served in its place, whatever it says of its own lifetime",
        arguments: ["max-age=0", "private, max-age=0", "max-age=60", "no-store"],
        [["ETag": "\"v\""], [:]] as [HeaderFields]
    )
    func errorOverStored(_ cacheControl: String, _ validator: HeaderFields) async throws {
        let good: HeaderFields = ["Cache-Control": "max-age=10, stale-if-error=86400"]
        let down = ScriptedTransport.Step.respond(503, ["Cache-Control": cacheControl], body: "down")
        let bench = CacheBench([
            .respond(200, good.merging(validator), body: "good"), down, down, down, .respond(200, good, body: "new"),
        ])
        try await bench.load()
        bench.clock.advance(by: .seconds(60))
        for _ in 0..<3 {
            #expect(try await bench.load() == .stale("good"))
            bench.clock.advance(by: .seconds(1))
        }
        #expect(bench.cache.statistics.staleOnError == 3)
        #expect(try await bench.load() == .network("new"))
    }

    @Test("The same for the error that a reload gets: other calls may still be served what is stored")
    func errorToReload() async throws {
        let bench = CacheBench([
            .respond(200, ["Cache-Control": "max-age=100, stale-if-error=60"], body: "good"),
            .respond(503, ["Cache-Control": "max-age=60"], body: "down"),
        ])
        try await bench.load()
        let response = try await bench.pipeline.send(.get(), options: Self.options(.reload))
        #expect(response.status == .serviceUnavailable)
        #expect(response.cacheDecision?.storage == .notStored(.negativeOverStored))
        #expect(try await bench.load() == .fresh("good"))
    }

    @Test("A stored error is neither served for another one nor kept in its place")
    func errorOverError() async throws {
        let fields: HeaderFields = ["Cache-Control": "max-age=10, stale-if-error=600", "ETag": "\"e\""]
        let bench = CacheBench([.respond(500, fields, body: "first"), .respond(503, fields, body: "second")])
        try await bench.load()
        bench.clock.advance(by: .seconds(20))
        #expect(try await bench.load() == .network("second", 503))
        #expect(try await bench.load() == .fresh("second", 503))
    }

    @Test("RETRY.md §3.6.5: a stored 503 gives the remaining wait, not the original one")
    func retryAfter() async throws {
        let fields: HeaderFields = ["Cache-Control": "max-age=60", "Retry-After": "50"]
        let bench = CacheBench([.respond(503, fields, body: "down")])
        try await bench.load()
        bench.clock.advance(by: .seconds(20))
        let response = try await bench.pipeline.send(.get())
        #expect(response.source == .fresh)
        #expect(response.fields[.retryAfter] == "30")
        #expect(response.fields[.age] == "20")
    }

    @Test("reload skips the lookup and stores; noStore neither looks up nor stores")
    func reloadAndNoStore() async throws {
        let steps = (0..<3).map { ScriptedTransport.Step.respond(200, ["Cache-Control": "max-age=60"], body: "\($0)") }
        let bench = CacheBench(steps)
        #expect(try await bench.load() == .network("0"))
        #expect(try await bench.load(.get(), Self.options(.noStore)) == .network("1"))
        #expect(try await bench.load() == .fresh("0"))
        #expect(try await bench.load(.get(), Self.options(.reload)) == .network("2"))
        #expect(try await bench.load() == .fresh("2"))
    }

    @Test(
        "maxStale accepts the given staleness, minFresh requires the given freshness (RFC 9111 §5.2.1.2, §5.2.1.3)",
        arguments: [
            (CacheDirective.maxStale(.seconds(10)), 70, ResponseSource.stale),
            (.maxStale(.seconds(10)), 71, .network(attempts: 1)), (.maxStale(.seconds(-1)), 60, .network(attempts: 1)),
            (CacheDirective(minFresh: .seconds(10)), 50, .fresh),
            (CacheDirective(minFresh: .seconds(10)), 51, .network(attempts: 1)),
        ]
    )
    func tolerances(directive: CacheDirective, seconds: Int, source: ResponseSource) async throws {
        let step = ScriptedTransport.Step.respond(200, ["Cache-Control": "max-age=60"], body: "x")
        let bench = CacheBench(ScriptedTransport([step], repeatsLastStep: true))
        try await bench.load()
        bench.clock.advance(by: .seconds(seconds))
        #expect(try await bench.load(.get(), Self.options(directive)).source == source)
    }

    @Test("Nor does the failure that a reload gets, or the request for a missing part")
    func negativeToReload() async throws {
        let bench = CacheBench(
            ScriptedTransport([
                .respond(200, ["Cache-Control": "max-age=100"], body: "good"), .respond(503, body: "down"),
            ]),
            options: { $0.negativeLifetime = .seconds(10) }
        )
        try await bench.load()
        let response = try await bench.pipeline.send(.get(), options: Self.options(.reload))
        #expect(response.status == .serviceUnavailable)
        #expect(response.cacheDecision?.storage == .notStored(.negativeOverStored))
        #expect(try await bench.load() == .fresh("good"))

        let origin = RangeOrigin()
        let parts = CacheBench(origin.transport, options: { $0.negativeLifetime = .seconds(10) })
        try await parts.range("0-49")
        origin.change { $0.instead = .respond(503, body: "down") }
        #expect(try await parts.range(nil).status == 503)
        #expect(try await parts.range("0-49") == .fresh(origin.bytes(0..<50), 206))
    }
}

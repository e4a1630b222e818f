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

@Suite("RETRY §3.6.1: a stale response comes last, but not too late", .timeLimit(.minutes(20)))
struct StaleLastTests {
    static let spare: HeaderFields = ["Cache-Control": "max-age=10, stale-if-error=1000"]
    static let strict = ["must-revalidate", "no-cache"]
    static let elsewhere = URLRequest.get("http://origin.example/elsewhere")
    /// What shares its gate with the URL that is stored.
    private static let sameResource = URLRequest.get("http://origin.example/a?elsewhere")

    /// A bench over an origin that gave `fields` once, which is stale by now, and goes on with `steps`.
    static func bench(
        _ fields: HeaderFields = spare,
        _ steps: [ScriptedTransport.Step],
        mode: CacheOptions.Mode = .private,
        clock: ManualClock = ManualClock(autoAdvances: true),
        retrierFactory: any RetrierFactory,
        serveStaleAfter: Duration? = nil,
        prepare: [PrepareStep] = []
    ) async throws -> CacheBench {
        let bench = CacheBench(
            ScriptedTransport([.respond(200, fields, body: "old")] + steps),
            mode: mode,
            clock: clock,
            retrierFactory: retrierFactory,
            { $0.prepare = prepare },
            options: { $0.serveStaleAfter = serveStaleAfter }
        )
        try await bench.load()
        clock.advance(by: .seconds(20))
        return bench
    }

    @Test("§3.6.1, E12: retries come first, and their response is preferred to a stale one")
    func retriesFirst() async throws {
        let steps: [ScriptedTransport.Step] = [
            .respond(503), .fail(progress: .headSent), .respond(200, Self.spare, body: "new"),
        ]
        let bench = try await Self.bench(Self.spare, steps, retrierFactory: .seeded())
        #expect(try await bench.load() == .network("new").after(3))
        #expect(bench.sends == 4)
    }

    @Test("§3.6.1, E12: if they give up, a stale response is the last resort", arguments: [500, 502, 503, 504, 0])
    func lastResort(_ status: Int) async throws {
        let failure: ScriptedTransport.Step = status == 0 ? .fail(progress: .headSent) : .respond(status, body: "no")
        let bench = try await Self.bench(Self.spare, [failure, failure, failure], retrierFactory: .seeded())
        let response = try await bench.pipeline.send(.get())
        #expect(response.source == .stale)
        #expect(response.cacheDecision?.reason == (status == 0 ? .disconnected : .staleIfError))
        #expect(bench.sends == 4)
    }

    @Test("§3.6.1, E12: at once if the next wait exceeds serveStaleAfter; retries continue and refresh the entry")
    func notSlowest() async throws {
        let clock = ManualClock()
        let watch = AttemptWatch()
        let bench = try await Self.bench(
            ["Cache-Control": "max-age=10"],
            [.respond(503), .respond(200, cacheable, body: "new")],
            clock: clock,
            retrierFactory: .seeded { $0.waits(.seconds(10)) },
            serveStaleAfter: .milliseconds(300),
            prepare: [watch.step]
        )
        #expect(try await bench.load() == .stale("old"))
        await until { clock.waits.contains(.seconds(10)) }
        #expect(watch.areBackground.last == true)
        clock.advance(by: .seconds(10))
        await bench.pipeline.drain()
        #expect(watch.wereBackground == [false, false, true])
        #expect(try await bench.load() == .fresh("new"))
        #expect(bench.cache.statistics.backgroundRevalidations == 1)
    }

    @Test("§3.6.1: a shorter wait is awaited")
    func withinPatience() async throws {
        let clock = ManualClock()
        let bench = try await Self.bench(
            ["Cache-Control": "max-age=10"],
            [.respond(503), .respond(200, cacheable, body: "new")],
            clock: clock,
            retrierFactory: .seeded { $0.waits(.milliseconds(200)) },
            serveStaleAfter: .milliseconds(300)
        )
        let call = Task { try await bench.load() }
        await until { clock.waits.contains(.milliseconds(200)) }
        clock.advance(by: .milliseconds(200))
        #expect(try await call.value == .network("new").after(2))
    }

    @Test("§3.6.1: at once if the gate is closed for longer than serveStaleAfter, before anything is sent")
    func gateBeyondPatience() async throws {
        let clock = ManualClock()
        let bench = try await Self.bench(
            ["Cache-Control": "max-age=10"],
            [.respond(429, ["Retry-After": "5"]), .respond(200, cacheable, body: "new")],
            clock: clock,
            retrierFactory: .seeded { $0.maxAttempts = 1 },
            serveStaleAfter: .milliseconds(300)
        )
        try await bench.load(Self.sameResource)
        #expect(try await bench.load() == .stale("old"))
        #expect(bench.sends == 2)
        try await clock.waitForSleeps(1)
        clock.advance(by: .seconds(10))
        await bench.pipeline.drain()
        #expect(try await bench.load() == .fresh("new"))
        let sent = try #require(bench.transport.sent.last)
        #expect(sent.time.sinceOrigin >= .seconds(25))
    }

    @Test(
        "§3.6.1: a gate closed for longer than the call may wait counts as the 429 that closed it",
        arguments: [("max-age=10, stale-if-error=1000", true), ("max-age=10", false), ("no-store", false)],
        [Duration.milliseconds(300), nil]
    )
    func gateBeyondReach(_ stored: (cacheControl: String, standsIn: Bool), _ serveStaleAfter: Duration?) async throws {
        let clock = ManualClock()
        let bench = try await Self.bench(
            ["Cache-Control": stored.cacheControl],
            [.respond(429, ["Retry-After": "90"])],
            clock: clock,
            retrierFactory: .seeded(),
            serveStaleAfter: serveStaleAfter
        )
        try await bench.load(Self.sameResource)
        let isImpatient = serveStaleAfter != nil && stored.cacheControl == "max-age=10"
        if stored.standsIn || isImpatient {
            let response = try await bench.pipeline.send(.get())
            #expect(response.source == .stale)
            #expect(response.cacheDecision?.reason == (isImpatient ? .patience : .staleIfError))
        } else {
            await #expect {
                try await bench.load()
            } throws: { error in
                let error = error as? ServiceError
                return error?.code == .throttled && error?.retryAfter == .seconds(90)
            }
        }
        #expect(bench.sends == 2)
    }

    @Test(
        "§3.6.1, complaint 1 of 12: a wait longer than the rules or the deadline allow exceeds any serveStaleAfter",
        arguments: [503, 429],
        [("3600", 100), ("30", 20)]
    )
    func waitBeyondReach(_ status: Int, _ wait: (seconds: String, timeout: Int)) async throws {
        for serveStaleAfter in [Duration.milliseconds(300), nil] {
            let clock = ManualClock()
            let bench = try await Self.bench(
                ["Cache-Control": "max-age=10"],
                [.respond(status, ["Retry-After": wait.seconds], body: "no")],
                clock: clock,
                retrierFactory: .seeded(),
                serveStaleAfter: serveStaleAfter
            )
            var options = CallOptions()
            options.timeout = .seconds(wait.timeout)
            let answer = try await bench.load(.get(), options)
            #expect(answer == (serveStaleAfter == nil ? .network("no", status) : .stale("old")))
            #expect(bench.sends == 2)
        }
    }

    @Test(
        "§3.6.1: a response that forbids it is retried to the end, and the caller gets a 504",
        arguments: strict,
        [true, false]
    )
    func forbidden(_ directive: String, _ isSilent: Bool) async throws {
        let failure: ScriptedTransport.Step = isSilent ? .silence : .fail(progress: .headSent)
        let bench = try await Self.bench(
            ["Cache-Control": "max-age=10, stale-if-error=1000, \(directive)", "ETag": "\"a\""],
            [failure, failure, failure],
            retrierFactory: .seeded(),
            serveStaleAfter: .milliseconds(1)
        )
        var options = CallOptions()
        options.timeout = .seconds(30)
        let response = try await bench.pipeline.send(.get(), options: options)
        #expect(response.status == .gatewayTimeout && response.source == .synthesized)
        #expect(response.cacheDecision?.reason == .mustValidate)
        #expect(bench.sends == (isSilent ? 2 : 4))
        if !isSilent {
            #expect(response.attempts.map(\.errorCode) == [.connectionLost, .connectionLost, .connectionLost])
        }
        #expect(bench.cache.statistics.misses == 2)
    }

    @Test(
        "§3.6.1: in a shared cache the directives for shared caches also forbid it",
        arguments: ["proxy-revalidate", "s-maxage=10"]
    )
    func forbiddenWhereShared(_ directive: String) async throws {
        for mode in [CacheOptions.Mode.shared, .private] {
            let bench = try await Self.bench(
                ["Cache-Control": "max-age=10, stale-if-error=1000, \(directive)"],
                [.fail(progress: .headSent), .fail(progress: .headSent)],
                mode: mode,
                retrierFactory: .seeded { $0.maxAttempts = 2 }
            )
            #expect(try await bench.load().status == (mode == .shared ? 504 : 200))
        }
    }

    @Test("§3.6.1, complaint 6 of 12: if nothing stale may be served, the origin's failure is returned intact")
    func lastResponseIntact() async throws {
        let bench = try await Self.bench(
            ["Cache-Control": "max-age=10, must-revalidate"],
            [.respond(503, body: "one"), .respond(503, body: "two"), .respond(503, ["X-Last": "1"], body: "three")],
            retrierFactory: .seeded()
        )
        let response = try await bench.pipeline.send(.get())
        #expect(response.status == .serviceUnavailable && response.fields["X-Last"] == "1")
        #expect(response.attempts.map(\.status?.rawValue) == [503, 503, 503])
        #expect(try await response.body.collect() == ByteChunk(copying: "three".utf8))
    }

    @Test("RFC 5861 §4: a window that ends while the call is retried has ended")
    func windowEndsMeanwhile() async throws {
        // Stale for 10 seconds when the call begins, and for 20 when its last attempt has failed.
        let bench = try await Self.bench(
            ["Cache-Control": "max-age=10, stale-if-error=15"],
            [.respond(503, body: "one"), .respond(503, ["Cache-Control": "max-age=60"], body: "two")],
            retrierFactory: .seeded {
                $0.maxAttempts = 2
                $0.waits(.seconds(10))
            }
        )
        #expect(try await bench.load() == .init(status: 503, body: "two", source: .network(attempts: 2)))
        #expect(try await bench.load() == .fresh("two", 503))
    }

    @Test("A failure that something stale replaces is not stored because its call accepts what is stale")
    func replacedFailure() async throws {
        let bench = try await Self.bench(
            ["Cache-Control": "max-age=10"],
            [.respond(503, ["Retry-After": "3600", "Cache-Control": "max-age=60"], body: "no")],
            clock: ManualClock(),
            retrierFactory: .seeded(),
            serveStaleAfter: .milliseconds(300)
        )
        var options = CallOptions()
        options.timeout = .seconds(100)
        options.acceptance = Acceptance.successful
        #expect(try await bench.load(.get(), options) == .stale("old"))
        #expect(bench.cache.statistics.stored == 1)
        var tolerant = CallOptions()
        tolerant.cache = .maxStale(.seconds(1_000))
        #expect(try await bench.load(.get(), tolerant) == .stale("old"))
    }
}

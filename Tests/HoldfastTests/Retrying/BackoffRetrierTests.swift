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

@Suite("BackoffRetrier", .timeLimit(.minutes(20)))
struct BackoffRetrierTests {
    let clock = ManualClock(autoAdvances: true)

    func pipeline(_ transport: ScriptedTransport, _ factory: any RetrierFactory) -> Pipeline {
        var configuration = PipelineConfiguration()
        configuration.clock = clock
        return Pipeline(transport: transport, retrierFactory: factory, configuration: configuration)
    }

    static func seeded(_ rules: RetryRules = .default, seed: UInt64 = 7) -> BackoffRetrier.Factory {
        BackoffRetrier.factory(strategy: .exponential(rules), makeGenerator: { SeededGenerator(seed: seed) })
    }

    @Test("S-T20: exponentialBinary by default waits 1, 2, 4, … 512 s: 11 sends, then the 429 is returned")
    func binaryDefaults() async throws {
        let transport = ScriptedTransport([.respond(429)], repeatsLastStep: true)
        let response = try await pipeline(transport, .exponentialBinary()).send(.get())
        #expect(response.status == .tooManyRequests)
        #expect(transport.sent.count == 11)
        #expect(clock.waits == (0..<10).map { .seconds(1 << $0) })
    }

    @Test("S-T21: maxBackoff is a strict bound", arguments: [(4, 2), (1, 0), (0, 0)])
    func binaryBound(maxBackoff: Int, retries: Int) async throws {
        let transport = ScriptedTransport([.respond(429)], repeatsLastStep: true)
        _ = try await pipeline(transport, .exponentialBinary(maxBackoff: .seconds(maxBackoff))).send(.get())
        #expect(transport.sent.count == 1 + retries)
    }

    @Test("S-T22: exponentialBinary does not retry other statuses or local faults", arguments: [404, 500, 400])
    func binaryOthers(_ status: Int) async throws {
        let transport = ScriptedTransport([.respond(status)], repeatsLastStep: true)
        _ = try await pipeline(transport, .exponentialBinary()).send(.get())
        #expect(transport.sent.count == 1)
        let local = ScriptedTransport([.fail(.badRequest, progress: .notSent)], repeatsLastStep: true)
        _ = try? await pipeline(local, .exponentialBinary()).send(.get())
        #expect(local.sent.count == 1)
    }

    @Test("S-T23: throttled for 20 s, exponentialBinary succeeds at 31 s, after retries at 1, 3, 7, 15 and 31")
    func binaryScenario() async throws {
        let clock = clock
        let transport = ScriptedTransport { _ in .respond(clock.now.sinceOrigin < .seconds(20) ? 429 : 200) }
        let response = try await pipeline(transport, .exponentialBinary()).send(.get())
        #expect(response.status == .ok)
        #expect(transport.sent.map(\.time.sinceOrigin) == [0, 1, 3, 7, 15, 31].map { .seconds($0) })
    }

    @Test("Exponential: four attempts, random waits below 100 ms, 200 ms and 400 ms, the same for the same seed")
    func exponential() async throws {
        var all: [[Duration]] = []
        var rules = RetryRules.default
        // Without the waits that calls to one origin share.
        rules.budget = .unlimited
        for _ in 0..<2 {
            let clock = ManualClock(autoAdvances: true)
            var configuration = PipelineConfiguration()
            configuration.clock = clock
            let transport = ScriptedTransport([.respond(500)], repeatsLastStep: true)
            let factory = Self.seeded(rules)
            let pipeline = Pipeline(transport: transport, retrierFactory: factory, configuration: configuration)
            let response = try await pipeline.send(.get())
            #expect(response.status == .internalServerError)
            #expect(response.attempts.last?.stopReason == .attemptsExhausted)
            #expect(transport.sent.count == 4)
            all.append(clock.waits)
        }
        #expect(all[0] == all[1])
        #expect(all[0].count == 3)
        #expect(all[0][0] < .milliseconds(100))
        #expect(all[0][1] < .milliseconds(200))
    }

    @Test("The cap applies before the jitter: at the cap the waits are still spread")
    func capBeforeJitter() async throws {
        var rules = RetryRules(backoff: Backoff(cap: .milliseconds(400)), maxAttempts: 60)
        rules.budget = .unlimited
        let transport = ScriptedTransport([.respond(500)], repeatsLastStep: true)
        _ = try await pipeline(transport, Self.seeded(rules)).send(.get())
        let capped = clock.waits.dropFirst(3)
        #expect(capped.allSatisfy { $0 <= .milliseconds(400) })
        #expect(capped.filter { $0 < .milliseconds(100) }.count > 5)
        #expect(capped.filter { $0 > .milliseconds(300) }.count > 5)
        #expect(Set(capped).count > 50)
    }

    @Test(
        "Retry-After in all forms: never early, with jitter of at most half of it added",
        arguments: [
            ("10", 10), ("Tue, 14 Nov 2023 22:13:40 GMT", 20), ("Tuesday, 14-Nov-23 22:13:40 GMT", 20),
            ("Tue Nov 14 22:13:40 2023", 20), ("0", 0),
        ]
    )
    func retryAfter(_ value: String, seconds: Int) async throws {
        let transport = ScriptedTransport([.respond(503, ["Retry-After": value]), .respond(200)])
        _ = try await pipeline(transport, Self.seeded()).send(.get())
        let wait = try #require(clock.waits.first)
        #expect(wait >= .seconds(seconds))
        #expect(wait <= .milliseconds(max(1500 * seconds, 1000)))
    }

    @Test("A Retry-After beyond the rules or the call's time ends the call at once, with the response")
    func retryAfterTooLong() async throws {
        let transport = ScriptedTransport([.respond(503, ["Retry-After": "61"])], repeatsLastStep: true)
        let response = try await pipeline(transport, Self.seeded()).send(.get())
        #expect(response.attempts.last?.stopReason == .serverDelayTooLong)
        var options = CallOptions()
        options.timeout = .seconds(30)
        let soon = ScriptedTransport([.respond(429, ["Retry-After": "40"])], repeatsLastStep: true)
        let second = try await pipeline(soon, Self.seeded()).send(.get(), options: options)
        #expect(second.attempts.last?.stopReason == .deadline)
        #expect(clock.waits.isEmpty)
    }

    @Test(
        "S-T26: a request that may have been processed is sent again only if that is harmless",
        arguments: [
            ("POST", TransportProgress.bodySent, nil, 1), ("POST", .notSent, nil, 4), ("POST", .bodySent, true, 4),
            ("GET", .bodySent, nil, 4), ("PUT", .bodySent, nil, 4), ("PATCH", .headSent, nil, 1),
            ("GET", .bodySent, false, 1),
        ] as [(String, TransportProgress, Bool?, Int)]
    )
    func idempotency(method: String, progress: TransportProgress, declared: Bool?, sends: Int) async throws {
        let code: ServiceError.Code = progress == .notSent ? .connect : .timeout
        let transport = ScriptedTransport([.fail(code, progress: progress)], repeatsLastStep: true)
        var options = CallOptions()
        options.isIdempotent = declared
        _ = try? await pipeline(transport, Self.seeded()).send(.request(method, "http://h.example/"), options: options)
        #expect(transport.sent.count == sends)
    }

    @Test("A retry condition restricts what the rules would retry")
    func condition() async throws {
        let transport = ScriptedTransport([.respond(503)], repeatsLastStep: true)
        let factory = BackoffRetrier.factory(retryCondition: { $0.response?.status.rawValue != 503 })
        let response = try await pipeline(transport, factory).send(.get())
        #expect(transport.sent.count == 1)
        #expect(response.attempts.last?.stopReason == .retrierDeclined)
    }

    @Test("S-T18: concurrent calls have separate retriers")
    func ownRetriers() async throws {
        let transport = ScriptedTransport([.respond(503)], repeatsLastStep: true)
        var rules = RetryRules()
        rules.budget = .unlimited
        let pipeline = pipeline(transport, Self.seeded(rules))
        try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<8 { group.addTask { try await pipeline.send(.get()).attempts.count } }
            for try await count in group { #expect(count == 4) }
        }
        #expect(transport.sent.count == 32)
    }

    @Test("A retry of a validation keeps its conditions, and a retry is one miss (RETRY.md 3.6)")
    func retriedValidation() async throws {
        let bench = CacheBench(
            ScriptedTransport([
                .respond(200, ["Cache-Control": "no-cache", "ETag": "\"v\""], body: "one"), .respond(503),
                .respond(304),
            ]),
            retrierFactory: AnyRetrierFactory { _ in AlwaysRetrier(delay: .zero) }
        )
        try await bench.load()
        #expect(try await bench.load() == .revalidated("one"))
        #expect(bench.sent("If-None-Match") == [nil, "\"v\"", "\"v\""])
        #expect(bench.cache.statistics.misses == 1)
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastSemantics
import HoldfastStorage
import HoldfastTesting
import Synchronization
import Testing

@testable import Holdfast

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite(
    "RETRY §3.6.2, §3.6.3, §3.6.5: a retried call is one call, and its last response counts",
    .timeLimit(.minutes(20))
)
struct RetriedCallTests {
    static func bench(
        _ steps: [ScriptedTransport.Step],
        _ change: (inout RetryRules) -> Void = { _ in }
    ) -> CacheBench {
        bench(steps, .seeded(change))
    }

    static func bench(_ steps: [ScriptedTransport.Step], _ factory: any RetrierFactory) -> CacheBench {
        CacheBench(ScriptedTransport(steps), clock: ManualClock(autoAdvances: true), retrierFactory: factory)
    }

    @Test("§3.6.2, E12: three attempts are one request, one lookup, one miss and one stored entry")
    func countsOnce() async throws {
        let factory = BackoffRetrier.Factory.seeded()
        let bench = Self.bench(
            [.respond(503), .fail(progress: .headSent), .respond(200, cacheable, body: "new")],
            factory
        )
        let recorder = HitRateRecorder(rate: 1)
        bench.cache.record(with: recorder)
        #expect(try await bench.load() == .network("new").after(3))
        #expect(recorder.requestsSeen == 1)
        let counted = bench.cache.statistics
        #expect(counted.requests == 1 && counted.misses == 1 && counted.stored == 1)
        #expect(counted.hits == 0 && counted.bypasses == 0 && counted.notStored.isEmpty)
        #expect(counted.reasons.values.reduce(0, +) == 1)
        #expect(bench.cache.store.statistics.lookups == 1)
        #expect(bench.cache.store.statistics.entriesWritten == 1)
        #expect(bench.events.events(.attemptStarted).count == 3)
        #expect(bench.events.events(.cacheDecided).count == 1)
        #expect(bench.events.events(.callStarted).count == 1)
        let url = try #require(URLRequest.get().url)
        let status = try #require(factory.governor?.status(of: url, now: bench.clock.now))
        #expect(status.counts.calls == 1 && status.counts.retries == 2)
        _ = try await bench.load()
        #expect(bench.cache.store.statistics.lookups == 2)
    }

    @Test("§3.6.2: a validation that is retried also counts once")
    func validationCountsOnce() async throws {
        let fields: HeaderFields = ["Cache-Control": "max-age=1", "ETag": "\"a\""]
        let bench = Self.bench([.respond(200, fields, body: "old"), .respond(500), .respond(502), .respond(304)])
        _ = try await bench.load()
        bench.clock.advance(by: .seconds(9))
        let before = bench.cache.store.statistics.lookups
        #expect(try await bench.load() == .revalidated("old"))
        let counted = bench.cache.statistics
        #expect(counted.requests == 2 && counted.misses == 1 && counted.revalidated == 1)
        #expect(bench.cache.store.statistics.lookups == before + 1)
    }

    @Test("§3.6.3, E12: 100 s of backoff do not age the response: its Age counts from the attempt that answered")
    func ageOfTheLastAttempt() async throws {
        let bench = Self.bench([.respond(503), .respond(200, cacheable, body: "new").delayed(by: .seconds(2))]) {
            $0.waits(.seconds(100))
        }
        let start = bench.clock.timestamp
        let response = try await bench.pipeline.send(.get())
        _ = try await response.body.collect()
        #expect(response.requestTime == start.advanced(by: .seconds(100)))
        #expect(response.responseTime == start.advanced(by: .seconds(102)))
        bench.clock.advance(by: .seconds(10))
        let hit = try await bench.pipeline.send(.get())
        #expect(hit.source == .fresh)
        #expect(hit.fields[.age] == "12")
    }

    @Test("§3.6.3: the same holds for a response that a 304 freshens after 100 s of backoff")
    func ageOfTheLastValidation() async throws {
        let fields: HeaderFields = ["Cache-Control": "max-age=60", "ETag": "\"a\""]
        let bench = Self.bench([.respond(200, fields, body: "old"), .respond(503), .respond(304, fields)]) {
            $0.waits(.seconds(100))
        }
        _ = try await bench.load()
        bench.clock.advance(by: .seconds(61))
        #expect(try await bench.load() == .revalidated("old"))
        bench.clock.advance(by: .seconds(30))
        let hit = try await bench.pipeline.send(.get())
        #expect(hit.source == .fresh && hit.fields[.age] == "30")
    }

    @Test("§3.6.5, E12: a storable 503 is not stored while the call is still being retried")
    func onlyTheFinalOne() async throws {
        let bench = Self.bench([.respond(503, cacheable, body: "no"), .respond(200, cacheable, body: "yes")])
        #expect(try await bench.load() == .network("yes").after(2))
        #expect(try await bench.load() == .fresh("yes"))
        #expect(bench.cache.store.statistics.entriesWritten == 1)
    }

    @Test(
        "§3.6.5: 429 and 425 are never stored, whatever they say (RFC 6585 §4, RFC 8470 §5.2)",
        arguments: [429, 425]
    )
    func neverStored(_ status: Int) async throws {
        let bench = Self.bench(
            Array(repeating: .respond(status, ["Cache-Control": "public, max-age=60"], body: "no"), count: 2)
        ) { $0.maxAttempts = 1 }
        for _ in 0..<2 { #expect(try await bench.load() == .network("no", status)) }
        #expect(bench.cache.store.statistics.entriesWritten == 0)
    }

    @Test(
        "§3.6.5: a stored 503 has its remaining Retry-After, also for a retrier above the cache",
        arguments: [true, false]
    )
    func storedRetryAfter(_ bySeconds: Bool) async throws {
        let clock = ManualClock(autoAdvances: true)
        let wait = bySeconds ? "120" : HTTPDate(clock.timestamp.advanced(by: .seconds(120))).description
        let busy: HeaderFields = ["Cache-Control": "max-age=60", "Retry-After": wait]
        let bench = CacheBench(
            ScriptedTransport([.respond(503, busy, body: "no"), .respond(200, cacheable, body: "yes")]),
            clock: clock
        )
        #expect(try await bench.load() == .network("no", 503))
        clock.advance(by: .seconds(20))
        let stored = try await bench.pipeline.send(.get())
        #expect(stored.source == .fresh && stored.fields[.age] == "20")
        #expect(stored.fields[.retryAfter] == (bySeconds ? "100" : wait))

        var configuration = PipelineConfiguration()
        configuration.clock = clock
        let outer = Pipeline(
            transport: bench.pipeline,
            retrierFactory: .seeded { rules in
                rules.maxServerDelay = .seconds(300)
                rules.closesGate = false
            },
            configuration: configuration
        )
        let response = try await outer.send(.get())
        #expect(response.status == .ok)
        // Twice less its Age it would be 80 s and up to 5 s of jitter.
        let waited = try #require(response.attempts.first?.delay)
        #expect(waited >= .seconds(100) && waited <= .seconds(105))
        #expect(bench.sends == 2)
    }

    @Test(
        "Complaint 6 of 12: the last response is returned unread and intact, with and without a cache",
        arguments: [true, false]
    )
    func lastResponseIntact(_ hasCache: Bool) async throws {
        var configuration = PipelineConfiguration()
        configuration.clock = ManualClock(autoAdvances: true)
        let transport = ScriptedTransport(
            (1...3).map { .stream(503, ["X-Number": "\($0)"], chunks: ["answer ", "\($0)"], length: 8) }
        )
        let pipeline = Pipeline(
            transport: transport,
            cache: hasCache ? .inMemory() : nil,
            retrierFactory: .seeded(),
            configuration: configuration
        )
        let response = try await pipeline.send(.get())
        #expect(response.status == .serviceUnavailable && response.fields["X-Number"] == "3")
        #expect(response.source == .network(attempts: 3))
        #expect(response.attempts.map(\.status?.rawValue) == [503, 503, 503])
        #expect(response.attempts.last?.stopReason == .attemptsExhausted)
        #expect(try await response.body.collect() == ByteChunk(copying: "answer 3".utf8))
    }

    @Test(
        "Complaint 6 of 12: the last error is thrown unchanged with all attempts, with and without a cache",
        arguments: [true, false]
    )
    func lastErrorIntact(_ hasCache: Bool) async throws {
        var configuration = PipelineConfiguration()
        configuration.clock = ManualClock(autoAdvances: true)
        let last = ServiceError(.connectionLost, "the last one", cause: Refused(reason: "cause"), progress: .bodySent)
        let pipeline = Pipeline(
            transport: ScriptedTransport([.respond(500), .fail(progress: .headSent), .fail(last)]),
            cache: hasCache ? .inMemory() : nil,
            retrierFactory: .seeded(),
            configuration: configuration
        )
        await #expect {
            try await pipeline.send(.get())
        } throws: { error in
            let error = error as? ServiceError
            return error?.message == "the last one" && error?.cause as? Refused == Refused(reason: "cause")
                && error?.attempts.map(\.errorCode) == [nil, .connectionLost, .connectionLost]
                && error?.attempts.map(\.status) == [.internalServerError, nil, nil]
        }
    }

    @Test("Complaint 1 of 12: a caller that refuses the status learns how long the server asked to wait")
    func refusedStatus() async throws {
        let bench = Self.bench([.respond(429, ["Retry-After": "3600"], body: "no")])
        var options = CallOptions()
        options.acceptance = .successful
        await #expect {
            try await bench.load(.get(), options)
        } throws: { error in
            let error = error as? ServiceError
            return error?.code == .unacceptableStatus && error?.retryAfter == .seconds(3_600)
        }
        #expect(bench.sends == 1 && bench.clock.waits.isEmpty)
    }
}

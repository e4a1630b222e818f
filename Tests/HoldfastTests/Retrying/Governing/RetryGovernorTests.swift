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

@Suite("The budget in a pipeline (RETRY.md §2.2, §4.4, §4.5)", .timeLimit(.minutes(20)))
struct RetryGovernorTests {
    let clock = ManualClock(autoAdvances: true)

    func pipeline(_ transport: any Transport, _ factory: any RetrierFactory, _ clock: ManualClock) -> Pipeline {
        var configuration = PipelineConfiguration()
        configuration.clock = clock
        configuration.attemptTimeout = nil
        return Pipeline(transport: transport, retrierFactory: factory, configuration: configuration)
    }

    private func url(_ text: String) throws -> URL {
        try #require(URL(string: text))
    }

    @Test("Complaint 8 of 12: a budget is on by default, per origin, and visible")
    func onByDefault() async throws {
        let transport = ScriptedTransport([.respond(503)], repeatsLastStep: true)
        let factory = BackoffRetrier.Factory.backoff()
        let pipeline = pipeline(transport, factory, clock)
        var reasons: [StopReason?] = []
        for _ in 0..<40 {
            reasons.append(try await pipeline.send(.get()).attempts.last?.stopReason)
        }
        // Three retries that fail, and what time brings; without a budget there would be 120.
        #expect(transport.sent.count < 80)
        #expect(reasons.contains(.budget))
        let status = try #require(
            factory.governor?.status(of: try url("http://origin.example/other"), now: clock.now)
        )
        #expect(status.counts.calls == 40)
        #expect(status.counts.retries == transport.sent.count - 40)
        #expect(status.counts.stops[.budget] == reasons.filter { $0 == .budget }.count)
        // Another origin is not made to pay for it.
        let other = try await pipeline.send(.get("http://other.example/"))
        #expect(other.attempts.count > 1)
    }

    @Test("A successful retry is free: if every second attempt succeeds, no call goes without its retry")
    func refunds() async throws {
        let steps = (0..<60).flatMap { _ in [ScriptedTransport.Step.respond(503), .respond(200)] }
        let transport = ScriptedTransport(steps)
        let pipeline = pipeline(transport, .backoff(), clock)
        for _ in 0..<60 { #expect(try await pipeline.send(.get()).status == .ok) }
    }

    @Test("Stale connections, 421 and 425 are free: an empty budget does not prevent them")
    func freeResends() async throws {
        var rules = RetryRules.default
        rules.budget = .ratio(0.001, reservePerSecond: 0)
        let cures: [ScriptedTransport.Step] = [
            .fail(progress: .bodySent, connectionReused: true), .respond(421), .respond(425),
        ]
        for cure in cures {
            let transport = ScriptedTransport([cure, .respond(200)])
            #expect(try await pipeline(transport, .backoff(rules), clock).send(.get()).status == .ok)
        }
        let transport = ScriptedTransport([.respond(503), .respond(200)])
        let response = try await pipeline(transport, .backoff(rules), clock).send(.get())
        #expect(response.attempts.last?.stopReason == .budget)
    }

    @Test("§4.5: a parked retry waits for a token, is sent when there is one, and gives up at its deadline")
    func parking() async throws {
        var rules = RetryRules.patient
        rules.budget = .ratio(0.001, reservePerSecond: 0.1)
        rules.backoff = Backoff(base: .milliseconds(10), cap: .milliseconds(10))
        rules.throttlingBackoff = rules.backoff
        let transport = ScriptedTransport([.respond(503), .respond(503), .respond(200)], repeatsLastStep: true)
        let response = try await pipeline(transport, .backoff(rules), clock).send(.get())
        #expect(response.status == .ok)
        // One token is there, the second one takes until the first has lived its ten seconds.
        #expect(clock.now.sinceOrigin > .seconds(1))

        let down = ScriptedTransport([.respond(503)], repeatsLastStep: true)
        let started = clock.now
        var options = CallOptions()
        options.timeout = .seconds(8)
        let late = try await pipeline(down, .backoff(rules), clock).send(.get(), options: options)
        #expect([.budget, .deadline].contains(late.attempts.last?.stopReason))
        #expect(started.duration(to: clock.now) <= .seconds(8))
    }

    @Test("Without a deadline a retry is parked for maxParking and no longer")
    func boundedParking() async throws {
        var rules = RetryRules.patient
        rules.budget = .ratio(0.001, reservePerSecond: 0)
        rules.maxParking = .seconds(3)
        let down = ScriptedTransport([.respond(503)], repeatsLastStep: true)
        let response = try await pipeline(down, .backoff(rules), clock).send(.get())
        #expect(response.attempts.last?.stopReason == .budget)
        #expect(clock.now.sinceOrigin <= .milliseconds(3_100) && clock.now.sinceOrigin > .seconds(2))
    }

    @Test("Rules of one call, within the shared budget: none turns retries off, others apply")
    func rulesOfOneCall() async throws {
        let transport = ScriptedTransport([.respond(500)], repeatsLastStep: true)
        let pipeline = pipeline(transport, .backoff(), clock)
        var options = CallOptions()
        options.retryRules = RetryRules.never
        #expect(try await pipeline.send(.get(), options: options).attempts.count == 1)
        options.retryRules = .strict
        #expect(try await pipeline.send(.get(), options: options).attempts.count == 2)
        let bare = Pipeline(transport: transport, configuration: pipeline.configuration)
        #expect(try await bare.send(.get(), options: options).attempts.count == 2)
    }

    @Test("Invalid rules of one call end it with the setting's name, before anything is sent")
    func refusedRules() async throws {
        let transport = ScriptedTransport([.respond(200)])
        var options = CallOptions()
        options.retryRules = RetryRules(maxAttempts: 0)
        do {
            _ = try await pipeline(transport, .backoff(), clock).send(.get(), options: options)
            Issue.record("the call should fail")
        } catch let error as ServiceError {
            #expect(error.code == .badRequest && error.message.contains("maxAttempts"))
        }
        #expect(transport.sent.isEmpty)
    }

    @Test("A factory for one call that has no governor uses the pipeline's")
    func factoryOfOneCall() async throws {
        var rules = RetryRules.default
        rules.budget = .ratio(0.001, reservePerSecond: 0)
        let transport = ScriptedTransport([.respond(500)], repeatsLastStep: true)
        var options = CallOptions()
        options.retrierFactory = AnyRetrierFactory { _ in AlwaysRetrier(delay: .zero) }
        let response = try await pipeline(transport, .backoff(rules), clock).send(.get(), options: options)
        #expect(response.attempts.map(\.stopReason) == [.budget])
    }

    @Test(
        "Cancelling a call in its backoff costs nothing, whether the budget pays at once or later",
        arguments: [(RetryBudget.pool, 2, 2), (.aws21, 34, 35)]
    )
    func cancelledInBackoff(budget: RetryBudget, whileItWaits: Int, whole: Int) async throws {
        let clock = ManualClock()
        var rules = RetryRules.default
        rules.budget = budget
        rules.backoff = Backoff(base: .seconds(5), jitter: .none)
        let factory = BackoffRetrier.Factory.backoff(rules)
        let transport = ScriptedTransport([.respond(500)], repeatsLastStep: true)
        let pipeline = pipeline(transport, factory, clock)
        let origin = try url("http://origin.example/")
        let call = Task { try await pipeline.send(.get()) }
        try await clock.waitForSleeps(1)
        let during = try #require(factory.governor?.status(of: origin, now: clock.now))
        call.cancel()
        await #expect(throws: CancellationError.self) { try await call.value }
        let after = try #require(factory.governor?.status(of: origin, now: clock.now))
        #expect(during.balance == whileItWaits)
        #expect(after.balance == whole)
        #expect(clock.sleeperCount == 0)
    }

    @Test("At most 1,024 origins are remembered; the idle ones used longest ago are removed, half of them at once")
    func boundedOrigins() async throws {
        let transport = ScriptedTransport { request in
            request.url?.host() == "host3.example" ? .respond(429, [.retryAfter: "100"]) : .respond(200)
        }
        let factory = BackoffRetrier.Factory.backoff()
        let pipeline = pipeline(transport, factory, clock)
        for index in 0..<1100 {
            _ = try await pipeline.send(.get("http://host\(index).example/"))
            clock.advance(by: .milliseconds(1))
        }
        let governor = try #require(factory.governor)
        #expect(governor.status(of: try url("http://host0.example/"), now: clock.now) == nil)
        #expect(governor.status(of: try url("http://host500.example/"), now: clock.now) == nil)
        #expect(governor.status(of: try url("http://host600.example/"), now: clock.now)?.counts.calls == 1)
        #expect(governor.status(of: try url("http://host1099.example/"), now: clock.now)?.counts.calls == 1)
        // What a server asked for is not forgotten for want of room.
        #expect(governor.status(of: try url("http://host3.example/"), now: clock.now)?.gateOpens != nil)
    }

    @Test("Complaint 9 of 12, E13: after an outage drained it, the budget allows retries again after a healthy minute")
    func recovers() async throws {
        let clock = clock
        let transport = ScriptedTransport { _ in .respond(clock.now.sinceOrigin < .seconds(60) ? 500 : 200) }
        let factory = BackoffRetrierTests.seeded()
        let pipeline = pipeline(transport, factory, clock)
        var isSpent = false
        while clock.now.sinceOrigin < .seconds(60) {
            isSpent = try await pipeline.send(.get()).attempts.last?.stopReason == .budget
            clock.advance(by: .milliseconds(100))
        }
        #expect(isSpent)
        for _ in 0..<600 {
            _ = try await pipeline.send(.get())
            clock.advance(by: .milliseconds(100))
        }
        let status = factory.governor?.status(of: try url("http://origin.example/"), now: clock.now)
        #expect(try #require(status).balance >= 1)
    }
}

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

@Suite("The gate (RETRY.md §3.2.5, E7)", .timeLimit(.minutes(20)))
struct GateTests {
    let clock = ManualClock()

    func pipeline(
        _ transport: ScriptedTransport,
        _ rules: RetryRules = .default,
        observers: [any EventObserver] = []
    ) -> Pipeline {
        var configuration = PipelineConfiguration()
        configuration.clock = clock
        configuration.observers = observers
        let factory = BackoffRetrier.factory(
            strategy: .exponential(rules),
            makeGenerator: { SeededGenerator(seed: 11) }
        )
        return Pipeline(transport: transport, retrierFactory: factory, configuration: configuration)
    }

    private func throttled(_ seconds: Int, _ status: Int = 429) -> ScriptedTransport.Step {
        .respond(status, [.retryAfter: "\(seconds)"])
    }

    @Test(
        "E7: after a 429 with Retry-After no call of the partition is sent before its time, and all are sent after it"
    )
    func holdsBack() async throws {
        let clock = clock
        let transport = ScriptedTransport { _ in
            .respond(clock.now.sinceOrigin < .seconds(10) ? 429 : 200, [.retryAfter: "10"])
        }
        var rules = RetryRules.default
        rules.maxAttempts = 2
        let pipeline = pipeline(transport, rules)
        let first = Task { try await pipeline.send(.get()) }
        try await clock.waitForSleeps(1)
        let others = (0..<50).map { index in Task { try await pipeline.send(.get("http://origin.example/\(index)")) } }
        try await clock.waitForSleeps(51)
        #expect(transport.sent.count == 1)
        clock.advance(by: .milliseconds(9999))
        #expect(transport.sent.count == 1)
        // Half of what was asked, 8 s at most, is the spread behind the gate.
        clock.advance(by: .milliseconds(5001))
        for task in others + [first] { #expect(try await task.value.status == .ok) }
        #expect(transport.sent.dropFirst().allSatisfy { $0.time.sinceOrigin >= .seconds(10) })
        #expect(transport.sent.count == 52)
    }

    @Test("Calls behind a gate return spread out, not at once, and never early")
    func spread() async throws {
        let transport = ScriptedTransport([throttled(8), .respond(200)], repeatsLastStep: true)
        let pipeline = pipeline(transport, .never)
        #expect(try await pipeline.send(.get()).status == .tooManyRequests)
        let tasks = (0..<40).map { _ in Task { try await pipeline.send(.get()) } }
        try await clock.waitForSleeps(40)
        #expect(clock.waits.allSatisfy { $0 >= .seconds(8) && $0 <= .seconds(12) })
        #expect(Set(clock.waits).count > 30)
        clock.advance(by: .seconds(12))
        for task in tasks { _ = try await task.value }
    }

    @Test("A call whose time is over before the gate opens fails at once, with the pause on the error")
    func failsFast() async throws {
        let transport = ScriptedTransport([throttled(30), .respond(200)], repeatsLastStep: true)
        let pipeline = pipeline(transport, .never)
        _ = try await pipeline.send(.get())
        clock.advance(by: .seconds(10))
        var options = CallOptions()
        options.timeout = .seconds(5)
        do {
            _ = try await pipeline.send(.get(), options: options)
            Issue.record("the call should fail")
        } catch let error as ServiceError {
            #expect(error.code == .throttled)
            #expect(error.retryAfter == .seconds(20))
            #expect(error.progress == .notSent)
        }
        #expect(transport.sent.count == 1 && clock.waits.isEmpty)
    }

    @Test("A pause beyond maxServerDelay is neither waited for nor shortened: the call and later ones end at once")
    func tooLong() async throws {
        let transport = ScriptedTransport([throttled(61)], repeatsLastStep: true)
        let pipeline = pipeline(transport)
        let response = try await pipeline.send(.get())
        #expect(response.attempts.last?.stopReason == .serverDelayTooLong)
        #expect(response.attempts.last?.retryAfter == .seconds(61))
        await #expect(throws: ServiceError.self) { try await pipeline.send(.get()) }
        #expect(transport.sent.count == 1 && clock.waits.isEmpty)
    }

    @Test("A gate applies to one origin and one credential")
    func partitions() async throws {
        let transport = ScriptedTransport([throttled(61), .respond(200)], repeatsLastStep: true)
        let pipeline = pipeline(transport, .never)
        _ = try await pipeline.send(.get("http://a.example/", ["Authorization": "one"]))
        #expect(try await pipeline.send(.get("http://a.example/", ["Authorization": "two"])).status == .ok)
        #expect(try await pipeline.send(.get("http://b.example/", ["Authorization": "one"])).status == .ok)
        #expect(try await pipeline.send(.get("http://a.example:8080/", ["Authorization": "one"])).status == .ok)
        await #expect(throws: ServiceError.self) {
            try await pipeline.send(.get("http://a.example/?q=1", ["Authorization": "one"]))
        }
    }

    @Test("If one endpoint says 503 with Retry-After, the others continue, and it is left alone from the second on")
    func oneEndpoint() async throws {
        let transport = ScriptedTransport { request in
            request.url?.path == "/bad" ? .respond(503, [.retryAfter: "30"]) : .respond(200)
        }
        let pipeline = pipeline(transport, .never)
        for _ in 0..<2 {
            #expect(try await pipeline.send(.get("http://a.example/bad?x")).status == .serviceUnavailable)
        }
        var options = CallOptions()
        options.timeout = .seconds(5)
        await #expect(throws: ServiceError.self) {
            try await pipeline.send(.get("http://a.example/bad"), options: options)
        }
        for number in 0..<20 { #expect(try await pipeline.send(.get("http://a.example/\(number)")).status == .ok) }
        #expect(transport.sent.count == 22 && clock.waits.isEmpty)
    }

    @Test(
        "A 429 for one endpoint: a probe of another opens the origin and wakes waiters over a tenth of a second"
    )
    func narrowed() async throws {
        let transport = ScriptedTransport { request in
            request.url?.path == "/bad" ? .respond(429, [.retryAfter: "30"]) : .respond(200)
        }
        let pipeline = pipeline(transport, .never)
        _ = try await pipeline.send(.get("http://a.example/bad"))
        let waiting = (0..<20).map { number in Task { try await pipeline.send(.get("http://a.example/\(number)")) } }
        try await clock.waitForSleeps(20)
        clock.advance(by: .milliseconds(100))
        #expect(try await pipeline.send(.get("http://a.example/probe")).status == .ok)
        try await clock.waitForSleeps(40)
        #expect(clock.waits.suffix(20).allSatisfy { $0 <= .milliseconds(100) })
        clock.advance(by: .milliseconds(100))
        for task in waiting { #expect(try await task.value.status == .ok) }
        #expect(transport.sent.count == 22)
        // It is known now that 429s are about their endpoint.
        var options = CallOptions()
        options.timeout = .seconds(5)
        await #expect(throws: ServiceError.self) {
            try await pipeline.send(.get("http://a.example/bad"), options: options)
        }
    }

    @Test("A call that cannot wait for the origin waits at most half a second for the first probe, and may be it")
    func heldForProbe() async throws {
        let transport = ScriptedTransport { request in
            request.url?.path == "/bad" ? .respond(429, [.retryAfter: "30"]) : .respond(200)
        }
        let pipeline = pipeline(transport, .never)
        _ = try await pipeline.send(.get("http://a.example/bad"))
        var options = CallOptions()
        options.timeout = .seconds(5)
        let call = Task { [options] in try await pipeline.send(.get("http://a.example/good"), options: options) }
        try await clock.waitForSleeps(1)
        #expect(clock.waits == [.milliseconds(500)])
        clock.advance(by: .milliseconds(500))
        #expect(try await call.value.status == .ok)
    }

    @Test("At most maxWaiting calls wait at a gate, and further ones fail at once")
    func bounded() async throws {
        let transport = ScriptedTransport([throttled(5), .respond(200)], repeatsLastStep: true)
        var rules = RetryRules.never
        rules.maxWaiting = 3
        let pipeline = pipeline(transport, rules)
        _ = try await pipeline.send(.get())
        let waiting = (0..<3).map { _ in Task { try await pipeline.send(.get()) } }
        try await clock.waitForSleeps(3)
        await #expect(throws: ServiceError.self) { try await pipeline.send(.get()) }
        clock.advance(by: .seconds(10))
        for task in waiting { #expect(try await task.value.status == .ok) }
    }

    @Test("Cancelling a call that waits at a gate ends it and frees its slot")
    func cancelled() async throws {
        let transport = ScriptedTransport([throttled(5), .respond(200)], repeatsLastStep: true)
        var rules = RetryRules.never
        rules.maxWaiting = 1
        let pipeline = pipeline(transport, rules)
        _ = try await pipeline.send(.get())
        let waiting = Task { try await pipeline.send(.get()) }
        try await clock.waitForSleeps(1)
        waiting.cancel()
        await #expect(throws: CancellationError.self) { try await waiting.value }
        #expect(clock.sleeperCount == 0)
        let next = Task { try await pipeline.send(.get()) }
        try await clock.waitForSleeps(2)
        clock.advance(by: .seconds(10))
        #expect(try await next.value.status == .ok)
    }

    @Test("Complaint 3 of 12: the option that turns Retry-After off also turns the gate off")
    func offSwitch() async throws {
        let transport = ScriptedTransport([throttled(61), .respond(200)], repeatsLastStep: true)
        var rules = RetryRules.never
        rules.obeysRetryAfter = false
        let pipeline = pipeline(transport, rules)
        _ = try await pipeline.send(.get())
        #expect(try await pipeline.send(.get()).status == .ok)
    }

    @Test("Complaint 6 of 12: if a gate closes during a backoff, the call keeps its last response with its body")
    func closedMeanwhile() async throws {
        let transport = ScriptedTransport { request in
            request.url?.query() == "throttled"
                ? .respond(429, [.retryAfter: "50"]) : .stream(500, chunks: ["what ", "happened"])
        }
        var rules = RetryRules.default
        rules.backoff = Backoff(base: .seconds(5), jitter: .none)
        let pipeline = pipeline(transport, rules)
        var options = CallOptions()
        options.timeout = .seconds(20)
        let call = Task { [options] in try await pipeline.send(.get(), options: options) }
        try await clock.waitForSleeps(1)
        options.retryRules = RetryRules.never
        _ = try await pipeline.send(.get("http://origin.example/a?throttled"), options: options)
        clock.advance(by: .seconds(5))
        let response = try await call.value
        #expect(response.status == .internalServerError)
        #expect(try await response.body.data() == Data("what happened".utf8))
        #expect(response.attempts.map(\.stopReason) == [.gateClosed])
        #expect(response.attempts.last?.retryAfter == .seconds(45))
        #expect(transport.sent.count == 2)
    }

    @Test("The call that was told to wait waits if the pause fits its deadline, however widely others are spread")
    func toldToWait() async throws {
        var configuration = PipelineConfiguration()
        configuration.clock = ManualClock(autoAdvances: true)
        let transport = ScriptedTransport([throttled(10), .respond(200)])
        let pipeline = Pipeline(transport: transport, retrierFactory: .default, configuration: configuration)
        var options = CallOptions()
        options.timeout = .seconds(12)
        let response = try await pipeline.send(.get(), options: options)
        #expect(response.status == .ok)
        let wait = try #require(response.attempts.first?.delay)
        #expect(wait >= .seconds(10) && wait < .seconds(12))
    }

    @Test("A gate that soon opens does not replace what the server told the call")
    func longerPause() async throws {
        let transport = ScriptedTransport { request in
            request.url?.query() == "throttled"
                ? .respond(429, [.retryAfter: "8"]) : .respond(503, [.retryAfter: "10"])
        }
        let pipeline = pipeline(transport)
        var options = CallOptions()
        options.timeout = .seconds(11)
        let call = Task { [options] in try await pipeline.send(.get(), options: options) }
        try await clock.waitForSleeps(1)
        let wait = try #require(clock.waits.first)
        clock.advance(by: .seconds(5))
        options.retryRules = RetryRules.never
        _ = try await pipeline.send(.get("http://origin.example/a?throttled"), options: options)
        clock.advance(by: wait - .seconds(5))
        let response = try await call.value
        #expect(response.attempts.map(\.stopReason) == [.gateClosed])
        #expect(response.attempts.last?.retryAfter == .seconds(10))
    }

    @Test("A pause of an hour is probed once a minute, so that a mistake does not last an hour")
    func probed() async throws {
        let clock = clock
        let transport = ScriptedTransport { _ in
            clock.now.sinceOrigin < .seconds(300) ? .respond(503, [.retryAfter: "3600"]) : .respond(200)
        }
        let pipeline = pipeline(transport, .never)
        var sent: [Duration] = []
        for _ in 0..<400 {
            let before = transport.sent.count
            _ = try? await pipeline.send(.get())
            if transport.sent.count > before { sent.append(clock.now.sinceOrigin) }
            clock.advance(by: .seconds(1))
        }
        // The second in a row closes its gate; a good probe opens it.
        #expect(Array(sent[..<min(8, sent.count)]) == [0, 1, 61, 121, 181, 241, 301, 302].map { .seconds($0) })
    }

    @Test("Complaint 2 of 12: a gate that closes repeatedly does not hold a call back forever")
    func closesAgain() async throws {
        let clock = ManualClock(autoAdvances: true)
        let transport = ScriptedTransport([throttled(20)], repeatsLastStep: true)
        var configuration = PipelineConfiguration()
        configuration.clock = clock
        let pipeline = Pipeline(transport: transport, retrierFactory: .patient, configuration: configuration)
        let response = try await pipeline.send(.get())
        #expect(response.status == .tooManyRequests)
        #expect(clock.now.sinceOrigin < .seconds(3600))
    }

    @Test("Observers are told of a closing gate and of calls that wait at it")
    func events() async throws {
        let recorder = EventRecorder()
        let transport = ScriptedTransport([throttled(5), .respond(200)], repeatsLastStep: true)
        let pipeline = pipeline(transport, .never, observers: [recorder])
        _ = try await pipeline.send(.get())
        let waiting = Task { try await pipeline.send(.get()) }
        try await clock.waitForSleeps(1)
        clock.advance(by: .seconds(10))
        _ = try await waiting.value
        #expect(recorder.events(.gateClosed).map(\.delay) == [.seconds(5)])
        #expect(recorder.events(.gateAwaited).count == 1)
    }
}

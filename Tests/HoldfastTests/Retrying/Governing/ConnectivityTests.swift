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

@Suite("Waiting for the network (RETRY.md §4.15)", .timeLimit(.minutes(20)))
struct ConnectivityTests {
    let clock = ManualClock()
    let network = ManualConnectivity(isOnline: false)

    func pipeline(_ transport: ScriptedTransport, waits: Bool = true, maxAttempts: Int = 1) -> Pipeline {
        var configuration = PipelineConfiguration()
        configuration.clock = clock
        var rules = RetryRules(maxAttempts: maxAttempts)
        rules.waitsForConnectivity = waits
        let factory = BackoffRetrier.factory(
            strategy: .exponential(rules),
            connectivity: network,
            makeGenerator: { SeededGenerator(seed: 5) }
        )
        return Pipeline(transport: transport, retrierFactory: factory, configuration: configuration)
    }

    private let offline = ScriptedTransport.Step.fail(.offline, progress: .notSent)

    @Test("Time offline costs no attempts: a call of one attempt is sent when the network is back")
    func noAttempts() async throws {
        let transport = ScriptedTransport([offline, .respond(200)])
        let pipeline = pipeline(transport)
        let call = Task { try await pipeline.send(.request("POST", "http://origin.example/")) }
        try await network.waitForWaits(1)
        clock.advance(by: .seconds(3600))
        #expect(transport.sent.count == 1)
        network.goOnline()
        try await clock.waitForSleeps(1)
        clock.advance(by: .seconds(1))
        let response = try await call.value
        #expect(response.status == .ok)
        #expect(response.attempts.count == 2)
    }

    @Test("Defect of Alamofire's retrier, §4.15: waiting calls return spread over a second, not at once")
    func released() async throws {
        let transport = ScriptedTransport(Array(repeating: offline, count: 30) + [.respond(200)], repeatsLastStep: true)
        let pipeline = pipeline(transport)
        let calls = (0..<30).map { _ in Task { try await pipeline.send(.get()) } }
        try await network.waitForWaits(30)
        network.goOnline()
        try await clock.waitForSleeps(30)
        #expect(Set(clock.waits).count > 25)
        #expect(clock.waits.allSatisfy { $0 < .seconds(1) })
        clock.advance(by: .seconds(1))
        for call in calls { #expect(try await call.value.status == .ok) }
    }

    @Test("The wait ends at the deadline, and on cancellation")
    func bounded() async throws {
        let transport = ScriptedTransport([offline], repeatsLastStep: true)
        let pipeline = pipeline(transport)
        var options = CallOptions()
        options.timeout = .seconds(5)
        let late = Task { [options] in try await pipeline.send(.get(), options: options) }
        try await network.waitForWaits(1)
        try await clock.waitForSleeps(1)
        clock.advance(by: .seconds(5))
        await #expect(throws: ServiceError.self) { try await late.value }
        let left = Task { try await pipeline.send(.get()) }
        try await network.waitForWaits(2)
        left.cancel()
        await #expect(throws: CancellationError.self) { try await left.value }
        #expect(clock.sleeperCount == 0)
    }

    @Test("Sends that failed offline are not among the attempts that a retrier sees")
    func uncounted() async throws {
        struct Counting: Retrier {
            let seen: CountWatch
            func retry(_ request: URLRequest, after attempt: FailedAttempt, context: CallContext) async -> RetryDecision
            {
                #expect(attempt.number == 1)
                seen.increment()
                return .retryNow
            }
        }
        let seen = CountWatch()
        let transport = ScriptedTransport([offline, .respond(500), .respond(200)])
        let pipeline = pipeline(transport, maxAttempts: 2)
        var options = CallOptions()
        options.retrierFactory = AnyRetrierFactory { _ in Counting(seen: seen) }
        let call = Task { [options] in try await pipeline.send(.get(), options: options) }
        try await network.waitForWaits(1)
        network.goOnline()
        try await clock.waitForSleeps(1)
        clock.advance(by: .seconds(1))
        #expect(try await call.value.status == .ok)
        #expect(seen.count == 1)
    }

    @Test("Without the rule, or online, a failed connection is an attempt like any other", arguments: [true, false])
    func notWaited(online: Bool) async throws {
        if online { network.goOnline() }
        let transport = ScriptedTransport([offline], repeatsLastStep: true)
        let pipeline = pipeline(transport, waits: online)
        await #expect(throws: ServiceError.self) { try await pipeline.send(.get()) }
        #expect(transport.sent.count == 1)
    }

    @Test("However often the network goes, what was not sent is not among the most sends of a call")
    func manyTimes() async throws {
        let transport = ScriptedTransport(Array(repeating: offline, count: 7) + [.respond(500), .respond(200)])
        var configuration = PipelineConfiguration()
        configuration.clock = clock
        var rules = RetryRules(backoff: Backoff(base: .zero), maxAttempts: 2)
        rules.waitsForConnectivity = true
        let factory = BackoffRetrier.factory(strategy: .exponential(rules), connectivity: network)
        let pipeline = Pipeline(transport: transport, retrierFactory: factory, configuration: configuration)
        let call = Task { try await pipeline.send(.get()) }
        for time in 1...7 {
            try await network.waitForWaits(time)
            network.goOnline()
            try await clock.waitForSleeps(time)
            if time < 7 { network.goOffline() }
            clock.advance(by: .seconds(1))
        }
        #expect(try await call.value.status == .ok)
    }

    @Test("A call that began offline is counted once, as any other")
    func counted() async throws {
        let transport = ScriptedTransport([offline, .respond(200)])
        var configuration = PipelineConfiguration()
        configuration.clock = clock
        var rules = RetryRules(maxAttempts: 1)
        rules.waitsForConnectivity = true
        let factory = BackoffRetrier.factory(strategy: .exponential(rules), connectivity: network)
        let pipeline = Pipeline(transport: transport, retrierFactory: factory, configuration: configuration)
        let request = URLRequest.get()
        let call = Task { try await pipeline.send(request) }
        try await network.waitForWaits(1)
        network.goOnline()
        try await clock.waitForSleeps(1)
        clock.advance(by: .seconds(1))
        _ = try await call.value
        let url = try #require(request.url)
        #expect(factory.governor?.status(of: url, now: clock.now)?.counts.calls == 1)
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastSemantics
import HoldfastTesting
import Testing

@testable import Holdfast

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("E10: cancellation at every suspension point", .timeLimit(.minutes(20)))
struct CancellationFuzzTests {
    /// A factory to be tried.
    struct Subject: Sendable, CustomStringConvertible {
        let description: String
        let make: @Sendable () -> any RetrierFactory
    }

    static let subjects: [Subject] = [
        Subject(description: "default") { .backoff(RetryRules(maxAttempts: 6)) },
        Subject(description: "patient") { .patient },
        Subject(description: "hedging and a circuit") {
            var rules = RetryRules(maxAttempts: 6)
            rules.circuit = CircuitRules()
            rules.hedging = HedgeRules()
            return .backoff(rules)
        },
        Subject(description: "a retrier of one's own") { AnyRetrierFactory { _ in AlwaysRetrier(delay: .seconds(5)) } },
    ]

    @Test(
        "CancellationError without moving the clock, and no sleeper, token or slot is left",
        arguments: subjects,
        [true, false]
    )
    func everywhere(_ subject: Subject, _ enforcesDeadline: Bool) async throws {
        // All runs share the factory, an hour apart: budgets fill up meanwhile, but places that were lost stay so.
        let factory = subject.make()
        let whole = try await run(factory, enforcesDeadline, cancelledAt: nil, hour: 0)
        #expect(whole.count > 20)
        for point in 1...whole.count {
            _ = try await run(factory, enforcesDeadline, cancelledAt: point, hour: point)
        }
        let last = try await run(factory, enforcesDeadline, cancelledAt: nil, hour: whole.count + 1)
        #expect(last.places.filter { $0 == "send" } == whole.places.filter { $0 == "send" })
    }

    private func run(
        _ factory: any RetrierFactory,
        _ enforcesDeadline: Bool,
        cancelledAt point: Int?,
        hour: Int
    ) async throws -> CancellationProbe {
        let probe = CancellationProbe(target: point)
        let begin = MonotonicInstant(sinceOrigin: .seconds(3600 * hour))
        let clock = ProbedClock(probe, at: begin)
        let log = HookLog()
        var configuration = PipelineConfiguration()
        configuration.clock = clock
        configuration.prepare = [{ _, _ in try await probe.pass("prepare") }]
        let tokens = AuthorizationRefresh.bearer(token: "t0", for: ["http://origin.example"]) { _ in
            try await probe.pass("refresh")
            try await clock.sleep(until: clock.now.advanced(by: .seconds(1)))
            return "t1"
        }
        configuration.authorization = tokens
        var hook = RecordingHook(name: "hook", log: log)
        hook.schedule = { _, _ in
            try await probe.pass("schedule")
            return nil
        }
        hook.success = { _, _ in try await probe.pass("success") }
        let pipeline = Pipeline(
            transport: ProbedTransport(probe, script: [503, 401, 0, 429], enforcesDeadline: enforcesDeadline),
            retrierFactory: factory,
            hooks: [hook],
            configuration: configuration
        )
        let source = ProbedSource(probe, chunks: 3)
        let start = CountWatch()
        let call = Task {
            try await start.wait(for: 1)
            return try await pipeline.send(.request("PUT", "http://origin.example/a"), body: .oneShot(source))
        }
        probe.watch(call)
        start.increment()
        let outcome = await call.result
        let note: Comment = "cancelled at \(point ?? 0) of \(probe.places)"
        if let point {
            // Where timers race, a run may be shorter than the one that was counted.
            if probe.count >= point {
                #expect(throws: CancellationError.self, note) { try outcome.get() }
                let endings = log.entries.filter { !$0.hasSuffix("schedule") }
                #expect(endings.count <= 1, note)
                #expect(!log.entries.contains { $0.contains("failure") }, note)
            }
        } else {
            #expect(try outcome.get().status == .ok)
        }
        #expect(await settles { clock.manual.sleeperCount == 0 }, note)
        #expect(await settles { tokens.waiterCount == 0 }, note)
        #expect(await settles { source.isOver || !probe.places.contains("read") }, note)
        #expect(clock.now == begin, note)
        if let url = URLRequest.get().url, let status = factory.governor?.status(of: url, now: begin) {
            #expect(status.waiting == 0, note)
        }
        return probe
    }

    /// Whether a condition comes true within a bounded number of scheduler turns.
    private func settles(_ condition: () -> Bool) async -> Bool {
        for _ in 0..<20_000 {
            if condition() { return true }
            await Task.yield()
        }
        return false
    }
}

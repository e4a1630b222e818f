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

@Suite("Cancellation is prompt at every suspension point", .timeLimit(.minutes(20)))
struct CancellationTests {
    enum Point: String, CaseIterable, Sendable {
        case schedule, send, backoff, success, failure, prepare, deadlineRace
    }

    @Test(
        "S-T24, S-T25: hooks that passed the call on get onCancel, and nothing is sent again",
        arguments: Point.allCases
    )
    func cancel(at point: Point) async throws {
        let log = HookLog()
        let clock = ManualClock()
        let reached = CountWatch()
        let never = CountWatch()
        let stall: @Sendable () async throws -> Void = {
            reached.increment()
            try await never.wait(for: 1)
        }
        var configuration = PipelineConfiguration()
        configuration.clock = clock
        let outer = RecordingHook(name: "outer", log: log)
        var inner = RecordingHook(name: "inner", log: log)
        var steps: [ScriptedTransport.Step] = [.respond()]
        var expected = ["outer.schedule", "inner.schedule"]
        var expectedSends = 1
        switch point {
        case .schedule:
            inner.schedule = { _, _ in
                try await stall()
                return nil
            }
            expected += ["outer.cancel"]
            expectedSends = 0
        case .prepare:
            configuration.prepare = [{ _, _ in try await stall() }]
            expected += ["inner.cancel", "outer.cancel"]
            expectedSends = 0
        case .send, .deadlineRace:
            steps = [.silence]
            expected += ["inner.cancel", "outer.cancel"]
        case .backoff:
            steps = [.respond(503), .respond()]
            expected += ["inner.cancel", "outer.cancel"]
        case .success:
            inner.success = { _, _ in try await stall() }
            expected += ["inner.success(200, network(attempts: 1))", "outer.cancel"]
        case .failure:
            steps = [.fail(progress: .bodySent)]
            inner.failure = { _ in
                try? await stall()
                return nil
            }
            expected += ["inner.failure", "outer.cancel"]
        }
        let scripted = ScriptedTransport(steps)
        let transport: any Transport = point == .deadlineRace ? RacedTransport(inner: scripted) : scripted
        let retrier: any Retrier = point == .failure ? NilRetrier() : AlwaysRetrier(delay: .seconds(10))
        let pipeline = Pipeline(
            transport: transport,
            retrierFactory: AnyRetrierFactory { _ in retrier },
            hooks: [outer, inner],
            configuration: configuration
        )
        let call = Task { try await pipeline.send(.get()) }
        switch point {
        case .schedule, .prepare, .success, .failure: try await reached.wait(for: 1)
        case .send, .deadlineRace: try await scripted.waitForSends(1)
        case .backoff: try await clock.waitForSleeps(1)
        }
        call.cancel()
        await #expect(throws: CancellationError.self) { try await call.value }
        #expect(log.entries == expected)
        #expect(scripted.sent.count == expectedSends)
    }

    @Test("A call whose task is cancelled before it starts sends nothing")
    func cancelledBefore() async throws {
        let transport = ScriptedTransport([.respond()])
        let pipeline = Pipeline(transport: transport)
        let gate = CountWatch()
        let call = Task {
            try? await gate.wait(for: 1)
            return try await pipeline.send(.get())
        }
        call.cancel()
        await #expect(throws: CancellationError.self) { try await call.value }
        #expect(transport.sent.isEmpty)
    }

    @Test(
        "A cancelled call asks no retrier, whatever its transport threw, and throws CancellationError",
        arguments: [true, false]
    )
    func noRetrier(_ hasHook: Bool) async throws {
        let entered = CountWatch()
        let transport = ScriptedTransport { _ in
            entered.increment()
            while !Task.isCancelled { await Task.yield() }
            throw URLError(.cancelled)
        }
        let pipeline = Pipeline(
            transport: transport,
            retrierFactory: AnyRetrierFactory { _ in
                Issue.record("a cancelled call asked for a retrier")
                return NilRetrier()
            },
            hooks: hasHook ? [RecordingHook(name: "a", log: HookLog())] : []
        )
        let call = Task { try await pipeline.send(.get()) }
        try await entered.wait(for: 1)
        call.cancel()
        await #expect(throws: CancellationError.self) { try await call.value }
    }

    @Test("A call that is cancelled while its retrier decides is not sent again")
    func cancelledInRetrier() async throws {
        struct Thinking: Retrier {
            let entered: CountWatch
            func retry(_ request: URLRequest, after attempt: FailedAttempt, context: CallContext) async -> RetryDecision
            {
                entered.increment()
                while !Task.isCancelled { await Task.yield() }
                return .stop(.retrierDeclined)
            }
        }
        let entered = CountWatch()
        let transport = ScriptedTransport([.respond(503)], repeatsLastStep: true)
        let pipeline = Pipeline(
            transport: transport,
            retrierFactory: AnyRetrierFactory { _ in Thinking(entered: entered) }
        )
        let call = Task { try await pipeline.send(.get()) }
        try await entered.wait(for: 1)
        call.cancel()
        await #expect(throws: CancellationError.self) { try await call.value }
        #expect(transport.sent.count == 1)
    }

    @Test("S-T25: a transport's CancellationError is never retried and is not a failure")
    func transportCancels() async throws {
        let log = HookLog()
        let transport = ScriptedTransport([.fail(CancellationError()), .respond()])
        let pipeline = Pipeline(
            transport: transport,
            retrierFactory: AnyRetrierFactory { _ in AlwaysRetrier(delay: .zero) },
            hooks: [RecordingHook(name: "a", log: log)]
        )
        await #expect(throws: CancellationError.self) { try await pipeline.send(.get()) }
        #expect(log.entries == ["a.schedule", "a.cancel"])
        #expect(transport.sent.count == 1)
    }
}

/// A transport that leaves deadlines to the pipeline.
struct RacedTransport: Transport {
    let inner: ScriptedTransport

    var enforcesDeadline: Bool { false }

    func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
        try await inner.send(request, body: body, context: context)
    }
}

/// A retrier that always wants another attempt.
struct AlwaysRetrier: Retrier {
    var delay: Duration
    var allowsMultipleRetries: Bool { true }

    func retry(_ request: URLRequest, after attempt: FailedAttempt, context: CallContext) async -> RetryDecision {
        .retry(after: delay)
    }
}

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

@Suite("The attempt loop and time", .timeLimit(.minutes(20)))
struct AttemptTimeTests {
    let bench = AttemptBench()

    @Test("A wait that cannot end in an attempt is not started: a delay beyond the deadline ends the call at once")
    func noUselessWait() async throws {
        let transport = ScriptedTransport([.respond(503, body: "busy"), .respond()])
        var options = CallOptions()
        options.timeout = .seconds(5)
        let response = try await bench.pipeline(transport, AlwaysRetrier(delay: .seconds(5))).send(
            .get(),
            options: options
        )
        #expect(response.status == .serviceUnavailable)
        #expect(response.attempts.last?.stopReason == .deadline)
        #expect(bench.clock.waits.isEmpty)
    }

    @Test("An attempt without a response ends with the attempt timeout and is retried until the deadline")
    func attemptTimeout() async throws {
        let transport = ScriptedTransport([.silence, .silence, .silence])
        var options = CallOptions()
        options.timeout = .seconds(25)
        let pipeline = bench.pipeline(transport, AlwaysRetrier(delay: .zero)) { $0.attemptTimeout = .seconds(10) }
        do {
            _ = try await pipeline.send(.get(), options: options)
            Issue.record("the call should fail")
        } catch let error as ServiceError {
            #expect(error.code == .deadlineExceeded)
            #expect((error.cause as? ServiceError)?.code == .timeout)
        }
        #expect(transport.sent.map(\.time.sinceOrigin) == [.zero, .seconds(10), .seconds(20)])
        #expect(bench.clock.now.sinceOrigin == .seconds(25))
    }

    @Test("A deadline that passed before anything was sent sends nothing, and no attempt is recorded or reported")
    func deadlineInHooks() async throws {
        let transport = ScriptedTransport([.respond()])
        let recorder = EventRecorder()
        var slow = RecordingHook(name: "slow", log: HookLog())
        slow.schedule = { _, context in
            try await context.clock.sleep(until: bench.clock.now.advanced(by: .seconds(9)))
            return nil
        }
        var options = CallOptions()
        options.timeout = .seconds(5)
        let pipeline = bench.pipeline(transport, hooks: [slow]) { $0.observers = [recorder] }
        let error = await #expect(throws: ServiceError.self) {
            try await pipeline.send(.get(), options: options)
        }
        #expect(error?.code == .deadlineExceeded && error?.progress == .notSent)
        #expect(error?.attempts == [])
        #expect(recorder.events(.attemptStarted).isEmpty && recorder.events(.attemptEnded).isEmpty)
        #expect(transport.sent.isEmpty)
    }

    @Test("A retry that its deadline prevents is not an attempt: the call ends with the last response")
    func preventedRetry() async throws {
        let transport = ScriptedTransport([.respond(503, body: "busy"), .respond()])
        let recorder = EventRecorder()
        let slow: PrepareStep = { _, context in
            guard context.attempt > 1 else { return }
            try await context.clock.sleep(until: context.clock.now.advanced(by: .seconds(9)))
        }
        var options = CallOptions()
        options.timeout = .seconds(5)
        let pipeline = bench.pipeline(transport) { configuration in
            configuration.prepare = [slow]
            configuration.observers = [recorder]
        }
        let response = try await pipeline.send(.get(), options: options)
        #expect(response.status == .serviceUnavailable)
        #expect(try await response.body.collect().array == Array("busy".utf8))
        #expect(response.attempts.map(\.stopReason) == [.deadline])
        #expect(recorder.events(.attemptStarted).count == 1 && recorder.events(.attemptEnded).count == 1)
        #expect(recorder.events(.retriesStopped).map(\.stopReason) == [.deadline])
        #expect(transport.sent.count == 1)
    }

    @Test("A transport that leaves deadlines to the pipeline is raced, and its late response is dropped")
    func racedTransport() async throws {
        let clock = ManualClock()
        var configuration = PipelineConfiguration()
        configuration.clock = clock
        configuration.attemptTimeout = .seconds(3)
        let transport = DeafTransport()
        let pipeline = Pipeline(transport: transport, configuration: configuration)
        let call = Task { try await pipeline.send(.get()) }
        try await transport.entered.wait(for: 1)
        try await clock.waitForSleeps(1)
        clock.advance(by: .seconds(3))
        do {
            _ = try await call.value
            Issue.record("the call should fail")
        } catch let error as ServiceError {
            #expect(error.code == .timeout)
        }
        transport.gate.increment()
        try await transport.left.wait(for: 1)
    }

    @Test("Request and response time are those of the attempt that answered")
    func timesOfTheAnsweringAttempt() async throws {
        let transport = ScriptedTransport([.respond(503), .respond().delayed(by: .seconds(2))])
        let start = bench.clock.timestamp
        let response = try await bench.pipeline(transport, AlwaysRetrier(delay: .seconds(30))).send(.get())
        #expect(response.requestTime == start.advanced(by: .seconds(30)))
        #expect(response.responseTime == start.advanced(by: .seconds(32)))
    }
}

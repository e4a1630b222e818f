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

@Suite("HedgedTransport", .timeLimit(.minutes(20)))
struct HedgedTransportTests {
    let clock = ManualClock()
    let bench = HedgeBench()

    @Test(
        "A late response is hedged: the second copy wins, with its own time and a record of each; the first is cancelled"
    )
    func hedged() async throws {
        let transport = ScriptedTransport([.silence, .respond(body: "second")])
        let hedged = HedgedTransport(transport, rules: bench.rules)
        let start = clock.timestamp
        let call = Task { try await bench.send(hedged, clock) }
        try await clock.waitForSleeps(2)
        clock.advance(by: .milliseconds(10))
        let response = try await call.value
        #expect(try await response.body.collect().array == Array("second".utf8))
        #expect(response.requestTime == start.advanced(by: .milliseconds(10)))
        #expect(response.attempts.map(\.number) == [1, 2])
        #expect(response.attempts.map(\.status) == [nil, .ok])
        #expect(response.attempts.map(\.start.sinceOrigin) == [.zero, .milliseconds(10)])
        while clock.sleeperCount > 0 { await Task.yield() }
        #expect(transport.sent.count == 2)
    }

    @Test("If the first copy arrives first after all, its response and time count; the second is cancelled")
    func firstWins() async throws {
        let transport = ScriptedTransport([.respond(201).delayed(by: .milliseconds(15)), .silence])
        let hedged = HedgedTransport(transport, rules: bench.rules)
        let start = clock.timestamp
        let call = Task { try await bench.send(hedged, clock) }
        try await clock.waitForSleeps(2)
        clock.advance(by: .milliseconds(10))
        try await clock.waitForSleeps(3)
        clock.advance(by: .milliseconds(5))
        let response = try await call.value
        #expect(response.status.rawValue == 201)
        #expect(response.requestTime == start)
        while clock.sleeperCount > 0 { await Task.yield() }
    }

    @Test("A response in time is one send, and leaves no timer behind")
    func inTime() async throws {
        let transport = ScriptedTransport([.respond()], repeatsLastStep: true)
        let hedged = HedgedTransport(transport, rules: bench.rules)
        let response = try await bench.send(hedged, clock)
        #expect(response.attempts.isEmpty)
        while clock.sleeperCount > 0 { await Task.yield() }
        #expect(transport.sent.count == 1)
    }

    @Test("Before enough was measured nothing waits beside the request; then the percentile applies")
    func learning() async throws {
        let clock = ManualClock(autoAdvances: true)
        let transport = ScriptedTransport([.respond().delayed(by: .milliseconds(50))], repeatsLastStep: true)
        var rules = HedgeRules()
        rules.maxCopies = 2
        let hedged = HedgedTransport(transport, rules: rules)
        for _ in 0..<100 { _ = try await bench.send(hedged, clock) }
        #expect(clock.waits == [Duration](repeating: .milliseconds(50), count: 100))
    }

    @Test("Only a request that may be sent twice is hedged", arguments: HedgeBench.cases)
    func eligibility(each: HedgeBench.Case) async throws {
        let transport = ScriptedTransport([.respond().delayed(by: .milliseconds(30))], repeatsLastStep: true)
        let hedged = HedgedTransport(transport, rules: bench.rules)
        let call = Task { try await bench.send(hedged, clock, each) }
        try await clock.waitForSleeps(each.isHedged ? 2 : 1)
        clock.advance(by: .milliseconds(10))
        if each.isHedged { try await clock.waitForSleeps(3) }
        clock.advance(by: .milliseconds(20))
        _ = try await call.value
        #expect(transport.sent.count == (each.isHedged ? 2 : 1))
        #expect(Set(transport.sent.map { $0.request.value(forHTTPHeaderField: "Idempotency-Key") }).count == 1)
    }

    @Test("E10: the caller's cancellation ends all copies at once")
    func cancellation() async throws {
        let quick = [ScriptedTransport.Step](repeating: .respond(), count: 5)
        let transport = ScriptedTransport(quick + [.silence], repeatsLastStep: true)
        var rules = bench.rules
        rules.maxCopies = 5
        let hedged = HedgedTransport(transport, rules: rules)
        for _ in quick { _ = try await bench.send(hedged, clock) }
        let call = Task { try await bench.send(hedged, clock) }
        for copy in 1...3 {
            while transport.sent.count < quick.count + copy || clock.sleeperCount < copy + 1 { await Task.yield() }
            clock.advance(by: .milliseconds(10))
        }
        try await transport.waitForSends(quick.count + 4)
        call.cancel()
        await #expect(throws: CancellationError.self) { _ = try await call.value }
        while clock.sleeperCount > 0 { await Task.yield() }
        #expect(transport.sent.count == quick.count + 4)
    }

    @Test("A transport that ignores cancellation delays neither the winner nor a cancelled caller")
    func stubborn() async throws {
        let transport = StubbornTransport()
        let hedged = HedgedTransport(transport, rules: bench.rules)
        let call = Task { try await bench.send(hedged, clock) }
        try await clock.waitForSleeps(1)
        clock.advance(by: .milliseconds(10))
        let response = try await call.value
        #expect(try await response.body.collect().array == Array("2".utf8))
        transport.release()
        while transport.discarded.count < 1 { await Task.yield() }
        #expect(transport.discarded.count == 1)

        transport.isSilent.increment()
        let cancelled = Task { try await bench.send(hedged, clock) }
        try await transport.sends.wait(for: 3)
        cancelled.cancel()
        await #expect(throws: CancellationError.self) { _ = try await cancelled.value }
        transport.release()
    }

    @Test("A failure before any hedge is returned at once: resending is the retrier's job", arguments: [503, 500])
    func earlyFailure(status: Int) async throws {
        let transport = ScriptedTransport([.respond(status)], repeatsLastStep: true)
        let response = try await bench.send(HedgedTransport(transport, rules: bench.rules), clock)
        #expect(response.status.rawValue == status)
        #expect(transport.sent.count == 1)
    }

    @Test(
        "A failure that a retry may cure waits for the other copy; a final response, such as 404, wins",
        arguments: [503, 404]
    )
    func lateFailure(status: Int) async throws {
        let transport = ScriptedTransport([.respond().delayed(by: .milliseconds(20)), .respond(status)])
        let hedged = HedgedTransport(transport, rules: bench.rules)
        let call = Task { try await bench.send(hedged, clock) }
        try await clock.waitForSleeps(2)
        clock.advance(by: .milliseconds(10))
        try await transport.waitForSends(2)
        if status == 503 { clock.advance(by: .milliseconds(10)) }
        #expect(try await call.value.status.rawValue == (status == 503 ? 200 : 404))
        while clock.sleeperCount > 0 { await Task.yield() }
    }

    @Test("If all copies fail, the last failure is thrown, with a record of each")
    func allFail() async throws {
        let transport = ScriptedTransport([
            .fail(.connectionLost, progress: .bodySent).delayed(by: .milliseconds(20)), .respond(503),
        ])
        let hedged = HedgedTransport(transport, rules: bench.rules)
        let call = Task { try await bench.send(hedged, clock) }
        try await clock.waitForSleeps(2)
        clock.advance(by: .milliseconds(10))
        try await transport.waitForSends(2)
        clock.advance(by: .milliseconds(10))
        let attempts: [AttemptRecord]
        do {
            attempts = try await call.value.attempts
        } catch let error as ServiceError {
            #expect(error.code == .connectionLost)
            attempts = error.attempts
        }
        #expect(attempts.map(\.status) == [nil, .serviceUnavailable])
        #expect(attempts.map(\.errorCode) == [.connectionLost, nil])
    }

    @Test("A 409 to the second copy of a keyed request means that the first is in progress: no response, no third copy")
    func conflict() async throws {
        var rules = bench.rules
        rules.maxCopies = 3
        let quick = [ScriptedTransport.Step](repeating: .respond(), count: 3)
        let transport = ScriptedTransport(
            quick + [.respond().delayed(by: .milliseconds(20)), .respond(409), .respond()]
        )
        let hedged = HedgedTransport(transport, rules: rules)
        for _ in quick { _ = try await bench.send(hedged, clock) }
        let keyed = HedgeBench.Case("POST", key: "\"k\"", isHedged: true)
        let call = Task { try await bench.send(hedged, clock, keyed) }
        while transport.sent.count < 4 || clock.sleeperCount < 2 { await Task.yield() }
        clock.advance(by: .milliseconds(10))
        try await transport.waitForSends(5)
        for _ in 0..<50 { await Task.yield() }
        clock.advance(by: .milliseconds(10))
        #expect(try await call.value.status == .ok)
        #expect(transport.sent.count == 5)
    }

    @Test("An error never wins against a copy in flight, whichever copy fails", arguments: [1, 2])
    func localFailure(failing: Int) async throws {
        let failure = ScriptedTransport.Step.fail(.badRequest, progress: .notSent)
        let transport = ScriptedTransport(
            failing == 1
                ? [failure.delayed(by: .milliseconds(15)), .respond(body: "good").delayed(by: .milliseconds(20))]
                : [.respond(body: "good").delayed(by: .milliseconds(30)), failure]
        )
        let hedged = HedgedTransport(transport, rules: bench.rules)
        let call = Task { try await bench.send(hedged, clock) }
        try await clock.waitForSleeps(2)
        clock.advance(by: .milliseconds(10))
        try await transport.waitForSends(2)
        if failing == 1 { try await clock.waitForSleeps(3) }
        for _ in 0..<50 { await Task.yield() }
        clock.advance(by: .milliseconds(5))
        for _ in 0..<50 { await Task.yield() }
        clock.advance(by: .milliseconds(15))
        let response = try await call.value
        #expect(try await response.body.collect().array == Array("good".utf8))
        #expect(response.attempts.map(\.errorCode) == (failing == 1 ? [.badRequest, nil] : [nil, .badRequest]))
    }

    @Test("Content of which a copy has read more than is kept is not sent a second time")
    func spentContent() async throws {
        let transport = SlowUpload()
        let hedged = HedgedTransport(transport, rules: bench.rules)
        let body = RequestBody.oneShot(ChunkList(["12345678", "9"])).teed(limit: 4)
        let call = Task {
            try await bench.send(hedged, clock, HedgeBench.Case("PUT", body: body, isHedged: false))
        }
        try await clock.waitForSleeps(2)
        clock.advance(by: .milliseconds(10))
        for _ in 0..<50 { await Task.yield() }
        clock.advance(by: .milliseconds(20))
        #expect(try await call.value.status == .ok)
        #expect(transport.sends.count == 1)
    }

    @Test("The body of a failed copy is abandoned")
    func failedBody() async throws {
        let discarded = CountWatch()
        let transport = NumberedTransport { number, context in
            if number == 1 { try await context.clock.sleep(until: MonotonicInstant(sinceOrigin: .milliseconds(20))) }
            let body = ResponseBody(ChunkList(["x"], discarded: discarded))
            return Response(status: number == 1 ? .ok : .serviceUnavailable, body: body)
        }
        let hedged = HedgedTransport(transport, rules: bench.rules)
        let call = Task { try await bench.send(hedged, clock) }
        try await clock.waitForSleeps(2)
        clock.advance(by: .milliseconds(10))
        try await discarded.wait(for: 1)
        clock.advance(by: .milliseconds(10))
        #expect(try await call.value.status == .ok)
        #expect(discarded.count == 1)
    }

    @Test("A copy that could not arrive before the deadline is not sent, and no timer runs for it")
    func deadline() async throws {
        let transport = ScriptedTransport([.silence])
        let hedged = HedgedTransport(transport, rules: bench.rules)
        let call = Task { try await bench.send(hedged, clock, deadline: .milliseconds(10)) }
        try await clock.waitForSleeps(1)
        #expect(clock.sleeperCount == 1)
        clock.advance(by: .milliseconds(10))
        do {
            _ = try await call.value
        } catch let error as ServiceError {
            #expect(error.code == .timeout)
        }
        #expect(transport.sent.count == 1)
    }

    @Test("Each copy tells the server the time that is left when it is sent")
    func timeLeft() async throws {
        var rules = RetryRules()
        rules.hedging = bench.rules
        rules.timeLeftField = "X-Time-Left"
        var configuration = PipelineConfiguration()
        configuration.clock = clock
        let transport = ScriptedTransport([.silence, .respond()])
        let pipeline = Pipeline(transport: transport, retrierFactory: .backoff(rules), configuration: configuration)
        var options = CallOptions()
        options.timeout = .seconds(30)
        let call = Task { [options] in try await pipeline.send(.get(), options: options) }
        try await clock.waitForSleeps(2)
        clock.advance(by: .milliseconds(10))
        #expect(try await call.value.status == .ok)
        let left = transport.sent.map { $0.request.value(forHTTPHeaderField: "X-Time-Left") }
        #expect(left == ["30000", "29990"])
    }

    @Test("An observer is told of each hedge")
    func event() async throws {
        let recorder = EventRecorder()
        var configuration = PipelineConfiguration()
        configuration.clock = clock
        configuration.attemptTimeout = nil
        configuration.observers = [recorder]
        let transport = ScriptedTransport([.silence, .respond()])
        let hedged = HedgedTransport(transport, rules: bench.rules)
        let pipeline = Pipeline(transport: hedged, configuration: configuration)
        let call = Task { try await pipeline.send(.get()) }
        try await clock.waitForSleeps(2)
        clock.advance(by: .milliseconds(10))
        _ = try await call.value
        #expect(recorder.events(.hedgeStarted).map(\.delay) == [.milliseconds(10)])
    }

    @Test("With many tasks, some cancelled: one response a call, and every other body is discarded")
    func stress() async throws {
        var rules = bench.rules
        rules.fixedDelay = .zero
        rules.maxCopies = 3
        let transport = CountingTransport()
        let hedged = HedgedTransport(transport, rules: rules)
        let answers = CountWatch()
        await withTaskGroup(of: Void.self) { group in
            for worker in 0..<20 {
                group.addTask {
                    for round in 0..<15 {
                        let call = Task { try await bench.send(hedged, clock) }
                        if (worker + round) % 5 == 0 { call.cancel() }
                        guard let response = try? await call.value else { continue }
                        _ = try? await response.body.collect()
                        answers.increment()
                    }
                }
            }
        }
        while transport.ended.count < transport.started.count { await Task.yield() }
        #expect(transport.read.count == answers.count)
        while transport.read.count + transport.discarded.count < transport.made.count { await Task.yield() }
        #expect(transport.read.count + transport.discarded.count == transport.made.count)
        #expect(transport.made.count > answers.count)
    }

    @Test("If all copies fail, one that forbids retries is the answer, whatever pause another asks for")
    func forbiddenRetry() async throws {
        var governed = RetryRules()
        governed.vendorHints = [.shouldRetry]
        let transport = ScriptedTransport([
            .respond(503, ["x-should-retry": "false"]).delayed(by: .milliseconds(20)),
            .respond(503, ["Retry-After": "1"]),
        ])
        let hedged = HedgedTransport(transport, rules: bench.rules, governor: RetryGovernor(governed))
        let call = Task { try await bench.send(hedged, clock) }
        try await clock.waitForSleeps(2)
        clock.advance(by: .milliseconds(10))
        try await transport.waitForSends(2)
        for _ in 0..<50 { await Task.yield() }
        clock.advance(by: .milliseconds(10))
        #expect(try await call.value.fields["x-should-retry"] == "false")
    }

    @Test("If all copies fail, the pause that one of them was asked for is not lost")
    func askedPause() async throws {
        let transport = ScriptedTransport([
            .fail(.connectionLost, progress: .bodySent).delayed(by: .milliseconds(20)),
            .respond(429, ["Retry-After": "30"]),
        ])
        let hedged = HedgedTransport(transport, rules: bench.rules)
        let call = Task { try await bench.send(hedged, clock) }
        try await clock.waitForSleeps(2)
        clock.advance(by: .milliseconds(10))
        try await transport.waitForSends(2)
        for _ in 0..<50 { await Task.yield() }
        clock.advance(by: .milliseconds(10))
        let response = try await call.value
        #expect(response.status == .tooManyRequests && response.fields[.retryAfter] == "30")
        #expect(response.attempts.map(\.errorCode) == [.connectionLost, nil])
    }
}

/// A transport that reads the content and then takes 30 ms to answer.
private final class SlowUpload: Transport {
    let sends = CountWatch()

    func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
        sends.increment()
        if case .factory(_, let make) = body.form {
            let source = try await make()
            while try await source.next() != nil {}
        }
        try await context.clock.sleep(until: context.clock.now.advanced(by: .milliseconds(30)))
        return Response(status: .ok)
    }
}

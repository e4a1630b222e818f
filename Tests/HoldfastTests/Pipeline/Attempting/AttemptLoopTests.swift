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

@Suite("The attempt loop", .timeLimit(.minutes(20)))
struct AttemptLoopTests {
    let clock = ManualClock(autoAdvances: true)

    func pipeline(
        _ transport: any Transport,
        _ retrier: any Retrier = AlwaysRetrier(delay: .seconds(1)),
        hooks: [any ServiceHook] = [],
        _ change: (inout PipelineConfiguration) -> Void = { _ in }
    ) -> Pipeline {
        var configuration = PipelineConfiguration()
        configuration.clock = clock
        change(&configuration)
        return Pipeline(
            transport: transport,
            retrierFactory: AnyRetrierFactory { _ in retrier },
            hooks: hooks,
            configuration: configuration
        )
    }

    @Test("S-T14, law 3: fail, fail, succeed: three sends, one onSchedule, one onSuccess, no onFailure")
    func retriesBeneathHooks() async throws {
        let log = HookLog()
        let transport = ScriptedTransport([.respond(503), .fail(progress: .bodySent), .respond(200)])
        let message = RecordingHook(name: "m", log: log, scope: .message)
        let response = try await pipeline(transport, hooks: [RecordingHook(name: "c", log: log), message]).send(.get())
        #expect(transport.sent.count == 3)
        #expect(transport.sent.map(\.attempt) == [1, 2, 3])
        #expect(
            log.entries == [
                "c.schedule", "m.schedule", "m.success(200, network(attempts: 3))",
                "c.success(200, network(attempts: 3))",
            ]
        )
        #expect(response.attempts.map(\.status?.rawValue) == [503, nil, 200])
        #expect(response.attempts.map(\.delay) == [.seconds(1), .seconds(1), nil])
        #expect(clock.waits == [.seconds(1), .seconds(1)])
    }

    @Test("S-T15: a retrier that gives up: the caller gets the last outcome, hooks one failure")
    func lastError() async throws {
        struct Twice: Retrier {
            var allowsMultipleRetries: Bool { true }
            func retry(_ request: URLRequest, after attempt: FailedAttempt, context: CallContext) async -> RetryDecision
            {
                attempt.number <= 2 ? .retry(after: .zero) : .stop(.retrierDeclined)
            }
        }
        let log = HookLog()
        let transport = ScriptedTransport([
            .fail(.timeout, progress: .bodySent), .fail(.connect, progress: .notSent),
            .fail(.connectionLost, progress: .headSent),
        ])
        let hooks = [RecordingHook(name: "a", log: log)]
        do {
            _ = try await pipeline(transport, Twice(), hooks: hooks).send(.get())
            Issue.record("the call should fail")
        } catch let error as ServiceError {
            #expect(error.code == .connectionLost)
            #expect(error.attempts.count == 3)
            #expect(error.attempts.last?.stopReason == .retrierDeclined)
        }
        #expect(log.entries == ["a.schedule", "a.failure"])
    }

    @Test("Where retries give up on responses, the last response comes back with its body")
    func lastResponse() async throws {
        let transport = ScriptedTransport([.respond(500, body: "first"), .respond(500, body: "second")])
        struct Once: Retrier {
            func retry(_ request: URLRequest, after attempt: FailedAttempt, context: CallContext) async -> RetryDecision
            {
                .retry(after: .zero)
            }
        }
        let response = try await pipeline(transport, Once()).send(.get())
        #expect(response.status == .internalServerError)
        #expect(try await response.body.collect() == ByteChunk(copying: "second".utf8))
    }

    @Test("S-T16: without allowsMultipleRetries a retrier is asked once, and the second failure is final")
    func singleRetry() async throws {
        let asked = CountWatch()
        struct Once: Retrier {
            let asked: CountWatch
            func retry(_ request: URLRequest, after attempt: FailedAttempt, context: CallContext) async -> RetryDecision
            {
                asked.increment()
                return .retry(after: .zero)
            }
        }
        let transport = ScriptedTransport([.respond(503), .respond(502), .respond(200)])
        let response = try await pipeline(transport, Once(asked: asked)).send(.get())
        #expect(response.status.rawValue == 502)
        #expect(transport.sent.count == 2)
        #expect(asked.count == 1)
    }

    @Test("S-T17, law 3: each attempt is prepared anew, so a refreshed token is used and onSuccess sees it")
    func preparedPerAttempt() async throws {
        let seen = HookLog()
        var watcher = RecordingHook(name: "a", log: HookLog())
        watcher.success = { _, request in seen.add(request.value(forHTTPHeaderField: "Authorization") ?? "none") }
        let transport = ScriptedTransport([.respond(401), .respond(200)])
        let pipeline = pipeline(transport, hooks: [watcher]) { configuration in
            configuration.prepare = [
                { request, context in
                    request.setValue("Bearer \(context.attempt)", forHTTPHeaderField: "Authorization")
                }
            ]
        }
        _ = try await pipeline.send(.get())
        #expect(
            transport.sent.map { $0.request.value(forHTTPHeaderField: "Authorization") } == ["Bearer 1", "Bearer 2"]
        )
        #expect(seen.entries == ["Bearer 2"])
    }

    @Test(
        "S-T18: a factory makes one retrier for each call that fails, on its first failure, and none for one that succeeds"
    )
    func lazyFactory() async throws {
        let made = CountWatch()
        let factory = AnyRetrierFactory { _ in
            made.increment()
            return AlwaysRetrier(delay: .zero)
        }
        let transport = ScriptedTransport([
            .respond(200), .respond(503), .respond(503), .respond(200), .respond(503), .respond(200),
        ])
        let pipeline = Pipeline(transport: transport, retrierFactory: factory)
        _ = try await pipeline.send(.get())
        #expect(made.count == 0)
        _ = try await pipeline.send(.get())
        #expect(made.count == 1)
        _ = try await pipeline.send(.get())
        #expect(made.count == 2)
    }

    @Test("A prepare step that throws ends the call with its error: nothing was sent, nothing is retried")
    func throwingPrepare() async throws {
        let runs = CountWatch()
        let transport = ScriptedTransport([.respond()])
        let pipeline = pipeline(transport) { configuration in
            configuration.prepare = [
                { _, _ in
                    runs.increment()
                    throw Refused(reason: "no token")
                }
            ]
        }
        await #expect(throws: Refused(reason: "no token")) { try await pipeline.send(.get()) }
        #expect(runs.count == 1)
        #expect(transport.sent.isEmpty)
    }

    @Test("S-T19: without a factory there is exactly one send", arguments: [429, 500, 503])
    func neverRetries(_ status: Int) async throws {
        let transport = ScriptedTransport([.respond(status)])
        let response = try await Pipeline(transport: transport).send(.get())
        #expect(response.status.rawValue == status)
        #expect(transport.sent.count == 1)
        #expect(response.attempts.last?.stopReason == .retrierDeclined)
    }

    @Test("A one-shot body is sent once, whatever the retrier says, and the failure is the original one")
    func oneShotBody() async throws {
        let transport = ScriptedTransport([.fail(progress: .bodySent), .respond()])
        let body = RequestBody.oneShot(OneChunk("x"))
        do {
            _ = try await pipeline(transport).send(.request("PUT", "http://origin.example/a"), body: body)
            Issue.record("the call should fail")
        } catch let error as ServiceError {
            #expect(error.code == .connectionLost)
            #expect(error.attempts.last?.stopReason == .notReplayable)
        }
        #expect(transport.sent.count == 1)
    }

    @Test("A one-shot body that nobody began to read is sent by the second attempt; a half-read one is not")
    func untouchedOneShotBody() async throws {
        for readsFirst in [false, true] {
            let scripted = ScriptedTransport([.respond()])
            let transport = RefusingOnce(inner: scripted, readsFirst: readsFirst)
            let request = URLRequest.request("PUT", "http://origin.example/a")
            let response = try? await pipeline(transport).send(request, body: .oneShot(OneChunk("x")))
            #expect((response?.status == .ok) == !readsFirst)
            #expect(scripted.sent.map(\.body) == (readsFirst ? [] : [ByteChunk(copying: "x".utf8)]))
        }
    }

    @Test("A factory body is made anew for each attempt, byte for byte")
    func factoryBody() async throws {
        let transport = ScriptedTransport([.fail(progress: .bodySent), .respond()])
        let body = RequestBody.factory { OneChunk("hello") }
        _ = try await pipeline(transport).send(.request("PUT", "http://origin.example/a"), body: body)
        #expect(transport.sent.map(\.body) == [ByteChunk(copying: "hello".utf8), ByteChunk(copying: "hello".utf8)])
    }

    @Test("No wait that cannot end in an attempt: a delay beyond the deadline ends the call at once")
    func noUselessWait() async throws {
        let transport = ScriptedTransport([.respond(503, body: "busy"), .respond()])
        var options = CallOptions()
        options.timeout = .seconds(5)
        let response = try await pipeline(transport, AlwaysRetrier(delay: .seconds(5))).send(.get(), options: options)
        #expect(response.status == .serviceUnavailable)
        #expect(response.attempts.last?.stopReason == .deadline)
        #expect(clock.waits.isEmpty)
    }

    @Test("An attempt that gets no answer ends with the attempt's timeout and is retried until the deadline")
    func attemptTimeout() async throws {
        let transport = ScriptedTransport([.silence, .silence, .silence])
        var options = CallOptions()
        options.timeout = .seconds(25)
        let pipeline = pipeline(transport, AlwaysRetrier(delay: .zero)) { $0.attemptTimeout = .seconds(10) }
        do {
            _ = try await pipeline.send(.get(), options: options)
            Issue.record("the call should fail")
        } catch let error as ServiceError {
            #expect(error.code == .deadlineExceeded)
            #expect((error.cause as? ServiceError)?.code == .timeout)
        }
        #expect(transport.sent.map(\.time.sinceOrigin) == [.zero, .seconds(10), .seconds(20)])
        #expect(clock.now.sinceOrigin == .seconds(25))
    }

    @Test("A deadline that passed before anything was sent sends nothing")
    func deadlineInHooks() async throws {
        let transport = ScriptedTransport([.respond()])
        let clock = clock
        var slow = RecordingHook(name: "slow", log: HookLog())
        slow.schedule = { _, context in
            try await context.clock.sleep(until: clock.now.advanced(by: .seconds(9)))
            return nil
        }
        var options = CallOptions()
        options.timeout = .seconds(5)
        await #expect(throws: ServiceError.self) {
            try await pipeline(transport, hooks: [slow]).send(.get(), options: options)
        }
        #expect(transport.sent.isEmpty)
    }

    @Test("A transport that leaves deadlines to the pipeline is raced, and its late answer is dropped")
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
        let start = clock.timestamp
        let response = try await pipeline(transport, AlwaysRetrier(delay: .seconds(30))).send(.get())
        #expect(response.requestTime == start.advanced(by: .seconds(30)))
        #expect(response.responseTime == start.advanced(by: .seconds(32)))
    }

    @Test("Interim responses are handed up to the caller and the observers")
    func interim() async throws {
        let heads = [ResponseHead(status: StatusCode(rawValue: 103), fields: ["Link": "</a.css>"])]
        let recorder = EventRecorder()
        let seen = HookLog()
        var options = CallOptions()
        options.onInterimResponse = { head in seen.add("\(head.status.rawValue) \(head.fields["Link"] ?? "")") }
        let pipeline = pipeline(ScriptedTransport([.respond().after(interim: heads)])) { $0.observers = [recorder] }
        _ = try await pipeline.send(.get(), options: options)
        #expect(seen.entries == ["103 </a.css>"])
        #expect(
            recorder.names == [.callStarted, .attemptStarted, .interimResponse, .attemptEnded, .callEnded]
        )
    }

    @Test("An acceptance is judged above the message hooks and below the call hooks")
    func acceptance() async throws {
        let log = HookLog()
        let hooks = [RecordingHook(name: "call", log: log), RecordingHook(name: "message", log: log, scope: .message)]
        var options = CallOptions()
        options.acceptance = .successful
        do {
            _ = try await pipeline(ScriptedTransport([.respond(404)]), NilRetrier(), hooks: hooks).send(
                .get(),
                options: options
            )
            Issue.record("the call should fail")
        } catch let error as ServiceError {
            #expect(error.code == .unacceptableStatus)
            #expect(error.response?.status == .notFound)
        }
        #expect(
            log.entries == [
                "call.schedule", "message.schedule", "message.success(404, network(attempts: 1))", "call.failure",
            ]
        )
    }

    @Test(
        "S-T13: a 2xx that is refused by the acceptance: no retry by default, one onFailure, no onSuccess for call hooks"
    )
    func refusedSuccess() async throws {
        let log = HookLog()
        var options = CallOptions()
        options.acceptance = Acceptance { _ in throw Refused(reason: "does not decode") }
        let transport = ScriptedTransport([.respond(200, body: "{")], repeatsLastStep: true)
        let pipeline = pipeline(transport, hooks: [RecordingHook(name: "call", log: log)])
        await #expect(throws: Refused(reason: "does not decode")) { try await pipeline.send(.get(), options: options) }
        #expect(log.entries == ["call.schedule", "call.failure"])
        #expect(transport.sent.count == 1)
    }

    @Test("On opt-in an acceptance judges each attempt, so a bad 2xx is retried")
    func acceptancePerAttempt() async throws {
        var acceptance = Acceptance { response in
            let bytes = try await response.body.collect()
            response.body = ResponseBody(bytes)
            if bytes == ByteChunk(copying: "bad".utf8) { throw Refused(reason: "bad") }
        }
        acceptance.judgesAttempts = true
        var options = CallOptions()
        options.acceptance = acceptance
        let transport = ScriptedTransport([.respond(200, body: "bad"), .respond(200, body: "good")])
        let response = try await pipeline(transport).send(.get(), options: options)
        #expect(try await response.body.collect() == ByteChunk(copying: "good".utf8))
        #expect(transport.sent.count == 2)
    }

    @Test("Pipelines nest: the outer deadline and options hold inside, and the inner pipeline makes its own attempts")
    func nesting() async throws {
        let transport = ScriptedTransport([.respond(503), .respond(200)])
        let inner = pipeline(transport, AlwaysRetrier(delay: .seconds(1)))
        let outer = pipeline(inner, NilRetrier())
        let response = try await outer.send(.get())
        #expect(response.status == .ok)
        #expect(transport.sent.count == 2)

        let silent = ScriptedTransport([.silence])
        var options = CallOptions()
        options.timeout = .seconds(4)
        await #expect(throws: ServiceError.self) {
            try await pipeline(pipeline(silent, NilRetrier()), NilRetrier()).send(.get(), options: options)
        }
        #expect(clock.waits.last == .seconds(4))
    }
}

/// A source of one chunk.
final class OneChunk: ByteSource {
    private let rest: Mutex<ByteChunk?>

    init(_ text: String) {
        rest = Mutex(ByteChunk(copying: text.utf8))
    }

    func next() async throws -> ByteChunk? {
        rest.withLock { rest in
            defer { rest = nil }
            return rest
        }
    }

    func cancel() {}
}

/// Heeds neither deadline nor cancellation: answers when its gate opens, whatever happens meanwhile.
struct DeafTransport: Transport {
    let entered = CountWatch()
    let gate = CountWatch()
    let left = CountWatch()

    func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
        entered.increment()
        let gate = gate
        try await Task.detached { try await gate.wait(for: 1) }.value
        left.increment()
        return Response(status: .ok)
    }
}

/// Cannot connect at first; may have begun to read the body by then.
struct RefusingOnce: Transport {
    let inner: ScriptedTransport
    let readsFirst: Bool
    let attempts = CountWatch()

    var enforcesDeadline: Bool { true }

    func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
        attempts.increment()
        guard attempts.count == 1 else { return try await inner.send(request, body: body, context: context) }
        if readsFirst, case .oneShot(_, let source) = body.form { _ = try await source.next() }
        throw ServiceError(.connect, "refused", progress: .notSent)
    }
}

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
    let bench = AttemptBench()

    @Test("S-T14, law 3: fail, fail, succeed: three sends, one onSchedule, one onSuccess, no onFailure")
    func retriesBeneathHooks() async throws {
        let log = HookLog()
        let transport = ScriptedTransport([.respond(503), .fail(progress: .bodySent), .respond(200)])
        let message = RecordingHook(name: "m", log: log, scope: .message)
        let response = try await bench.pipeline(transport, hooks: [RecordingHook(name: "c", log: log), message]).send(
            .get()
        )
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
        #expect(bench.clock.waits == [.seconds(1), .seconds(1)])
    }

    @Test("S-T15: if a retrier gives up, the caller gets the last outcome and hooks one failure")
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
            _ = try await bench.pipeline(transport, Twice(), hooks: hooks).send(.get())
            Issue.record("the call should fail")
        } catch let error as ServiceError {
            #expect(error.code == .connectionLost)
            #expect(error.attempts.count == 3)
            #expect(error.attempts.last?.stopReason == .retrierDeclined)
        }
        #expect(log.entries == ["a.schedule", "a.failure"])
    }

    @Test("If retries give up on responses, the last response is returned with its body")
    func lastResponse() async throws {
        let transport = ScriptedTransport([.respond(500, body: "first"), .respond(500, body: "second")])
        struct Once: Retrier {
            func retry(_ request: URLRequest, after attempt: FailedAttempt, context: CallContext) async -> RetryDecision
            {
                .retry(after: .zero)
            }
        }
        let response = try await bench.pipeline(transport, Once()).send(.get())
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
        let response = try await bench.pipeline(transport, Once(asked: asked)).send(.get())
        #expect(response.status.rawValue == 502)
        #expect(transport.sent.count == 2)
        #expect(asked.count == 1)
    }

    @Test("S-T17, law 3: each attempt is prepared again, so a refreshed token is used and onSuccess sees it")
    func preparedPerAttempt() async throws {
        let seen = HookLog()
        var watcher = RecordingHook(name: "a", log: HookLog())
        watcher.success = { _, request in seen.add(request.value(forHTTPHeaderField: "Authorization") ?? "none") }
        let transport = ScriptedTransport([.respond(401), .respond(200)])
        let pipeline = bench.pipeline(transport, hooks: [watcher]) { configuration in
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
        "S-T18: a factory makes one retrier for each failing call, on its first failure, and none for a successful one"
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

    @Test("If a prepare step throws, the call ends with its error: nothing is sent or retried")
    func throwingPrepare() async throws {
        let runs = CountWatch()
        let transport = ScriptedTransport([.respond()])
        let pipeline = bench.pipeline(transport) { configuration in
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
            _ = try await bench.pipeline(transport).send(.request("PUT", "http://origin.example/a"), body: body)
            Issue.record("the call should fail")
        } catch let error as ServiceError {
            #expect(error.code == .connectionLost)
            #expect(error.attempts.last?.stopReason == .notReplayable)
        }
        #expect(transport.sent.count == 1)
    }

    @Test("A one-shot body that was not read is sent by the second attempt; a half-read one is not")
    func untouchedOneShotBody() async throws {
        for readsFirst in [false, true] {
            let scripted = ScriptedTransport([.respond()])
            let transport = RefusingOnce(inner: scripted, readsFirst: readsFirst)
            let request = URLRequest.request("PUT", "http://origin.example/a")
            let response = try? await bench.pipeline(transport).send(request, body: .oneShot(OneChunk("x")))
            #expect((response?.status == .ok) == !readsFirst)
            #expect(scripted.sent.map(\.body) == (readsFirst ? [] : [ByteChunk(copying: "x".utf8)]))
        }
    }

    @Test("A factory body is made again for each attempt, byte for byte")
    func factoryBody() async throws {
        let transport = ScriptedTransport([.fail(progress: .bodySent), .respond()])
        let body = RequestBody.factory { OneChunk("hello") }
        _ = try await bench.pipeline(transport).send(.request("PUT", "http://origin.example/a"), body: body)
        #expect(transport.sent.map(\.body) == [ByteChunk(copying: "hello".utf8), ByteChunk(copying: "hello".utf8)])
    }

    @Test("Interim responses are passed to the caller and the observers")
    func interim() async throws {
        let heads = [ResponseHead(status: StatusCode(rawValue: 103), fields: ["Link": "</a.css>"])]
        let recorder = EventRecorder()
        let seen = HookLog()
        var options = CallOptions()
        options.onInterimResponse = { head in seen.add("\(head.status.rawValue) \(head.fields["Link"] ?? "")") }
        let pipeline = bench.pipeline(ScriptedTransport([.respond().after(interim: heads)])) {
            $0.observers = [recorder]
        }
        _ = try await pipeline.send(.get(), options: options)
        #expect(seen.entries == ["103 </a.css>"])
        #expect(
            recorder.names == [.callStarted, .attemptStarted, .interimResponse, .attemptEnded, .callEnded]
        )
    }

    @Test("Pipelines nest: the outer deadline and options apply inside, and the inner pipeline makes its own attempts")
    func nesting() async throws {
        let transport = ScriptedTransport([.respond(503), .respond(200)])
        let inner = bench.pipeline(transport, AlwaysRetrier(delay: .seconds(1)))
        let outer = bench.pipeline(inner, NilRetrier())
        let response = try await outer.send(.get())
        #expect(response.status == .ok)
        #expect(transport.sent.count == 2)

        let silent = ScriptedTransport([.silence])
        var options = CallOptions()
        options.timeout = .seconds(4)
        await #expect(throws: ServiceError.self) {
            try await bench.pipeline(bench.pipeline(silent, NilRetrier()), NilRetrier()).send(.get(), options: options)
        }
        #expect(bench.clock.waits.last == .seconds(4))
    }

    @Test("Without a retrier, the record still says what the failure proved and what the server asked for")
    func explainedWithoutRules() async throws {
        let response = try await Pipeline(transport: ScriptedTransport([.respond(429, [.retryAfter: "7"])])).send(
            .get()
        )
        #expect(response.attempts.map(\.retryClass) == [.throttled])
        #expect(response.attempts.map(\.retryAfter) == [.seconds(7)])
    }

    @Test("A pipeline without a retrier says retrier-declined, which the troubleshooting page explains")
    func noRetrier() async throws {
        let response = try await Pipeline(transport: ScriptedTransport([.respond(503)])).send(.get())
        #expect(response.attempts.last?.stopReason == .retrierDeclined)
    }
}

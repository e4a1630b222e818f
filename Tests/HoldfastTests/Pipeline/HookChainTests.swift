// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastTesting
import Synchronization
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("Law 1: one final moment for each hook that passed a call on", .timeLimit(.minutes(20)))
struct HookChainTests {
    let log = HookLog()

    func hook(_ name: String) -> RecordingHook {
        RecordingHook(name: name, log: log)
    }

    @Test("S-T11: hooks are called down in order and up in reverse, before the caller's await returns")
    func successOrder() async throws {
        let transport = ScriptedTransport([.respond(body: "x")])
        let pipeline = Pipeline(transport: transport, hooks: [hook("a"), hook("b"), hook("c")])
        let response = try await pipeline.send(.get())
        #expect(
            log.entries == [
                "a.schedule", "b.schedule", "c.schedule",
                "c.success(200, network(attempts: 1))", "b.success(200, network(attempts: 1))",
                "a.success(200, network(attempts: 1))",
            ]
        )
        #expect(response.source == .network(attempts: 1))
    }

    @Test("S-T11: onSuccess gets the request that was sent, prepare steps included")
    func successSeesSentRequest() async throws {
        var configuration = PipelineConfiguration()
        configuration.prepare = [{ request, _ in request.setValue("1", forHTTPHeaderField: "X-Prepared") }]
        let seen = HookLog()
        var watcher = hook("a")
        watcher.success = { _, request in seen.add(request.value(forHTTPHeaderField: "X-Prepared") ?? "none") }
        let pipeline = Pipeline(
            transport: ScriptedTransport([.respond()]),
            hooks: [watcher],
            configuration: configuration
        )
        _ = try await pipeline.send(.get())
        #expect(seen.entries == ["1"])
    }

    @Test(
        "S-T6, S-T36: an answering hook ends the way down; those above get onSuccess with the source, the others nothing"
    )
    func answeringHook() async throws {
        let transport = ScriptedTransport([])
        var answering = hook("b")
        answering.schedule = { _, _ in Response(status: .ok, source: .fresh) }
        let factory = AnyRetrierFactory { _ in
            Issue.record("a retrier was made for a call that was answered")
            return NilRetrier()
        }
        let pipeline = Pipeline(
            transport: transport,
            retrierFactory: factory,
            hooks: [hook("a"), answering, hook("c")]
        )
        let response = try await pipeline.send(.get())
        #expect(log.entries == ["a.schedule", "b.schedule", "a.success(200, fresh)"])
        #expect(transport.sent.isEmpty)
        #expect(response.url == URLRequest.get().url)
    }

    @Test("S-T12: a transport failure reaches every hook once, in reverse, and the caller")
    func failure() async throws {
        let transport = ScriptedTransport([.fail(progress: .bodySent)])
        let pipeline = Pipeline(transport: transport, hooks: [hook("a"), hook("b")])
        await #expect(throws: ServiceError.self) { try await pipeline.send(.get()) }
        #expect(log.entries == ["a.schedule", "b.schedule", "b.failure", "a.failure"])
        #expect(transport.sent.count == 1)
    }

    @Test("S-T12: a 500 without a retrier: one send, and with an acceptance one onFailure, no onSuccess")
    func serverError() async throws {
        let transport = ScriptedTransport([.respond(500)], repeatsLastStep: true)
        var options = CallOptions()
        options.acceptance = .successful
        let pipeline = Pipeline(transport: transport, hooks: [hook("a")])
        await #expect(throws: ServiceError.self) { try await pipeline.send(.get(), options: options) }
        #expect(log.entries == ["a.schedule", "a.failure"])
        #expect(transport.sent.count == 1)
    }

    @Test("A body is abandoned if a hook refuses its response")
    func refusedBody() async throws {
        var refusing = hook("a")
        refusing.success = { _, _ in throw Refused() }
        let recorder = EventRecorder()
        var configuration = PipelineConfiguration()
        configuration.observers = [recorder]
        let kept = Mutex<ResponseBody?>(nil)
        var keeping = hook("b")
        keeping.success = { response, _ in
            let body = response.body
            kept.withLock { $0 = body }
        }
        let transport = ScriptedTransport([.stream(chunks: ["a", "b"])])
        let pipeline = Pipeline(transport: transport, hooks: [refusing, keeping], configuration: configuration)
        await #expect(throws: Refused.self) { try await pipeline.send(.get()) }
        #expect(recorder.events(.bodyEnded).count == 1)
        #expect(kept.withLock { $0 } != nil)
    }

    @Test("If a hook throws in onSchedule, hooks above get onFailure, itself and those below nothing")
    func throwingInSchedule() async throws {
        var refusing = hook("b")
        refusing.schedule = { _, _ in throw Refused() }
        let transport = ScriptedTransport([])
        let pipeline = Pipeline(transport: transport, hooks: [hook("a"), refusing, hook("c")])
        await #expect(throws: Refused.self) { try await pipeline.send(.get()) }
        #expect(log.entries == ["a.schedule", "b.schedule", "a.failure"])
        #expect(transport.sent.isEmpty)
    }

    @Test(
        "If a hook throws in onSuccess, hooks above see a failure, and it gets no second final moment"
    )
    func throwingInSuccess() async throws {
        var refusing = hook("b")
        refusing.success = { _, _ in throw Refused() }
        let pipeline = Pipeline(transport: ScriptedTransport([.respond()]), hooks: [hook("a"), refusing, hook("c")])
        await #expect(throws: Refused.self) { try await pipeline.send(.get()) }
        #expect(
            log.entries == [
                "a.schedule", "b.schedule", "c.schedule",
                "c.success(200, network(attempts: 1))", "b.success(200, network(attempts: 1))", "a.failure",
            ]
        )
    }

    @Test("A response from onFailure makes the outcome a success for the hooks above it")
    func answeringFailure() async throws {
        var rescuing = hook("b")
        rescuing.failure = { _ in Response(status: .ok, source: .stale) }
        let pipeline = Pipeline(
            transport: ScriptedTransport([.fail(progress: .notSent)]),
            hooks: [hook("a"), rescuing, hook("c")]
        )
        let response = try await pipeline.send(.get())
        #expect(response.source == .stale)
        #expect(log.entries.suffix(3) == ["c.failure", "b.failure", "a.success(200, stale)"])
    }

    @Test("A body that fails later is an event, not a second final moment")
    func bodyFailure() async throws {
        let recorder = EventRecorder()
        var configuration = PipelineConfiguration()
        configuration.observers = [recorder]
        let broken = ServiceError(.connectionLost, "scripted", progress: .bytesReceived)
        let pipeline = Pipeline(
            transport: ScriptedTransport([.stream(chunks: ["ab", "c"], failure: broken)]),
            hooks: [hook("a")],
            configuration: configuration
        )
        let response = try await pipeline.send(.get())
        await #expect(throws: ServiceError.self) { try await response.body.collect() }
        #expect(log.entries == ["a.schedule", "a.success(200, network(attempts: 1))"])
        let ends = recorder.events(.bodyEnded)
        #expect(ends.count == 1)
        #expect(ends.first?.bytes == 3)
        #expect((ends.first?.error as? ServiceError)?.code == .connectionLost)
    }

    @Test("A hook's state belongs to one call and one hook")
    func hookState() async throws {
        struct Mark: Sendable { let text: String }
        var writer = hook("a")
        writer.schedule = { _, context in
            context[Mark.self] = Mark(text: "a")
            return nil
        }
        var reader = hook("b")
        let seen = HookLog()
        reader.schedule = { _, context in
            seen.add(context[Mark.self]?.text ?? "nothing")
            return nil
        }
        let pipeline = Pipeline(transport: ScriptedTransport([.respond()]), hooks: [writer, reader])
        _ = try await pipeline.send(.get())
        #expect(seen.entries == ["nothing"])
    }
}

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

@Suite("Moments that a hook does not implement are not called", .timeLimit(.minutes(20)))
struct IdleMomentsTests {
    let log = HookLog()

    private func call(_ pipeline: Pipeline) async {
        _ = try? await pipeline.send(.get())
    }

    private func pipeline(
        _ hooks: [any ServiceHook],
        _ step: ScriptedTransport.Step = .respond()
    ) -> Pipeline {
        Pipeline(transport: ScriptedTransport([step], repeatsLastStep: true), hooks: hooks)
    }

    @Test("It knows each moment of the first 64 hooks separately")
    func table() {
        let idle = IdleMoments()
        let all = (0..<70).flatMap { [(IdleMoments.Moment.schedule, $0), (.success, $0)] }
        #expect(all.allSatisfy { !idle.isIdle($0.0, index: $0.1) })
        for (moment, index) in [
            (IdleMoments.Moment.schedule, 0), (.success, 5), (.schedule, 63), (.success, 64), (.success, 69),
        ] {
            idle.note(moment, index: index)
            idle.note(moment, index: index)
        }
        let known = all.filter { idle.isIdle($0.0, index: $0.1) }.map { "\($0.0) \($0.1)" }
        #expect(known == ["schedule 0", "success 5", "schedule 63"])
    }

    @Test("A default is recorded for the type and moment that it ran for, once")
    func taken() {
        var context = CallContext()
        func takes(_ moment: IdleMoments.Moment, _ hook: any ServiceHook) -> Bool {
            context.takesDefault(moment, of: hook)
        }
        #expect(takes(.schedule, Bare()) == false)
        context.noteDefault(.schedule, of: Bare.self)
        #expect(takes(.schedule, Bare()) == true)
        #expect(takes(.schedule, Bare()) == false)
        context.noteDefault(.schedule, of: Bare.self)
        #expect(takes(.success, Bare()) == false)
        #expect(takes(.schedule, Bare()) == false)
        context.noteDefault(.success, of: Bare.self)
        #expect(takes(.success, Forwarding(Bare(), log)) == false)
    }

    @Test("Implemented moments are called each time, whichever others are defaults")
    func called() async {
        let (schedules, endings) = (OnlySchedule(log), OnlySuccess(log))
        let pipeline = pipeline([schedules, endings, Bare(), OnlyFailure(log)])
        for _ in 0..<3 { await call(pipeline) }
        #expect(log.entries == ["schedule", "success", "schedule", "success", "schedule", "success"])
    }

    @Test("A default runs in the first call only")
    func passedBy() async {
        // The chain names each hook that it calls in the context; one that is not called is not named.
        let last = SharedValue(-1)
        var first = RecordingHook(name: "first", log: log)
        first.schedule = { _, context in
            last.set(context.currentHook)
            return nil
        }
        let names = SharedValue<[Int]>([])
        let transport = NamingTransport { context in names.set(names.value + [context.currentHook]) }
        let pipeline = Pipeline(transport: transport, hooks: [first, Bare(), Bare()])
        for _ in 0..<3 { await call(pipeline) }
        #expect(last.value == 0)
        // In the first call the defaults of the hooks below ran; in the others nothing but the first hook's own.
        #expect(names.value == [2, 0, 0])
    }

    @Test("A hook that forwards its moments to one with defaults is still called")
    func forwarding() async {
        let pipeline = pipeline([Forwarding(Bare(), log)])
        for _ in 0..<3 { await call(pipeline) }
        #expect(log.entries == times(3, ["forward schedule", "forward success"]))
    }

    @Test("So is one that forwards to a hook of its own type that is also in the chain")
    func forwardingOwnKind() async {
        let inner = Forwarding(Forwarding(Bare(), log), log)
        let pipeline = pipeline([Forwarding(inner, log), Forwarding(Bare(), log), Bare()])
        for _ in 0..<2 { await call(pipeline) }
        // Three deep and one, on the way down and on the way up, in each call.
        #expect(log.entries.count == 16)
    }

    @Test("A forwarding hook is called although its inner hook lacks another moment")
    func otherMoment() async {
        // The inner hook lacks onSchedule, its kind has onSuccess; who forwards to it throws, and is rescued above.
        var rescuing = RecordingHook(name: "rescue", log: HookLog())
        rescuing.failure = { _ in Response(status: .ok) }
        let pipeline = pipeline([OnlySuccess(log), rescuing, Throwing(OnlySuccess(HookLog()))])
        for _ in 0..<4 { await call(pipeline) }
        #expect(log.entries == ["success", "success", "success", "success"])
    }

    @Test("So is it after a call that the hook answered itself")
    func answered() async {
        var answering = RecordingHook(name: "answers", log: HookLog())
        answering.schedule = { _, _ in Response(status: .ok) }
        let pipeline = pipeline([OnlySuccess(log), Forwarding(OnlySuccess(HookLog()), HookLog()), answering])
        for _ in 0..<4 { await call(pipeline) }
        #expect(log.entries == ["success", "success", "success", "success"])
    }

    @Test("Classes: what a subclass inherits from its base is not a default")
    func classes() async {
        let pipeline = pipeline([Derived(log), Base(log), Derived(log)])
        for _ in 0..<3 { await call(pipeline) }
        #expect(log.entries == times(3, ["derived", "base", "derived"]))
    }

    @Test("A hook beyond the 64th is called as usual")
    func manyHooks() async {
        let hooks: [any ServiceHook] = (0..<40).flatMap { _ -> [any ServiceHook] in [OnlySuccess(log), Bare()] }
        let pipeline = pipeline(hooks)
        for _ in 0..<3 { await call(pipeline) }
        #expect(log.entries.count == 3 * 40)
    }

    @Test("Failures and cancellations reach hooks whose other moments are idle")
    func endings() async {
        let pipeline = pipeline([OnlyFailure(log), Bare()], .fail(progress: .bodySent))
        for _ in 0..<3 { await call(pipeline) }
        #expect(log.entries == ["failure", "failure", "failure"])
        let cancelled = self.pipeline([OnlyFailure(log), Bare()], .silence)
        let task = Task { await call(cancelled) }
        task.cancel()
        await task.value
        #expect(log.entries.last == "cancel")
    }
}

private func times(_ count: Int, _ list: [String]) -> [String] { (0..<count).flatMap { _ in list } }

private struct Bare: ServiceHook {}

private final class OnlySchedule: ServiceHook {
    let log: HookLog
    init(_ log: HookLog) { self.log = log }

    func onSchedule(_ request: inout URLRequest, _ context: inout CallContext) async throws -> Response? {
        log.add("schedule")
        return nil
    }
}

private final class OnlySuccess: ServiceHook {
    let log: HookLog
    init(_ log: HookLog) { self.log = log }

    func onSuccess(_ response: inout Response, _ request: URLRequest, _ context: inout CallContext) async throws {
        log.add("success")
    }
}

private struct OnlyFailure: ServiceHook {
    let log: HookLog
    init(_ log: HookLog) { self.log = log }

    func onFailure(_ error: any Error, _ request: URLRequest, _ context: inout CallContext) async -> Response? {
        log.add("failure")
        return nil
    }

    func onCancel(_ request: URLRequest, _ context: CallContext) { log.add("cancel") }
}

/// Hands its moments on, and logs that it was asked.
private struct Forwarding: ServiceHook {
    let inner: any ServiceHook
    let log: HookLog

    init(_ inner: any ServiceHook, _ log: HookLog) { (self.inner, self.log) = (inner, log) }

    func onSchedule(_ request: inout URLRequest, _ context: inout CallContext) async throws -> Response? {
        log.add("forward schedule")
        return try await inner.onSchedule(&request, &context)
    }

    func onSuccess(_ response: inout Response, _ request: URLRequest, _ context: inout CallContext) async throws {
        log.add("forward success")
        try await inner.onSuccess(&response, request, &context)
    }
}

/// Hands onSchedule on, and throws after it.
private struct Throwing: ServiceHook {
    let inner: any ServiceHook
    init(_ inner: any ServiceHook) { self.inner = inner }

    func onSchedule(_ request: inout URLRequest, _ context: inout CallContext) async throws -> Response? {
        _ = try await inner.onSchedule(&request, &context)
        throw Refused()
    }
}

// Proof: nothing but a log, which has a lock of its own; a class that is not final cannot say so otherwise.
private class Base: ServiceHook, @unchecked Sendable {
    let log: HookLog
    init(_ log: HookLog) { self.log = log }
    func onSuccess(_ response: inout Response, _ request: URLRequest, _ context: inout CallContext) async throws {
        log.add("base")
    }
}

// Proof: as its base, to which it adds no state.
private final class Derived: Base, @unchecked Sendable {
    override func onSuccess(
        _ response: inout Response,
        _ request: URLRequest,
        _ context: inout CallContext
    ) async throws {
        log.add("derived")
    }
}

/// Tells which hook the chain called last.
private struct NamingTransport: Transport {
    let note: @Sendable (CallContext) -> Void

    init(_ note: @escaping @Sendable (CallContext) -> Void) { self.note = note }

    var enforcesDeadline: Bool { true }

    func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
        note(context)
        return Response(status: .ok)
    }
}

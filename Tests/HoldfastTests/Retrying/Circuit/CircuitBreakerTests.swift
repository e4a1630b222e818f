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

@Suite("CircuitBreaker", .timeLimit(.minutes(20)))
struct CircuitBreakerTests {
    let clock = ManualClock()

    private func send(_ breaker: CircuitBreaker, _ url: String = "http://origin.example/a") async -> Result<
        Int, ServiceError
    > {
        do {
            let context = CallContext(clock: clock)
            return .success(try await breaker.send(.get(url), body: .none, context: context).status.rawValue)
        } catch {
            return .failure(error as? ServiceError ?? ServiceError(.other, "\(error)"))
        }
    }

    private func code(_ result: Result<Int, ServiceError>) -> ServiceError.Code? {
        if case .failure(let error) = result { error.code } else { nil }
    }

    @Test("An open circuit refuses at once: nothing is sent, and the error names the origin and the end")
    func refuses() async throws {
        let transport = ScriptedTransport([.respond(503)], repeatsLastStep: true)
        let breaker = CircuitBreaker(transport)
        for _ in 0..<20 { #expect(try await send(breaker).get() == 503) }
        clock.advance(by: .seconds(2))
        guard case .failure(let error) = await send(breaker) else {
            Issue.record("an error was expected")
            return
        }
        #expect(error.code == .circuitOpen)
        #expect(error.progress == .notSent)
        #expect(error.retryAfter == .seconds(3))
        #expect(error.message.contains("http://origin.example"))
        #expect(error.message.contains(HTTPDate(clock.timestamp.advanced(by: .seconds(3))).description))
        #expect(transport.sent.count == 20)
        var failure = AttemptFailure(kind: .heldBack, progress: .notSent)
        failure.retryAfter = .seconds(3)
        #expect(ServiceError.attemptFailure(of: error) == failure)
    }

    @Test("Each origin has its own circuit")
    func perOrigin() async throws {
        let transport = ScriptedTransport { request in .respond(request.url?.host == "bad.example" ? 500 : 200) }
        let breaker = CircuitBreaker(transport)
        for _ in 0..<20 { _ = await send(breaker, "http://bad.example/") }
        #expect(code(await send(breaker, "http://bad.example/b")) == .circuitOpen)
        #expect(try await send(breaker, "http://good.example/").get() == 200)
        #expect(try await send(breaker, "http://bad.example:81/").get() == 500)
    }

    @Test("Observers are told when it opens and closes")
    func events() async throws {
        let transport = ScriptedTransport(
            [ScriptedTransport.Step](repeating: .fail(progress: .bodySent), count: 20) + [.respond(200)]
        )
        let recorder = EventRecorder()
        var configuration = PipelineConfiguration()
        configuration.clock = clock
        configuration.attemptTimeout = nil
        configuration.observers = [recorder]
        let pipeline = Pipeline(transport: CircuitBreaker(transport), configuration: configuration)
        for _ in 0..<20 { _ = try? await pipeline.send(.get()) }
        #expect(recorder.events(.circuitOpened).map(\.detail) == ["http://origin.example"])
        #expect(recorder.events(.circuitOpened).map(\.delay) == [.seconds(5)])
        clock.advance(by: .seconds(5))
        #expect(try await pipeline.send(.get()).status == .ok)
        #expect(recorder.events(.circuitClosed).map(\.detail) == ["http://origin.example"])
    }

    @Test(
        "Cancellation counts neither way, but an attempt cut off by its deadline is a failure",
        arguments: [false, true]
    )
    func cancellation(isPastDeadline: Bool) async {
        let transport = ScriptedTransport([.fail(CancellationError())], repeatsLastStep: true)
        let breaker = CircuitBreaker(transport)
        clock.advance(by: .seconds(10))
        let deadline = MonotonicInstant(sinceOrigin: .seconds(isPastDeadline ? 9 : 11))
        for _ in 0..<40 {
            let context = CallContext(clock: clock, deadline: deadline)
            _ = try? await breaker.send(.get(), body: .none, context: context)
        }
        #expect(transport.sent.count == (isPastDeadline ? 20 : 40))
    }

    @Test("A cancelled probe makes room for the next")
    func cancelledProbe() async throws {
        let steps = [ScriptedTransport.Step](repeating: .respond(500), count: 20)
        let transport = ScriptedTransport(steps + [.fail(CancellationError()), .respond(200)])
        let breaker = CircuitBreaker(transport)
        for _ in 0..<20 { _ = await send(breaker) }
        clock.advance(by: .seconds(5))
        #expect(code(await send(breaker)) == .other)
        #expect(try await send(breaker).get() == 200)
    }

    @Test(
        "An open circuit ends a call at once, without cost; only a call that parks waits until a probe may be sent",
        arguments: [RetryRules.default, .interactive]
    )
    func retrying(rules: RetryRules) async throws {
        let clock = ManualClock(autoAdvances: true)
        let steps = [ScriptedTransport.Step](repeating: .respond(500), count: 20)
        let transport = ScriptedTransport(steps + [.respond(200)])
        let breaker = CircuitBreaker(transport)
        var configuration = PipelineConfiguration()
        configuration.clock = clock
        let patient = Pipeline(transport: breaker, retrierFactory: .patient, configuration: configuration)
        let hasty = Pipeline(transport: breaker, retrierFactory: .backoff(rules), configuration: configuration)
        for _ in 0..<20 { _ = try await breaker.send(.get(), body: .none, context: CallContext(clock: clock)) }
        do {
            _ = try await hasty.send(.get())
            Issue.record("an error was expected")
        } catch let error as ServiceError {
            #expect(error.code == .circuitOpen)
            #expect(error.attempts.map(\.stopReason) == [.circuitOpen])
            #expect(error.retryAfter == .seconds(5))
        }
        #expect(clock.waits.isEmpty)
        // Nothing was sent, so a POST may wait as well.
        var post = URLRequest.get()
        post.httpMethod = "POST"
        #expect(try await patient.send(post).status == .ok)
        #expect(clock.waits.count == 1)
        #expect((.seconds(5)...(.seconds(7.5))).contains(clock.waits[0]))
    }

    @Test("With many tasks: it opens while the server fails, and closes once the server is well")
    func stress() async throws {
        let isWell = CountWatch()
        let transport = ScriptedTransport { _ in
            await Task.yield()
            return .respond(isWell.count > 0 ? 200 : 500)
        }
        let breaker = CircuitBreaker(transport)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    for _ in 0..<50 { _ = await send(breaker) }
                }
            }
        }
        #expect(transport.sent.count < 40)
        isWell.increment()
        clock.advance(by: .seconds(5))
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<8 { group.addTask { _ = await send(breaker) } }
        }
        #expect(try await send(breaker).get() == 200)
    }
}

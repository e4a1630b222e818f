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

@Suite("Layers of retries (RETRY.md §4.6)", .timeLimit(.minutes(20)))
struct NestedRetryTests {
    /// A client of somebody who catches what the layer below throws and throws something of their own.
    struct WrappingErrors: Transport {
        struct Wrapped: Error {}
        let inner: any Transport

        var enforcesDeadline: Bool { true }

        func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
            do {
                return try await inner.send(request, body: body, context: context)
            } catch is ServiceError {
                throw Wrapped()
            }
        }
    }

    func layer(_ inner: any Transport, _ rules: RetryRules = RetryRules(maxAttempts: 3)) -> Pipeline {
        var configuration = PipelineConfiguration()
        configuration.clock = ManualClock(autoAdvances: true)
        configuration.attemptTimeout = nil
        return Pipeline(transport: inner, retrierFactory: .backoff(rules), configuration: configuration)
    }

    @Test(
        "E9: three layers of three attempts send a call three times in an outage, not 27 times",
        arguments: [true, false]
    )
    func threeLayers(answers: Bool) async throws {
        let outage: ScriptedTransport.Step = answers ? .respond(503) : .fail(progress: .bodySent)
        let leaf = ScriptedTransport([outage], repeatsLastStep: true)
        let outermost = layer(layer(layer(leaf)))
        let attempts: [AttemptRecord]
        do {
            attempts = try await outermost.send(.get()).attempts
        } catch let error as ServiceError {
            attempts = error.attempts
        }
        #expect(leaf.sent.count == 3)
        #expect(attempts.map(\.stopReason) == [.retriedBelow])
        #expect(attempts.first?.nestedAttempts.first?.nestedAttempts.count == 3)
    }

    @Test("E9, complaint 8 of 12: the layers need not know each other's errors")
    func wrappedErrors() async throws {
        let leaf = ScriptedTransport([.fail(progress: .bodySent)], repeatsLastStep: true)
        let outermost = layer(WrappingErrors(inner: layer(WrappingErrors(inner: layer(leaf)))))
        await #expect(throws: WrappingErrors.Wrapped.self) { try await outermost.send(.get()) }
        #expect(leaf.sent.count == 3)
    }

    @Test("Without the rule each layer multiplies, which is what the rule prevents")
    func naive() async throws {
        var rules = RetryRules(maxAttempts: 3)
        rules.respectsInnerRetries = false
        rules.budget = .unlimited
        let leaf = ScriptedTransport([.respond(503)], repeatsLastStep: true)
        _ = try await layer(layer(layer(leaf, rules), rules), rules).send(.get())
        #expect(leaf.sent.count == 27)
    }

    @Test("A lower layer that does not retry leaves it to the one above")
    func innerNever() async throws {
        let leaf = ScriptedTransport([.respond(503), .respond(200)], repeatsLastStep: true)
        let inner = Pipeline(transport: leaf)
        #expect(try await layer(inner).send(.get()).status == .ok)
        #expect(leaf.sent.count == 2)
    }

    @Test("A success below cancels what an earlier failure below had said")
    func laterSuccess() async throws {
        struct Twice: Transport {
            let inner: Pipeline
            let outcome: ScriptedTransport
            var enforcesDeadline: Bool { true }
            func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
                _ = try? await inner.send(.get("http://other.example/token"))
                _ = try? await inner.send(.get("http://other.example/token"))
                return try await outcome.send(request, body: body, context: context)
            }
        }
        let side = ScriptedTransport(
            [.respond(500), .respond(500), .respond(500), .respond(200)],
            repeatsLastStep: true
        )
        let outcome = ScriptedTransport([.respond(500), .respond(200)])
        let outer = layer(Twice(inner: layer(side), outcome: outcome))
        #expect(try await outer.send(.get()).status == .ok)
    }

    @Test("A request that a higher layer retries is sent once, if the rules leave it to that layer")
    func leftToCaller() async throws {
        let leaf = ScriptedTransport([.respond(503)], repeatsLastStep: true)
        var rules = RetryRules.default
        rules.leavesRetriesToCaller = true
        let response = try await layer(leaf, rules).send(.get("http://origin.example/", ["X-Retry-Attempt": "2"]))
        #expect(leaf.sent.count == 1)
        #expect(response.attempts.last?.stopReason == .retriedAbove)
    }

    @Test("The server gets the attempt number and the time left, if fields are configured for them")
    func announced() async throws {
        let leaf = ScriptedTransport([.respond(503), .respond(200)])
        var rules = RetryRules.default
        rules.attemptField = "X-Retry-Attempt"
        rules.timeLeftField = "X-Time-Left"
        var options = CallOptions()
        options.timeout = .seconds(30)
        _ = try await layer(leaf, rules).send(.get(), options: options)
        #expect(leaf.sent.map { $0.request.value(forHTTPHeaderField: "X-Retry-Attempt") } == [nil, "2"])
        let left = leaf.sent.compactMap { $0.request.value(forHTTPHeaderField: "X-Time-Left") }.compactMap { Int($0) }
        #expect(left.count == 2 && left[0] == 30_000 && left[1] < 30_000)
    }
}

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

@Suite("Hedges and the retry rules", .timeLimit(.minutes(20)))
struct HedgeRulesTests {
    /// A request under some rules, and whether it is hedged.
    struct Case: Sendable, CustomStringConvertible {
        let description: String
        var method = "GET"
        var fields: [String: String] = [:]
        var declared: Bool?
        var isGateway = false
        var own: RetryRules?
        var factory: (any RetrierFactory)?
        let isHedged: Bool
    }

    static let hedging: RetryRules = {
        var rules = RetryRules()
        rules.hedging = HedgeRules()
        return rules
    }()

    static let cases = [
        Case(description: "a gateway's GET", isGateway: true, isHedged: true),
        Case(description: "a gateway's keyed POST", method: "POST", fields: key, isGateway: true, isHedged: false),
        Case(
            description: "a gateway's declared POST",
            method: "POST",
            declared: true,
            isGateway: true,
            isHedged: false
        ),
        Case(
            description: "a gateway's declared POST with rules of its own",
            method: "POST",
            declared: true,
            isGateway: true,
            own: hedging,
            isHedged: false
        ),
        Case(description: "an empty key", method: "POST", fields: ["Idempotency-Key": ""], isHedged: false),
        Case(description: "an upgrade", fields: ["Upgrade": "websocket"], isHedged: false),
        Case(description: "CONNECT", method: "CONNECT", declared: true, isHedged: false),
        Case(description: "a call without retries", own: RetryRules.never, isHedged: false),
        Case(
            description: "a call without retries whose rules hedge",
            own: {
                var rules = hedging
                rules.maxAttempts = 1
                return rules
            }(),
            isHedged: false
        ),
        Case(description: "a call whose rules do not hedge", own: .default, isHedged: false),
        Case(description: "a call whose rules hedge", own: hedging, isHedged: true),
        Case(description: "a call that is never retried", factory: NilRetrier.Factory(), isHedged: false),
        Case(
            description: "a call whose own factory makes one attempt",
            factory: BackoffRetrier.factory(strategy: .exponential(.never)),
            isHedged: false
        ),
        Case(
            description: "a keyed POST whose own factory is a gateway's",
            method: "POST",
            fields: key,
            factory: BackoffRetrier.factory(
                strategy: .exponential(
                    {
                        var rules = hedging
                        rules.isGateway = true
                        return rules
                    }()
                )
            ),
            isHedged: false
        ),
        Case(
            description: "a call whose own factory hedges",
            factory: BackoffRetrier.factory(strategy: .exponential(hedging)),
            isHedged: true
        ),
    ]

    private static let key = ["Idempotency-Key": "\"8e03978e\""]

    let clock = ManualClock()
    let bench = HedgeBench()

    @Test(
        "Complaint 4 of 12: only requests that the retry rules would resend after any failure are hedged",
        arguments: cases
    )
    func eligibility(each: Case) async throws {
        var rules = RetryRules()
        rules.budget = .tokens(capacity: 10, transient: 1, timeout: 1, throttling: 1, reward: 1)
        rules.isGateway = each.isGateway
        let transport = ScriptedTransport([.respond().delayed(by: .milliseconds(30))], repeatsLastStep: true)
        let hedged = HedgedTransport(transport, rules: bench.rules, governor: RetryGovernor(rules))
        var request = URLRequest.get()
        request.httpMethod = each.method
        for (name, value) in each.fields { request.setValue(value, forHTTPHeaderField: name) }
        var options = CallOptions()
        options.isIdempotent = each.declared
        options.retryRules = each.own
        options.retrierFactory = each.factory
        let context = CallContext(clock: clock, options: options)
        let call = Task { [request] in try await hedged.send(request, body: .none, context: context) }
        try await clock.waitForSleeps(each.isHedged ? 2 : 1)
        clock.advance(by: .milliseconds(10))
        if each.isHedged { try await clock.waitForSleeps(3) }
        clock.advance(by: .milliseconds(20))
        _ = try await call.value
        #expect(transport.sent.count == (each.isHedged ? 2 : 1))
    }

    @Test(
        "After the server forbids retries no further copy is sent, while the first may still win",
        arguments: [["grpc-retry-pushback-ms": "-1"], ["x-should-retry": "false"], [:]]
    )
    func forbidden(fields: [String: String]) async throws {
        var governed = RetryRules()
        governed.budget = .tokens(capacity: 10, transient: 1, timeout: 1, throttling: 1, reward: 1)
        governed.vendorHints = [.pushback, .shouldRetry]
        var rules = bench.rules
        rules.maxCopies = 3
        let asked = HeaderFields(fields)
        let sends = CountWatch()
        let transport = NumberedTransport { number, context in
            sends.increment()
            if number == 4 { try await context.clock.sleep(until: MonotonicInstant(sinceOrigin: .milliseconds(20))) }
            return number == 5 ? Response(status: .serviceUnavailable, fields: asked) : Response(status: .created)
        }
        let hedged = HedgedTransport(transport, rules: rules, governor: RetryGovernor(governed))
        for _ in 0..<3 { _ = try await bench.send(hedged, clock) }
        while clock.sleeperCount > 0 { await Task.yield() }
        let call = Task { try await bench.send(hedged, clock) }
        while sends.count < 4 || clock.sleeperCount < 2 { await Task.yield() }
        clock.advance(by: .milliseconds(10))
        try await sends.wait(for: 5)
        for _ in 0..<200 { await Task.yield() }
        clock.advance(by: .milliseconds(10))
        let response = try await call.value
        #expect(response.status == .created)
        #expect(response.attempts.count == (fields.isEmpty ? 3 : 2))
    }

    @Test("Quick refusals are not measured: after many 429s nothing is hedged")
    func throttled() async throws {
        var rules = HedgeRules()
        rules.maxExtraLoad = 1
        for status in [429, 200] {
            let steps = [ScriptedTransport.Step](repeating: .respond(status), count: 100)
            let transport = ScriptedTransport(steps + [.respond().delayed(by: .seconds(1))], repeatsLastStep: true)
            let hedged = HedgedTransport(transport, rules: rules)
            for _ in steps { _ = try await bench.send(hedged, clock) }
            let late = Task { try await bench.send(hedged, clock) }
            while clock.sleeperCount < (status == 200 ? 2 : 1) { await Task.yield() }
            clock.advance(by: .milliseconds(10))
            if status == 200 { try await transport.waitForSends(102) }
            clock.advance(by: .seconds(1))
            _ = try await late.value
            while clock.sleeperCount > 0 { await Task.yield() }
            #expect(transport.sent.count == 101 + (status == 200 ? 1 : 0))
        }
    }
}

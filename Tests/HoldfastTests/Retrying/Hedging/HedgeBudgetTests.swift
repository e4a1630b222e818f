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

@Suite("Hedges and budgets", .timeLimit(.minutes(20)))
struct HedgeBudgetTests {
    let clock = ManualClock()
    let bench = HedgeBench()
    let governor: RetryGovernor

    init() {
        var rules = RetryRules()
        rules.budget = .tokens(capacity: 2, transient: 1, timeout: 1, throttling: 1, reward: 1)
        governor = RetryGovernor(rules)
    }

    private var account: RetryAccount { governor.account(for: .get(), now: clock.now) }

    private var balance: Int? {
        URL(string: "http://origin.example/").flatMap { governor.status(of: $0, now: clock.now)?.balance }
    }

    /// Sends a request of which the first copy is late, and expects that it is hedged, or that it is not.
    private func sendLate(_ hedged: HedgedTransport, _ transport: ScriptedTransport, isHedged: Bool) async throws {
        let before = transport.sent.count
        let call = Task { try await bench.send(hedged, clock) }
        while clock.sleeperCount < 2 { await Task.yield() }
        clock.advance(by: .milliseconds(10))
        if isHedged {
            try await transport.waitForSends(before + 2)
        } else {
            for _ in 0..<50 { await Task.yield() }
        }
        clock.advance(by: .milliseconds(10))
        _ = try await call.value
        while clock.sleeperCount > 0 { await Task.yield() }
        #expect(transport.sent.count == before + (isHedged ? 2 : 1))
    }

    @Test(
        "Defect 14 of 15: if the shared budget refuses a hedge, its own budget is refunded, and the reverse"
    )
    func noLeak() async throws {
        var rules = bench.rules
        rules.maxExtraLoad = 0.05
        let transport = ScriptedTransport([.respond().delayed(by: .milliseconds(20))], repeatsLastStep: true)
        let hedged = HedgedTransport(transport, rules: rules, governor: governor)
        _ = account
        #expect(balance == 2)
        for _ in 0..<19 { try await sendLate(hedged, transport, isHedged: false) }
        #expect(balance == 2, "what its own budget refuses costs the shared one nothing")

        let grants = [account.granted(now: clock.now), account.granted(now: clock.now)]
        #expect(grants.allSatisfy { $0 != nil })
        try await sendLate(hedged, transport, isHedged: false)
        for grant in grants.compactMap(\.self) { account.giveBack(grant, now: clock.now) }
        try await sendLate(hedged, transport, isHedged: true)
        try await sendLate(hedged, transport, isHedged: false)
    }

    @Test("Hedges and retries use one budget, and a hedge whose call succeeds is free, no matter who wins")
    func shared() async throws {
        let late = ScriptedTransport.Step.respond().delayed(by: .milliseconds(20))
        let transport = ScriptedTransport([late, late, late, .respond(), late], repeatsLastStep: true)
        let hedged = HedgedTransport(transport, rules: bench.rules, governor: governor)
        for _ in 0..<2 {
            try await sendLate(hedged, transport, isHedged: true)
            #expect(balance == 2)
        }
        let grants = [account.granted(now: clock.now), account.granted(now: clock.now)]
        #expect(grants.allSatisfy { $0 != nil })
        try await sendLate(hedged, transport, isHedged: false)
    }

    @Test("E10: a cancelled call returns what its hedge was granted")
    func cancelled() async throws {
        let transport = ScriptedTransport([.silence], repeatsLastStep: true)
        let hedged = HedgedTransport(transport, rules: bench.rules, governor: governor)
        let call = Task { try await bench.send(hedged, clock) }
        try await clock.waitForSleeps(2)
        clock.advance(by: .milliseconds(10))
        try await transport.waitForSends(2)
        #expect(balance == 1)
        call.cancel()
        await #expect(throws: CancellationError.self) { _ = try await call.value }
        #expect(balance == 2)
    }

    @Test("A hedge that was refused on this side returns what it was granted")
    func refusedHere() async throws {
        let transport = ScriptedTransport([
            .respond().delayed(by: .milliseconds(20)), .fail(.circuitOpen, progress: .notSent),
        ])
        let hedged = HedgedTransport(transport, rules: bench.rules, governor: governor)
        try await sendLate(hedged, transport, isHedged: true)
        #expect(balance == 2)
    }

    @Test("Never while the origin's gate is closed")
    func closedGate() async throws {
        let transport = ScriptedTransport([.respond().delayed(by: .milliseconds(30))], repeatsLastStep: true)
        let hedged = HedgedTransport(transport, rules: bench.rules, governor: governor)
        account.close(asked: .seconds(60), now: clock.now)
        let call = Task { try await bench.send(hedged, clock) }
        try await clock.waitForSleeps(1)
        clock.advance(by: .milliseconds(30))
        _ = try await call.value
        #expect(transport.sent.count == 1)
        #expect(clock.waits == [.milliseconds(30)])
    }
}

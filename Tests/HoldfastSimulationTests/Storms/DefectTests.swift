// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastSimulation
import Testing

/// Defects of other retriers that only a fleet shows (RETRY §1, §6), each beside Holdfast's default.
@Suite("Defects that only a fleet shows", .timeLimit(.minutes(20)))
struct DefectTests {
    /// A tenth of a scenario's fleet and server, one seed.
    private static func tenth(_ scenario: StormScenario) -> StormScenario {
        var tenth = scenario
        tenth.rate = scenario.rate.map { $0 / 10 }
        tenth.burst = scenario.burst.map { $0 / 10 }
        tenth.processes = scenario.processes / 10
        tenth.server.workers = scenario.server.workers / 10
        tenth.seeds = [1]
        return tenth
    }

    private static let slow: StormScenario = {
        var slow = tenth(.slow)
        slow.horizon = 60
        slow.faults = [StormFault(.slow, from: 10, to: 20, amount: 2.5)]
        return slow
    }()

    @Test(
        "Complaint 8 of 12: without a budget ten slow seconds keep the server down for good, with the default they do not"
    )
    func metastable() async throws {
        let none = try await Storm(Self.slow).run(RetryRules.never).figures
        #expect(try await Storm(Self.slow).run(StormSubject.fullJitter).figures.recovers == false)
        for rules in [RetryRules.default, .interactive] {
            let figures = try await Storm(Self.slow).run(rules).figures
            #expect(figures.recovers == true)
            #expect((figures.recoverySeconds ?? .infinity) <= (none.recoverySeconds ?? 0) + 6)
        }
    }

    @Test("Defect 5 of 15: a reserve of 10 retries a second for each process defeats its budget")
    func reserve() async throws {
        var rules = StormSubject.fullJitter.rules
        rules.budget = .finagle
        let finagle = StormSubject("finagle", rules: rules)
        #expect(try await Storm(Self.slow).run(finagle).figures.recovers == false)
    }

    @Test("Defect 11 of 15, complaint 11 of 12: waits without jitter bring all clients back at once")
    func jitterless() async throws {
        let scenario = Self.tenth(.herd)
        let capacity = scenario.server.capacity
        let unjittered = try await Storm(scenario).run(StormSubject.alamofire).figures
        #expect((unjittered.peakRate ?? 0) >= 10 * capacity)
        let jittered = try await Storm(scenario).run(StormSubject.fullJitter).figures
        #expect((jittered.peakRate ?? .infinity) <= 2 * capacity)
    }

    @Test("E13, defect 15 of 15, complaint 9 of 12: a budget that an outage drained is available again after it")
    func liveness() async throws {
        var scenario = Self.tenth(.brownout(10))
        scenario.horizon = 60
        scenario.faults = [StormFault(.down, from: 5, to: 15), StormFault(.err, from: 45, to: 60, amount: 0.1)]
        let report = try #require(try await Storm(scenario).run(RetryRules.default).first)
        let brownout = report.seconds[45..<60]
        let (begun, succeeded) = (brownout.map(\.begun).reduce(0, +), brownout.map(\.succeeded).reduce(0, +))
        #expect(Double(succeeded) / Double(begun) >= 0.985)
    }
}

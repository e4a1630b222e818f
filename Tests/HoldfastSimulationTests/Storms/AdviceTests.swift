// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastSimulation
import Testing

/// What becomes of a server's Retry-After in a fleet.
@Suite("Storms with Retry-After", .timeLimit(.minutes(20)))
struct AdviceTests {
    @Test(
        "E6, complaint 3 of 12: none of 1,000 clients told 5 s at once is early; the peak is at most a tenth of a burst",
        arguments: [StormSubject("default", rules: .default), StormSubject("patient", rules: .patient)]
    )
    func advisedHerd(_ subject: StormSubject) async throws {
        var scenario = StormScenario.advisedHerd
        scenario.seeds = [1]
        let figures = try await Storm(scenario).run(subject).figures
        #expect(figures.earlySends == 0 && figures.stranded == 0)
        #expect(figures.success == 1)
        // 1,000 at once are a rate of 10,000 in their tenth of a second.
        #expect((figures.peakRate ?? .infinity) <= 1_000)
    }

    @Test("E6, defect 8 of 15: rules that ignore Retry-After are all early, and the simulator shows it")
    func unheeded() async throws {
        var scenario = StormScenario.advisedHerd
        scenario.seeds = [1]
        let figures = try await Storm(scenario).run(StormSubject.fullJitter).figures
        #expect(figures.earlySends > 1_000)
    }

    /// A fifth of the study's gate, for half of its time.
    static let gate: StormScenario = {
        var scenario = StormScenario.gate
        scenario.rate = 100
        scenario.processes = 10
        scenario.horizon = 30
        scenario.faults = [StormFault(.throttle, from: 5, to: 15, amount: 5)]
        scenario.seeds = [1]
        return scenario
    }()

    @Test(
        "E7: behind a closed gate a partition sends at most one attempt a second",
        arguments: [
            StormSubject("default", rules: .default), StormSubject("patient", rules: .patient),
            StormSubject("none", rules: .never),
        ]
    )
    func gate(_ subject: StormSubject) async throws {
        let figures = try await Storm(Self.gate).run(subject).figures
        #expect(figures.closedSeconds > 50 && figures.stranded == 0)
        #expect(figures.earlySends <= figures.closedSeconds)
        var rules = subject.rules
        rules.closesGate = false
        let without = try await Storm(Self.gate).run(rules).figures
        #expect(without.earlySends > 2 * without.closedSeconds)
    }
}

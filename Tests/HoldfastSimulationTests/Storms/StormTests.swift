// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Holdfast
import HoldfastSemantics
import HoldfastSimulation
import Testing

@Suite("Storm", .timeLimit(.minutes(20)))
struct StormTests {
    /// A tenth of the fleet of the study, with a shorter outage.
    static let small: StormScenario = {
        var scenario = StormScenario("small", rate: 70)
        scenario.processes = 5
        scenario.server.workers = 5
        scenario.horizon = 20
        scenario.faults = [StormFault(.down, from: 5, to: 8)]
        scenario.seeds = [7]
        return scenario
    }()

    @Test("§5.2: the same seed gives the same event log, run after run, and another seed another one")
    func deterministic() async throws {
        var scenario = Self.small
        scenario.seeds = [7, 7, 7, 7, 7, 8]
        let reports = try await Storm(scenario).run(StormSubject.fullJitter)
        #expect(Set(reports.dropLast().map(\.fingerprint)).count == 1)
        #expect(Set(reports.dropLast()).count == 1)
        #expect(reports[4].fingerprint != reports[5].fingerprint)
    }

    @Test("§5.2: also with hedging, because copies and timers run in the simulation; none is stranded")
    func hedged() async throws {
        var scenario = Self.small
        scenario.seeds = [7, 7, 7]
        var rules = RetryRules()
        var hedging = HedgeRules()
        hedging.fixedDelay = .milliseconds(100)
        hedging.maxExtraLoad = 0.2
        rules.hedging = hedging
        let reports = try await Storm(scenario).run(rules)
        #expect(Set(reports.map(\.fingerprint)).count == 1)
        #expect(reports.figures.stranded == 0)
        let plain = try await Storm(scenario).run(RetryRules())
        #expect(plain[0].fingerprint != reports[0].fingerprint)
    }

    @Test("Without a budget an outage uses every attempt; none is stranded")
    func outage() async throws {
        let figures = try await Storm(Self.small).run(StormSubject.immediate).figures
        #expect(figures.stranded == 0)
        #expect((3.9...4).contains(figures.loadInFault ?? 0))
        #expect(figures.recovers == true && figures.recoverySeconds == 0)
        let none = try await Storm(Self.small).run { _, _ in .never }.figures
        #expect(none.load == 1 && none.loadInFault == 1 && none.successInFault == 0)
    }

    @Test("The seconds of a report add up to its figures")
    func seconds() async throws {
        let report = try #require(try await Storm(Self.small).run(StormSubject.fullJitter).first)
        #expect(Double(report.seconds.map(\.begun).reduce(0, +)) == report.figures.requests)
        let attempts = Double(report.seconds.map(\.attempts).reduce(0, +))
        #expect(attempts / report.figures.requests == report.figures.load)
        let succeeded = Double(report.seconds.map(\.succeeded).reduce(0, +))
        #expect(succeeded / report.figures.requests == report.figures.success)
    }
}

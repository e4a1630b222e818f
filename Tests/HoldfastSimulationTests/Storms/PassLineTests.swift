// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastSemantics
import HoldfastSimulation
import HoldfastTestKit
import Testing

/// The lines that the presets have to keep (docs/decisions/retrying/0027-retry-pool.md), each for fleets or for small clients.
/// A tenth of the fleet and a part of the time by default; the whole waits for HOLDFAST_LONG_TESTS=1, in release.
@Suite("Pass lines of the storms", .timeLimit(.minutes(60)))
struct PassLineTests {
    /// A tenth of a scenario's fleet and server, unless the tests are long.
    private static func sized(_ scenario: StormScenario, seeds: [UInt64] = [1, 2]) -> StormScenario {
        guard !LongTests.areOn else { return scenario }
        var sized = scenario.scaled(to: 0.1)
        sized.seeds = seeds
        return sized
    }

    // MARK: Small clients

    @Test(
        "S1, S2, S2d: N calls that each meet one failure all succeed: cold, after idle minutes, after an outage",
        arguments: [2, 8, 32, 64]
    )
    func blips(_ calls: Int) async throws {
        for scenario in [StormScenario.blip(calls), .idleBlip(calls), .drainedBlip(calls)] {
            let figures = try await Storm(scenario).run(RetryRules.default).figures
            #expect(figures.requests == Double(calls) && figures.success == 1, "\(scenario.name): \(figures.success)")
            #expect(figures.load == 2 && figures.stranded == 0)
        }
    }

    @Test("S3: bursts of ten calls every ten seconds, 30 % errors: 99 % succeed")
    func app() async throws {
        var scenario = StormScenario.app
        if !LongTests.areOn {
            scenario.horizon = 1_500
            scenario.seeds = [1, 2]
        }
        let figures = try await Storm(scenario).run(RetryRules.default).figures
        // The ceiling is 99.19 %; in short runs chance takes its share.
        #expect(figures.success >= (LongTests.areOn ? 0.99 : 0.983), "\(figures.success)")
    }

    @Test("S4: clients that rarely call, down for a minute: load 1.3, return at 1.2 times the capacity")
    func apps() async throws {
        let figures = try await Storm(Self.sized(.apps, seeds: [1])).run(RetryRules.default).figures
        let capacity = Self.sized(.apps).server.capacity
        #expect((figures.loadInFault ?? .infinity) <= (LongTests.areOn ? 1.3 : 1.32), "\(figures.loadInFault ?? 0)")
        // Bursts of ten are a third of what a tenth of the fleet sends in a second.
        #expect(
            (figures.peakSecondRate ?? .infinity) <= (LongTests.areOn ? 1.2 : 1.5) * capacity,
            "\((figures.peakSecondRate ?? 0) / capacity)"
        )
        #expect(figures.stranded == 0)
    }

    // MARK: Gates

    private static func short(_ scenario: StormScenario) -> StormScenario {
        guard !LongTests.areOn else { return scenario }
        var short = scenario
        short.horizon = 40
        for index in short.faults.indices { short.faults[index].to = min(short.faults[index].to, 40) }
        short.seeds = [1, 2]
        return short
    }

    @Test("S5: a resource that asks for a pause slows no other down, and gets at most one extra request per pause")
    func oneResource() async throws {
        let scenario = Self.short(.oneResource)
        var healthy = scenario
        healthy.faults = [StormFault(.unavailable, from: 0, to: 40, amount: 1, share: 0, resources: 1)]
        let figures = try await Storm(scenario).run(RetryRules.default).figures
        let usual = try await Storm(healthy).run(RetryRules.default).figures
        let (found, expected) = (figures.healthyP99SuccessSeconds ?? 9, usual.healthyP99SuccessSeconds ?? 0)
        #expect(found <= 1.1 * expected, "\(found), without \(expected)")
        #expect(figures.healthySuccess == 1)
        #expect(figures.earlySends <= figures.closedSeconds, "\(figures.earlySends) in \(figures.closedSeconds) s")
    }

    @Test("S6: a quota of the whole origin is probed once a second")
    func quota() async throws {
        var scenario = StormScenario.quota
        scenario.seeds = [1, 2]
        if !LongTests.areOn { (scenario.rate, scenario.horizon) = (200, 35) }
        let figures = try await Storm(scenario).run(RetryRules.default).figures
        #expect(figures.closedSeconds > 15 && figures.stranded == 0)
        // What was under way when the first answer came was not told yet: a tenth of a second's worth is allowed for.
        #expect(figures.earlySends <= figures.closedSeconds + 2, "\(figures.earlySends) in \(figures.closedSeconds) s")
    }

    @Test("S7: quickstart's load: one response in 300 with Retry-After costs at most a fifth of p99")
    func quickstart() async throws {
        let advised = try await Storm(Self.short(.quickstart())).run(RetryRules.default).figures
        let unadvised = try await Storm(Self.short(.quickstart(advises: false))).run(RetryRules.default).figures
        let (found, expected) = (advised.p99SuccessSeconds ?? 9, unadvised.p99SuccessSeconds ?? 0)
        #expect(found <= 1.2 * expected, "\(found), without \(expected)")
    }

    // MARK: Fleets

    @Test("E2: an outage causes at most 1.1 attempts a call")
    func outage() async throws {
        let figures = try await Storm(Self.sized(.outage, seeds: [1])).run(RetryRules.default).figures
        #expect((figures.loadInFault ?? .infinity) <= 1.1)
    }

    @Test(
        "E3: brown-outs: success at 10 and 30 %, load at 50 and 90 %",
        arguments: [(10.0, 0.9995, 1.45), (30, 0.98, 1.45), (50, 0, 1.45), (90, 0, 1.2)]
    )
    func brownout(_ line: (percent: Double, success: Double, load: Double)) async throws {
        let figures = try await Storm(Self.sized(.brownout(line.percent))).run(RetryRules.default).figures
        #expect(figures.success >= line.success - (LongTests.areOn ? 0 : 0.002), "\(figures.success)")
        #expect((figures.loadInFault ?? .infinity) <= line.load, "\(figures.loadInFault ?? 0)")
    }

    @Test("E4: after ten slow seconds the fleet recovers a second after one that does not retry")
    func slow() async throws {
        let scenario = Self.sized(.slow, seeds: [1, 2, 3])
        let none = try #require(try await Storm(scenario).run(RetryRules.never).figures.recoverySeconds)
        let figures = try await Storm(scenario).run(RetryRules.default).figures
        // A tenth of the server has a tenth of its evenness.
        #expect((figures.recoverySeconds ?? .infinity) <= none + (LongTests.areOn ? 1 : 4))
    }

    @Test("E5: all clients succeed with at most 2.5 attempts a call and 60 % of the capacity")
    func herd() async throws {
        let scenario = Self.sized(.herd)
        let figures = try await Storm(scenario).run(RetryRules.patient).figures
        #expect(figures.success == 1 && figures.load <= 2.5 && figures.stranded == 0)
        if LongTests.areOn { #expect((figures.peakRate ?? .infinity) <= 0.6 * scenario.server.capacity) }
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastSemantics
import HoldfastTestKit
import Testing

@testable import HoldfastSimulation

/// Whether real pipelines in the simulated world come out where the study's own simulator does (§5.1).
@Suite("Faithfulness of the storms, §5.1", .timeLimit(.minutes(60)))
struct FaithfulnessTests {
    /// The figures that are compared: what may differ beyond chance, because the programs round otherwise.
    static let metrics: [String: (figure: @Sendable (StormFigures) -> Double?, slack: Double)] = [
        "success": ({ $0.success }, 0.002), "successInFault": ({ $0.successInFault }, 0.004),
        "load": ({ $0.load }, 0.004), "loadInFault": ({ $0.loadInFault }, 0.01),
        "recoverySeconds": ({ $0.recoverySeconds }, 1), "peakRate": ({ $0.peakRate }, 10),
        "lastSuccessSeconds": ({ $0.lastSuccessSeconds }, 0.05),
        "medianSuccessSeconds": ({ $0.medianSuccessSeconds }, 0.001),
        "p99SuccessSeconds": ({ $0.p99SuccessSeconds }, 0.005), "p99FailureSeconds": ({ $0.p99FailureSeconds }, 0.005),
        "wastedWork": ({ $0.wastedWork }, 3),
    ]

    /// Outage and slow server take longer, so that they wait for the long tests.
    static let compared = LongTests.areOn ? ["outage", "slow", "herd", "brownout"] : ["herd", "brownout"]

    /// How many standard errors of the difference of both means are taken for chance.
    static let errors = 4.5

    static let scenarios: [String: StormScenario] = {
        var outage = StormScenario("outage", rate: 70)
        outage.horizon = 40
        outage.faults = [StormFault(.down, from: 10, to: 20)]
        var slow = StormScenario("slow", rate: 70)
        slow.faults = [StormFault(.slow, from: 10, to: 20, amount: 2.5)]
        var herd = StormScenario("herd", burst: 200)
        herd.faults = [StormFault(.down, from: 0, to: 10)]
        herd.deadline = 60
        herd.attempts = 50
        var brownout = StormScenario("brownout", rate: 60)
        brownout.horizon = 20
        brownout.faults = [StormFault(.err, from: 0, to: 20, amount: 0.3)]
        var scenarios = [outage, slow, herd, brownout]
        for index in scenarios.indices {
            scenarios[index].processes = 5
            scenarios[index].server.workers = 5
            scenarios[index].seeds = LongTests.areOn ? Array(1...20) : [1]
        }
        return Dictionary(uniqueKeysWithValues: scenarios.map { ($0.name, $0) })
    }()

    /// Those that the other simulator has as well.
    static let subjects =
        [
            StormSubject("none", rules: .never), StormSubject("pool", rules: .default),
            StormSubject("patient-pool", rules: .patient),
        ]
        + StormSubject.peers.filter { $0.name != "finagle" && $0.name != "polly" }

    /// A figure of the other simulator; no mean: it never recovered.
    private struct Expected {
        let metric: String
        let mean: Double?
        let deviation: Double
    }

    private static func expected(_ scenario: String, _ subject: String) -> [Expected] {
        let lines = FaithfulnessBaseline.figures[scenario, default: ""].split(separator: "\n")
        return lines.filter { $0.hasPrefix(subject + ":") }.flatMap { line in
            line.dropFirst(subject.count + 1).split(separator: ",").compactMap { text in
                let words = text.split(separator: " ")
                guard words.count == 3, let deviation = Double(words[2]) else { return nil }
                return Expected(metric: String(words[0]), mean: Double(words[1]), deviation: deviation)
            }
        }
    }

    @Test(
        "Every figure lies within 4.5 standard errors of the study's simulator, for none, the pools and the peers",
        arguments: compared,
        subjects
    )
    func figures(_ name: String, _ subject: StormSubject) async throws {
        let scenario = try #require(Self.scenarios[name])
        let figures = try await Storm(scenario).run(subject).figures
        let expected = Self.expected(name, subject.name)
        #expect(expected.count >= 4 && figures.stranded == 0)
        for expected in expected {
            let metric = try #require(Self.metrics[expected.metric])
            guard let mean = expected.mean else {
                #expect(figures.recovers == false)
                continue
            }
            // A quantile that jumps between two heights from run to run has no mean to compare with.
            if expected.metric.hasPrefix("p99"), expected.deviation > 0.15 * mean { continue }
            let found = try #require(metric.figure(figures), "\(expected.metric)")
            let error = expected.deviation * (1 / Double(scenario.seeds.count) + 1.0 / 60).squareRoot()
            #expect(
                abs(found - mean) <= Self.errors * error + metric.slack,
                "\(name), \(subject.name): \(expected.metric) is \(found), not \(mean) ± \(error)"
            )
        }
    }

    @Test("Without a budget the load of a brown-out is (1 − p⁴) / (1 − p), §5.1", arguments: [10.0, 30, 50])
    func analytic(_ percent: Double) async throws {
        var scenario = StormScenario.brownout(percent)
        scenario.rate = 100
        scenario.horizon = 30
        scenario.seeds = [1]
        let load = try await Storm(scenario).run(StormSubject.fullJitter).figures.load
        let share = percent / 100
        let expected = (1 - share * share * share * share) / (1 - share)
        #expect(abs(load / expected - 1) < 0.035, "\(load), not \(expected)")
    }
}

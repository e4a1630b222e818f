// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Harness
import HoldfastSimulation
import Testing

@testable import StormBenchmark

@Suite("What is printed")
struct StormTablesTests {
    private static let file = """
        {"name": "mine", "rate": 40, "processes": 4, "horizon": 20, "deadline": 2, "seeds": [1, 2],
         "server": {"workers": 2, "mean": 0.03}, "faults": [{"kind": "slow", "from": 3, "to": 10, "amount": 4}]}
        """

    private func tables(_ subjects: String) async throws -> StormTables {
        let options = try CommandOptions(
            parsing: ["--scenario", "x.json", "--subject", subjects],
            wordOptions: Plan.wordOptions
        )
        let plan = try Plan(options) { _ in Data(Self.file.utf8) }
        return StormTables(plan: plan, runs: try await StormRuns.run(plan))
    }

    @Test("JSON names case and subject; a subject that never recovers has null seconds, and 'never' in the table")
    func never() async throws {
        let tables = try await tables("none,3-retries-immediate")
        #expect(tables.findings.isEmpty)
        #expect(tables.report.value("mine/load", "none") == 1)
        #expect((tables.report.value("mine/load", "3-retries-immediate") ?? 0) > 1.5)
        #expect(tables.report.value("mine/recover-seconds", "3-retries-immediate") == .infinity)
        let row = #"{"case": "mine/recover-seconds", "subject": "3-retries-immediate", "value": null, "unit": "s"}"#
        #expect(tables.report.json.contains(row))
        #expect(tables.text.split(separator: "\n").contains { $0.contains("3-retries") && $0.contains("never") })
    }

    @Test("The plot is an image that names its subjects and contains no invalid number")
    func plot() async throws {
        let svg = try #require(try await tables("none,full-jitter").plot?.svg)
        #expect(svg.hasPrefix("<svg") && svg.hasSuffix("</svg>\n"))
        #expect(svg.components(separatedBy: "<polyline").count == 5)
        #expect(svg.contains(">full-jitter</text>") && !svg.contains("nan") && !svg.contains("inf"))
        #expect(StormPlot.escaped("a<b>&\"\u{1}") == "a&lt;b&gt;&amp;&quot;\u{FFFD}")
    }

    @Test("Means are taken second by second; a second without started calls has no share")
    func means() {
        let first = [
            StormReport.Second(begun: 2, succeeded: 1, attempts: 4), .init(begun: 0, succeeded: 0, attempts: 2),
        ]
        let second = [StormReport.Second(begun: 2, succeeded: 2, attempts: 2)]
        #expect(
            StormPlot.Second.means(of: [first, second]) == [
                .init(attempts: 3, success: 0.75), .init(attempts: 1, success: nil),
            ]
        )
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Harness
import HoldfastSimulation
import Testing

@testable import StormBenchmark

@Suite("What is run")
struct PlanTests {
    private func plan(_ words: [String], file: String = "") throws -> Plan {
        let options = try CommandOptions(
            parsing: words,
            numberOptions: Plan.numberOptions,
            wordOptions: Plan.wordOptions,
            flagOptions: Plan.flagOptions
        )
        return try Plan(options) { _ in Data(file.utf8) }
    }

    @Test("Without options: the study, every preset, every peer, three seeds or more")
    func usual() throws {
        let plan = try plan([])
        #expect(plan.scenarios == StormScenario.study)
        #expect(plan.subjects == StormSubject.presets + StormSubject.peers)
        #expect(
            plan.scenarios.allSatisfy { $0.seeds.starts(with: [1, 2, 3]) } && !plan.isContention && plan.plot == nil
        )
    }

    @Test("Cases and subjects are chosen by name; brownout stands for all its variants")
    func chosen() throws {
        let plan = try plan(["--case", "outage,brownout", "--subject", "default,alamofire", "--seeds", "4,5"])
        #expect(plan.scenarios.map(\.name).first == "outage" && plan.scenarios.count == 7)
        #expect(plan.subjects.map(\.name) == ["default", "alamofire"])
        #expect(plan.scenarios.allSatisfy { $0.seeds == [4, 5] })
    }

    @Test("Quick is one seed of the most telling cases, or of the chosen ones")
    func quick() throws {
        let quick = try plan(["--quick"])
        #expect(quick.scenarios.map(\.name) == ["outage", "slow", "brownout-30", "herd"])
        #expect(quick.scenarios.allSatisfy { $0.seeds == [1] } && quick.seconds < 45)
        #expect(try plan(["--quick", "--case", "brownout-5"]).scenarios.map(\.name) == ["brownout-5"])
    }

    @Test("Every cell runs once, and parking rules come last")
    func order() throws {
        let plan = try plan([])
        let cells = StormRuns.order(plan)
        #expect(Set(cells.map { $0.row * 100 + $0.column }).count == plan.scenarios.count * plan.subjects.count)
        #expect(cells.first?.row == 0 && cells.first?.column == 0)
        #expect(cells.suffix(plan.scenarios.count).allSatisfy { plan.subjects[$0.column].name == "patient" })
        #expect(cells.last?.row == 0)
    }

    @Test("A scenario file replaces the study")
    func file() throws {
        let plan = try plan(
            ["--scenario", "x.json"],
            file: #"{"name": "mine", "rate": 10, "horizon": 5, "seeds": [9]}"#
        )
        #expect(plan.scenarios.map(\.name) == ["mine"] && plan.scenarios[0].seeds == [9])
    }

    @Test(
        "An invalid scenario file is refused, with its name and the property",
        arguments: [
            ("{}", "name"), ("[]", "scenario"), (#"{"name": "x"}"#, "rate"),
            (#"{"name": "x", "rate": 1, "server": {"workers": 0}}"#, "server.workers"),
            (#"{"name": "x", "rate": 1, "faults": [{"kind": "flood", "from": 0, "to": 1}]}"#, "faults[0].kind"),
        ]
    )
    func badFile(_ content: String, _ word: String) {
        let error = #expect(throws: ScenarioFileError.self) { try plan(["--scenario", "x.json"], file: content) }
        #expect(error?.description.contains("x.json") == true && error?.description.contains(word) == true)
    }

    @Test(
        "Invalid words are refused",
        arguments: [
            ["--case", "tsunami"], ["--subject", "nobody"], ["--seeds", "a"], ["--seeds", "1,,2"],
            ["--directory", "/x"],
            ["--contention=1"],
        ]
    )
    func misuse(_ words: [String]) {
        #expect(throws: CommandOptions.Misuse.self) { try plan(words) }
    }
}

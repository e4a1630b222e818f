// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSimulation
import Testing

@Suite("Storm scenarios")
struct StormScenarioTests {
    @Test("Every scenario of the study is valid and survives a round trip through JSON", arguments: StormScenario.study)
    func coding(_ scenario: StormScenario) throws {
        try scenario.validate()
        let data = try JSONEncoder().encode(scenario)
        #expect(try JSONDecoder().decode(StormScenario.self, from: data) == scenario)
    }

    @Test("The study has the names and numbers of §5.1")
    func study() {
        #expect(
            StormScenario.study.map(\.name) == [
                "outage", "slow", "brownout-1", "brownout-5", "brownout-10", "brownout-30", "brownout-50",
                "brownout-90",
                "herd", "advised-herd", "gate", "blip-8", "blip-32", "idle-blip-32", "drained-blip-32", "app", "apps",
                "one-resource", "quota", "quickstart", "quickstart-unadvised",
            ]
        )
        #expect(StormScenario.outage.server.capacity == 1_000 && StormScenario.outage.processes == 50)
        #expect(StormScenario.outage.faultWindow == 30..<60 && StormScenario("x", rate: 1).faultWindow == nil)
        #expect(StormScenario.herd.burst == 2_000 && StormScenario.herd.attempts == 50)
        #expect(StormScenario.brownout(2.5).name == "brownout-2.5")
    }

    @Test("A share of a scenario has that share of clients and server, at least one of each, and the rest as it was")
    func scaled() {
        let tenth = StormScenario.outage.scaled(to: 0.1)
        #expect(tenth.rate == 70 && tenth.processes == 5 && tenth.server.workers == 5)
        #expect(tenth.faults == StormScenario.outage.faults && tenth.name == "outage")
        #expect(StormScenario.herd.scaled(to: 0.1).burst == 200)
        #expect(StormScenario.outage.scaled(to: 2).server.capacity == 2_000)
        for share in [0, -1, .nan, .infinity] {
            let odd = StormScenario.outage.scaled(to: share)
            #expect(odd.processes >= 1 && odd.server.workers >= 1)
        }
    }

    @Test("A file needs a name and a load; the rest has defaults")
    func defaults() throws {
        let scenario = try JSONDecoder().decode(StormScenario.self, from: Data(#"{"name": "x", "burst": 3}"#.utf8))
        #expect(scenario == StormScenario("x", burst: 3))
        #expect(scenario.seeds == [1, 2, 3] && scenario.attemptTimeout == 1 && scenario.deadline == 10)
    }

    @Test("An arrival in a file needs a time and a number of calls")
    func arrivals() throws {
        let data = Data(#"{"name": "x", "arrivals": [{"at": 2, "calls": 3}, {"at": 4, "calls": 5, "spread": 1}]}"#.utf8)
        let scenario = try JSONDecoder().decode(StormScenario.self, from: data)
        #expect(scenario.arrivals == [.init(at: 2, calls: 3), .init(at: 4, calls: 5, spread: 1)])
    }

    @Test("The example of the documentation is a valid scenario")
    func example() throws {
        var root = URL(filePath: #filePath)
        for _ in 0..<4 { root.deleteLastPathComponent() }
        let data = try Data(contentsOf: root.appending(path: "docs/measuring/storm-example.json"))
        let scenario = try JSONDecoder().decode(StormScenario.self, from: data)
        try scenario.validate()
        #expect(scenario.name == "checkout" && scenario.faults.count == 3 && scenario.seeds.count == 5)
    }

    @Test(
        "An invalid value is refused by its name",
        arguments: [
            ("processes", #""rate": 1, "processes": 0"#), ("horizon", #""rate": 1, "horizon": -1"#),
            ("burst", #""burst": 0"#), ("rate", #""rate": 0"#), ("rate", #""rate": 1e6, "horizon": 3600"#),
            ("rate", #""deadline": 1"#), ("server.workers", #""rate": 1, "server": {"workers": -4}"#),
            ("server.mean", #""rate": 1, "server": {"mean": 0}"#),
            ("server.refusal", #""rate": 1, "server": {"refusal": 200}"#),
            ("server.maxWait", #""rate": 1, "server": {"maxWait": -1}"#),
            ("attemptTimeout", #""rate": 1, "attemptTimeout": 0"#), ("deadline", #""rate": 1, "deadline": 1e300"#),
            ("attempts", #""rate": 1, "attempts": 0"#), ("seeds", #""rate": 1, "seeds": []"#),
            ("faults[0].to", #""rate": 1, "faults": [{"kind": "down", "from": 2, "to": 2}]"#),
            ("faults[0].kind", #""rate": 1, "faults": [{"kind": "flood", "from": 0, "to": 1}]"#),
            (
                "faults[1].amount",
                #""rate": 1, "faults": [{"kind": "down", "from": 0, "to": 1}, {"kind": "err", "from": 0, "to": 1, "amount": 2}]"#
            ),
        ]
    )
    func refused(_ property: String, _ members: String) async throws {
        let data = Data(#"{"name": "x", \#(members)}"#.utf8)
        let scenario = try JSONDecoder().decode(StormScenario.self, from: data)
        let error = #expect(throws: StormScenarioError.self) { try scenario.validate() }
        #expect(error?.property == property)
        await #expect(throws: StormScenarioError.self) { try await Storm(scenario).run { _, _ in .never } }
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Harness
import HoldfastSimulation
import Testing

@testable import HitRateBenchmark

@Suite("Replays of a trace")
struct ReplaysTests {
    private func plan(_ words: [String]) throws -> Plan {
        try Plan(CommandOptions(parsing: words, numberOptions: Plan.numberOptions, wordOptions: Plan.wordOptions))
    }

    @Test("The cells are in the plan's order, however many run at a time", arguments: ["1", "2", "7"])
    func order(_ jobs: String) async throws {
        let plan = try plan(["--policy", "all", "--size", "1%,10%", "--jobs", jobs])
        let trace = SyntheticTrace.make(seed: 1, requests: 3_000)
        let replays = await Replays.run("t", trace, plan, Stopwatch())
        let cells = replays.cells.compactMap { $0 }
        #expect(cells.count == Subject.all.count * 2)
        #expect(cells.map(\.subject) == Subject.all + Subject.all)
        #expect(cells.map(\.size.description) == Subject.all.map { _ in "1%" } + Subject.all.map { _ in "10%" })
        for cell in cells {
            let share = cell.size.description == "1%" ? 0.01 : 0.1
            #expect(cell.result.capacity == Int(Double(trace.uniqueBytes) * share))
            #expect(cell.result.requests == 3_000 && cell.result.policy == cell.subject.name)
            #expect(cell.requestsPerSecond > 0)
        }
    }

    @Test("No policy hits more objects of one size than Belady's bound")
    func bound() async throws {
        var trace = RequestTrace()
        for request in SyntheticTrace.make(seed: 3, requests: 5_000).requests {
            trace.append(key: UInt64(request.key), size: 1)
        }
        let plan = try plan(["--size", "1%,5%"])
        let replays = await Replays.run("t", trace, plan, Stopwatch())
        for size in plan.sizes {
            let bound = try #require(Subject(named: "belady").flatMap { replays.cell($0, size) })
            for subject in plan.subjects {
                let cell = try #require(replays.cell(subject, size))
                #expect(cell.result.hits <= bound.result.hits, "\(subject.name) at \(size)")
            }
        }
    }

    @Test(
        "If time ran out before all cells were done, the rest gives no mean, and the figures say so"
    )
    func cut() throws {
        let plan = try plan(["--policy", "lru", "--size", "1%", "--quick"])
        let trace = SyntheticTrace.make(seed: 1, requests: 100)
        let cell = try #require(Cell(plan.subjects[0], plan.sizes[0], trace, nil, rate: 1, plan) { _ in })
        func replays(_ name: String, _ cells: [Cell?]) -> Replays {
            Replays(
                name: name,
                requests: trace.requests.count,
                keys: trace.keyCount,
                totalBytes: trace.totalBytes,
                uniqueBytes: trace.uniqueBytes,
                rate: 1,
                bestObject: 0,
                bestByte: 0,
                cells: cells
            )
        }
        let whole = HitRateFigures(plan: plan, replays: [replays("a", [cell]), replays("b", [cell])])
        // Three rows each: objects, bytes, and what is written.
        let names = ["a@1%", "b@1%", "mean@1%"].flatMap { [$0, $0, $0] }
        #expect(!whole.isCut && whole.report.results.map(\.name) == names)
        let cut = HitRateFigures(plan: plan, replays: [replays("a", [cell]), replays("b", [nil])])
        #expect(cut.isCut && cut.report.results.map(\.name) == Array(names.prefix(3)))
        #expect(cut.plot.curves.map(\.points.count) == [0])
    }

    @Test("A sample's rate is read from the file beside the trace, and --rate overrides it")
    func rate() async throws {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let path = directory.appendingPathComponent("a.trace").path
        #expect(TraceSource(path: path).rate == 1)
        try Data("0.25\n".utf8).write(to: URL(fileURLWithPath: path + ".rate"))
        #expect(TraceSource(path: path).rate == 0.25)
        try Data("-1\n".utf8).write(to: URL(fileURLWithPath: path + ".rate"))
        #expect(TraceSource(path: path).rate == 1)

        let trace = SyntheticTrace.make(seed: 1, requests: 100)
        let bytes = try plan(["--policy", "lru", "--size", "1MB"])
        let told = try plan(["--policy", "lru", "--size", "1MB", "--rate", "0.5"])
        let beside = await Replays.run("t", trace, rate: 0.25, bytes, Stopwatch())
        #expect(beside.cells.map { $0?.result.capacity } == [250_000])
        let asked = await Replays.run("t", trace, rate: 0.25, told, Stopwatch())
        #expect(asked.cells.map { $0?.result.capacity } == [500_000])
    }

    @Test("By key, another size is the same version, also for a cache without a bound")
    func byKey() async throws {
        var trace = RequestTrace()
        for size: UInt32 in [10, 12, 11] { trace.append(key: 1, size: size) }
        let plan = try plan(["--policy", "lru", "--size", "100", "--versions", "by-key"])
        let replays = await Replays.run("t", trace, plan, Stopwatch())
        #expect(replays.cells.map { $0?.result.hits } == [2])
        #expect(replays.bestObject == 2.0 / 3)
        #expect(replays.bestByte == 23.0 / 33)
    }
}

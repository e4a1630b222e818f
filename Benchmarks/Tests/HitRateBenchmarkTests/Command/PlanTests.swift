// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Harness
import HoldfastSimulation
import Testing

@testable import HitRateBenchmark

@Suite("What is replayed")
struct PlanTests {
    private func plan(_ words: [String]) throws -> Plan {
        try Plan(CommandOptions(parsing: words, numberOptions: Plan.numberOptions, wordOptions: Plan.wordOptions))
    }

    @Test("Without options: a generated trace, all policies, the study's three sizes")
    func usual() throws {
        let plan = try plan([])
        #expect(plan.traces.isEmpty && TraceSource.all(plan).map(\.name) == ["zipf"])
        #expect(plan.subjects == Subject.all)
        #expect(plan.sizes.map(\.description) == ["0.1%", "1%", "10%"])
        #expect(plan.seed == 1 && plan.limit == nil && plan.rate == nil && plan.warmUp == 0)
    }

    @Test("Traces may be repeated, sizes and policies separated by commas, and each counts once")
    func lists() throws {
        let plan = try plan([
            "--trace", "/x/a.b.trace", "--trace=c.csv", "--policy", "lru,all,lru", "--size", "1%,64MB,1%",
        ])
        #expect(TraceSource.all(plan).map(\.name) == ["a.b", "c"])
        #expect(plan.subjects.first?.name == "lru" && plan.subjects.count == Subject.all.count)
        #expect(plan.sizes.map(\.description) == ["1%", "64MB"])
    }

    @Test("A plot uses a range of sizes unless others are given")
    func sweep() throws {
        #expect(try plan(["--plot", "x.svg"]).sizes == CacheSize.curve)
        #expect(try plan(["--plot", "x.svg", "--size", "1%"]).sizes.count == 1)
    }

    @Test(
        "Invalid words are refused",
        arguments: [
            ["--policy", "lfu"], ["--size", "many"], ["--size", "0"], ["--size", "1%,"], ["--measure", "both"],
            ["--rate", "0"], ["--rate", "2"], ["--warm-up", "1"], ["--requests", "0"], ["--versions", "x"],
            ["--warm-up", "0.5", "--policy", "belady"], ["--case", "x"],
            ["--directory", "/x"],
            ["--trace", "a", "--trace", "b", "--plot", "x.svg", "--size", "1%,1MB"],
        ]
    )
    func misuse(_ words: [String]) {
        #expect(throws: CommandOptions.Misuse.self) { try plan(words) }
    }

    @Test("A bound counts from the first request on, so it excludes a warm-up")
    func warmUp() throws {
        let plan = try plan(["--warm-up", "0.5"])
        #expect(!plan.subjects.isEmpty && !plan.subjects.contains { $0.isBound })
    }

    @Test("The message for an unknown policy lists the known ones")
    func unknownPolicy() throws {
        let misuse = try #require(throws: CommandOptions.Misuse.self) { try plan(["--policy", "lfu"]) }
        #expect(misuse.description.contains("'lfu'") && misuse.description.contains("lru"))
    }
}

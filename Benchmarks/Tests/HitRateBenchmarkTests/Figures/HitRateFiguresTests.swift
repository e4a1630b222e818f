// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Harness
import HoldfastSimulation
import Testing

@testable import HitRateBenchmark

@Suite("Figures of replays")
struct HitRateFiguresTests {
    private func figures(_ words: [String], traces: [String: [UInt64]]) async throws -> HitRateFigures {
        let plan = try Plan(
            CommandOptions(parsing: words, numberOptions: Plan.numberOptions, wordOptions: Plan.wordOptions)
        )
        var all: [Replays] = []
        for (name, keys) in traces.sorted(by: { $0.key < $1.key }) {
            var trace = RequestTrace()
            for key in keys { trace.append(key: key, size: 10) }
            all.append(await Replays.run(name, trace, plan, Stopwatch()))
        }
        return HitRateFigures(plan: plan, replays: all)
    }

    @Test("Three rows for each cell: the case is the trace and the size as given")
    func rows() async throws {
        let figures = try await figures(["--policy", "lru,belady", "--size", "10,100%"], traces: ["t": [1, 2, 1, 1]])
        #expect(
            figures.report.json
                == #"{"results": [{"case": "t@10", "subject": "lru", "value": 0.25, "unit": "object-hit-ratio"}, "#
                + #"{"case": "t@10", "subject": "lru", "value": 0.25, "unit": "byte-hit-ratio"}, "#
                + #"{"case": "t@10", "subject": "lru", "value": 1, "unit": "write-amplification"}, "#
                + #"{"case": "t@10", "subject": "belady", "value": 0.25, "unit": "object-hit-ratio"}, "#
                + #"{"case": "t@10", "subject": "belady", "value": 0.25, "unit": "byte-hit-ratio"}, "#
                + #"{"case": "t@10", "subject": "belady", "value": 1, "unit": "write-amplification"}, "#
                + #"{"case": "t@100%", "subject": "lru", "value": 0.5, "unit": "object-hit-ratio"}, "#
                + #"{"case": "t@100%", "subject": "lru", "value": 0.5, "unit": "byte-hit-ratio"}, "#
                + #"{"case": "t@100%", "subject": "lru", "value": 1, "unit": "write-amplification"}, "#
                + #"{"case": "t@100%", "subject": "belady", "value": 0.5, "unit": "object-hit-ratio"}, "#
                + #"{"case": "t@100%", "subject": "belady", "value": 0.5, "unit": "byte-hit-ratio"}, "#
                + #"{"case": "t@100%", "subject": "belady", "value": 1, "unit": "write-amplification"}]}"#
        )
    }

    @Test("Several traces have a mean at each size and over all")
    func means() async throws {
        let figures = try await figures(
            ["--policy", "lru", "--size", "10,100%"],
            traces: ["a": [1, 1, 1, 1], "b": [1, 2, 1, 2]]
        )
        let report = figures.report
        #expect(report.value("a@10", "lru") == 0.75 && report.value("b@10", "lru") == 0)
        #expect(report.value("mean@10", "lru") == 0.375)
        #expect(report.value("mean@100%", "lru") == 0.625)
        #expect(report.value("mean", "lru") == 0.5)
    }

    @Test("The table says what was replayed and what a cache without a bound would hit")
    func table() async throws {
        let figures = try await figures(["--policy", "lru", "--size", "10"], traces: ["t": [1, 1, 2, 1]])
        let lines = figures.text.split(separator: "\n", omittingEmptySubsequences: false)
        #expect(
            lines[0] == "t: 4 requests for 2 keys, 40 B, 20 B of them unique; "
                + "an unlimited cache hits 50.00 % of the requests and 50.00 % of the bytes"
        )
        #expect(lines[1].isEmpty && lines[2].hasPrefix("t@10  object %  byte %  written  ampl.  Mreq/s"))
        #expect(lines[3].hasPrefix("lru      25.00   25.00     0.75   1.00  "))
    }

    @Test("The plot of one trace uses bytes, that of several the share of the unique bytes")
    func plots() async throws {
        let one = try await figures(["--policy", "lru", "--size", "50%,100%"], traces: ["t": [1, 2, 1, 2]]).plot
        #expect(one.curves.map { $0.points.map(\.size) } == [[10, 20]] && one.axis == .bytes && one.title == "t")
        #expect(one.curves[0].points.map(\.missRatio) == [1, 0.5])
        let two = try await figures(
            ["--policy", "lru", "--size", "50%,100%", "--measure", "byte"],
            traces: ["a": [1, 2, 1, 2], "b": [1, 1, 1, 2]]
        ).plot
        #expect(two.axis == .percent && two.measure == .byte)
        #expect(two.curves[0].points == [.init(size: 50, missRatio: 0.75), .init(size: 100, missRatio: 0.5)])
        let sample = try await figures(["--policy", "lru", "--size", "100", "--rate", "0.1"], traces: ["t": [1, 1]])
            .plot
        #expect(sample.curves[0].points == [.init(size: 100, missRatio: 0.5)])
    }
}

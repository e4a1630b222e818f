// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Harness
import Testing

@testable import ScaleBenchmark

@Suite("The charts of scale")
struct ScaleChartTests {
    private let chart = Chart(
        title: "More threads",
        xLabel: "threads",
        yLabel: "ns",
        ticks: [(1, "1"), (10, "10"), (100, "100")],
        curves: [
            .init(name: "first", points: [.init(x: 1, y: 100), .init(x: 10, y: 50), .init(x: 100, y: 0)]),
            .init(name: "second", points: [.init(x: 1, y: 100), .init(x: 100, y: 100)]),
        ]
    )

    @Test("Axis steps multiply")
    func across() {
        #expect(chart.across(1) == 0)
        #expect(abs(chart.across(10) - 0.5) < 1e-9)
        #expect(chart.across(1_000) == 1)
        #expect(chart.ceiling == 100)
    }

    @Test("Points are at their figures, and overlapping ones are drawn as a plus sign")
    func text() {
        let lines = chart.text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        #expect(lines[2] == "     100 |+" + String(repeating: " ", count: 63) + "b")
        #expect(lines[9] == "      50 |" + String(repeating: " ", count: 32) + "a")
        #expect(lines[16] == "       0 |" + String(repeating: " ", count: 64) + "a")
        #expect(chart.text.contains("  a  first\n  b  second\n"))
    }

    @Test("The picture is XML, and the same charts give the same picture")
    func picture() throws {
        let svg = ChartPicture([chart, chart]).svg
        #expect(svg == ChartPicture([chart, chart]).svg)
        #expect(svg.components(separatedBy: "<polyline").count == 5)
        #expect(svg.components(separatedBy: "<g").count == svg.components(separatedBy: "</g>").count)
        #expect(svg.contains(">nanoseconds") == false && svg.contains(">ns</text>") && svg.contains(">threads</text>"))
    }

    @Test("Curves connect measured points only, and a single point has no curve")
    func measured() {
        let cases = ScaleCase.all(threadEntries: 100)
        var report = Report()
        report.add(Figure("hot@1", "holdfast", 100, "ns"))
        report.add(Figure("hot@2", "holdfast", 60, "ns"))
        report.add(Figure("hot@2", "dictionary", skipped: "it is too large", "ns"))
        report.add(Figure("hot-10k", "holdfast", 100, "ns"))
        let charts = ScaleCharts(report, cases, [.holdfast, .dictionary]).charts
        #expect(charts.map(\.title) == ["More threads"])
        #expect(charts[0].curves.map(\.name) == ["holdfast, one hot key"])
        #expect(charts[0].ticks.map(\.word) == ["1", "2", "4", "8"])
    }
}

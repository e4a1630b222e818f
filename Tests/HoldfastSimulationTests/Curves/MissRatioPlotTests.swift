// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Testing

@testable import HoldfastSimulation

#if canImport(FoundationXML)
    import FoundationXML
#endif

@Suite("Plots of miss-ratio curves")
struct MissRatioPlotTests {
    private func curve(_ name: String, _ points: [(Double, Double)]) -> MissRatioCurve {
        MissRatioCurve(name: name, points: points.map { MissRatioCurve.Point(size: $0.0, missRatio: $0.1) })
    }

    private func plot(_ curves: [MissRatioCurve], axis: MissRatioPlot.Axis = .bytes) -> MissRatioPlot {
        MissRatioPlot(title: "t", axis: axis, curves: curves)
    }

    @Test("A size is placed by its logarithm, a ratio from the bottom up")
    func coordinates() {
        let svg = plot([curve("a", [(1e3, 1), (1e4, 0.5), (1e5, 0)])]).svg
        #expect(svg.contains(#"points="70,70 425,250 780,430""#))
    }

    @Test("Ticks are at powers of ten, or closer if these are few")
    func ticks() {
        let wide = PlotFrame([curve("a", [(500, 1), (2e6, 0)])], form: .bytes)
        #expect(wide.ticks.map(\.name) == ["1 kB", "10 kB", "100 kB", "1 MB"])
        let narrow = PlotFrame([curve("a", [(1.5e6, 1), (3e7, 0)])], form: .bytes)
        #expect(narrow.ticks.map(\.name) == ["2 MB", "5 MB", "10 MB", "20 MB"])
        let percent = PlotFrame([curve("a", [(0.01, 1), (100, 0)])], form: .percent)
        #expect(percent.ticks.map(\.name) == ["0.01 %", "0.1 %", "1 %", "10 %", "100 %"])
        #expect(percent.ticks.first?.x == PlotFrame.left && percent.ticks.last?.x == PlotFrame.right)
        let small = PlotFrame([curve("a", [(0.4, 1), (30, 0)])], form: .bytes)
        #expect(small.ticks.map(\.name) == ["0.5 B", "1 B", "2 B", "5 B", "10 B", "20 B"])
    }

    @Test(
        "Every point lies inside the frame",
        arguments: [[], [(5, 0.5)], [(1, 2), (1e18, -1)], [(1e-300, 0), (1e300, 1)]]
    )
    func inside(_ points: [(Double, Double)]) {
        let curve = curve("a", points)
        let frame = PlotFrame([curve], form: .bytes)
        for point in curve.points {
            #expect((PlotFrame.left...PlotFrame.right).contains(frame.x(point.size)))
            #expect((PlotFrame.top...PlotFrame.bottom).contains(frame.y(point.missRatio)))
        }
        #expect(frame.ticks.allSatisfy { (PlotFrame.left - 0.1...PlotFrame.right + 0.1).contains($0.x) })
    }

    @Test("The picture is well-formed and has a line and a label for each curve, whatever their names")
    func wellFormed() throws {
        var many = (0..<33).map { curve("policy \($0)", [(10, 0.5), (100, Double($0) / 33)]) }
        many.append(curve("<&\"'\u{1}>", [(10, 0.5)]))
        let svg = MissRatioPlot(title: "a < b & c", measure: .byte, axis: .percent, curves: many).svg
        let parser = XMLParser(data: Data(svg.utf8))
        #expect(parser.parse(), "\(String(describing: parser.parserError))")
        #expect(svg.components(separatedBy: "<polyline").count == 35)
        #expect(svg.contains("&lt;&amp;&quot;'\u{FFFD}&gt;") && svg.contains("a &lt; b &amp; c"))
        #expect(svg.contains("bytes missed") && svg.contains("share of the bytes"))
        // One point alone shows as a dot.
        #expect(svg.components(separatedBy: "<circle").count == 2)
    }

    @Test("The first 16 lines differ by color or dash, neighbors by both")
    func styles() {
        let svg = plot((0..<16).map { curve("\($0)", [(1, 1), (2, 0)]) }).svg
        let styles = svg.split(separator: "\n").filter { $0.hasPrefix("<path stroke=") }
            .map { $0.prefix(upTo: $0.range(of: " d=")?.lowerBound ?? $0.endIndex) }
        #expect(styles.count == 16)
        #expect(Set(styles).count == 16)
    }

    @Test("The picture refers to nothing outside and sets no background")
    func selfContained() {
        let svg = plot([curve("a", [(1, 1), (10, 0)])]).svg
        #expect(svg.components(separatedBy: "http").count == 2)
        #expect(!svg.contains("<rect") && !svg.contains("<script") && !svg.contains("<image"))
        #expect(svg == plot([curve("a", [(1, 1), (10, 0)])]).svg)
    }
}

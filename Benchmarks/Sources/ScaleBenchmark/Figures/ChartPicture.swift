// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Harness

/// Draws charts as a picture, one below the other.
///
/// Lines differ by color and by dash. The colors are those of Okabe and Ito (2008), which people with color vision deficiency
/// can also distinguish; the background is the page's own, light or dark.
struct ChartPicture: Sendable {
    private let charts: [Chart]

    private static let (left, right, top, bottom) = (80.0, 770.0, 60.0, 260.0)
    /// The height of a chart without its legend.
    private static let height = 310.0
    private static let colors = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"]

    init(_ charts: [Chart]) { self.charts = charts }

    /// The picture as SVG, the same for the same charts. It is 800 units wide and scales.
    var svg: String {
        var (parts, y): ([String], Double) = ([], 0)
        for chart in charts {
            parts.append(##"<g transform="translate(0 \##(text(y)))">"##)
            parts += drawn(chart) + ["</g>"]
            y += Self.height + 22 * Double((chart.curves.count + 2) / 3)
        }
        let head =
            #"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 800 \#(text(y))" role="img" "#
            + #"font-family="system-ui, sans-serif" font-size="13">"#
        return ([head, "<title>What a hit costs with more threads and more entries</title>"] + parts)
            .joined(separator: "\n") + "\n</svg>\n"
    }

    private func drawn(_ chart: Chart) -> [String] {
        let ceiling = chart.ceiling
        var parts = [
            label(chart.title, Self.left, 24, "start", #" font-size="16" font-weight="600""#),
            label(chart.yLabel, Self.left, Self.top - 12, "start"),
            label(chart.xLabel, (Self.left + Self.right) / 2, Self.bottom + 40, "middle"),
        ]
        for quarter in 0...4 {
            let value = ceiling * Double(quarter) / 4
            parts.append(label(TextTable.count(Int(value)), Self.left - 8, y(value, ceiling) + 4, "end"))
            parts.append(
                ##"<path stroke="#8a8a8a" stroke-opacity="0.35" d="M\##(text(Self.left)) \##(text(y(value, ceiling)))"##
                    + #"H\#(text(Self.right))"/>"#
            )
        }
        for tick in chart.ticks { parts.append(label(tick.word, x(tick.x, chart), Self.bottom + 20, "middle")) }
        for (index, curve) in chart.curves.enumerated() { parts += drawn(curve, index, chart, ceiling) }
        return parts
    }

    private func drawn(_ curve: Chart.Curve, _ index: Int, _ chart: Chart, _ ceiling: Double) -> [String] {
        let color = Self.colors[index % Self.colors.count]
        let style = #"stroke="\#(color)" stroke-width="1.5""# + (index % 2 == 0 ? "" : #" stroke-dasharray="7 3""#)
        let places = curve.points.map { (text(x($0.x, chart)), text(y($0.y, ceiling))) }
        let line = places.map { "\($0.0),\($0.1)" }.joined(separator: " ")
        let legend = (Self.left + 235 * Double(index % 3), Self.bottom + 66 + 22 * Double(index / 3))
        return [#"<polyline fill="none" stroke-linejoin="round" \#(style) points="\#(line)"/>"#]
            + places.map { #"<circle r="3" fill="\#(color)" cx="\#($0.0)" cy="\#($0.1)"/>"# } + [
                #"<path \#(style) d="M\#(text(legend.0)) \#(text(legend.1 - 4))h28"/>"#,
                label(curve.name, legend.0 + 34, legend.1, "start"),
            ]
    }

    private func x(_ value: Double, _ chart: Chart) -> Double {
        Self.left + 20 + (Self.right - Self.left - 40) * chart.across(value)
    }

    private func y(_ value: Double, _ ceiling: Double) -> Double {
        Self.bottom - (Self.bottom - Self.top) * min(max(value / ceiling, 0), 1)
    }

    /// Only this program's own text, which contains nothing that XML must escape.
    private func label(_ words: String, _ x: Double, _ y: Double, _ anchor: String, _ extra: String = "") -> String {
        ##"<text fill="#7a7a7a" x="\##(text(x))" y="\##(text(y))" text-anchor="\##(anchor)"\##(extra)>\##(words)</text>"##
    }

    /// A coordinate with at most one decimal place.
    private func text(_ value: Double) -> String {
        let tenths = Int((value * 10).rounded())
        return tenths % 10 == 0 ? "\(tenths / 10)" : "\(Double(tenths) / 10)"
    }
}

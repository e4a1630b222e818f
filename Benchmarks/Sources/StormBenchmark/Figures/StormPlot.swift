// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSimulation

/// A picture of a scenario over time: attempts per second at the top, the share of successful calls at the bottom; the fault is
/// shaded.
///
/// Lines differ by color and by dash. The colors are those of Okabe and Ito (2008), which people with color vision deficiency
/// can also distinguish; the background is the page's own, light or dark.
struct StormPlot: Sendable {
    /// The figures of a line in one second.
    struct Second: Sendable, Equatable {
        /// Attempts sent.
        var attempts: Double
        /// The share of successful calls among those that began in this second; nil if none began.
        var success: Double?

        /// The means of several runs, second by second.
        static func means(of runs: [[StormReport.Second]]) -> [Second] {
            (0..<(runs.map(\.count).max() ?? 0)).map { index in
                let found = runs.compactMap { index < $0.count ? $0[index] : nil }
                let begun = found.map(\.begun).reduce(0, +)
                let succeeded = found.map(\.succeeded).reduce(0, +)
                return Second(
                    attempts: Double(found.map(\.attempts).reduce(0, +)) / Double(runs.count),
                    success: begun == 0 ? nil : Double(succeeded) / Double(begun)
                )
            }
        }
    }

    /// The line of a subject.
    struct Line: Sendable {
        let name: String
        let seconds: [Second]
    }

    let scenario: StormScenario
    let lines: [Line]

    /// The picture as SVG, the same for the same lines. It is 800 units wide and scales.
    var svg: String {
        let legendRows = (lines.count + 3) / 4
        let height = Int(StormPlot.lower.bottom) + 62 + 22 * legendRows
        var parts = [
            #"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 800 \#(height)" role="img" "#
                + #"font-family="system-ui, sans-serif" font-size="13">"#,
            "<title>\(StormPlot.escaped(scenario.name))</title>",
        ]
        if let fault = scenario.faultWindow {
            let (from, to) = (x(fault.lowerBound), x(min(fault.upperBound, duration)))
            for panel in [StormPlot.upper, StormPlot.lower] {
                parts.append(
                    ##"<rect x="\##(text(from))" y="\##(text(panel.top))" width="\##(text(to - from))" "##
                        + ##"height="\##(text(panel.bottom - panel.top))" fill="#8a8a8a" fill-opacity="0.18"/>"##
                )
            }
        }
        parts += axes
        for (index, line) in lines.enumerated() { parts += drawn(line, index) }
        return parts.joined(separator: "\n") + "\n</svg>\n"
    }

    private struct Panel {
        let top: Double
        let bottom: Double
    }

    private static let upper = Panel(top: 70, bottom: 290)
    private static let lower = Panel(top: 340, bottom: 500)
    private static let (left, right) = (70.0, 780.0)
    private static let colors = [
        "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#b8a800", "#808080",
    ]
    private static let dashes = ["", "7 3", "2 3", "10 3 2 3"]

    private var duration: Double {
        max(scenario.horizon, Double(lines.map(\.seconds.count).max() ?? 1))
    }

    /// The top of the upper scale: the next round number above all attempts and the server's capacity.
    private var ceiling: Double {
        let most = lines.flatMap { $0.seconds.map(\.attempts) }.max() ?? 0
        let wanted = max(most, scenario.server.capacity, 1)
        var power = 1.0
        while power * 10 <= wanted { power *= 10 }
        return ([1, 2, 3, 4, 5, 6, 8, 10].first { $0 * power >= wanted } ?? 10) * power
    }

    private func x(_ second: Double) -> Double {
        StormPlot.left + (StormPlot.right - StormPlot.left) * second / duration
    }

    private func y(_ share: Double, _ panel: Panel) -> Double {
        panel.bottom - (panel.bottom - panel.top) * min(max(share, 0), 1)
    }

    private var axes: [String] {
        let (upper, lower, ceiling) = (StormPlot.upper, StormPlot.lower, ceiling)
        let capacity = scenario.server.capacity
        var words = [
            label(scenario.name, StormPlot.left, 26, "start", #" font-size="17" font-weight="600""#),
            label("attempts per second; dashed: the capacity of the server", StormPlot.left, upper.top - 10, "start"),
            label("successful calls, by the second in which they began", StormPlot.left, lower.top - 10, "start"),
            label("seconds", (StormPlot.left + StormPlot.right) / 2, lower.bottom + 42, "middle"),
        ]
        var strokes: [String] = []
        for quarter in 0...4 {
            let share = Double(quarter) / 4
            words.append(label("\(Int(share * ceiling))", StormPlot.left - 8, y(share, upper) + 4, "end"))
            words.append(label("\(quarter * 25) %", StormPlot.left - 8, y(share, lower) + 4, "end"))
            for panel in [upper, lower] {
                strokes.append(#"<path d="M70 \#(text(y(share, panel)))H780"/>"#)
            }
        }
        let step = [5.0, 10, 20, 30, 60, 120, 300, 600, 1_800, 3_600].first { duration / $0 <= 14 } ?? 14_400
        for second in stride(from: 0, through: duration, by: step) {
            words.append(label("\(Int(second))", x(second), lower.bottom + 20, "middle"))
        }
        return [##"<g fill="#7a7a7a">"##] + words + ["</g>", ##"<g stroke="#8a8a8a" stroke-opacity="0.35">"##] + strokes
            + [
                "</g>",
                ##"<path stroke="#7a7a7a" stroke-dasharray="6 4" d="M70 \##(text(y(capacity / ceiling, upper)))H780"/>"##,
            ]
    }

    private func drawn(_ line: Line, _ index: Int) -> [String] {
        let color = StormPlot.colors[index % StormPlot.colors.count]
        let dash = StormPlot.dashes[(index / StormPlot.colors.count + index % 2) % StormPlot.dashes.count]
        let style = #"stroke="\#(color)" stroke-width="1.5""# + (dash.isEmpty ? "" : #" stroke-dasharray="\#(dash)""#)
        let ceiling = ceiling
        var load: [String] = []
        var success: [String] = []
        for (second, figures) in line.seconds.enumerated() {
            let place = text(x(Double(second) + 0.5))
            load.append("\(place),\(text(y(figures.attempts / ceiling, StormPlot.upper)))")
            if let share = figures.success { success.append("\(place),\(text(y(share, StormPlot.lower)))") }
        }
        let (legendX, legendY) = (
            StormPlot.left + 177.5 * Double(index % 4), StormPlot.lower.bottom + 70 + 22 * Double(index / 4)
        )
        return [load, success].map {
            #"<polyline fill="none" stroke-linejoin="round" \#(style) points="\#($0.joined(separator: " "))"/>"#
        } + [
            #"<path \#(style) d="M\#(text(legendX)) \#(text(legendY - 4))h28"/>"#,
            label(line.name, legendX + 34, legendY, "start", ##" fill="#7a7a7a""##),
        ]
    }

    private func label(_ words: String, _ x: Double, _ y: Double, _ anchor: String, _ extra: String = "") -> String {
        #"<text x="\#(text(x))" y="\#(text(y))" text-anchor="\#(anchor)"\#(extra)>\#(StormPlot.escaped(words))</text>"#
    }

    /// A coordinate with at most one decimal place.
    private func text(_ value: Double) -> String {
        let tenths = Int((min(max(value, -1e6), 1e6) * 10).rounded())
        return tenths % 10 == 0 ? "\(tenths / 10)" : "\(Double(tenths) / 10)"
    }

    /// Text escaped for XML; characters that XML forbids become the replacement character.
    static func escaped(_ text: String) -> String {
        text.unicodeScalars.map { scalar in
            switch scalar {
            case "&": "&amp;"
            case "<": "&lt;"
            case ">": "&gt;"
            case "\"": "&quot;"
            case _ where scalar.value < 0x20: "\u{FFFD}"
            default: String(scalar)
            }
        }.joined()
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Harness

/// The curves of a report's figures.
struct ScaleCharts {
    private let report: Report
    private let cases: [ScaleCase]
    private let kinds: [SubjectKind]

    init(_ report: Report, _ cases: [ScaleCase], _ kinds: [SubjectKind]) {
        (self.report, self.cases, self.kinds) = (report, cases, kinds)
    }

    /// The charts with a line; a single point shows no trend.
    var charts: [Chart] {
        let threads = cases.filter { $0.name.contains("@") }
        let sizes = cases.filter { !$0.name.contains("@") && $0.face == .lookUp }
        return [
            chart("More threads", "threads", threads, { $0.threads }, { "\($0)" }),
            chart("More entries, a look-up", "entries", sizes, { $0.entries }, ScaleCase.sizeName),
            chart(
                "More entries, a whole call",
                "entries",
                cases.filter { $0.face == .send },
                { $0.entries },
                ScaleCase.sizeName
            ),
        ].filter { chart in chart.curves.contains { $0.points.count > 1 } }
    }

    private func chart(
        _ title: String,
        _ xLabel: String,
        _ cases: [ScaleCase],
        _ place: (ScaleCase) -> Int,
        _ word: (Int) -> String
    ) -> Chart {
        let curves = [true, false].flatMap { isHot in
            kinds.map { kind in
                let points = cases.filter { $0.isHot == isHot }.compactMap { scaleCase in
                    report.value(scaleCase.name, kind.rawValue).flatMap { value in
                        value.isFinite ? Chart.Point(x: Double(place(scaleCase)), y: value) : nil
                    }
                }
                return Chart.Curve(name: "\(kind.rawValue), \(isHot ? "one hot key" : "uniform keys")", points: points)
            }
        }
        return Chart(
            title: title,
            xLabel: xLabel,
            yLabel: "nanoseconds per hit, all threads together",
            ticks: Set(cases.map(place)).sorted().map { (Double($0), word($0)) },
            curves: curves.filter { !$0.points.isEmpty }
        )
    }
}

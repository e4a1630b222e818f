// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Harness
internal import HoldfastSimulation

/// The figures of all runs: tables for people, rows for programs.
struct StormTables: Sendable {
    let plan: Plan
    let runs: StormRuns

    /// What is wrong with a run itself: calls that never ended make its figures worthless.
    var findings: [String] {
        rows.compactMap { scenario, subject, figures in
            guard figures.stranded > 0 else { return nil }
            return "\(scenario.name), \(subject.name): \(TextTable.figure(figures.stranded)) calls never ended"
        }
    }

    /// Rows for programs.
    var report: Report {
        var report = Report()
        for (scenario, subject, figures) in rows {
            func add(_ name: String, _ value: Double?, _ unit: String) {
                guard let value else { return }
                report.add(Figure("\(scenario.name)/\(name)", subject.name, value, unit, places: 6))
            }
            add("success", figures.success, "ratio")
            add("load", StormTables.load(figures, scenario), "ratio")
            add("recover-seconds", figures.recovers.map { $0 ? figures.recoverySeconds ?? 0 : .infinity }, "s")
            add("peak-share", StormTables.peakShare(figures, scenario), "ratio")
            add("peak-second-share", figures.peakSecondRate.map { $0 / scenario.server.capacity }, "ratio")
            add("healthy-success", figures.healthySuccess, "ratio")
            add("healthy-p99", figures.healthyP99SuccessSeconds.map { $0 * 1000 }, "ms")
            add("success-in-fault", figures.successInFault, "ratio")
            add("p50", figures.medianSuccessSeconds.map { $0 * 1000 }, "ms")
            add("p99", figures.p99SuccessSeconds.map { $0 * 1000 }, "ms")
            add("p99-failure", figures.p99FailureSeconds.map { $0 * 1000 }, "ms")
            add("total-load", figures.load, "ratio")
            if scenario.burst != nil { add("last-success", figures.lastSuccessSeconds ?? .infinity, "s") }
            add("wasted", figures.wastedWork, "requests")
            if figures.closedSeconds > 0 {
                add("early-sends", figures.earlySends / figures.closedSeconds, "1/s")
            }
        }
        return report
    }

    /// Tables for people, one for each scenario.
    var text: String {
        plan.scenarios.map { scenario in
            var heads = [scenario.name, "success", "in fault", "load", "in fault", "p50 ms", "p99 ms", "p99 failed"]
            let ofScenario = rows.filter { $0.scenario.name == scenario.name }
            let recovers = ofScenario.contains { $0.figures.recovers != nil }
            let peaks = ofScenario.contains { $0.figures.peakRate != nil }
            let closes = ofScenario.contains { $0.figures.closedSeconds > 0 }
            if recovers { heads.append("recovers s") }
            let singles = ofScenario.contains { $0.figures.healthySuccess != nil }
            if peaks { heads += ["peak", "peak 1 s"] }
            if singles { heads += ["healthy", "healthy p99"] }
            if scenario.burst != nil { heads.append("last s") }
            heads.append("wasted")
            if closes { heads.append("early/s") }
            var table = TextTable(heads: heads)
            for (_, subject, figures) in ofScenario {
                var row = [
                    subject.name, share(figures.success), share(figures.successInFault), ratio(figures.load),
                    ratio(figures.loadInFault), milliseconds(figures.medianSuccessSeconds),
                    milliseconds(figures.p99SuccessSeconds), milliseconds(figures.p99FailureSeconds),
                ]
                if recovers { row.append(figures.recovers == false ? "never" : figure(figures.recoverySeconds)) }
                if peaks {
                    row.append(ratio(StormTables.peakShare(figures, scenario)))
                    row.append(ratio(figures.peakSecondRate.map { $0 / scenario.server.capacity }))
                }
                if singles {
                    row += [share(figures.healthySuccess), milliseconds(figures.healthyP99SuccessSeconds)]
                }
                if scenario.burst != nil { row.append(figure(figures.lastSuccessSeconds)) }
                row.append(TextTable.figure(figures.wastedWork))
                if closes { row.append(ratio(figures.earlySends / max(figures.closedSeconds, 0.001))) }
                table.add(row)
            }
            return table.text
        }.joined(separator: "\n")
    }

    /// The plot of the first scenario over time; nil without a scenario.
    var plot: StormPlot? {
        guard let scenario = plan.scenarios.first, let reports = runs.reports.first else { return nil }
        let lines = zip(plan.subjects, reports).filter { !$1.isEmpty }.map { subject, reports in
            StormPlot.Line(name: subject.name, seconds: StormPlot.Second.means(of: reports.map(\.seconds)))
        }
        return StormPlot(scenario: scenario, lines: lines)
    }

    private var rows: [(scenario: StormScenario, subject: StormSubject, figures: StormFigures)] {
        zip(plan.scenarios, runs.reports).flatMap { scenario, row in
            zip(plan.subjects, row).filter { !$1.isEmpty }.map { (scenario, $0, $1.figures) }
        }
    }

    /// Attempts per call: during the fault if calls continue after it, otherwise in the whole run.
    static func load(_ figures: StormFigures, _ scenario: StormScenario) -> Double {
        let endsBefore = scenario.faultWindow.map { $0.upperBound < scenario.horizon } ?? false
        return scenario.burst == nil && endsBefore ? figures.loadInFault ?? figures.load : figures.load
    }

    /// The peak after the faults, relative to the server's capacity.
    static func peakShare(_ figures: StormFigures, _ scenario: StormScenario) -> Double? {
        figures.peakRate.map { $0 / scenario.server.capacity }
    }

    private func share(_ value: Double?) -> String { value.map { TextTable.percent($0) + " %" } ?? "" }
    private func ratio(_ value: Double?) -> String { value.map(TextTable.ratio) ?? "" }
    private func figure(_ value: Double?) -> String { value.map(TextTable.figure) ?? "" }
    private func milliseconds(_ seconds: Double?) -> String { seconds.map { TextTable.figure($0 * 1000) } ?? "" }
}

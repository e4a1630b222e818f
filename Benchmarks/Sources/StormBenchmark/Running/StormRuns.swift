// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Harness
internal import HoldfastSemantics
internal import HoldfastSimulation

/// The runs of every subject in every scenario.
struct StormRuns: Sendable {
    /// By scenario and subject, in the plan's order; empty if the time was over before.
    private(set) var reports: [[[StormReport]]]

    /// Whether the time was over before everything was run.
    var isCut: Bool { reports.contains { $0.contains { $0.isEmpty } } }

    /// Runs all scenarios with all subjects, several at a time.
    static func run(_ plan: Plan) async throws -> StormRuns {
        let watch = Stopwatch()
        var runs = StormRuns(
            reports: plan.scenarios.map { _ in Array(repeating: [], count: plan.subjects.count) }
        )
        let cells = StormRuns.order(plan)
        try await withThrowingTaskGroup(of: (Int, Int, [StormReport]).self) { group in
            var waiting = cells[...]
            func begin() {
                guard watch.seconds < plan.seconds, let (row, column) = waiting.popFirst() else { return }
                let (scenario, subject) = (plan.scenarios[row], plan.subjects[column])
                group.addTask { (row, column, try await Storm(scenario).run(subject)) }
            }
            for _ in 0..<plan.width { begin() }
            while let (row, column, reports) = try await group.next() {
                runs.reports[row][column] = reports
                begin()
            }
        }
        return runs
    }

    /// The order of the runs. Subjects that park come last because they take longest, in reverse order of the study, so that
    /// every table has something if the time runs out.
    static func order(_ plan: Plan) -> [(row: Int, column: Int)] {
        let cells = plan.scenarios.indices.flatMap { row in plan.subjects.indices.map { (row: row, column: $0) } }
        let parking = cells.filter { plan.subjects[$0.column].rules.parks }
        return cells.filter { !plan.subjects[$0.column].rules.parks } + parking.reversed()
    }
}

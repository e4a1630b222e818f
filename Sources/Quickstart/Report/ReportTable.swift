// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The runs as rows of text with aligned columns.
struct ReportTable: Sendable {
    /// The words of the head.
    static let head = [
        "run", "calls", "sent", "failed", "hit rate", "byte hit rate", "bytes saved", "p50", "p99",
    ]

    private let runs: [RunResult]

    /// A table with a row for each run.
    init(_ runs: [RunResult]) {
        self.runs = runs
    }

    /// The table, a line feed after each row; what a run without a cache cannot have is a dash.
    var text: String {
        let rows = [ReportTable.head] + runs.map { cells(of: $0) }
        let widths = ReportTable.head.indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
        let lines = rows.map { row in
            row.indices.map { column in
                let padding = String(repeating: " ", count: widths[column] - row[column].count)
                return column == 0 ? row[column] + padding : padding + row[column]
            }
            .joined(separator: "  ")
        }
        return lines.map { $0 + "\n" }.joined()
    }

    private func cells(of run: RunResult) -> [String] {
        let cache =
            run.cached
            ? [Quantity.percent(run.hitRatio), Quantity.percent(run.byteHitRatio), Quantity.bytes(run.bytesSaved)]
            : ["–", "–", "–"]
        return [run.name, "\(run.calls)", "\(run.sent)", "\(run.failed)"] + cache
            + [Quantity.time(run.p50ms), Quantity.time(run.p99ms)]
    }
}

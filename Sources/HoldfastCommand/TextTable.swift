// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Rows of text in columns, for people.
package struct TextTable: Sendable {
    /// The alignment of a column.
    package enum Alignment: Sendable { case left, right }

    private var rows: [[String]]
    private let alignments: [Alignment]

    /// Creates a table with this head; columns are aligned left by default.
    package init(_ head: [String], alignments: [Alignment] = []) {
        rows = [head]
        self.alignments = alignments
    }

    /// Adds a row.
    package mutating func add(_ row: [String]) {
        rows.append(row)
    }

    /// The lines, each with its line end. Text that does not fit into `width` is cut in the widest column, marked by "…"; nil
    /// cuts nothing.
    package func text(width: Int? = nil) -> String {
        let count = rows.map(\.count).max() ?? 0
        var widths = (0..<count).map { column in rows.map { column < $0.count ? $0[column].count : 0 }.max() ?? 0 }
        if let width {
            let spare = widths.reduce(0, +) + 2 * (count - 1) - width
            if spare > 0, let widest = widths.indices.max(by: { widths[$0] < widths[$1] }) {
                widths[widest] = max(8, widths[widest] - spare)
            }
        }
        return rows.map { row in
            var line = ""
            for (column, cell) in row.enumerated() {
                let cut = cell.count > widths[column] ? cell.prefix(widths[column] - 1) + "…" : cell[...]
                let space = String(repeating: " ", count: widths[column] - cut.count)
                let isRight = column < alignments.count && alignments[column] == .right
                line += (column > 0 ? "  " : "") + (isRight ? space + cut : cut + space)
            }
            while line.last == " " { line.removeLast() }
            return line + "\n"
        }.joined()
    }
}

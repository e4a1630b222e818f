// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What a run found, to be printed as tables or as one JSON object.
public struct Report: Sendable {
    /// The figures, in the order they were added.
    public private(set) var results: [Figure] = []
    /// What a reader of the figures has to know, one sentence each.
    public private(set) var notes: [String] = []

    /// An empty report.
    public init() {}

    /// Adds a figure; nil adds nothing.
    public mutating func add(_ figure: Figure?) {
        if let figure { results.append(figure) }
    }

    /// Adds a note, once.
    public mutating func note(_ text: String) {
        if !notes.contains(text) { notes.append(text) }
    }

    /// The figure of a subject in a case.
    public func value(_ name: String, _ subject: String) -> Double? {
        results.first { $0.name == name && $0.subject == subject }?.value
    }

    /// How many times as large a subject's figure is as another's in the same case; nil where either is missing or 0.
    public func ratio(_ name: String, _ subject: String, to other: String) -> Double? {
        guard let figure = value(name, subject), let base = value(name, other), base != 0 else { return nil }
        return figure / base
    }

    /// `{"results": [{"case": …, "subject": …, "value": …, "unit": …}, …]}` on one line; notes are left out.
    public var json: String {
        let rows = results.map { result in
            let words = [("case", result.name), ("subject", result.subject)]
                .map { "\(JSONText.quoted($0.0)): \(JSONText.quoted($0.1))" }
            let value = "\"value\": \(JSONText.number(result.value, places: result.places))"
            return "{" + (words + [value, "\"unit\": \(JSONText.quoted(result.unit))"]).joined(separator: ", ") + "}"
        }
        return "{\"results\": [" + rows.joined(separator: ", ") + "]}"
    }

    /// One table for each case, with each subject's figure against that of every subject in `bases`, then the notes.
    public func table(comparedWith bases: [String]) -> String {
        var names: [String] = []
        for result in results where !names.contains(result.name) { names.append(result.name) }
        var text = ""
        for name in names {
            let rows = results.filter { $0.name == name }
            let shown = bases.filter { base in rows.contains { $0.subject == base } && rows.count > 1 }
            var table = TextTable(heads: [name, rows[0].unit, "best", "spread"] + shown.map { "× \($0)" })
            for row in rows {
                table.add(
                    [
                        row.subject,
                        TextTable.figure(row.value),
                        row.best.map(TextTable.figure) ?? "",
                        row.spread.map { TextTable.figure($0 * 100) + " %" } ?? "",
                    ] + shown.map { base in ratio(name, row.subject, to: base).map(TextTable.ratio) ?? "" }
                )
            }
            text += table.text + "\n"
        }
        for note in notes { text += "note: \(note)\n" }
        return text
    }
}

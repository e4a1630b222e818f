// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The results of a run, which can be printed as tables or as one JSON object.
public struct Report: Sendable {
    /// The figures, in the order in which they were added.
    public private(set) var results: [Figure] = []
    /// What readers of the figures must know, one sentence each.
    public private(set) var notes: [String] = []

    /// Creates an empty report.
    public init() {}

    /// Adds a figure; nil adds nothing.
    public mutating func add(_ figure: Figure?) {
        if let figure { results.append(figure) }
    }

    /// Adds a note, unless it is already there.
    public mutating func note(_ text: String) {
        if !notes.contains(text) { notes.append(text) }
    }

    /// The figure of a subject in a case.
    public func value(_ name: String, _ subject: String) -> Double? {
        results.first { $0.name == name && $0.subject == subject }?.value
    }

    /// The ratio of a subject's figure to another's in the same case; nil if either is missing or the other is 0.
    public func ratio(_ name: String, _ subject: String, to other: String) -> Double? {
        guard let figure = value(name, subject), let base = value(name, other), base != 0 else { return nil }
        return figure / base
    }

    /// `{"results": [{"case": …, "subject": …, "value": …, "unit": …}, …]}` on one line; notes are left out.
    ///
    /// A subject that was not measured has the value null and the reason in `skipped`.
    public var json: String {
        let rows = results.map { result in
            var words = [("case", result.name), ("subject", result.subject)]
                .map { "\(JSONText.quoted($0.0)): \(JSONText.quoted($0.1))" }
            words.append("\"value\": \(JSONText.number(result.value, places: result.places))")
            words.append("\"unit\": \(JSONText.quoted(result.unit))")
            if let reason = result.skipped { words.append("\"skipped\": \(JSONText.quoted(reason))") }
            return "{" + words.joined(separator: ", ") + "}"
        }
        return "{\"results\": [" + rows.joined(separator: ", ") + "]}"
    }

    /// One table for each case, with each subject's figure relative to that of every subject in `bases`, then the notes.
    ///
    /// - Parameter companions: cases whose names end in a hyphen and one of these become columns of the case before the hyphen.
    public func table(comparedWith bases: [String], companions: [String] = []) -> String {
        var names: [String] = []
        for result in results where !names.contains(result.name) { names.append(result.name) }
        names.removeAll { name in companions.contains { name.hasSuffix("-" + $0) } }
        return names.map { table(of: $0, bases, companions) + "\n" }.joined() + notes.map { "note: \($0)\n" }.joined()
    }

    private func table(of name: String, _ bases: [String], _ companions: [String]) -> String {
        let rows = results.filter { $0.name == name }
        let measured = rows.filter { $0.skipped == nil }
        let shown = bases.filter { base in measured.count > 1 && measured.contains { $0.subject == base } }
        let beside = companions.filter { companion in results.contains { $0.name == "\(name)-\(companion)" } }
        var table = TextTable(heads: [name, rows[0].unit, "best", "spread"] + shown.map { "× \($0)" } + beside)
        for row in measured {
            var cells = [row.subject, TextTable.figure(row.value)]
            cells.append(row.best.map(TextTable.figure) ?? "")
            cells.append(row.spread.map { TextTable.figure($0 * 100) + " %" } ?? "")
            cells += shown.map { base in ratio(name, row.subject, to: base).map(TextTable.ratio) ?? "" }
            cells += beside.map { value("\(name)-\($0)", row.subject).map(TextTable.figure) ?? "" }
            table.add(cells)
        }
        return table.text + rows.map { row in row.skipped.map { "\(row.subject) skipped: \($0)\n" } ?? "" }.joined()
    }
}

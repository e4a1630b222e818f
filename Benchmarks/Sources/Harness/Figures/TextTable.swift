// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Rows of text in columns; the first column is left-aligned, the others right-aligned.
public struct TextTable: Sendable {
    private var rows: [[String]]

    /// Creates a table with these heads and no rows.
    public init(heads: [String]) {
        rows = [heads]
    }

    /// Adds a row; missing cells are empty.
    public mutating func add(_ row: [String]) {
        rows.append(row)
    }

    /// The table, one line per row.
    public var text: String {
        let columns = rows.map(\.count).max() ?? 0
        let widths = (0..<columns).map { column in
            rows.map { column < $0.count ? $0[column].count : 0 }.max() ?? 0
        }
        return rows.map { row in
            var line = ""
            for column in 0..<columns {
                let cell = column < row.count ? row[column] : ""
                let gap = String(repeating: " ", count: widths[column] - cell.count)
                line += column == 0 ? cell + gap : "  " + gap + cell
            }
            while line.hasSuffix(" ") { line.removeLast() }
            return line + "\n"
        }.joined()
    }

    /// A figure for people: with thousands separators, one decimal place below 100.
    public static func figure(_ value: Double) -> String {
        guard value.isFinite, abs(value) < 1e15 else { return "\(value)" }
        if abs(value) < 100 { return fixed(value, places: 1) }
        return count(Int(value.rounded()))
    }

    /// A whole number for people, with thousands separators.
    public static func count(_ value: Int) -> String {
        var digits = String(value.magnitude)
        var groups: [String] = []
        while digits.count > 3 {
            groups.insert(String(digits.suffix(3)), at: 0)
            digits.removeLast(3)
        }
        return (value < 0 ? "-" : "") + ([digits] + groups).joined(separator: ",")
    }

    /// A ratio for people: two decimal places below 10, one below 100, none above.
    public static func ratio(_ value: Double) -> String {
        if !value.isFinite { return "\(value)" }
        return abs(value) < 10 ? fixed(value, places: 2) : figure(value)
    }

    /// A share of 1 as a percentage for people, without the sign: always two decimal places.
    public static func percent(_ share: Double) -> String {
        share.isFinite && abs(share) < 1e12 ? fixed(share * 100, places: 2) : "\(share)"
    }

    /// Bytes for people, in decimal units with at least three digits: `512 B`, `2.80 MB`, `491 MB`.
    public static func bytes(_ count: Int) -> String {
        var (value, unit) = (Double(count), 0)
        let units = ["B", "kB", "MB", "GB", "TB", "PB", "EB"]
        while abs(value) >= 999.5, unit + 1 < units.count {
            value /= 1_000
            unit += 1
        }
        if unit == 0 { return "\(count) B" }
        let text =
            abs(value) < 9.995
            ? fixed(value, places: 2) : abs(value) < 99.95 ? fixed(value, places: 1) : "\(Int(value.rounded()))"
        return "\(text) \(units[unit])"
    }

    private static func fixed(_ value: Double, places: Int) -> String {
        let scale = places == 1 ? 10 : 100
        let whole = Int((abs(value) * Double(scale)).rounded())
        let digits = String(whole % scale)
        let padded = String(repeating: "0", count: places - digits.count) + digits
        return (value < 0 && whole != 0 ? "-" : "") + "\(whole / scale).\(padded)"
    }
}

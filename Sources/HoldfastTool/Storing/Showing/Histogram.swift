// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    /// How many things fall into which of some classes, drawn with bars.
    struct Histogram: Sendable {
        let title: String
        private(set) var rows: [(label: String, count: Int)]
        /// The first number that is beyond each class; the last has none.
        private let bounds: [Int]

        /// Classes that end before each bound, and one for what is beyond.
        init(_ title: String, _ classes: [(label: String, bound: Int)], beyond: String) {
            self.title = title
            bounds = classes.map(\.bound)
            rows = (classes.map(\.label) + [beyond]).map { ($0, 0) }
        }

        /// Counts that are known already.
        init(_ title: String, counted rows: [(label: String, count: Int)]) {
            self.title = title
            self.rows = rows
            bounds = []
        }

        mutating func add(_ number: Int) {
            rows[bounds.firstIndex { number < $0 } ?? bounds.count].count += 1
        }

        /// The lines, none wider than `width`; empty without counts.
        func text(width: Int) -> String {
            let most = rows.map(\.count).max() ?? 0
            guard most > 0 else { return "" }
            let (labels, counts) = (rows.map(\.label.count).max() ?? 0, String(most).count)
            let longest = min(60, max(8, width - labels - counts - 5))
            return title + "\n"
                + rows.map { label, count in
                    // Whoever is there at all shows.
                    let eighths = count == 0 ? 0 : max(1, Int(Double(count) / Double(most) * Double(longest * 8)))
                    let bar =
                        String(repeating: "█", count: eighths / 8)
                        + (eighths % 8 == 0 ? "" : ["▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8 - 1])
                    let text = String(count)
                    let space = String(repeating: " ", count: labels - label.count)
                    let pad = String(repeating: " ", count: counts - text.count)
                    return "  \(label)\(space) \(pad)\(text)" + (bar.isEmpty ? "" : " " + bar) + "\n"
                }.joined()
        }

        /// The counts by label.
        var json: JSONText {
            .array(rows.map { .object([("label", .string($0.label)), ("count", .int($0.count))]) })
        }
    }
#endif

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import Foundation
    internal import HoldfastCommand
    internal import HoldfastSemantics
    internal import HoldfastSimulation
    internal import HoldfastStorage

    /// The results of a replay as text; see the other files for JSON and pictures.
    struct ReplayReport: Sendable {
        /// The name of the input.
        let name: String
        let input: InputReader.Input
        let assumptions: [String]
        let policies: [ReplayPolicy]
        let sizes: [CacheSize]
        let outcome: ReplayRun.Outcome

        /// Bytes of all objects, also if only a sample was replayed.
        var workingSet: Int { input.whole(input.trace.uniqueBytes) }
        private var objects: Int { input.whole(input.trace.keyCount) }
        private var bytes: Int { input.whole(input.trace.totalBytes) }

        /// What was read, what was assumed, and the table.
        func text(width: Int) -> String {
            ([read, lookedUp].joined() + "\nAssumed:\n" + assumptions.map { Self.wrapped($0, at: width) }.joined())
                + "\n" + table
        }

        private var read: String {
            let account = input.account
            var text = "\(name): \(FigureText.count(account.requests, of: "request"))"
            if let span = account.span {
                let length = span.lowerBound.duration(to: span.upperBound).wholeMilliseconds
                text += ", \(LogTime.text(span.lowerBound)) to \(LogTime.text(span.upperBound)) UTC"
                text += " (\(FigureText.span(milliseconds: length)))"
            }
            text += "\n"
            if account.malformed > 0 {
                text += "  not understood: \(FigureText.grouped(account.malformed))\n"
                text += account.complaints.map { "    \($0)\n" }.joined()
                if account.malformed > account.complaints.count { text += "    …\n" }
            }
            if !account.methods.isEmpty { text += "  methods: \(Self.list(account.methods))\n" }
            return text
        }

        private var lookedUp: String {
            let account = input.account
            var text = ""
            if !account.bypassed.isEmpty {
                text +=
                    "  not looked up: \(FigureText.grouped(account.bypassed.total))\n" + Self.lines(account.bypassed)
            }
            text += "  looked up: \(FigureText.grouped(account.lookups))\n"
            if !account.unstored.isEmpty {
                text += "  looked up, but never kept: \(FigureText.grouped(account.unstored.total))\n"
                text += Self.lines(account.unstored)
            }
            let about = input.rate * input.recorded < 1 ? "about " : ""
            text +=
                "  replayed: \(about)\(FigureText.count(objects, of: "object")) with \(ByteCount(workingSet)) in total, "
            text += "\(ByteCount(bytes)) requested\n"
            if !account.unbounded.isEmpty {
                text += "  an unlimited cache, by these fields:\n" + Self.lines(account.unbounded)
            }
            return text
        }

        private var table: String {
            let ceiling = outcome.ceiling
            var text =
                "An unlimited cache hits \(FigureText.percent(ceiling.objectHitRatio)) of the requests looked up "
            text += "and \(FigureText.percent(ceiling.byteHitRatio)) of their bytes"
            if input.trace.hasLives {
                text +=
                    ";\nfor \(FigureText.percent(ceiling.expiredRatio)) more it has a stale copy that must be revalidated"
            }
            text += ".\n\n"
            // Four policies side by side fit on a line of 80.
            for start in stride(from: 0, to: policies.count, by: 4) {
                text += (start > 0 ? "\n" : "") + table(of: start..<min(start + 4, policies.count))
            }
            if input.trace.hasLives, policies.contains(where: \.isBound) {
                text +=
                    "\nbelady and belady-size know the future and ignore expiry: other policies can hardly do better.\n"
            } else if policies.contains(where: \.isBound) {
                text += "\nbelady and belady-size know the future: other policies can hardly do better.\n"
            }
            return text
        }

        private func table(of columns: Range<Int>) -> String {
            var table = TextTable(
                ["size", "of all"] + columns.flatMap { [policies[$0].name, "bytes"] },
                alignments: Array(repeating: .right, count: 2 + 2 * columns.count)
            )
            for (row, size) in sizes.enumerated() {
                let cells = columns.map { outcome.cells[$0 * sizes.count + row] }
                guard let first = cells.first else { continue }
                let share = workingSet > 0 ? Double(first.capacity) / Double(workingSet) : 0
                let shown = size.description.hasSuffix("%") ? size.description : FigureText.percent(share)
                table.add(
                    ["\(ByteCount(first.capacity))", shown]
                        + cells.flatMap {
                            [FigureText.percent($0.objectHitRatio), FigureText.percent($0.byteHitRatio)]
                        }
                )
            }
            return table.text()
        }

        private static func list(_ tally: Tally) -> String {
            tally.sorted.map { "\($0.word) \(FigureText.grouped($0.count))" }.joined(separator: ", ")
        }

        private static func lines(_ tally: Tally) -> String {
            let width = tally.sorted.map { FigureText.grouped($0.count).count }.max() ?? 0
            return tally.sorted.map { word, count in
                let number = FigureText.grouped(count)
                return "    " + String(repeating: " ", count: width - number.count) + number + "  \(word)\n"
            }.joined()
        }

        /// A list item with lines no longer than the terminal's.
        private static func wrapped(_ text: String, at width: Int) -> String {
            var lines = [""]
            for word in text.split(separator: " ") {
                if lines[lines.count - 1].count + word.count + 5 > max(40, width) { lines.append("") }
                lines[lines.count - 1] += (lines[lines.count - 1].isEmpty ? "" : " ") + word
            }
            return "  - " + lines.joined(separator: "\n    ") + "\n"
        }

        private struct Figure: Encodable {
            let `case`: String
            let subject: String
            let value: Double
            let unit: String
        }

        private struct Document: Encodable {
            let results: [Figure]
            let assumptions: [String]
            let malformed: [String]
        }

        /// One object for programs: `{"results": [{"case", "subject", "value", "unit"}, …], "assumptions": […], "malformed": […]}`.
        ///
        /// The case of a ratio is NAME@SIZE, that of a count NAME; ratios are 0 to 1, rounded to a millionth.
        var json: String {
            let account = input.account
            var results = [
                ("requests", account.requests), ("looked-up", account.lookups), ("not-kept", account.unstored.total),
                ("malformed", account.malformed),
                ("objects", objects),
            ].map { Figure(case: name, subject: "input", value: Double($0.1), unit: $0.0) }
            results.append(Figure(case: name, subject: "input", value: Double(workingSet), unit: "working-set-bytes"))
            for (label, tally) in [
                ("not-looked-up", account.bypassed), ("not-kept", account.unstored), ("unbounded", account.unbounded),
            ] {
                results += tally.sorted.map {
                    Figure(case: "\(name)@\(label)", subject: $0.word, value: Double($0.count), unit: "requests")
                }
            }
            results += ratios("\(name)@unbounded", cell: outcome.ceiling)
            for cell in outcome.cells { results += ratios("\(name)@\(cell.size)", cell: cell) }
            let document = Document(results: results, assumptions: assumptions, malformed: account.complaints)
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.withoutEscapingSlashes, .sortedKeys]
            // Only numbers and text, so this never fails.
            return (try? encoder.encode(document)).map { String(decoding: $0, as: UTF8.self) } ?? "{}"
        }

        private func ratios(_ name: String, cell: ReplayCell) -> [Figure] {
            func figure(_ value: Double, unit: String) -> Figure {
                Figure(case: name, subject: cell.policy.name, value: (value * 1e6).rounded() / 1e6, unit: unit)
            }
            return [
                figure(cell.objectHitRatio, unit: "object-hit-ratio"),
                figure(cell.byteHitRatio, unit: "byte-hit-ratio"),
            ] + (input.trace.hasLives && !cell.policy.isBound ? [figure(cell.expiredRatio, unit: "expired-ratio")] : [])
        }

        /// The curves as a picture.
        func plot(_ measure: HitRateMeasure) -> MissRatioPlot {
            let ratio: KeyPath<ReplayCell, Double> = measure == .object ? \.objectHitRatio : \.byteHitRatio
            let curves = policies.indices.map { index in
                let cells = outcome.cells[index * sizes.count..<(index + 1) * sizes.count]
                return MissRatioCurve(
                    name: policies[index].name,
                    points: cells.map { .init(size: Double($0.capacity), missRatio: 1 - $0[keyPath: ratio]) }
                )
            }
            return MissRatioPlot(title: name, measure: measure, axis: .bytes, curves: curves)
        }
    }

    /// Numbers for people.
    enum FigureText {
        /// `1,234,567`.
        static func grouped(_ number: Int) -> String {
            var text = ""
            for (index, digit) in String(number.magnitude).reversed().enumerated() {
                if index > 0, index % 3 == 0 { text.append(",") }
                text.append(digit)
            }
            return (number < 0 ? "-" : "") + String(text.reversed())
        }

        /// `41.2 %`.
        static func percent(_ ratio: Double) -> String {
            let tenths = Int((ratio * 1_000).rounded())
            return "\(tenths / 10).\(tenths % 10) %"
        }

        /// `1 object`, `2 objects`.
        static func count(_ number: Int, of noun: String) -> String {
            "\(grouped(number)) \(noun)\(number == 1 ? "" : "s")"
        }

        /// The length of a time span, in the largest unit that gives at least 2.
        static func span(milliseconds: Int64) -> String {
            let seconds = Double(milliseconds) / 1_000
            for (unit, length) in [("days", 86_400.0), ("hours", 3_600), ("minutes", 60)] where seconds >= 2 * length {
                return "\((seconds / length * 10).rounded() / 10) \(unit)"
            }
            return "\((seconds * 10).rounded() / 10) seconds"
        }
    }
#endif

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Harness
internal import HoldfastSimulation

/// The figures of all traces: tables for people, rows for programs.
struct HitRateFigures: Sendable {
    /// The mean of one subject's cells.
    struct Mean: Sendable {
        let object: Double
        let byte: Double
        let written: Double
        let amplification: Double
        let speed: Double

        /// Returns nil without cells, or if one is missing, because a mean over fewer cells is not comparable.
        init?(_ cells: [Cell?]) {
            let found = cells.compactMap { $0 }
            guard !found.isEmpty, found.count == cells.count else { return nil }
            func mean(_ value: (Cell) -> Double) -> Double { found.map(value).reduce(0, +) / Double(found.count) }
            object = mean(\.result.objectHitRatio)
            byte = mean(\.result.byteHitRatio)
            written = mean(\.result.writesPerByte)
            amplification = mean(\.result.writeAmplification)
            speed = 1 / mean { 1 / $0.requestsPerSecond }
        }
    }

    let plan: Plan
    let replays: [Replays]

    /// Whether the time was over before everything was replayed.
    var isCut: Bool { replays.contains { $0.cells.contains { $0 == nil } } }

    /// Rows for programs: three for each cell, and for each mean if there are several traces.
    var report: Report {
        var report = Report()
        for (name, rows) in blocks {
            for (subject, mean) in rows {
                report.add(Figure(name, subject, mean.object, "object-hit-ratio", places: 6))
                report.add(Figure(name, subject, mean.byte, "byte-hit-ratio", places: 6))
                report.add(Figure(name, subject, mean.amplification, "write-amplification", places: 6))
            }
        }
        return report
    }

    /// Tables for people.
    var text: String {
        var text = ""
        for replay in replays {
            text += "\(replay.name): \(TextTable.count(replay.requests)) requests for "
            text += "\(TextTable.count(replay.keys)) keys, \(TextTable.bytes(replay.totalBytes)), "
            text += "\(TextTable.bytes(replay.uniqueBytes)) of them unique; "
            text += "an unlimited cache hits \(TextTable.percent(replay.bestObject)) % of the requests and "
            text += "\(TextTable.percent(replay.bestByte)) % of the bytes\n"
        }
        for (name, rows) in blocks where !rows.isEmpty {
            var table = TextTable(heads: [name, "object %", "byte %", "written", "ampl.", "Mreq/s"])
            for (subject, mean) in rows {
                table.add([
                    subject, TextTable.percent(mean.object), TextTable.percent(mean.byte),
                    TextTable.ratio(mean.written), TextTable.ratio(mean.amplification),
                    TextTable.ratio(mean.speed / 1e6),
                ])
            }
            text += "\n" + table.text
        }
        return text
    }

    /// Every case with its subjects: each trace at each size, the mean of the traces at each size, and the mean of all.
    private var blocks: [(name: String, rows: [(subject: String, mean: Mean)])] {
        var blocks: [(String, [(String, Mean)])] = []
        func add(_ name: String, _ cells: (Subject) -> [Cell?]) {
            blocks.append(
                (name, plan.subjects.compactMap { subject in Mean(cells(subject)).map { (subject.name, $0) } })
            )
        }
        for replay in replays {
            for size in plan.sizes { add("\(replay.name)@\(size)") { [replay.cell($0, size)] } }
        }
        guard replays.count > 1 else { return blocks }
        for size in plan.sizes {
            add("mean@\(size)") { subject in replays.map { $0.cell(subject, size) } }
        }
        if plan.sizes.count > 1 {
            add("mean") { subject in replays.flatMap { replay in plan.sizes.map { replay.cell(subject, $0) } } }
        }
        return blocks
    }
}

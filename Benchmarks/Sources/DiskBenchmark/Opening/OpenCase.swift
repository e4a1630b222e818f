// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Harness

/// Opens a store with a million small entries, and measures the memory of its index.
///
/// Filling and opening each run in a separate process, so that any growth of the process's memory is due to the store.
struct OpenCase {
    let plan: Plan
    let scratch: ScratchDirectory
    let fillSeconds: Double

    /// Measures the case.
    ///
    /// - Returns: a finding if entries were lost between close and open; the figures are then left out.
    func run(into report: inout Report) async throws -> [String] {
        let directory = scratch.path(of: "open")
        defer { scratch.dropLargeFiles() }
        Program.say("open: writing at most \(plan.openEntries) entries")
        let filled = try OpenChild.fill(directory, entries: plan.openEntries, seconds: fillSeconds).launch()
        guard filled.entries > 0 else { return ["holdfast wrote no entries, so the open cases cannot run."] }
        let name = "open-" + Plan.countName(filled.entries)
        if filled.entries < plan.openEntries {
            report.note("\(filled.entries) of \(plan.openEntries) entries were written before the time limit.")
        }
        Program.say(name)
        var (cached, evicted): ([Double], [Double]) = ([], [])
        var (kept, grown): ([Double], [Double]) = ([], [])
        var lost: Int?
        for round in 0..<max(plan.cachedOpens, plan.evictedOpens) {
            if round < plan.evictedOpens {
                if try PageCache.evict(below: directory) {
                    let answer = try OpenChild.open(directory).launch()
                    evicted.append(answer.milliseconds)
                    if answer.entries != filled.entries { lost = answer.entries }
                } else {
                    report.note(
                        "This system cannot evict the files from the page cache; evicted opens were not measured."
                    )
                }
            }
            if round < plan.cachedOpens {
                // An uncounted open brings the files back into the cache first.
                if round == 0 || round <= plan.evictedOpens { _ = try OpenChild.open(directory).launch() }
                let answer = try OpenChild.open(directory).launch()
                cached.append(answer.milliseconds)
                if answer.entries != filled.entries { lost = answer.entries }
                if let bytes = answer.keptBytes { kept.append(Double(bytes) / Double(answer.entries)) }
                if let bytes = answer.grownBytes { grown.append(Double(bytes) / Double(answer.entries)) }
            }
        }
        if let lost {
            return [
                "holdfast found \(lost) entries in \(name), but the store had \(filled.entries) when it was closed."
            ]
        }
        report.add(Figure(name, "holdfast", Sample(cached), "ms"))
        report.add(Figure(name + "-evicted", "holdfast", Sample(evicted), "ms"))
        report.add(Figure("index-bytes-per-entry", "holdfast", Sample(kept), "bytes"))
        if let bytes = filled.keptBytes {
            let figure = Double(bytes) / Double(filled.entries)
            report.add(Figure("index-bytes-per-entry", "holdfast-filled", figure, "bytes"))
        }
        report.add(Figure("open-resident-bytes-per-entry", "holdfast", Sample(grown), "bytes"))
        let perEntry = filled.milliseconds * 1e6 / Double(filled.entries)
        report.add(Figure("open-fill-put", "holdfast", perEntry, "ns"))
        return []
    }
}

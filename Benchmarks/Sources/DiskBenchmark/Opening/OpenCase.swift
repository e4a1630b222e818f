// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Harness

/// Opening a store of a million small entries, and the memory its index takes.
///
/// Filling and opening each happen in a process of their own, so that the growth of its memory is the store's.
struct OpenCase {
    let plan: Plan
    let scratch: ScratchDirectory
    let fillSeconds: Double

    /// Measures.
    ///
    /// - Returns: that entries were lost between close and open, if they were; the figures are left out then.
    func run(into report: inout Report) async throws -> [String] {
        let directory = scratch.path(of: "open")
        defer { scratch.dropLargeFiles() }
        Program.say("open: writing up to \(plan.openEntries) entries")
        let filled = try OpenChild.fill(directory, entries: plan.openEntries, seconds: fillSeconds).launch()
        guard filled.entries > 0 else { return ["holdfast wrote no entry to open a store with."] }
        let name = "open-" + Plan.countName(filled.entries)
        if filled.entries < plan.openEntries {
            report.note("\(filled.entries) of \(plan.openEntries) entries were there when filling ended.")
        }
        Program.say(name)
        var (cached, evicted): ([Double], [Double]) = ([], [])
        var (kept, grown): ([Double], [Double]) = ([], [])
        var lost: Int?
        for round in 0..<max(plan.cachedOpens, plan.evictedOpens) {
            if round < plan.evictedOpens {
                if try PageCache.evict(beneath: directory) {
                    let answer = try OpenChild.open(directory).launch()
                    evicted.append(answer.milliseconds)
                    if answer.entries != filled.entries { lost = answer.entries }
                } else {
                    report.note("The page cache could not be told to drop the files; evicted opens were not measured.")
                }
            }
            if round < plan.cachedOpens {
                // An open before the first one counted brings the files back into the cache.
                if round == 0 || round <= plan.evictedOpens { _ = try OpenChild.open(directory).launch() }
                let answer = try OpenChild.open(directory).launch()
                cached.append(answer.milliseconds)
                if answer.entries != filled.entries { lost = answer.entries }
                if let bytes = answer.keptBytes { kept.append(Double(bytes) / Double(answer.entries)) }
                if let bytes = answer.grownBytes { grown.append(Double(bytes) / Double(answer.entries)) }
            }
        }
        if let lost { return ["holdfast found \(lost) entries in \(name) where \(filled.entries) were at the close."] }
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

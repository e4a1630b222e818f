// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Harness
internal import HoldfastSimulation

/// All cells of one trace.
struct Replays: Sendable {
    /// The name of the trace.
    let name: String
    let requests: Int
    let keys: Int
    let totalBytes: Int
    let uniqueBytes: Int
    /// The share of all keys that the trace contains.
    let rate: Double
    let bestObject: Double
    let bestByte: Double
    /// By size, then by subject, in the plan's order; nil if the time was over before.
    let cells: [Cell?]

    /// Replays a trace with all subjects at all sizes, several at a time.
    static func run(
        _ name: String,
        _ trace: RequestTrace,
        rate: Double = 1,
        _ plan: Plan,
        _ watch: Stopwatch
    ) async -> Replays {
        let rate = plan.rate ?? rate
        let jobs = plan.sizes.flatMap { size in plan.subjects.map { (size, $0) } }
        let needsBound = plan.subjects.contains(where: \.isBound)
        let bound = needsBound ? BeladyBound(trace, sizesTellVersions: plan.sizesTellVersions) : nil
        let line = ProgressLine(name, total: jobs.count * trace.requests.count)
        defer { line.end() }
        var cells: [Cell?] = Array(repeating: nil, count: jobs.count)
        await withTaskGroup(of: (Int, Cell?).self) { group in
            var next = 0
            func begin() {
                guard next < jobs.count else { return }
                let (index, (size, subject)) = (next, jobs[next])
                next += 1
                group.addTask {
                    if watch.seconds > plan.seconds { return (index, nil) }
                    return (index, Cell(subject, size, trace, bound, rate: rate, plan) { line.advance($0) })
                }
            }
            for _ in 0..<plan.width { begin() }
            for await (index, cell) in group {
                cells[index] = cell
                begin()
            }
        }
        return Replays(
            name: name,
            requests: trace.requests.count,
            keys: trace.keyCount,
            totalBytes: trace.totalBytes,
            uniqueBytes: trace.uniqueBytes,
            rate: rate,
            // By key, only the first request for a key misses.
            bestObject: plan.sizesTellVersions
                ? trace.unboundedObjectHitRatio
                : share(trace.requests.count - trace.keyCount, of: trace.requests.count),
            bestByte: plan.sizesTellVersions
                ? trace.unboundedByteHitRatio : share(trace.totalBytes - trace.uniqueBytes, of: trace.totalBytes),
            cells: cells
        )
    }

    private static func share(_ part: Int, of whole: Int) -> Double {
        whole > 0 ? Double(part) / Double(whole) : 0
    }

    /// The cell of a subject at a size; nil if there is none.
    func cell(_ subject: Subject, _ size: CacheSize) -> Cell? {
        cells.lazy.compactMap { $0 }.first { $0.subject == subject && $0.size == size }
    }
}

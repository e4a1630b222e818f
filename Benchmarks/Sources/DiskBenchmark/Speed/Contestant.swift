// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Harness

/// A subject with what was measured of it in the case that runs.
struct Contestant {
    let kind: SubjectKind
    let subject: any Subject
    /// Nanoseconds for an operation, one figure a turn.
    var figures: [Double] = []
    /// Nanoseconds of processors for an operation, one figure a turn.
    var processorFigures: [Double] = []
    /// What it moved, all turns together.
    var tally = TransferTally()

    /// Lets the subject do steps until they are done or the time is over.
    ///
    /// - Parameters:
    ///   - limit: nanoseconds after which no further steps begin.
    ///   - isCounted: false for a warm-up.
    mutating func turn(_ steps: [Step], limit: UInt64, isCounted: Bool) async throws {
        guard !steps.isEmpty else { return }
        let before = ProcessCounters.transfer()
        let (watch, processor) = (Stopwatch(), ProcessCounters.processorTime())
        var (done, elapsed, size) = (0, UInt64(0), kind.isSlow ? 1 : 8)
        while done < steps.count, elapsed < limit {
            let end = min(steps.count, done + size)
            try await subject.run(steps[done..<end])
            let now = watch.nanoseconds
            // The clock is asked about every 2 ms: rarely enough to cost nothing, often enough to stop a slow subject.
            if now - elapsed < 2_000_000 { size *= 2 }
            (done, elapsed) = (end, now)
        }
        let spent = ProcessCounters.processorTime() - processor
        if let before, let after = ProcessCounters.transfer() {
            let puts = steps[..<done].count { $0.isPut }
            tally.add(after.since(before), gets: done - puts, puts: puts)
        }
        guard isCounted else { return }
        figures.append(Double(elapsed) / Double(done))
        processorFigures.append(Double(spent) / Double(done))
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Harness

/// A subject with its measurements in the current case.
struct Contestant {
    let kind: SubjectKind
    let subject: any Subject
    /// Nanoseconds per operation, one figure per turn.
    var figures: [Double] = []
    /// Nanoseconds of processor time per operation, one figure per turn.
    var processorFigures: [Double] = []
    /// The transferred bytes of all turns.
    var tally = TransferTally()

    /// Runs steps until all are done or the time limit is reached.
    ///
    /// - Parameters:
    ///   - limit: No further steps begin after this many nanoseconds.
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
            // The clock is read about every 2 ms: rarely enough to cost nothing, often enough to stop a slow subject.
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

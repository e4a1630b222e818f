// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Harness
internal import Synchronization

/// The shared state of the tasks in a reclaim run.
final class ReclaimBoard: Sendable {
    /// The combined results of the tasks.
    struct Outcome: Sendable {
        var waits = LatencyHistogram()
        var hits = 0
        var writes = 0
        var peak = 0
    }

    private let newestEntry: Atomic<Int>
    private let hasEnded = Atomic(false)
    private let found = Mutex(Outcome())
    private let clock = Stopwatch()
    private let length: Double

    init(newest: Int, seconds: Int) {
        newestEntry = Atomic(newest)
        length = Double(seconds)
    }

    /// The number of the next entry to write.
    var newest: Int {
        get { newestEntry.load(ordering: .relaxed) }
        set { newestEntry.store(newValue, ordering: .relaxed) }
    }

    /// Seconds since the start.
    var seconds: Double { clock.seconds }

    /// Whether the time is over or one of the tasks has ended.
    var isOver: Bool { hasEnded.load(ordering: .relaxed) || seconds >= length }

    /// Tells the other tasks to stop, also when one fails, so that its error is reported at once.
    func end() {
        hasEnded.store(true, ordering: .relaxed)
    }

    /// Adds to the results.
    func note(_ change: (inout Outcome) -> Void) {
        found.withLock { change(&$0) }
    }

    /// The results after all tasks have ended.
    var outcome: Outcome { found.withLock { $0 } }
}

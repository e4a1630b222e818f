// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Harness
internal import Synchronization

/// What the tasks of a reclaim run tell each other.
final class ReclaimBoard: Sendable {
    /// What they found, all together.
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

    /// The number of the entry that will be written next.
    var newest: Int {
        get { newestEntry.load(ordering: .relaxed) }
        set { newestEntry.store(newValue, ordering: .relaxed) }
    }

    /// Seconds since the start.
    var seconds: Double { clock.seconds }

    /// Whether the time is over or one of the tasks has ended.
    var isOver: Bool { hasEnded.load(ordering: .relaxed) || seconds >= length }

    /// Tells the others to stop: also when one fails, so that its error is not waited for in vain.
    func end() {
        hasEnded.store(true, ordering: .relaxed)
    }

    /// Adds to what was found.
    func note(_ change: (inout Outcome) -> Void) {
        found.withLock { change(&$0) }
    }

    /// What was found, once all tasks have ended.
    var outcome: Outcome { found.withLock { $0 } }
}

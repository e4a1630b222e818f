// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastTesting
import Synchronization

/// Runs jobs only when it is told to, one after another: in the order in which they came, or in one that the seed says.
final class StepwiseExecutor: TaskExecutor {
    private struct State {
        var jobs: [UnownedJob] = []
        var random: SeededGenerator
    }

    private let state: Mutex<State>
    private let isShuffled: Bool

    init(seed: UInt64, isShuffled: Bool = true) {
        self.isShuffled = isShuffled
        state = Mutex(State(random: SeededGenerator(seed: seed)))
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        state.withLock { $0.jobs.append(job) }
    }

    /// Runs what is queued, and what that queues, until nothing is left; by one thread at a time.
    ///
    /// - Returns: whether anything ran.
    func drain() -> Bool {
        guard step() else { return false }
        while step() {}
        return true
    }

    /// Runs one job; false where there is none.
    func step() -> Bool {
        let next: UnownedJob? = state.withLock { state in
            if state.jobs.isEmpty { return nil }
            return state.jobs.remove(
                at: isShuffled ? Int.random(in: 0..<state.jobs.count, using: &state.random) : 0
            )
        }
        next?.runSynchronously(on: asUnownedTaskExecutor())
        return next != nil
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

private import Synchronization

/// Runs jobs only when its driver says so, one after another, on the driver's thread, in the order in which they came.
///
/// Tasks made with it as their preference stay on it through every await of code that has no executor of its own. An
/// unstructured `Task` without the preference escapes to the default executor, and the driver does not see it.
final class SimulationExecutor: TaskExecutor {
    private let jobs = Mutex<[UnownedJob]>([])

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        jobs.withLock { $0.append(job) }
    }

    /// Runs what is queued, and what that queues, until nothing is left; to be called by one thread at a time.
    func drain() {
        while true {
            let batch = jobs.withLock { jobs in
                let batch = jobs
                jobs.removeAll(keepingCapacity: true)
                return batch
            }
            if batch.isEmpty { return }
            for job in batch { job.runSynchronously(on: asUnownedTaskExecutor()) }
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Dispatch
internal import Synchronization

/// Runs tasks on the thread that waits for them, one job after the other, so that all they cost is counted and is the same each time.
final class Line: TaskExecutor {
    private let jobs = Mutex<[UnownedJob]>([])
    /// Counts the jobs, and what a run ended: a thread that looked again and again would be counted too.
    private let arrivals = DispatchSemaphore(value: 0)

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        jobs.withLock { $0.append(job) }
        arrivals.signal()
    }

    /// Runs an operation to its end, with all that it began.
    func run(_ operation: @escaping @Sendable () async -> Void) {
        let ended = Ended()
        Task(executorPreference: self) {
            await operation()
            ended.isSet.store(true, ordering: .releasing)
        }
        while true {
            arrivals.wait()
            let next = jobs.withLock { $0.isEmpty ? nil : $0.removeFirst() }
            next?.runSynchronously(on: asUnownedTaskExecutor())
            if ended.isSet.load(ordering: .acquiring) { return }
        }
    }

    private final class Ended: Sendable {
        let isSet = Atomic(false)
    }
}

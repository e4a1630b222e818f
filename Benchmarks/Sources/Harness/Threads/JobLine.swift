// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Dispatch
internal import Synchronization

/// A queue of task jobs that one thread executes.
public final class JobLine: TaskExecutor {
    private let jobs = Mutex<(waiting: [UnownedJob], hasEnded: Bool)>(([], false))
    private let signal = DispatchSemaphore(value: 0)

    /// Creates an empty line, which no thread executes yet.
    public init() {}

    public func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        jobs.withLock { $0.waiting.append(job) }
        signal.signal()
    }

    /// Executes jobs on the calling thread until ``end()``.
    public func work() {
        while true {
            signal.wait()
            let (job, hasEnded): (UnownedJob?, Bool) = jobs.withLock { jobs in
                (jobs.waiting.isEmpty ? nil : jobs.waiting.removeFirst(), jobs.hasEnded)
            }
            if let job {
                job.runSynchronously(on: asUnownedTaskExecutor())
            } else if hasEnded {
                return
            }
        }
    }

    /// Makes ``work()`` return when the line is empty.
    public func end() {
        jobs.withLock { $0.hasEnded = true }
        signal.signal()
    }

    /// Runs an operation to its end on the calling thread. No other thread takes part, unless the operation uses one.
    public static func run<Outcome: Sendable>(
        _ operation: @escaping @Sendable (JobLine) async throws -> Outcome
    ) throws -> Outcome {
        let line = JobLine()
        let found = Mutex<Result<Outcome, any Error>?>(nil)
        Task(executorPreference: line) {
            let result: Result<Outcome, any Error>
            do { result = .success(try await operation(line)) } catch { result = .failure(error) }
            found.withLock { $0 = result }
            line.end()
        }
        line.work()
        guard let result = found.withLock({ $0 }) else { throw CancellationError() }
        return try result.get()
    }
}

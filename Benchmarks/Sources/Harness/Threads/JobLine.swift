// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Dispatch
internal import Synchronization

/// Jobs of tasks in a line, done by the one thread that works on it.
public final class JobLine: TaskExecutor {
    private let jobs = Mutex<(waiting: [UnownedJob], hasEnded: Bool)>(([], false))
    private let signal = DispatchSemaphore(value: 0)

    /// An empty line, on which nobody works yet.
    public init() {}

    public func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        jobs.withLock { $0.waiting.append(job) }
        signal.signal()
    }

    /// Works on the calling thread until ``end()``.
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

    /// Has ``work()`` return once the line is empty.
    public func end() {
        jobs.withLock { $0.hasEnded = true }
        signal.signal()
    }

    /// Does an operation to its end on the calling thread: no other thread takes part, unless the operation asks one.
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

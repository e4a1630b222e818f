// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// Runs work that outlives the call that began it: exchanges that several calls wait for, and revalidations that none waits for.
///
/// It holds no task longer than it runs; the number of tasks is limited by the waiting callers and the cache's own limits.
final class BackgroundTasks: Sendable {
    private struct State {
        var running = 0
        var drained: [CheckedContinuation<Void, Never>] = []
    }

    private let executor: (any TaskExecutor)?
    private let state = Mutex(State())

    /// - Parameter executor: where the tasks run; nil: on the default executor.
    init(executor: (any TaskExecutor)? = nil) { self.executor = executor }

    /// How many tasks run now.
    var count: Int { state.withLock { $0.running } }

    /// Runs an operation in a separate task, which the caller may cancel.
    func spawn(_ operation: @escaping @Sendable () async -> Void) -> Task<Void, Never> {
        state.withLock { $0.running += 1 }
        return Task(executorPreference: executor) { [self] in
            await operation()
            ended()
        }
    }

    /// Runs a part of a call where its other tasks run: ``drain()`` does not wait for it, because its caller does.
    func start(_ operation: @escaping @Sendable () async -> Void) -> Task<Void, Never> {
        Task(executorPreference: executor, operation: operation)
    }

    /// Waits until no task runs, including tasks that begin meanwhile; returns at once if there are none.
    func drain() async {
        await withCheckedContinuation { continuation in
            let isIdle = state.withLock { state in
                if state.running == 0 { return true }
                state.drained.append(continuation)
                return false
            }
            if isIdle { continuation.resume() }
        }
    }

    private func ended() {
        let drained: [CheckedContinuation<Void, Never>] = state.withLock { state in
            state.running -= 1
            guard state.running == 0 else { return [] }
            defer { state.drained = [] }
            return state.drained
        }
        for continuation in drained { continuation.resume() }
    }
}

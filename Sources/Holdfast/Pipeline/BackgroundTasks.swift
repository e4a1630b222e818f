// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// Runs work that outlives the call that began it: exchanges that several calls wait for, and revalidations that none waits for.
///
/// It holds no task longer than it runs; the number of tasks is limited by the waiting callers and the cache's own limits.
final class BackgroundTasks: Sendable {
    private struct State {
        var running = 0
        var waiters: [UInt64: CheckedContinuation<Void, Never>] = [:]
        var lastWaiter: UInt64 = 0
    }

    private let executor: (any TaskExecutor)?
    private let state = Mutex(State())

    /// - Parameter executor: where the tasks run; nil: on the default executor.
    init(executor: (any TaskExecutor)? = nil) { self.executor = executor }

    /// How many tasks run now.
    var count: Int { state.withLock { $0.running } }

    /// How many tasks wait in ``drain()``.
    var waiterCount: Int { state.withLock { $0.waiters.count } }

    /// Runs an operation in a separate task, which the caller may cancel.
    func spawn(_ operation: @escaping @Sendable () async -> Void) -> Task<Void, Never> {
        state.withLock { $0.running += 1 }
        return Task(executorPreference: executor) { [self] in
            await operation()
            ended()
        }
    }

    /// Runs a part of a call where its other tasks run: ``drain()`` does not wait for it, because its caller does.
    func start<Value: Sendable>(_ operation: @escaping @Sendable () async -> Value) -> Task<Value, Never> {
        Task(executorPreference: executor, operation: operation)
    }

    /// Waits until no task runs, including tasks that begin meanwhile; returns at once if there are none, or if the waiting task is
    /// cancelled.
    func drain() async {
        let waiter = state.withLock { state in
            state.lastWaiter += 1
            return state.lastWaiter
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let waits = state.withLock { state in
                    guard state.running > 0, !Task.isCancelled else { return false }
                    state.waiters[waiter] = continuation
                    return true
                }
                if !waits { continuation.resume() }
            }
        } onCancel: {
            state.withLock { $0.waiters.removeValue(forKey: waiter) }?.resume()
        }
    }

    private func ended() {
        let waiters: [UInt64: CheckedContinuation<Void, Never>] = state.withLock { state in
            state.running -= 1
            guard state.running == 0 else { return [:] }
            defer { state.waiters = [:] }
            return state.waiters
        }
        for continuation in waiters.values { continuation.resume() }
    }
}

// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

private import Synchronization

/// Counts what happened, and lets tasks wait until it has happened often enough.
final class LoopbackCounter: Sendable {
    private struct Waiter {
        let target: Int
        let continuation: CheckedContinuation<Void, any Error>
    }

    private struct State {
        var count = 0
        var nextWaiter = 0
        var waiters: [Int: Waiter] = [:]
        var cancelled: Set<Int> = []
    }

    private let state = Mutex(State())

    /// How often it has happened.
    var count: Int { state.withLock { $0.count } }

    /// It happened once more.
    func increment() {
        let ready = state.withLock { state in
            state.count += 1
            let ready = state.waiters.filter { $0.value.target <= state.count }
            for id in ready.keys { state.waiters[id] = nil }
            return ready.values.map(\.continuation)
        }
        for continuation in ready { continuation.resume() }
    }

    /// Waits until it has happened `target` times.
    ///
    /// - Throws: `CancellationError` when the task is cancelled.
    func reach(_ target: Int) async throws {
        let id = state.withLock { state in
            state.nextWaiter += 1
            return state.nextWaiter
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let outcome: Result<Void, any Error>? = state.withLock { state in
                    // The cancellation handler may have run before the waiter was there.
                    if state.cancelled.remove(id) != nil { return .failure(CancellationError()) }
                    if state.count >= target { return .success(()) }
                    state.waiters[id] = Waiter(target: target, continuation: continuation)
                    return nil
                }
                if let outcome { continuation.resume(with: outcome) }
            }
        } onCancel: {
            let waiter = state.withLock { state in
                guard let waiter = state.waiters.removeValue(forKey: id) else {
                    state.cancelled.insert(id)
                    return Waiter?.none
                }
                return waiter
            }
            waiter?.continuation.resume(throwing: CancellationError())
        }
    }
}

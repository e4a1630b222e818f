// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

private import Synchronization

/// A number that only grows, and that tasks can wait for: how tests wait for a thing to happen without sleeping.
public final class CountWatch: Sendable {
    private struct Waiter {
        let id: UInt64
        let threshold: Int
        let continuation: CheckedContinuation<Void, any Error>
    }

    private struct State {
        var count = 0
        var nextID: UInt64 = 0
        var waiters: [Waiter] = []
        var cancelled: Set<UInt64> = []
    }

    private let state = Mutex(State())

    /// A watch that stands at 0.
    public init() {}

    /// How far it has counted.
    public var count: Int {
        state.withLock { $0.count }
    }

    /// Counts one further and wakes those who waited for it.
    public func increment() {
        let ready: [Waiter] = state.withLock { state in
            state.count += 1
            let count = state.count
            let ready = state.waiters.filter { $0.threshold <= count }
            state.waiters.removeAll { $0.threshold <= count }
            return ready
        }
        for waiter in ready { waiter.continuation.resume() }
    }

    /// Waits until the count is at least `threshold`; returns at once when it is.
    ///
    /// - Throws: `CancellationError` when the task is cancelled.
    public func wait(for threshold: Int) async throws {
        let id = state.withLock { state in
            state.nextID += 1
            return state.nextID
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let outcome: Result<Void, any Error>? = state.withLock { state in
                    if state.cancelled.remove(id) != nil { return .failure(CancellationError()) }
                    if state.count >= threshold { return .success(()) }
                    state.waiters.append(Waiter(id: id, threshold: threshold, continuation: continuation))
                    return nil
                }
                if let outcome { continuation.resume(with: outcome) }
            }
        } onCancel: {
            let waiter: Waiter? = state.withLock { state in
                guard let index = state.waiters.firstIndex(where: { $0.id == id }) else {
                    state.cancelled.insert(id)
                    return nil
                }
                return state.waiters.remove(at: index)
            }
            waiter?.continuation.resume(throwing: CancellationError())
        }
        state.withLock { _ = $0.cancelled.remove(id) }
    }
}

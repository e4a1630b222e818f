// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

private import Synchronization

/// A mark that only rises, and the tasks that each wait until it reaches a value; used by counts and clocks.
final class WaitingList<Mark: Comparable & Sendable>: Sendable {
    private struct Waiter {
        let id: UInt64
        let mark: Mark
        let continuation: CheckedContinuation<Void, any Error>
    }

    private struct State {
        var reached: Mark
        var nextID: UInt64 = 0
        var waiters: [Waiter] = []
        var cancelled: Set<UInt64> = []
    }

    private let state: Mutex<State>

    init(_ start: Mark) { state = Mutex(State(reached: start)) }

    /// The mark's value.
    var reached: Mark { state.withLock { $0.reached } }

    /// How many tasks are waiting.
    var count: Int { state.withLock { $0.waiters.count } }

    /// Raises the mark and wakes the tasks that it reaches, in the order of their values, then in the order of their arrival.
    func raise(_ change: (Mark) -> Mark) {
        let due: [Waiter] = state.withLock { state in
            let reached = max(state.reached, change(state.reached))
            state.reached = reached
            let due = state.waiters.filter { $0.mark <= reached }
            state.waiters.removeAll { $0.mark <= reached }
            return due.sorted { ($0.mark, $0.id) < ($1.mark, $1.id) }
        }
        for waiter in due { waiter.continuation.resume() }
    }

    /// Waits until the mark is at least `mark`; returns at once if it is.
    ///
    /// - Parameter onListed: called once it is decided whether the task waits; not called if it was cancelled before.
    /// - Throws: `CancellationError` promptly if the task is cancelled.
    func wait(for mark: Mark, onListed: () -> Void = {}) async throws {
        try Task.checkCancellation()
        let id = state.withLock { state in
            state.nextID += 1
            return state.nextID
        }
        defer { state.withLock { _ = $0.cancelled.remove(id) } }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let outcome: Result<Void, any Error>? = state.withLock { state in
                    if state.cancelled.contains(id) { return .failure(CancellationError()) }
                    if mark <= state.reached { return .success(()) }
                    state.waiters.append(Waiter(id: id, mark: mark, continuation: continuation))
                    return nil
                }
                onListed()
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
    }
}

/// A number that only grows and that tasks can wait for, so that tests wait for an event without sleeping.
public final class CountWatch: Sendable {
    private let list = WaitingList(0)

    /// A count of 0.
    public init() {}

    /// The count.
    public var count: Int { list.reached }

    /// Adds one and wakes the tasks that waited for it.
    public func increment() { list.raise { $0 + 1 } }

    /// Waits until the count is at least `threshold`; returns at once if it is.
    ///
    /// - Throws: `CancellationError` if the task is cancelled.
    public func wait(for threshold: Int) async throws { try await list.wait(for: threshold) }
}

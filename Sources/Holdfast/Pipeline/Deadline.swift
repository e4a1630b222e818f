// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics
private import Synchronization

/// Runs `operation`, but no longer than until `deadline` on `clock`.
///
/// For operations that may not heed cancellation: neither the deadline nor cancellation of the caller waits for the
/// operation to return. It is cancelled, and a result that comes too late goes to `discard`.
///
/// - Throws: ``ServiceError`` `.timeout` at the deadline, `CancellationError` at once when the caller is cancelled, or what
///   the operation throws.
package func withDeadline<Success: Sendable>(
    _ deadline: MonotonicInstant,
    on clock: any HoldfastClock,
    discard: @escaping @Sendable (Success) -> Void,
    operation: @escaping @Sendable () async throws -> Success
) async throws -> Success {
    let race = Race<Success>(discard: discard)
    return try await withTaskCancellationHandler {
        try await withCheckedThrowingContinuation { continuation in
            guard race.begin(continuation) else { return }
            let runner = Task {
                do {
                    race.end(.success(try await operation()))
                } catch {
                    race.end(.failure(error))
                }
            }
            let timer = Task {
                do {
                    try await clock.sleep(until: deadline)
                    race.end(.failure(timeout))
                } catch {
                    // The timer was cancelled: the race is over.
                }
            }
            race.adopt([runner, timer])
        }
    } onCancel: {
        race.end(.failure(CancellationError()))
    }
}

private let timeout = ServiceError(
    .timeout,
    "The server sent no response head in time; allow more time, or find out why the server is slow.",
    progress: .bodySent
)

/// First come, first served between an operation, its timer and its caller's cancellation.
private final class Race<Success: Sendable>: Sendable {
    private enum State {
        case idle
        case running(CheckedContinuation<Success, any Error>, [Task<Void, Never>])
        case ended
    }

    private let state = Mutex(State.idle)
    private let discard: @Sendable (Success) -> Void

    init(discard: @escaping @Sendable (Success) -> Void) {
        self.discard = discard
    }

    /// Starts the race; false when the caller was cancelled before, and then `continuation` has been resumed.
    func begin(_ continuation: CheckedContinuation<Success, any Error>) -> Bool {
        let begun: Bool = state.withLock { state in
            guard case .idle = state else { return false }
            state = .running(continuation, [])
            return true
        }
        if !begun { continuation.resume(throwing: CancellationError()) }
        return begun
    }

    /// Takes over the runners, to cancel them when the race ends; at once when it has.
    func adopt(_ tasks: [Task<Void, Never>]) {
        let over: Bool = state.withLock { state in
            guard case .running(let continuation, _) = state else { return true }
            state = .running(continuation, tasks)
            return false
        }
        if over { for task in tasks { task.cancel() } }
    }

    func end(_ result: Result<Success, any Error>) {
        typealias Winner = (CheckedContinuation<Success, any Error>, [Task<Void, Never>])
        let (winner, late): (Winner?, Bool) = state.withLock { state in
            switch state {
            case .idle:
                state = .ended
                return (nil, false)
            case .running(let continuation, let tasks):
                state = .ended
                return ((continuation, tasks), false)
            case .ended:
                return (nil, true)
            }
        }
        if let (continuation, tasks) = winner {
            continuation.resume(with: result)
            for task in tasks { task.cancel() }
        } else if late, case .success(let value) = result {
            discard(value)
        }
    }
}
